// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "loader/closer.h"

#include <pthread.h>
#include <semaphore.h>
#include <stdbool.h>
#include <unistd.h>

#include "tests/unit/refuse.h"
#include "tests/unit/unit.h"

#define TASKS 200

static unsigned int runs[TASKS];
static sem_t go;

static void run(void *arg)
{
	__atomic_add_fetch((unsigned int *)arg, 1, __ATOMIC_SEQ_CST);
}

static void run_when_told(void *arg)
{
	while (sem_wait(&go))
		;
	run(arg);
}

static void all_ran_once(void)
{
	for (int i = 0; i < TASKS; i++)
		ck_assert_uint_eq(runs[i], 1);
}

START_TEST(each_runs_once)
{
	struct closer *c = closer__new();

	ck_assert_ptr_nonnull(c);
	closer__wait(c);
	for (int i = 0; i < TASKS / 2; i++)
		closer__add(c, run, &runs[i]);
	closer__wait(c);
	for (int i = 0; i < TASKS / 2; i++)
		ck_assert_uint_eq(runs[i], 1);
	for (int i = TASKS / 2; i < TASKS; i++)
		closer__add(c, run, &runs[i]);
	closer__free(c);
	all_ran_once();
	closer__free(NULL);
}
END_TEST

/* Whoever adds does not wait, whatever the tasks wait for. */
START_TEST(adding_does_not_wait)
{
	struct closer *c = closer__new();

	ck_assert_int_eq(sem_init(&go, 0, 0), 0);
	for (int i = 0; i < TASKS; i++)
		closer__add(c, run_when_told, &runs[i]);
	for (int i = 0; i < TASKS; i++)
		ck_assert_uint_eq(runs[i], 0);
	for (int i = 0; i < TASKS; i++)
		sem_post(&go);
	closer__free(c);
	all_ran_once();
}
END_TEST

START_TEST(without_memory_it_runs_at_once)
{
	struct closer *c = closer__new();

	allocations_left = CAN_REFUSE ? 0 : -1;
	closer__add(c, run, &runs[0]);
	allocations_left = -1;
	closer__wait(c);
	ck_assert_uint_eq(runs[0], 1);
	closer__free(c);
}
END_TEST

UNIT_MAIN("closer", each_runs_once, adding_does_not_wait, without_memory_it_runs_at_once)
