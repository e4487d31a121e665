// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "unwind/python_merge.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define MAX_RUNS GPUCOLLECT_MAX_PYTHON_WORDS
#define NO_PLACE UINT32_MAX		/* its call was not met */
#define ENDED (UINT32_MAX - 1)		/* its call is over */

/* Frames of one call of the interpreter: words [first, end) of the chain. */
struct run {
	uint32_t first, end;
	uint32_t place;			/* index among the native words, or NO_PLACE, ENDED */
	uint32_t order;
};

struct merge {
	const __u64 *words;		/* the chain */
	size_t nr;
	const __u64 *native;
	size_t nr_native;
	struct run run[MAX_RUNS];
	size_t nr_runs;
	bool cut;			/* there are more frames */
	bool more;			/* there is one call more than frames */
	__u64 *out;
	size_t nr_out;
};

static bool is_chain(__u64 word)
{
	return FRAME_KIND(word) >= FRAME_PYTHON && FRAME_KIND(word) <= FRAME_RUN_MORE;
}

size_t python_merge__chain(const __u64 *words, size_t nr)
{
	size_t i = 0;

	while (i < nr && is_chain(words[i]))
		i++;
	return i;
}

/* --- runs and their places ------------------------------------------------------------------ */

static void add_run(struct merge *m, size_t first, size_t end, uint32_t place)
{
	if (m->nr_runs < MAX_RUNS)
		m->run[m->nr_runs++] = (struct run){ (uint32_t)first, (uint32_t)end, place, 0 };
}

static uint32_t place_of(__u64 word)
{
	if (FRAME_KIND(word) != FRAME_RUN)
		return NO_PLACE;
	return FRAME_ADDRESS(word) == FRAME_NOWHERE ? ENDED : (uint32_t)FRAME_ADDRESS(word);
}

/* Of lists that are cut into runs: each begins with its place. */
static void find_runs(struct merge *m)
{
	size_t i, end;

	for (i = 0; i < m->nr; i = end) {
		for (end = i + 1; end < m->nr && FRAME_KIND(m->words[end]) < FRAME_RUN; end++)
			;
		if (FRAME_KIND(m->words[i]) == FRAME_RUN || FRAME_KIND(m->words[i]) == FRAME_RUN_AT)
			add_run(m, i + 1, end, place_of(m->words[i]));
		else if (FRAME_KIND(m->words[i]) == FRAME_RUN_CUT)
			m->cut = true;
		else if (FRAME_KIND(m->words[i]) == FRAME_RUN_MORE)
			m->more = true;
	}
}

/* A call that begins or ends is in one of the two lists of 3.10 alone, the one of calls or of frames. */
static void shift(struct merge *m)
{
	size_t nr = m->nr_runs, i;
	struct run *last = nr ? &m->run[nr - 1] : NULL;

	if (nr > 1 && m->more) {
		for (i = 0; i + 1 < nr; i++)
			m->run[i].place = m->run[i + 1].place;
		m->nr_runs--;
	} else if (nr && last->place == ENDED) {
		for (i = 0; i + 1 < nr; i++)
			m->run[i].first = m->run[i + 1].first, m->run[i].end = m->run[i + 1].end;
		m->nr_runs--;
	}
}

/* Each frame is a run; frames and calls go together one by one, counted from the outermost. */
static void find_calls(struct merge *m, bool (*is_call)(void *ctx, __u64 word), void *ctx)
{
	size_t nr_calls = 0, nr, skip = 0, i;
	__u64 last = m->nr_native ? m->native[m->nr_native - 1] : 0;

	for (i = 1; i + 1 < m->nr; i += 2) {
		if (FRAME_KIND(m->words[i]) != FRAME_PYTHON)
			break;
		add_run(m, i, i + 2, NO_PLACE);
	}
	m->cut = m->nr && FRAME_KIND(m->words[m->nr - 1]) == FRAME_RUN_CUT;
	for (i = 0; is_call && i < m->nr_native; i++)
		nr_calls += is_call(ctx, m->native[i]);
	nr = m->nr_runs;
	/* The innermost call may not have its frame in the list yet. */
	if (!m->cut && FRAME_KIND(last) == FRAME_END && FRAME_END_WHY(last) == END_ROOT && nr_calls > nr)
		skip = nr_calls - nr;
	for (i = 0, nr = 0; nr_calls && i < m->nr_native && nr < m->nr_runs; i++) {
		if (!is_call(ctx, m->native[i]))
			continue;
		if (skip)
			skip--;
		else
			m->run[nr++].place = (uint32_t)i;
	}
}

