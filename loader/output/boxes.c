// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "loader/output/boxes.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "loader/base/array.h"
#include "loader/base/table.h"
#include "loader/base/text.h"
#include "loader/output/lookalike.h"
#include "loader/output/names.h"

/* What the texts belong to. */
struct boxes_owned {
	struct names *names;
	char **thread_texts;
	size_t nr_threads, threads_size;
};

struct building {
	const struct profile *p;
	const struct folded_options *options;
	struct boxes *b;
	size_t boxes_size, texts_size;
	uint32_t *frame_text;		/* frame -> text; several frames may share one */
	struct table *thread_of;	/* pid << 32 | tid -> text */
	uint32_t *of_node;		/* node -> box; 0: none yet; where threads aren't shown */
	struct table *by_node;		/* thread text << 32 | node -> box; where they are */
	struct table *by_text;		/* parent << 32 | text -> box */
	uint32_t *path;
	size_t path_size;
};

static int add_text(struct building *o, const char *text, uint32_t *id)
{
	struct boxes *b = o->b;

	if (array__reserve((void **)&b->texts, &o->texts_size, b->nr_texts, sizeof(*b->texts)))
		return -ENOMEM;
	*id = (uint32_t)b->nr_texts;
	b->texts[b->nr_texts++] = text;
	return 0;
}

struct named_frame {
	const char *text;
	uint32_t frame;
};

static int named_frame_cmp(const void *a, const void *b)
{
	const struct named_frame *x = a, *y = b;

	return strcmp(x->text, y->text);
}

/* frame_text and texts: frames that read the same get the same text. */
static int building__texts(struct building *o)
{
	uint32_t nr = profile__nr_frames(o->p), i, id = 0;
	struct named_frame *f = calloc((size_t)nr + 1, sizeof(*f));
	int err = -ENOMEM;

	o->frame_text = calloc((size_t)nr + 1, sizeof(*o->frame_text));
	if (!f || !o->frame_text)
		goto out;
	for (i = 0; i < nr; i++)
		f[i] = (struct named_frame){ .text = names__of(o->b->owned->names, i), .frame = i };
	if (nr)
		qsort(f, nr, sizeof(*f), named_frame_cmp);
	for (i = 0; i < nr; i++) {
		if (!i || strcmp(f[i].text, f[i - 1].text)) {
			err = add_text(o, f[i].text, &id);
			if (err)
				goto out;
		}
		o->frame_text[f[i].frame] = id;
	}
	err = 0;
out:
	free(f);
	return err;
}

static int child(struct building *o, uint32_t parent, uint32_t text, uint32_t *box)
{
	uint64_t key = (uint64_t)parent << 32 | text, known;
	struct boxes *b = o->b;
	int err;

	if (table__get(o->by_text, key, &known)) {
		*box = (uint32_t)known;
		return 0;
	}
	if (array__reserve((void **)&b->list, &o->boxes_size, b->nr, sizeof(*b->list)))
		return -ENOMEM;
	err = table__set(o->by_text, key, b->nr);
	if (err)
		return err;
	*box = (uint32_t)b->nr;
	b->list[b->nr++] = (struct box){ .parent = parent, .text = text };
	return 0;
}

static char *make_thread_text(const struct profile *p, const struct profile_labels *l)
{
	const char *name = profile__thread_name(p, l->pid, l->tid);
	struct text raw = { 0 }, t = { 0 };
	size_t start;

	text__printf(&raw, "tid %" PRIu32 " ", l->tid);
	start = raw.len;
	text__add_string(&raw, name ? name : "");
	lookalike__break_start(&raw, start);
	lookalike__break_end(&raw, start);
	if (raw.len == start)
		text__add_string(&raw, "[no name]");
	if (!raw.failed)
		names__add_frame(&t, raw.data, raw.len);
	else
		t.failed = true;
	text__free(&raw);
	return text__take(&t);
}

/* The text "tid N name" of a value's thread; 0 (never a thread's) where threads aren't shown. */
static int thread_text(struct building *o, uint32_t labels, uint32_t *text)
{
	const struct profile_labels *l = profile__labels_at(o->p, labels);
	uint64_t key = (uint64_t)l->pid << 32 | l->tid, known;
	struct boxes_owned *own = o->b->owned;
	int err;

	*text = 0;
	if (!o->options->per_thread)
		return 0;
	if (table__get(o->thread_of, key, &known)) {
		*text = (uint32_t)known;
		return 0;
	}
	if (array__reserve((void **)&own->thread_texts, &own->threads_size, own->nr_threads,
			   sizeof(*own->thread_texts)))
		return -ENOMEM;
	own->thread_texts[own->nr_threads] = make_thread_text(o->p, l);
	if (!own->thread_texts[own->nr_threads])
		return -ENOMEM;
	err = add_text(o, own->thread_texts[own->nr_threads++], text);
	return err ? err : table__set(o->thread_of, key, *text);
}

