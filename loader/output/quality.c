// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "loader/output/quality.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "loader/base/array.h"

/* Bits of a stack: bit enum profile_mark, then this. */
#define BIT_GUESS (1u << 31)
_Static_assert(NR_PROFILE_MARKS <= 31, "bits of a stack");

#define NO_FILE UINT32_MAX

struct assessing {
	const struct profile *p;
	struct quality *q;
	uint32_t *bits;		/* by node: of the stack from the root to it */
	uint64_t *events;	/* by node: of all stacks that pass it */
	uint32_t *file;		/* by frame: index into files, or NO_FILE */
	size_t files_size;
	size_t *seen;		/* by file: the last event that counted it */
};

static uint32_t bits_of(const struct profile_frame *f)
{
	if (f->kind == PROFILE_MARK)
		return 1u << f->id;
	return f->flags & PROFILE_GUESS ? BIT_GUESS : 0;
}

static bool is_function(const struct profile_frame *f)
{
	return f->kind == PROFILE_NATIVE || f->kind == PROFILE_KERNEL || f->kind == PROFILE_PYTHON;
}

/* Counts are the target's, and so is the depth of its stacks. */
static void add(uint64_t *sum, uint64_t n)
{
	if (__builtin_add_overflow(*sum, n, sum))
		*sum = UINT64_MAX;
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

static void blame(struct assessing *a, uint32_t file, size_t event, uint64_t count)
{
	if (a->seen[file] == event)
		return;
	a->seen[file] = event;
	add(&a->q->files[file].no_unwind_info, count);
}

/*
 * Adds an event to the files that spoil its stack. A guess stands at the caller, whose address
 * the frame pointer gave: what lacked unwind information is the file of the frame inside of it.
 */
static void blame_files(struct assessing *a, uint32_t node, size_t event, uint64_t count)
{
	uint32_t inner = NO_FILE, frame, file;

	for (; node != PROFILE_ROOT; node = profile__node_parent(a->p, node), inner = file) {
		const struct profile_frame *f;

		frame = profile__node_frame(a->p, node);
		f = profile__frame_at(a->p, frame);
		file = a->file[frame];
		if ((f->flags & PROFILE_GUESS) && inner != NO_FILE)
			blame(a, inner, event, count);
		if (f->kind == PROFILE_MARK && file != NO_FILE)
			blame(a, file, event, count);
	}
}

static void assess_event(struct assessing *a, const struct profile_value *v, size_t event)
{
	uint32_t bits = a->bits[v->node];
	struct quality *q = a->q;
	int i;

	add(&a->events[v->node], v->count);
	add(&q->events, v->count);
	if (!bits)
		add(&q->complete, v->count);
	if (bits & BIT_GUESS)
		add(&q->guessed, v->count);
	for (i = 0; i < NR_PROFILE_MARKS; i++)
		if (bits & 1u << i)
			add(&q->marks[i], v->count);
	if (bits)
		blame_files(a, v->node, event, v->count);
}

/* From the leaves to the root: a node's events are its own and those of its children. */
static void assess_names(struct assessing *a)
{
	struct quality *q = a->q;
	uint32_t node;

	for (node = profile__nr_nodes(a->p) - 1; node != PROFILE_ROOT; node--) {
		uint32_t frame = profile__node_frame(a->p, node);
		const struct profile_frame *f = profile__frame_at(a->p, frame);
		uint64_t n = a->events[node];

		add(&a->events[profile__node_parent(a->p, node)], n);
		if (!is_function(f))
			continue;
		add(&q->frames, n);
		add(&q->unresolved[f->unresolved], n);
		if (f->unresolved && a->file[frame] != NO_FILE)
			add(&q->files[a->file[frame]].no_symbols, n);
	}
}

/* The larger of a file's two shares. */
static double worst(const struct quality *q, const struct quality_file *f)
{
	double unwind = q->events ? (double)f->no_unwind_info / (double)q->events : 0;
	double names = q->frames ? (double)f->no_symbols / (double)q->frames : 0;

	return unwind > names ? unwind : names;
}

static int file_cmp(const void *a, const void *b, void *quality)
{
	const struct quality_file *x = a, *y = b;
	double p = worst(quality, x), q = worst(quality, y);

	if (p != q)
		return p < q ? 1 : -1;
	return strcmp(x->module, y->module);
}

static void sort_files(struct quality *q)
{
	size_t i, kept = 0;

	for (i = 0; i < q->nr_files; i++)
		if (q->files[i].no_unwind_info || q->files[i].no_symbols)
			q->files[kept++] = q->files[i];
	q->nr_files = kept;
	if (kept)
		qsort_r(q->files, kept, sizeof(*q->files), file_cmp, q);
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
	a.events = calloc(nr, sizeof(*a.events));
	a.file = calloc((size_t)profile__nr_frames(p) + 1, sizeof(*a.file));
	if (!a.bits || !a.events || !a.file || number_files(&a))
		goto out;
	a.seen = calloc(q->nr_files + 1, sizeof(*a.seen));
	if (!a.seen)
		goto out;
	for (i = 1; i < nr; i++)
		a.bits[i] = a.bits[profile__node_parent(p, i)] |
			    bits_of(profile__frame_at(p, profile__node_frame(p, i)));
	while (profile__next(p, &pos, &v))
		if (is_event(&v, launches))
			assess_event(&a, &v, pos);	/* pos: never 0, never the same */
	assess_names(&a);
	sort_files(q);
	err = 0;
out:
	free(a.bits);
	free(a.events);
	free(a.file);
	free(a.seen);
	if (err)
		quality__free(q);
	return err;
}

void quality__free(struct quality *q)
{
	free(q->files);
	memset(q, 0, sizeof(*q));
}

const char *quality__mark(char *buf, enum profile_mark mark)
{
	const char *text = profile__mark_text(mark), *hole = strstr(text, ": %s");

	snprintf(buf, QUALITY_MARK, "%.*s%s", (int)(hole ? (size_t)(hole - text) : strlen(text)), text,
		 hole ? "]" : "");
	return buf;
}
