// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* What the collector makes known to the BPF side, in arrays that stand in for its maps. */
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "loader/processes.h"
#include "tests/unit/unit.h"

#define NOBODY 4194303		/* the highest pid there can be, less one */

static struct proc_slot *slots;
static struct mapping *mappings;
static struct files *files;
static struct processes *ps;

static void begin(void)
{
	struct processes_maps maps = { .procs_fd = -1 };

	slots = calloc(GPUCOLLECT_MAX_PROCS, sizeof(*slots));
	mappings = calloc(GPUCOLLECT_MAX_MAPPINGS, sizeof(*mappings));
	files = files__new();
	maps.slots = slots;
	maps.mappings = mappings;
	ps = processes__new(&maps, files);
	ck_assert(slots && mappings && files && ps);
}

static void end(void)
{
	processes__free(ps);
	files__free(files);
	free(slots);
	free(mappings);
}

static uint32_t published(const struct process *p, const struct mapping **first)
{
	*first = &mappings[slots[p->slot].mappings >> 32];
	return (uint32_t)slots[p->slot].mappings;
}

/* As a program of the BPF side would: NULL if it isn't known there. */
static const struct mapping *lookup(const struct process *p, const void *at)
{
	const struct mapping *m;
	uint32_t nr = published(p, &m), i;

	for (i = 0; i < nr; i++)
		if ((uintptr_t)at >= m[i].start && (uintptr_t)at < m[i].end)
			return &m[i];
	return NULL;
}

static bool holds(const struct process *p)
{
	return slots[p->slot].map_seq == slots[p->slot].read_seq;
}

/* `nr` executable mappings that don't touch. */
static char *map_code(unsigned int nr)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	char *at = mmap(NULL, nr * 2 * page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	unsigned int i;

	ck_assert_ptr_ne(at, MAP_FAILED);
	for (i = 0; i < nr; i++)
		ck_assert_int_eq(mprotect(at + i * 2 * page, page, PROT_READ | PROT_EXEC), 0);
	return at;
}

START_TEST(own_code_is_known)
{
	const struct mapping *m, *first;
	struct process *p;
	uint32_t nr, i;
	char *code;
	void (*here)(void) = end;
	void *at;

	begin();
	code = map_code(1);
	p = processes__get(ps, getpid(), true);
	ck_assert_ptr_nonnull(p);
	ck_assert_ptr_eq(processes__find(ps, getpid()), p);
	ck_assert_str_ne(p->comm, "");
	ck_assert_uint_eq(processes__alive(ps), 1);
	ck_assert(holds(p));
	ck_assert(!processes__stale(ps, p));
	ck_assert_uint_eq(slots[p->slot].tgid, (uint32_t)getpid());
	ck_assert_int_gt(slots[p->slot].unknown_budget, 1);
	nr = published(p, &first);
	for (i = 1; i < nr; i++)
		ck_assert_uint_ge(first[i].start, first[i - 1].end);
	memcpy(&at, &here, sizeof(at));
	m = lookup(p, at);
	ck_assert_ptr_nonnull(m);
	ck_assert_int_eq(m->kind, MAPPING_FILE);
	ck_assert_ptr_nonnull(strstr(files__path(files, m->file), "test_processes"));
	m = lookup(p, code);
	ck_assert_ptr_nonnull(m);
	ck_assert_int_eq(m->kind, MAPPING_ANON);
	end();
}
END_TEST

START_TEST(only_what_changed_is_published)
{
	struct process *p;
	uint32_t seq;
	char *code;

	begin();
	p = processes__get(ps, getpid(), true);
	seq = slots[p->slot].mappings_seq;
	slots[p->slot].unknown_budget = 0;
	ck_assert_int_eq(processes__refresh(ps, p), 0);
	ck_assert_uint_eq(slots[p->slot].mappings_seq, seq);	/* what was found stays found */
	ck_assert_int_gt(slots[p->slot].unknown_budget, 1);
	code = map_code(1);
	ck_assert_ptr_null(lookup(p, code));
	ck_assert_int_eq(processes__refresh(ps, p), 0);
	ck_assert_uint_ne(slots[p->slot].mappings_seq, seq);
	ck_assert_ptr_nonnull(lookup(p, code));
	end();
}
END_TEST

START_TEST(an_old_list_stays_whole_for_a_while)
{
	const struct mapping *before, *now;
	struct mapping copy[64];
	struct process *p;
	uint32_t nr, i;

	begin();
	p = processes__get(ps, getpid(), true);
	nr = published(p, &before);
	ck_assert_uint_le(nr, 64);
	memcpy(copy, before, nr * sizeof(*copy));
	for (i = 0; i < 20; i++) {
		map_code(1);
		ck_assert_int_eq(processes__refresh(ps, p), 0);
		published(p, &now);
		ck_assert_ptr_ne(now, before);
	}
	/* Twenty lists in a few ms: a walk that began with the first one may still be going on. */
	ck_assert_mem_eq(before, copy, nr * sizeof(*copy));
	end();
}
END_TEST

