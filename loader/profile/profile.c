// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "loader/profile/profile.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "loader/base/array.h"
#include "loader/base/table.h"
#include "loader/profile/model.h"

struct profile *profile__new(void)
{
	struct profile *p = calloc(1, sizeof(*p));

	if (!p)
		return NULL;
	p->seed = hash__seed();
	p->strings.seed = p->seed;
	p->thread_names = table__new();
	if (!p->thread_names ||
	    array__reserve((void **)&p->nodes, &p->nodes_size, 0, sizeof(*p->nodes))) {
		profile__free(p);
		return NULL;
	}
	p->nodes[0] = (struct profile_node){ .parent = 0, .frame = UINT32_MAX };
	p->nr_nodes = 1;
	return p;
}

void profile__free(struct profile *p)
{
	if (!p)
		return;
	strings__free(&p->strings);
	index__free(&p->frame_index);
	index__free(&p->node_index);
	index__free(&p->label_index);
	index__free(&p->value_index);
	table__free(p->thread_names);
	free(p->frames);
	free(p->nodes);
	free(p->labels);
	free(p->values);
	free(p->counters);
	free(p->notes);
	free(p);
}

/* --- frames --- */

static uint32_t frame_hash(const struct profile *p, const struct profile_frame *f)
{
	uint64_t key[] = {
		(uint64_t)f->kind | (uint64_t)f->flags << 8 | (uint64_t)f->unresolved << 16 |
			(uint64_t)f->id << 32,
		f->line, (uintptr_t)f->name, (uintptr_t)f->raw, (uintptr_t)f->module,
		(uintptr_t)f->file, (uint64_t)f->registers << 32 | f->shared_bytes,
	};

	return (uint32_t)hash__bytes(key, sizeof(key), p->seed);
}

/* Both with interned strings. */
static bool frame_equals(const struct profile_frame *a, const struct profile_frame *b)
{
	return a->kind == b->kind && a->flags == b->flags && a->unresolved == b->unresolved &&
	       a->id == b->id && a->line == b->line && a->name == b->name && a->raw == b->raw &&
	       a->module == b->module && a->file == b->file && a->registers == b->registers &&
	       a->shared_bytes == b->shared_bytes;
}

int profile__frame(struct profile *p, const struct profile_frame *frame, uint32_t *id)
{
	struct profile_frame f = *frame;
	size_t pos = 0;
	uint32_t hash;

	if (frame->kind >= NR_PROFILE_KINDS || frame->unresolved >= NR_PROFILE_UNRESOLVED ||
	    (frame->kind == PROFILE_MARK && frame->id >= NR_PROFILE_MARKS))
		return -EINVAL;
	f.reserved = 0;
	if (strings__intern(&p->strings, frame->name, &f.name) ||
	    strings__intern(&p->strings, frame->raw, &f.raw) ||
	    strings__intern(&p->strings, frame->module, &f.module) ||
	    strings__intern(&p->strings, frame->file, &f.file))
		return -ENOMEM;
	hash = frame_hash(p, &f);
	while (index__next(&p->frame_index, hash, &pos, id))
		if (frame_equals(&p->frames[*id], &f))
			return 0;
	if (index__reserve(&p->frame_index) ||
	    array__reserve((void **)&p->frames, &p->frames_size, p->nr_frames,
			   sizeof(*p->frames)))
		return -ENOMEM;
	*id = (uint32_t)p->nr_frames;
	index__add(&p->frame_index, hash, *id);
	p->frames[p->nr_frames++] = f;
	return 0;
}

int profile__mark(struct profile *p, enum profile_mark mark, const char *module, uint32_t *id)
{
	struct profile_frame f = { .kind = PROFILE_MARK, .id = mark, .module = module };

	return profile__frame(p, &f, id);
}

int profile__process(struct profile *p, uint32_t pid, const char *comm, uint32_t *id)
{
	struct profile_frame f = { .kind = PROFILE_PROCESS, .id = pid, .name = comm };

	return profile__frame(p, &f, id);
}

uint32_t profile__nr_frames(const struct profile *p)
{
	return (uint32_t)p->nr_frames;
}

const struct profile_frame *profile__frame_at(const struct profile *p, uint32_t id)
{
	return &p->frames[id];
}

/* --- stacks --- */

int profile__node(struct profile *p, uint32_t parent, uint32_t frame, uint32_t *node)
{
	uint32_t hash = (uint32_t)hash__mix(((uint64_t)parent << 32 | frame) ^ p->seed);
	size_t pos = 0;

	if (parent >= p->nr_nodes || frame >= p->nr_frames)
		return -EINVAL;
	while (index__next(&p->node_index, hash, &pos, node))
		if (p->nodes[*node].parent == parent && p->nodes[*node].frame == frame)
			return 0;
	if (index__reserve(&p->node_index) ||
	    array__reserve((void **)&p->nodes, &p->nodes_size, p->nr_nodes, sizeof(*p->nodes)))
		return -ENOMEM;
	*node = (uint32_t)p->nr_nodes;
	index__add(&p->node_index, hash, *node);
	p->nodes[p->nr_nodes++] = (struct profile_node){ .parent = parent, .frame = frame };
	return 0;
}

int profile__path(struct profile *p, uint32_t parent, const uint32_t *frames, size_t nr,
		  uint32_t *node)
{
	int err;

	if (parent >= p->nr_nodes)
		return -EINVAL;
	for (; nr; nr--, frames++) {
		err = profile__node(p, parent, *frames, &parent);
		if (err)
			return err;
	}
	*node = parent;
	return 0;
}

uint32_t profile__nr_nodes(const struct profile *p)
{
	return (uint32_t)p->nr_nodes;
}

uint32_t profile__node_parent(const struct profile *p, uint32_t node)
{
	return p->nodes[node].parent;
}

uint32_t profile__node_frame(const struct profile *p, uint32_t node)
{
	return p->nodes[node].frame;
}