/* Runs of more than one interpreter, each in its own order: in the order of the stack. */
static int compare_runs(const void *left, const void *right)
{
	const struct run *a = left, *b = right;

	if (a->order != b->order)
		return a->order < b->order ? -1 : 1;
	return (a->first > b->first) - (a->first < b->first);
}

static void sort(struct merge *m)
{
	uint32_t order = NO_PLACE;
	bool sorted = true;
	size_t i;

	/* What has no place stays before the next that has. */
	for (i = m->nr_runs; i > 0; i--) {
		struct run *r = &m->run[i - 1];

		if (r->place != NO_PLACE)
			sorted &= r->place <= order, order = r->place;
		r->order = order;
	}
	if (!sorted)
		qsort(m->run, m->nr_runs, sizeof(m->run[0]), compare_runs);
}

/* --- the result ----------------------------------------------------------------------------- */

static void put(struct merge *m, __u64 word)
{
	m->out[m->nr_out++] = word;
}

/* Runs [from, to); a mark behind those that have no place. */
static void put_runs(struct merge *m, size_t from, size_t to)
{
	bool lost = false;
	size_t i;

	for (i = from; i < to; i++) {
		const struct run *r = &m->run[i];

		if (lost && r->place != NO_PLACE)
			put(m, (__u64)FRAME_RUN_AT << 60);
		memcpy(&m->out[m->nr_out], &m->words[r->first], (r->end - r->first) * sizeof(__u64));
		m->nr_out += r->end - r->first;
		lost = r->place == NO_PLACE && (lost || r->end > r->first);
	}
	if (lost)
		put(m, (__u64)FRAME_RUN_AT << 60);
	if (m->cut && to == m->nr_runs)
		put(m, (__u64)FRAME_RUN_CUT << 60);
}

/* The first run from `from` on that has a place; nr_runs: none. */
static size_t next_placed(const struct merge *m, size_t from)
{
	while (from < m->nr_runs && m->run[from].place == NO_PLACE)
		from++;
	return from;
}

static void put_all(struct merge *m)
{
	size_t run = 0, placed = next_placed(m, 0), i;

	for (i = 0; i < m->nr_native; i++) {
		bool last = i + 1 == m->nr_native && FRAME_KIND(m->native[i]) == FRAME_END;

		if (placed < m->nr_runs && m->run[placed].place == i) {
			put_runs(m, run, placed + 1);
			run = placed + 1;
			placed = next_placed(m, run);
		} else if (last && run < m->nr_runs) {
			put_runs(m, run, m->nr_runs);
			run = m->nr_runs;
		}
		put(m, m->native[i]);
	}
	if (run < m->nr_runs)
		put_runs(m, run, m->nr_runs);
}

size_t python_merge(const __u64 *words, size_t nr, bool (*is_call)(void *ctx, __u64 word), void *ctx,
		    __u64 *out)
{
	struct merge m = { .words = words, .nr = python_merge__chain(words, nr), .out = out };

	m.native = words + m.nr;
	m.nr_native = nr - m.nr;
	if (m.nr && FRAME_KIND(words[0]) == FRAME_RUN_EACH) {
		find_calls(&m, is_call, ctx);
	} else {
		find_runs(&m);
		shift(&m);
		sort(&m);
	}
	put_all(&m);
	return m.nr_out;
}