START_TEST(an_exec_voids_what_was_known)
{
	struct process *p, *q;
	uint32_t slot, generation;

	begin();
	p = processes__get(ps, getpid(), true);
	slot = p->slot;
	generation = slots[slot].generation;
	slots[slot].map_seq++;			/* the BPF side saw it */
	ck_assert(processes__stale(ps, p));
	ck_assert(!holds(p));
	processes__execed(ps, getpid(), "next", true);
	q = processes__find(ps, getpid());
	ck_assert_ptr_ne(p, q);
	ck_assert(p->exited);
	ck_assert_str_eq(q->comm, "next");
	ck_assert_uint_eq(q->slot, slot);
	ck_assert_uint_ne(slots[slot].generation, generation);
	ck_assert(!holds(q));
	ck_assert_uint_eq((uint32_t)slots[slot].mappings, 0);
	ck_assert_int_eq(processes__refresh(ps, q), 0);
	ck_assert(holds(q));
	/* One while the mappings are read: they are not trusted. */
	slots[slot].map_seq++;
	ck_assert(!holds(q));
	ck_assert_uint_eq(processes__alive(ps), 1);
	end();
}
END_TEST

START_TEST(a_child_has_its_parents_code_until_it_is_read)
{
	struct process *p, *q;

	begin();
	p = processes__get(ps, getpid(), true);
	processes__forked(ps, getpid(), NOBODY, "child");
	q = processes__find(ps, NOBODY);
	ck_assert_ptr_nonnull(q);
	ck_assert_uint_eq(q->nr_mappings, p->nr_mappings);
	ck_assert_mem_eq(q->mappings, p->mappings, p->nr_mappings * sizeof(*p->mappings));
	ck_assert_int_lt(processes__refresh(ps, q), 0);
	ck_assert_uint_eq(q->nr_mappings, p->nr_mappings);
	ck_assert_uint_eq(processes__alive(ps), 2);
	/* The pid again, its exit having been lost. */
	processes__forked(ps, getpid(), NOBODY, "other");
	ck_assert_ptr_ne(processes__find(ps, NOBODY), q);
	ck_assert(q->exited);
	ck_assert_str_eq(q->comm, "child");
	ck_assert_uint_eq(processes__alive(ps), 2);
	processes__sweep(ps);
	ck_assert_ptr_nonnull(processes__find(ps, NOBODY));	/* its last samples may be on their way */
	processes__sweep(ps);
	ck_assert_ptr_null(processes__find(ps, NOBODY));
	ck_assert_uint_eq(processes__alive(ps), 1);
	processes__exited(ps, NOBODY);
	ck_assert_uint_eq(processes__count(ps), 3);
	end();
}
END_TEST

START_TEST(too_many_mappings_are_cut_and_counted)
{
	const struct mapping *m;
	struct process *p;

	begin();
	map_code(GPUCOLLECT_MAX_PROC_MAPPINGS + 100);
	p = processes__get(ps, getpid(), true);
	ck_assert_uint_eq(published(p, &m), GPUCOLLECT_MAX_PROC_MAPPINGS);
	ck_assert_int_eq(processes__refresh(ps, p), 0);
	ck_assert_uint_eq(processes__limited(ps, LIMIT_OWN_MAPPINGS), 1);
	end();
}
END_TEST

/* The BPF side sends copies then; user space knows the mappings and takes no exec for one. */
START_TEST(without_room_for_its_list_a_process_is_unwound_here)
{
	enum { NR = GPUCOLLECT_MAX_MAPPINGS / GPUCOLLECT_MAX_PROC_MAPPINGS };
	struct process *last = NULL;
	pid_t child[NR + 1];
	int i;

	begin();
	map_code(GPUCOLLECT_MAX_PROC_MAPPINGS);
	for (i = 0; i <= NR; i++) {
		child[i] = fork();
		if (!child[i]) {
			pause();
			_exit(0);
		}
		last = processes__get(ps, child[i], true);
		ck_assert_ptr_nonnull(last);
		ck_assert_uint_eq(last->nr_mappings, GPUCOLLECT_MAX_PROC_MAPPINGS);
		ck_assert(i == NR || holds(last));
	}
	ck_assert_uint_eq(processes__limited(ps, LIMIT_MAPPINGS), 1);
	ck_assert(!holds(last));
	ck_assert_uint_eq(slots[last->slot].mappings, 0);
	ck_assert(!processes__stale(ps, last));
	/* Room that another one gives back is used, though not at once. */
	processes__exited(ps, child[0]);
	usleep(150000);
	ck_assert_int_eq(processes__refresh(ps, last), 0);
	ck_assert(holds(last));
	for (i = 0; i <= NR; i++) {
		kill(child[i], SIGKILL);
		waitpid(child[i], NULL, 0);
	}
	end();
}
END_TEST

START_TEST(fruitless_looks_become_few)
{
	struct process *p;
	int i, budget;

	begin();
	p = processes__get(ps, getpid(), true);
	budget = slots[p->slot].unknown_budget;
	for (i = 0; i < 5; i++)
		processes__fruitless(ps, p);
	ck_assert_int_eq(slots[p->slot].unknown_budget, budget);
	for (i = 0; i < 100; i++)
		processes__fruitless(ps, p);
	ck_assert_int_eq(slots[p->slot].unknown_budget, 1);
	processes__sweep(ps);
	processes__fruitless(ps, p);
	ck_assert_int_eq(slots[p->slot].unknown_budget, 1);	/* so many are not forgiven */
	map_code(1);
	ck_assert_int_eq(processes__refresh(ps, p), 0);
	processes__fruitless(ps, p);
	ck_assert_int_eq(slots[p->slot].unknown_budget, budget);
	end();
}
END_TEST

UNIT_MAIN("processes", own_code_is_known, only_what_changed_is_published,
	  an_old_list_stays_whole_for_a_while, an_exec_voids_what_was_known,
	  a_child_has_its_parents_code_until_it_is_read, too_many_mappings_are_cut_and_counted,
	  without_room_for_its_list_a_process_is_unwound_here, fruitless_looks_become_few)
