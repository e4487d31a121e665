// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "loader/output/shares.h"

#include <errno.h>
#include <stdlib.h>

#include "loader/base/array.h"

/* One value, as a share of its own. */
struct part {
	struct share share;
	uint64_t stream;
};

static int compare(uint64_t a, uint64_t b)
{
	return (a > b) - (a < b);
}

static int share_cmp(const struct share *a, const struct share *b)
{
	int order = compare(a->rank, b->rank);

	order = order ? order : compare(a->pid, b->pid);
	order = order ? order : compare(a->process, b->process);
	return order ? order : compare(a->device, b->device);
}

static int part_cmp(const void *x, const void *y)
{
	const struct part *a = x, *b = y;
	int order = share_cmp(&a->share, &b->share);

	return order ? order : compare(a->stream, b->stream);
}

static void add(uint64_t *sum, uint64_t n)
{
	if (__builtin_add_overflow(*sum, n, sum))
		*sum = UINT64_MAX;
}

static uint32_t process_of(const struct profile *p, uint32_t node)
{
	while (profile__node_parent(p, node) != PROFILE_ROOT)
		node = profile__node_parent(p, node);
	return profile__node_frame(p, node);
}

static int collect(const struct profile *p, struct part **parts, size_t *nr)
{
	struct profile_value v;
	size_t pos = 0, room = 0;

	while (profile__next(p, &pos, &v)) {
		const struct profile_labels *l = profile__labels_at(p, v.labels);
		struct share share = { .process = process_of(p, v.node), .pid = l->pid, .rank = l->rank,
				       .device = l->device };

		if (v.metric == PROFILE_LAUNCHES)
			share.launches = v.count;
		else if (v.metric == PROFILE_BYTES)
			share.copies = v.count;
		else if (v.metric == PROFILE_GPU_NS)
			share.ns = v.value;
		else
			continue;
		if (array__reserve((void **)parts, &room, *nr, sizeof(**parts)))
			return -ENOMEM;
		(*parts)[(*nr)++] = (struct part){ share, l->stream };
	}
	return 0;
}

int shares__new(const struct profile *p, struct shares *s)
{
	struct part *parts = NULL;
	size_t nr = 0, i;
	int err = collect(p, &parts, &nr);

	s->nr = 0;
	s->list = err ? NULL : calloc(nr + 1, sizeof(*s->list));
	if (!s->list) {
		free(parts);
		return -ENOMEM;
	}
	if (nr)
		qsort(parts, nr, sizeof(*parts), part_cmp);
	for (i = 0; i < nr; i++) {
		const struct part *part = &parts[i];
		struct share *share;

		if (!i || share_cmp(&s->list[s->nr - 1], &part->share)) {
			s->list[s->nr] = part->share;
			s->list[s->nr++].streams = part->share.device != PROFILE_NO_LABEL;
			continue;
		}
		share = &s->list[s->nr - 1];
		add(&share->launches, part->share.launches);
		add(&share->copies, part->share.copies);
		add(&share->ns, part->share.ns);
		share->streams += share->streams && part->stream != parts[i - 1].stream;
	}
	free(parts);
	return 0;
}

void shares__free(struct shares *s)
{
	free(s->list);
	s->list = NULL;
	s->nr = 0;
}
