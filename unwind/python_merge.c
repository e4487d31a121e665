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
	bool cut;			/* there are more frames outside of it */
};

struct merge {
	const __u64 *words;		/* the chain */
	size_t nr;
	const __u64 *native;
	size_t nr_native;
	struct run run[MAX_RUNS];
	size_t nr_runs;
	bool more;			/* there is one call more than frames */
	bool (*is_call)(void *ctx, __u64 word);
	void *ctx;
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
		m->run[m->nr_runs++] = (struct run){
			.first = (uint32_t)first, .end = (uint32_t)end, .place = place,
		};
}

static uint32_t place_of(__u64 word)
{
	if (FRAME_KIND(word) != FRAME_RUN)
		return NO_PLACE;
	return FRAME_ADDRESS(word) == FRAME_NOWHERE ? ENDED : (uint32_t)FRAME_ADDRESS(word);
}

static bool is_call_at(const struct merge *m, size_t native)
{
	return m->is_call && m->is_call(m->ctx, m->native[native]);
}

static bool is_taken(const struct merge *m, size_t native)
{
	for (size_t i = 0; i < m->nr_runs; i++)
		if (m->run[i].place == native)
			return true;
	return false;
}

/* Of a run whose place was not known when it was recorded: the next call outside of the run before. */
static void find_place(struct merge *m, size_t run)
{
	size_t i = run ? m->run[run - 1].place + 1ull : 0;

	while (i < m->nr_native && (!is_call_at(m, i) || is_taken(m, i)))
		i++;
	if (i < m->nr_native)
		m->run[run].place = (uint32_t)i;
}

/* There are more frames outside of the last one. */
static void cut(struct merge *m)
{
	size_t last = m->nr_runs;
	__u64 word;

	while (last > 0 && m->run[last - 1].first == m->run[last - 1].end)
		last--;
	if (!m->nr_runs)
		add_run(m, 0, 0, NO_PLACE);
	m->run[(last ? last : m->nr_runs) - 1].cut = true;
	if (!last)
		return;
	word = m->words[m->run[last - 1].first - 1];
	if (FRAME_KIND(word) == FRAME_RUN_AT && !FRAME_MARKER(word))
		find_place(m, last - 1);
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
			cut(m);
		else if (FRAME_KIND(m->words[i]) == FRAME_RUN_MORE)
			m->more = true;
	}
}

static void move_frames(struct run *to, const struct run *from)
{
	to->first = from->first;
	to->end = from->end;
	to->cut = from->cut;
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
			move_frames(&m->run[i], &m->run[i + 1]);
		m->nr_runs--;
	}
}

/*
 * Each frame is a run; frames and calls go together one by one, counted from the outermost. The innermost
 * call may not have its frame in the list yet.
 */
static void find_calls(struct merge *m)
{
	__u64 last = m->nr_native ? m->native[m->nr_native - 1] : 0;
	size_t nr_calls = 0, nr_runs, left = 0, skip = 0, run = 0, i;
	bool is_whole = FRAME_KIND(last) == FRAME_END && FRAME_END_WHY(last) == END_ROOT;

	for (i = 1; i + 1 < m->nr && FRAME_KIND(m->words[i]) == FRAME_PYTHON; i += 2)
		add_run(m, i, i + 2, NO_PLACE);
	nr_runs = m->nr_runs;
	if (FRAME_KIND(m->words[m->nr - 1]) == FRAME_RUN_CUT) {
		left = FRAME_ADDRESS(m->words[m->nr - 1]);
		is_whole &= left != 0;
		cut(m);
	}
	for (i = 0; i < m->nr_native; i++)
		nr_calls += is_call_at(m, i);
	if (is_whole && nr_calls > nr_runs + left)
		skip = nr_calls - nr_runs - left;
	for (i = 0; i < m->nr_native && run < nr_runs; i++) {
		if (!is_call_at(m, i))
			continue;
		if (skip)
			skip--;
		else
			m->run[run++].place = (uint32_t)i;
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

/* Runs [from, to); a mark behind those that have no place, another where there are more frames. */
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
		if (!r->cut)
			continue;
		if (lost)
			put(m, (__u64)FRAME_RUN_AT << 60);
		put(m, (__u64)FRAME_RUN_CUT << 60);
		lost = false;
	}
	if (lost)
		put(m, (__u64)FRAME_RUN_AT << 60);
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
	struct merge m = {
		.words = words,
		.nr = python_merge__chain(words, nr),
		.is_call = is_call,
		.ctx = ctx,
		.out = out,
	};

	m.native = words + m.nr;
	m.nr_native = nr - m.nr;
	if (m.nr && FRAME_KIND(words[0]) == FRAME_RUN_EACH) {
		find_calls(&m);
	} else {
		find_runs(&m);
		shift(&m);
		sort(&m);
	}
	put_all(&m);
	return m.nr_out;
}
