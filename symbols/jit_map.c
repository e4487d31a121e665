// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "symbols/jit_map.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "loader/base/array.h"

#define BLOCK 64
#define MAX_CANDIDATES 65536	/* functions that were at one address, looked at */

struct entry {
	uint64_t start, end;
	uint64_t time;
	uint32_t name;		/* in names */
	uint32_t number;	/* in the order of adding */
};

struct jit_map {
	struct jit_budget *budget;
	uint64_t taken;
	struct entry *entries;		/* in the order of adding */
	size_t nr, size;
	char *names;
	size_t names_len, names_size;
	struct entry *sorted;		/* the same by start */
	uint64_t *ends;			/* by block of `sorted`: where the last ends */
	size_t nr_sorted;
};

struct jit_map *jit_map__new(struct jit_budget *budget)
{
	struct jit_map *m = calloc(1, sizeof(*m));

	if (m)
		m->budget = budget;
	return m;
}

void jit_map__free(struct jit_map *m)
{
	if (!m)
		return;
	m->budget->bytes += m->taken;
	free(m->entries);
	free(m->names);
	free(m->sorted);
	free(m->ends);
	free(m);
}

static bool take(struct jit_map *m, uint64_t bytes)
{
	if (m->nr == JIT_MAX_ENTRIES || bytes > m->budget->bytes) {
		m->budget->exhausted = true;
		return false;
	}
	m->budget->bytes -= bytes;
	m->taken += bytes;
	return true;
}

static int add_name(struct jit_map *m, const char *name, size_t len, uint32_t *at)
{
	size_t size = m->names_size ? m->names_size : 4096;
	char *names;

	while (m->names_len + len + 1 > size)
		size *= 2;
	if (size != m->names_size) {
		names = realloc(m->names, size);
		if (!names)
			return -ENOMEM;
		m->names = names;
		m->names_size = size;
	}
	*at = (uint32_t)m->names_len;
	memcpy(m->names + m->names_len, name, len);
	m->names[m->names_len + len] = '\0';
	m->names_len += len + 1;
	return 0;
}

int jit_map__add(struct jit_map *m, uint64_t start, uint64_t size, uint64_t time, const char *name,
		 size_t len)
{
	struct entry e = { .start = start, .end = start + size, .time = time };

	len = strnlen(name, len < JIT_MAX_NAME ? len : JIT_MAX_NAME);
	if (!size || size > JIT_MAX_CODE || e.end < start || !len || !take(m, sizeof(e) * 2 + len + 1))
		return 0;
	if (array__reserve((void **)&m->entries, &m->size, m->nr, sizeof(e)) ||
	    add_name(m, name, len, &e.name))
		return -ENOMEM;
	e.number = (uint32_t)m->nr;
	m->entries[m->nr++] = e;
	return 0;
}

size_t jit_map__count(const struct jit_map *m)
{
	return m->nr;
}

const char *jit_map__name(const struct jit_map *m, size_t i)
{
	return m->names + m->entries[i].name;
}

static int compare(const void *left, const void *right)
{
	const struct entry *a = left, *b = right;

	if (a->start != b->start)
		return a->start < b->start ? -1 : 1;
	return (a->number > b->number) - (a->number < b->number);
}

static bool sort(struct jit_map *m)
{
	struct entry *sorted;
	uint64_t *ends;

	if (m->nr_sorted == m->nr)
		return m->nr;
	sorted = malloc(m->nr * sizeof(*sorted));
	ends = calloc(m->nr / BLOCK + 1, sizeof(*ends));
	if (!sorted || !ends) {
		free(sorted);
		free(ends);
		return m->nr_sorted;
	}
	memcpy(sorted, m->entries, m->nr * sizeof(*sorted));
	qsort(sorted, m->nr, sizeof(*sorted), compare);
	for (size_t i = 0; i < m->nr; i++)
		if (sorted[i].end > ends[i / BLOCK])
			ends[i / BLOCK] = sorted[i].end;
	free(m->sorted);
	free(m->ends);
	m->sorted = sorted;
	m->ends = ends;
	m->nr_sorted = m->nr;
	return true;
}

static bool better(const struct entry *a, const struct entry *b, uint64_t time)
{
	bool a_before = a->time <= time, b_before = b->time <= time;

	if (a_before != b_before)
		return a_before;
	if (a->time != b->time)
		return (a->time > b->time) == a_before;
	return a->number > b->number;
}

const char *jit_map__find(struct jit_map *m, uint64_t address, uint64_t time)
{
	const struct entry *best = NULL;
	size_t low = 0, high, tries = MAX_CANDIDATES;

	if (!sort(m))
		return NULL;
	high = m->nr_sorted;
	while (low < high) {
		size_t mid = low + (high - low) / 2;

		if (m->sorted[mid].start <= address)
			low = mid + 1;
		else
			high = mid;
	}
	while (low > 0 && tries) {
		if (low % BLOCK == 0 && m->ends[low / BLOCK - 1] <= address) {
			low -= BLOCK;
			continue;
		}
		low--;
		if (address >= m->sorted[low].end)
			continue;
		tries--;
		if (!best || better(&m->sorted[low], best, time))
			best = &m->sorted[low];
	}
	return best ? m->names + best->name : NULL;
}
