// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* A walk through the boxes in the order of their texts: sorted lines without holding them. */
#include "loader/output/folded.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "loader/base/array.h"
#include "loader/base/text.h"
#include "loader/output/boxes.h"

/*
 * What is written below a box, in this order: the lines that end in a child, and the longer ones
 * that go through it. As sort keys "child" and "child;": a blank sorts before ';', so the two
 * kinds don't always follow each other.
 */
struct item {
	uint64_t key;		/* parent << 32 | rank of the text */
	uint32_t box;
	bool through;
};

struct folding {
	struct boxes boxes;
	struct item *items;
	size_t nr_items;
};

struct ranked {
	const char *text;
	uint32_t id;		/* of the text, times two, plus one for "text;" */
};

static int ranked_cmp(const void *a, const void *b)
{
	const struct ranked *x = a, *y = b;
	const unsigned char *s = (const unsigned char *)x->text;
	const unsigned char *t = (const unsigned char *)y->text;
	int c, d;

	for (; *s && *s == *t; s++, t++)
		;
	/* Texts hold no ';', so that one end or the other decides here. */
	c = *s ? *s : (x->id & 1 ? ';' : 0);
	d = *t ? *t : (y->id & 1 ? ';' : 0);
	return (c > d) - (c < d);
}

static int item_cmp(const void *a, const void *b)
{
	const struct item *x = a, *y = b;

	return (x->key > y->key) - (x->key < y->key);
}

/* The place in the order of "text" (2 * id) and "text;" (2 * id + 1). */
static uint32_t *ranks(const struct folding *o)
{
	size_t nr = o->boxes.nr_texts * 2, i;
	struct ranked *r = calloc(nr + 1, sizeof(*r));
	uint32_t *rank = calloc(nr + 1, sizeof(*rank));

	if (!r || !rank) {
		free(r);
		free(rank);
		return NULL;
	}
	for (i = 0; i < nr; i++)
		r[i] = (struct ranked){ .text = o->boxes.texts[i / 2], .id = (uint32_t)i };
	if (nr)
		qsort(r, nr, sizeof(*r), ranked_cmp);
	for (i = 0; i < nr; i++)
		rank[r[i].id] = (uint32_t)i;
	free(r);
	return rank;
}

static int folding__sort(struct folding *o)
{
	bool *through = calloc(o->boxes.nr, sizeof(*through));
	uint32_t *rank = ranks(o);
	size_t i;
	int err = -ENOMEM;

	o->items = calloc(o->boxes.nr * 2, sizeof(*o->items));
	if (!through || !rank || !o->items)
		goto out;
	for (i = 1; i < o->boxes.nr; i++)
		through[o->boxes.list[i].parent] = true;
	for (i = 1; i < o->boxes.nr; i++) {
		const struct box *b = &o->boxes.list[i];
		uint64_t parent = (uint64_t)b->parent << 32;

		if (b->weight)
			o->items[o->nr_items++] = (struct item){
				.key = parent | rank[b->text * 2], .box = (uint32_t)i,
			};
		if (through[i])
			o->items[o->nr_items++] = (struct item){
				.key = parent | rank[b->text * 2 + 1], .box = (uint32_t)i,
				.through = true,
			};
	}
	if (o->nr_items)
		qsort(o->items, o->nr_items, sizeof(*o->items), item_cmp);
	err = 0;
out:
	free(through);
	free(rank);
	return err;
}

/* --- writing --- */

static int write_line(const struct text *stack, uint64_t weight, FILE *f,
		      struct folded_stats *stats)
{
	char end[TEXT_FIGURE];
	int n = snprintf(end, sizeof(end), " %" PRIu64 "\n", weight);

	errno = 0;
	if (fwrite(stack->data, 1, stack->len, f) != stack->len ||
	    fwrite(end, 1, (size_t)n, f) != (size_t)n)
		return errno ? -errno : -EIO;
	stats->lines++;
	stats->bytes += stack->len + (size_t)n;
	if (__builtin_add_overflow(stats->total, weight, &stats->total))
		stats->total = UINT64_MAX;
	return 0;
}

/* Where the walk is: the items of one box, and the length of that box's stack. */
struct level {
	size_t next;
	uint32_t box;
	size_t len;
};

static size_t first_item(const struct folding *o, uint32_t box)
{
	size_t low = 0, high = o->nr_items;
	uint64_t key = (uint64_t)box << 32;

	while (low < high) {
		size_t mid = low + (high - low) / 2;

		if (o->items[mid].key < key)
			low = mid + 1;
		else
			high = mid;
	}
	return low;
}

static int folding__write(const struct folding *o, FILE *f, struct folded_stats *stats)
{
	struct text stack = { 0 };
	struct level *levels = NULL, *l;
	size_t nr = 1, size = 0;
	const struct item *item;
	int err = -ENOMEM;

	if (array__reserve((void **)&levels, &size, 0, sizeof(*levels)))
		goto out;
	levels[0] = (struct level){ 0 };
	while (nr) {
		l = &levels[nr - 1];
		if (l->next >= o->nr_items || o->items[l->next].key >> 32 != l->box) {
			nr--;
			continue;
		}
		item = &o->items[l->next++];
		text__truncate(&stack, l->len);
		if (l->len)
			text__add(&stack, ";", 1);
		text__add_string(&stack, o->boxes.texts[o->boxes.list[item->box].text]);
		err = stack.failed ? -ENOMEM : 0;
		if (!err && !item->through)
			err = write_line(&stack, o->boxes.list[item->box].weight, f, stats);
		else if (!err)
			err = array__reserve((void **)&levels, &size, nr, sizeof(*levels));
		if (err)
			goto out;
		if (item->through)
			levels[nr++] = (struct level){
				.next = first_item(o, item->box), .box = item->box,
				.len = stack.len,
			};
	}
	errno = 0;
	err = fflush(f) ? (errno ? -errno : -EIO) : 0;
out:
	text__free(&stack);
	free(levels);
	return err;
}

int folded__write(const struct profile *p, const struct folded_options *options, FILE *f,
		  struct folded_stats *stats)
{
	struct folding o = { .items = NULL };
	struct folded_stats s = { 0 };
	int err;

	err = boxes__new(p, options, &o.boxes);
	if (err)
		return err;
	err = folding__sort(&o);
	if (!err)
		err = folding__write(&o, f, &s);
	if (!err && stats)
		*stats = s;
	free(o.items);
	boxes__free(&o.boxes);
	return err;
}
