// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Labels and weighted values. */
#include <errno.h>

#include "loader/base/array.h"
#include "loader/base/table.h"
#include "loader/profile/model.h"
#include "loader/profile/profile.h"

int profile__labels(struct profile *p, const struct profile_labels *labels, uint32_t *id)
{
	uint64_t key[] = {
		(uint64_t)labels->pid << 32 | labels->tid, (uint64_t)labels->rank << 32 | labels->device,
		labels->stream,
	};
	uint32_t hash = (uint32_t)hash__bytes(key, sizeof(key), p->seed);
	size_t pos = 0;

	while (index__next(&p->label_index, hash, &pos, id)) {
		const struct profile_labels *have = &p->labels[*id];

		if (have->pid == labels->pid && have->tid == labels->tid &&
		    have->device == labels->device && have->rank == labels->rank &&
		    have->stream == labels->stream)
			return 0;
	}
	if (index__reserve(&p->label_index) ||
	    array__reserve((void **)&p->labels, &p->labels_size, p->nr_labels,
			   sizeof(*p->labels)))
		return -ENOMEM;
	*id = (uint32_t)p->nr_labels;
	index__add(&p->label_index, hash, *id);
	p->labels[p->nr_labels++] = *labels;
	return 0;
}

const struct profile_labels *profile__labels_at(const struct profile *p, uint32_t id)
{
	return &p->labels[id];
}

int profile__name_thread(struct profile *p, uint32_t pid, uint32_t tid, const char *name)
{
	const char *text;
	int err;

	err = strings__intern(&p->strings, name, &text);
	if (err)
		return err;
	return table__set(p->thread_names, (uint64_t)pid << 32 | tid, (uintptr_t)text);
}

const char *profile__thread_name(const struct profile *p, uint32_t pid, uint32_t tid)
{
	uint64_t text;

	if (!table__get(p->thread_names, (uint64_t)pid << 32 | tid, &text))
		return NULL;
	return (const char *)(uintptr_t)text;
}

static uint64_t sum(uint64_t a, uint64_t b)
{
	return __builtin_add_overflow(a, b, &a) ? UINT64_MAX : a;
}

static uint32_t hash_of(const struct profile *p, uint32_t node, uint32_t labels, enum profile_metric metric,
			unsigned int flags)
{
	return (uint32_t)hash__mix(((uint64_t)node << 32 | labels) ^ p->seed ^
				   ((uint64_t)metric << 8 | flags) << 40);
}

/* The value of these, whose hash that is; NULL: there is none. */
static struct profile_value *find(const struct profile *p, uint32_t hash, uint32_t node, uint32_t labels,
				  enum profile_metric metric, unsigned int flags)
{
	size_t pos = 0;
	uint32_t id;

	while (index__next(&p->value_index, hash, &pos, &id)) {
		struct profile_value *v = &p->values[id];

		if (v->node == node && v->labels == labels && v->metric == metric && v->flags == flags)
			return v;
	}
	return NULL;
}

int profile__add_variance(struct profile *p, uint32_t node, uint32_t labels, enum profile_metric metric,
			  unsigned int flags, double variance)
{
	uint32_t hash = hash_of(p, node, labels, metric, flags);
	struct profile_value *v = find(p, hash, node, labels, metric, flags);

	if (!v)
		return -EINVAL;
	v->variance += variance;
	return 0;
}

int profile__add(struct profile *p, uint32_t node, uint32_t labels, enum profile_metric metric,
		 unsigned int flags, uint64_t value, uint64_t count)
{
	uint32_t hash = hash_of(p, node, labels, metric, flags);
	struct profile_value *v;

	if (node == PROFILE_ROOT || node >= p->nr_nodes || labels >= p->nr_labels ||
	    metric >= NR_PROFILE_METRICS || flags > UINT8_MAX)
		return -EINVAL;
	v = find(p, hash, node, labels, metric, flags);
	if (v) {
		v->value = sum(v->value, value);
		v->count = sum(v->count, count);
		return 0;
	}
	if (index__reserve(&p->value_index) ||
	    array__reserve((void **)&p->values, &p->values_size, p->nr_values,
			   sizeof(*p->values)))
		return -ENOMEM;
	index__add(&p->value_index, hash, (uint32_t)p->nr_values);
	p->values[p->nr_values++] = (struct profile_value){
		.node = node, .labels = labels, .metric = (uint8_t)metric, .flags = (uint8_t)flags,
		.value = value, .count = count,
	};
	return 0;
}

bool profile__next(const struct profile *p, size_t *pos, struct profile_value *value)
{
	if (*pos >= p->nr_values)
		return false;
	*value = p->values[(*pos)++];
	return true;
}

uint64_t profile__total(const struct profile *p, enum profile_metric metric)
{
	uint64_t total = 0;
	size_t i;

	for (i = 0; i < p->nr_values; i++)
		if (p->values[i].metric == metric)
			total = sum(total, p->values[i].value);
	return total;
}

uint64_t profile__total_count(const struct profile *p, enum profile_metric metric)
{
	uint64_t total = 0;
	size_t i;

	for (i = 0; i < p->nr_values; i++)
		if (p->values[i].metric == metric)
			total = sum(total, p->values[i].count);
	return total;
}

uint64_t profile__nr_samples(const struct profile *p)
{
	return sum(profile__total_count(p, PROFILE_CPU_NS),
		   profile__total_count(p, PROFILE_CPU_SAMPLES));
}
