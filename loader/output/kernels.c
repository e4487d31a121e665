// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "loader/output/kernels.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>

static bool is_kernel(const struct profile_frame *f)
{
	return f->kind == PROFILE_GPU && (f->id == PROFILE_KERNEL_LAUNCH || f->id == PROFILE_KERNEL_NAMELESS);
}

static void add(uint64_t *sum, uint64_t n)
{
	if (__builtin_add_overflow(*sum, n, sum))
		*sum = UINT64_MAX;
}

static int kernel_cmp(const void *a, const void *b)
{
	const struct kernel *x = a, *y = b;

	if (x->ns != y->ns)
		return x->ns < y->ns ? 1 : -1;
	if (x->launches != y->launches)
		return x->launches < y->launches ? 1 : -1;
	return (x->frame > y->frame) - (x->frame < y->frame);
}

int kernels__new(const struct profile *p, struct kernels *k)
{
	uint32_t nr = profile__nr_frames(p), frame;
	struct profile_value v;
	size_t pos = 0;

	k->nr = 0;
	k->list = calloc((size_t)nr + 1, sizeof(*k->list));
	if (!k->list)
		return -ENOMEM;
	while (profile__next(p, &pos, &v)) {
		frame = profile__node_frame(p, v.node);
		if (v.metric == PROFILE_LAUNCHES)
			add(&k->list[frame].launches, v.value);
		else if (v.metric == PROFILE_GPU_NS)
			add(&k->list[frame].ns, v.value);
	}
	for (frame = 0; frame < nr; frame++) {
		struct kernel one = k->list[frame];

		one.frame = frame;
		if (is_kernel(profile__frame_at(p, frame)) && (one.launches || one.ns))
			k->list[k->nr++] = one;
	}
	if (k->nr)
		qsort(k->list, k->nr, sizeof(*k->list), kernel_cmp);
	return 0;
}

void kernels__free(struct kernels *k)
{
	free(k->list);
	k->list = NULL;
	k->nr = 0;
}
