// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "loader/output/quality.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "loader/base/array.h"

/* Bits of a stack: bit enum profile_mark, then these. */
#define BIT_UNRESOLVED(why) (1u << (16 + (why)))
#define BIT_GUESS (1u << 31)
#define MARK_BITS ((1u << NR_PROFILE_MARKS) - 1)
_Static_assert(NR_PROFILE_MARKS <= 16 && NR_PROFILE_UNRESOLVED <= 15, "bits of a stack");

#define NO_FILE UINT32_MAX

struct assessing {
	const struct profile *p;
	struct quality *q;
	uint32_t *bits;		/* by node: of the stack from the root to it */
	uint32_t *file;		/* by frame: index into files, or NO_FILE */
	size_t files_size;
	size_t *seen_unwind;	/* by file: the last event that counted it */
	size_t *seen_symbols;
};

static uint32_t bits_of(const struct profile_frame *f)
{
	uint32_t bits = 0;

	if (f->kind == PROFILE_MARK)
		return 1u << f->id;
	if (f->unresolved)
		bits |= BIT_UNRESOLVED(f->unresolved);
	if (f->flags & PROFILE_GUESS)
		bits |= BIT_GUESS;
	return bits;
}

struct named_frame {
	const char *module;
	uint32_t frame;
};

static int named_frame_cmp(const void *a, const void *b)
{
	const struct named_frame *x = a, *y = b;

	return strcmp(x->module, y->module);
}

/* Gives the frames' modules numbers. */
static int number_files(struct assessing *a)
{
	uint32_t nr = profile__nr_frames(a->p), i;
	struct named_frame *list = calloc((size_t)nr + 1, sizeof(*list));
	struct quality *q = a->q;
	size_t nr_list = 0, j;
	int err = 0;

	if (!list)
		return -ENOMEM;
	for (i = 0; i < nr; i++) {
		const struct profile_frame *f = profile__frame_at(a->p, i);

		a->file[i] = NO_FILE;
		if (f->module && f->kind != PROFILE_GPU)
			list[nr_list++] = (struct named_frame){ f->module, i };
	}
	if (nr_list)
		qsort(list, nr_list, sizeof(*list), named_frame_cmp);
	for (j = 0; j < nr_list; j++) {
		if (!j || strcmp(list[j].module, list[j - 1].module)) {
			err = array__reserve((void **)&q->files, &a->files_size, q->nr_files,
					     sizeof(*q->files));
			if (err)
				break;
			q->files[q->nr_files++] = (struct quality_file){ .module = list[j].module };
		}
		a->file[list[j].frame] = (uint32_t)q->nr_files - 1;
	}
	free(list);
	return err;
}

static void blame(size_t *seen, uint64_t *sum, size_t event, uint64_t count)
{
	if (*seen == event)
		return;
	*seen = event;
	*sum += count;
}

/*
 * Adds an event to the files that spoil its stack. A guess stands at the caller, whose address
 * the frame pointer gave: what lacked unwind information is the file of the frame inside of it.
 */
static void blame_files(struct assessing *a, uint32_t node, size_t event, uint64_t count)
{
	struct quality_file *files = a->q->files;
	uint32_t inner = NO_FILE, frame, file;

	for (; node != PROFILE_ROOT; node = profile__node_parent(a->p, node), inner = file) {
		const struct profile_frame *f;

		frame = profile__node_frame(a->p, node);
		f = profile__frame_at(a->p, frame);
		file = a->file[frame];
		if ((f->flags & PROFILE_GUESS) && inner != NO_FILE)
			blame(&a->seen_unwind[inner], &files[inner].no_unwind_info, event, count);
		if (file == NO_FILE)
			continue;
		if (f->kind == PROFILE_MARK)
			blame(&a->seen_unwind[file], &files[file].no_unwind_info, event, count);
		else if (f->unresolved)
			blame(&a->seen_symbols[file], &files[file].no_symbols, event, count);
	}
}

static void assess_event(struct assessing *a, const struct profile_value *v, size_t event)
{
	uint32_t bits = a->bits[v->node];
	struct quality *q = a->q;
	int i;

	q->events += v->count;
	if (!(bits & (MARK_BITS | BIT_GUESS)))
		q->complete += v->count;
	if (bits & BIT_GUESS)
		q->guessed += v->count;
	for (i = 0; i < NR_PROFILE_MARKS; i++)
		if (bits & 1u << i)
			q->marks[i] += v->count;
	for (i = 1; i < NR_PROFILE_UNRESOLVED; i++)
		if (bits & BIT_UNRESOLVED(i))
			q->unresolved[i] += v->count;
	if (!(bits & ~(MARK_BITS | BIT_GUESS)))
		q->unresolved[PROFILE_RESOLVED] += v->count;
	if (bits)
		blame_files(a, v->node, event, v->count);
}

static uint64_t worst(const struct quality_file *f)
{
	return f->no_unwind_info > f->no_symbols ? f->no_unwind_info : f->no_symbols;
}

static int file_cmp(const void *a, const void *b)
{
	const struct quality_file *x = a, *y = b;

	if (worst(x) != worst(y))
		return worst(x) < worst(y) ? 1 : -1;
	return strcmp(x->module, y->module);
}

static void sort_files(struct quality *q)
{
	size_t i, kept = 0;

	for (i = 0; i < q->nr_files; i++)
		if (worst(&q->files[i]))
			q->files[kept++] = q->files[i];
	q->nr_files = kept;
	if (kept)
		qsort(q->files, kept, sizeof(*q->files), file_cmp);
}

static bool is_event(const struct profile_value *v, bool launches)
{
	if (launches)
		return v->metric == PROFILE_LAUNCHES;
	return v->metric == PROFILE_CPU_NS || v->metric == PROFILE_CPU_SAMPLES;
}

int quality__new(const struct profile *p, bool launches, struct quality *q)
{
	struct assessing a = { .p = p, .q = q };
	uint32_t nr = profile__nr_nodes(p), i;
	struct profile_value v;
	size_t pos = 0;
	int err = -ENOMEM;

	memset(q, 0, sizeof(*q));
	a.bits = calloc(nr, sizeof(*a.bits));
	a.file = calloc((size_t)profile__nr_frames(p) + 1, sizeof(*a.file));
	if (!a.bits || !a.file || number_files(&a))
		goto out;
	a.seen_unwind = calloc(q->nr_files + 1, sizeof(*a.seen_unwind));
	a.seen_symbols = calloc(q->nr_files + 1, sizeof(*a.seen_symbols));
	if (!a.seen_unwind || !a.seen_symbols)
		goto out;
	for (i = 1; i < nr; i++)
		a.bits[i] = a.bits[profile__node_parent(p, i)] |
			    bits_of(profile__frame_at(p, profile__node_frame(p, i)));
	while (profile__next(p, &pos, &v))
		if (is_event(&v, launches))
			assess_event(&a, &v, pos);	/* pos: never 0, never the same */
	sort_files(q);
	err = 0;
out:
	free(a.bits);
	free(a.file);
	free(a.seen_unwind);
	free(a.seen_symbols);
	if (err)
		quality__free(q);
	return err;
}

void quality__free(struct quality *q)
{
	free(q->files);
	memset(q, 0, sizeof(*q));
}
