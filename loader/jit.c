// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "loader/jit.h"

#include <stdlib.h>
#include <string.h>

#include "loader/base/table.h"
#include "loader/jit_maker.h"

#define MAX_PARENTS 16
#define NO_PARENT UINT32_MAX

struct maker {
	struct jit_maker *maker;
	uint32_t parent;	/* index of a process */
};

/* What is to be known of a file. */
enum special { SPECIAL_DUMP, SPECIAL_MEMORY };

struct jit {
	struct files *files;
	struct jit_budget budget;
	struct table *makers;		/* index of a process -> struct maker */
	struct table *stacks;		/* number of a stack -> when it was met first */
	uint32_t checked;		/* files up to this one */
	struct table *special;		/* number of a file -> enum special */
};

struct jit *jit__new(struct files *files)
{
	struct jit *j = calloc(1, sizeof(*j));

	if (!j)
		return NULL;
	j->files = files;
	j->budget.bytes = JIT_MAX_BYTES;
	j->makers = table__new();
	j->stacks = table__new();
	j->special = table__new();
	if (j->makers && j->stacks && j->special)
		return j;
	jit__free(j);
	return NULL;
}

void jit__free(struct jit *j)
{
	uint64_t key, value;
	size_t pos = 0;

	if (!j)
		return;
	while (j->makers && table__next(j->makers, &pos, &key, &value)) {
		struct maker *m = (struct maker *)(uintptr_t)value;

		jit_maker__free(m->maker);
		free(m);
	}
	table__free(j->makers);
	table__free(j->stacks);
	table__free(j->special);
	free(j);
}

static struct maker *find(const struct jit *j, uint32_t process)
{
	uint64_t value;

	return table__get(j->makers, process, &value) ? (struct maker *)(uintptr_t)value : NULL;
}

static struct maker *get(struct jit *j, const struct process *p)
{
	struct maker *m = find(j, p->index);

	if (m)
		return m;
	m = calloc(1, sizeof(*m));
	if (!m)
		return NULL;
	m->parent = NO_PARENT;
	m->maker = jit_maker__new(j->files, &j->budget, p->tgid);
	if (m->maker && !table__set(j->makers, p->index, (uintptr_t)m))
		return m;
	jit_maker__free(m->maker);
	free(m);
	return NULL;
}

void jit__met(struct jit *j, const struct process *p, uint32_t stack, uint64_t time)
{
	struct maker *m = get(j, p);
	uint64_t before;

	if (!m)
		return;
	if (!table__get(j->stacks, stack, &before))
		table__set(j->stacks, stack, time);
	jit_maker__look(m->maker);
}

/* "jit-PID.dump", as the specification has it. */
static bool is_dump(const char *path)
{
	const char *name = strrchr(path, '/');
	size_t digits;

	if (!name || strncmp(name + 1, "jit-", 4))
		return false;
	digits = strspn(name + 5, "0123456789");
	/* " (deleted)" may follow */
	return digits && !strncmp(name + 5 + digits, ".dump", 5);
}

static bool is_memory(const char *path)
{
	return !strncmp(path, "/memfd:", 7) || !strncmp(path, "/dev/shm/", 9);
}

static void check_files(struct jit *j)
{
	for (; j->checked < files__count(j->files); j->checked++) {
		const char *path = files__path(j->files, j->checked + 1);

		if (is_dump(path))
			table__set(j->special, j->checked + 1, SPECIAL_DUMP);
		else if (is_memory(path))
			table__set(j->special, j->checked + 1, SPECIAL_MEMORY);
	}
}

void jit__mapped(struct jit *j, const struct process *p)
{
	uint64_t special;

	check_files(j);
	for (uint32_t i = 0; table__count(j->special) && i < p->nr_mappings; i++) {
		const struct mapping *mapping = &p->mappings[i];
		struct maker *m = table__get(j->special, mapping->file, &special) ? get(j, p) : NULL;

		if (!m)
			continue;
		if (special == SPECIAL_DUMP)
			jit_maker__add_dump(m->maker, mapping->file);
		else
			jit_maker__add_area(m->maker, mapping);
	}
}

void jit__forked(struct jit *j, const struct process *parent, const struct process *child)
{
	struct maker *m = find(j, parent->index) ? get(j, child) : NULL;

	if (m)
		m->parent = parent->index;
}

void jit__exited(struct jit *j, const struct process *p)
{
	struct maker *m = find(j, p->index);

	if (m)
		jit_maker__exited(m->maker);
}

void jit__read(struct jit *j)
{
	uint64_t key, value;
	size_t pos = 0;

	while (table__next(j->makers, &pos, &key, &value))
		jit_maker__read(((struct maker *)(uintptr_t)value)->maker);
}

const char *jit__name(struct jit *j, const struct process *p, uint32_t stack, uint64_t word)
{
	struct maker *m = find(j, p->index);
	const char *name = NULL;
	uint64_t time, address;

	if (!m || !jit_maker__address(m->maker, word, &address))
		return NULL;
	if (!table__get(j->stacks, stack, &time))
		time = UINT64_MAX;
	for (int i = 0; m && !name && i < MAX_PARENTS; i++) {
		name = jit_maker__name(m->maker, address, time);
		m = m->parent == NO_PARENT ? NULL : find(j, m->parent);
	}
	return name;
}

bool jit__overflowed(const struct jit *j)
{
	return j->budget.exhausted;
}