/* Whether the thread's frame stands right below this node: under the process, else at the root. */
static bool is_above_thread(const struct building *o, uint32_t node, uint32_t below)
{
	if (node == PROFILE_ROOT)
		return below == PROFILE_ROOT || profile__frame_at(o->p,
			profile__node_frame(o->p, below))->kind != PROFILE_PROCESS;
	return profile__node_parent(o->p, node) == PROFILE_ROOT &&
	       profile__frame_at(o->p, profile__node_frame(o->p, node))->kind == PROFILE_PROCESS;
}

/* Most profiles have one box a node: an array is several times faster than the table. */
static bool known_box(const struct building *o, uint32_t node, uint32_t thread, uint32_t *box)
{
	uint64_t known;

	if (!thread) {
		*box = o->of_node[node];
		return *box;
	}
	if (!table__get(o->by_node, (uint64_t)thread << 32 | node, &known))
		return false;
	*box = (uint32_t)known;
	return true;
}

static int remember_box(struct building *o, uint32_t node, uint32_t thread, uint32_t box)
{
	if (thread)
		return table__set(o->by_node, (uint64_t)thread << 32 | node, box);
	o->of_node[node] = box;
	return 0;
}

/* The box of a node, for the given thread; boxes on the way are made. */
static int box_of(struct building *o, uint32_t node, uint32_t thread, uint32_t *box)
{
	uint32_t below = node;
	size_t depth = 0;
	int err;

	*box = 0;
	for (; node != PROFILE_ROOT; below = node, node = profile__node_parent(o->p, node)) {
		if (known_box(o, node, thread, box))
			break;
		if (array__reserve((void **)&o->path, &o->path_size, depth, sizeof(*o->path)))
			return -ENOMEM;
		o->path[depth++] = node;
	}
	if (node == PROFILE_ROOT && thread && is_above_thread(o, node, below) &&
	    child(o, 0, thread, box))
		return -ENOMEM;
	while (depth) {
		node = o->path[--depth];
		err = child(o, *box, o->frame_text[profile__node_frame(o->p, node)], box);
		if (!err && thread && is_above_thread(o, node, 0))
			err = child(o, *box, thread, box);
		if (!err)
			err = remember_box(o, node, thread, *box);
		if (err)
			return err;
	}
	return 0;
}

static int building__boxes(struct building *o)
{
	struct boxes *b = o->b;
	struct profile_value v;
	uint32_t thread, box;
	uint64_t *weight;
	size_t pos = 0;
	int err;

	err = array__reserve((void **)&b->list, &o->boxes_size, 0, sizeof(*b->list));
	if (err)
		return err;
	b->list[b->nr++] = (struct box){ 0 };
	while (profile__next(o->p, &pos, &v)) {
		if (v.metric != o->options->metric || !v.value)
			continue;
		err = thread_text(o, v.labels, &thread);
		if (!err)
			err = box_of(o, v.node, thread, &box);
		if (err)
			return err;
		weight = &b->list[box].weight;
		if (__builtin_add_overflow(*weight, v.value, weight))
			*weight = UINT64_MAX;
	}
	return 0;
}

int boxes__new(const struct profile *p, const struct folded_options *options, struct boxes *b)
{
	struct building o = { .p = p, .options = options, .b = b };
	uint32_t none;
	int err = -ENOMEM;

	memset(b, 0, sizeof(*b));
	b->owned = calloc(1, sizeof(*b->owned));
	o.thread_of = table__new();
	o.by_node = table__new();
	o.by_text = table__new();
	o.of_node = calloc(profile__nr_nodes(p), sizeof(*o.of_node));
	if (!b->owned || !o.thread_of || !o.by_node || !o.by_text || !o.of_node)
		goto out;
	/* Text 0 is no frame's, so that 0 can mean "no thread". */
	err = add_text(&o, "", &none);
	if (!err)
		err = names__new(p, options->annotate, &b->owned->names);
	if (!err)
		err = building__texts(&o);
	if (!err)
		err = building__boxes(&o);
out:
	table__free(o.thread_of);
	table__free(o.by_node);
	table__free(o.by_text);
	free(o.of_node);
	free(o.frame_text);
	free(o.path);
	if (err)
		boxes__free(b);
	return err;
}

void boxes__free(struct boxes *b)
{
	size_t i;

	if (b->owned) {
		for (i = 0; i < b->owned->nr_threads; i++)
			free(b->owned->thread_texts[i]);
		free(b->owned->thread_texts);
		names__free(b->owned->names);
	}
	free(b->owned);
	free(b->list);
	free(b->texts);
	memset(b, 0, sizeof(*b));
}
