// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include <pthread.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "loader/thread_names.h"
#include "tests/unit/unit.h"

static struct processes *ps;
static struct files *files;
static struct process *self;
static struct profile *profile;
static struct thread_names *names;
static pthread_barrier_t barrier;
static uint32_t other;

static void begin(void)
{
	static struct proc_slot slots[GPUCOLLECT_MAX_PROCS];
	static struct mapping mappings[GPUCOLLECT_MAX_MAPPINGS];
	const struct processes_maps maps = { .procs_fd = -1, .slots = slots, .mappings = mappings };

	files = files__new();
	ps = processes__new(&maps, files);
	self = processes__get(ps, getpid(), true);
	profile = profile__new();
	names = thread_names__new();
	ck_assert(self && profile && names);
}

static void end(void)
{
	thread_names__free(names);
	profile__free(profile);
	processes__free(ps);
	files__free(files);
}

static const char *name_of(uint32_t tid)
{
	ck_assert_int_eq(thread_names__add(names, ps, profile), 0);
	return profile__thread_name(profile, (uint32_t)getpid(), tid);
}

static void *thread(void *arg)
{
	(void)arg;
	other = (uint32_t)gettid();
	pthread_barrier_wait(&barrier);
	pthread_barrier_wait(&barrier);
	prctl(PR_SET_NAME, "two words;x 7", 0, 0, 0);
	pthread_barrier_wait(&barrier);
	pthread_barrier_wait(&barrier);
	return NULL;
}

START_TEST(the_name_of_the_end_holds)
{
	pthread_t t;

	begin();
	prctl(PR_SET_NAME, "first\n", 0, 0, 0);
	pthread_barrier_init(&barrier, NULL, 2);
	ck_assert_int_eq(pthread_create(&t, NULL, thread, NULL), 0);
	pthread_barrier_wait(&barrier);
	ck_assert_int_eq(thread_names__met(names, self, other), 0);
	ck_assert_int_eq(thread_names__met(names, self, other), 0);
	ck_assert_int_eq(thread_names__met(names, self, 0), 0);
	ck_assert_str_eq(name_of(other), "first\n");
	pthread_barrier_wait(&barrier);
	pthread_barrier_wait(&barrier);
	ck_assert_str_eq(name_of(other), "two words;x 7");
	pthread_barrier_wait(&barrier);
	pthread_join(t, NULL);
	ck_assert_str_eq(name_of(other), "two words;x 7");
	ck_assert_ptr_null(name_of((uint32_t)getpid()));
	end();
}
END_TEST

/* What runs under its number now is another's. */
START_TEST(one_that_ended_keeps_its_name)
{
	begin();
	prctl(PR_SET_NAME, "before", 0, 0, 0);
	ck_assert_int_eq(thread_names__met(names, self, (uint32_t)getpid()), 0);
	self->kept = true;
	processes__exited(ps, getpid());
	prctl(PR_SET_NAME, "after", 0, 0, 0);
	ck_assert_str_eq(name_of((uint32_t)getpid()), "before");
	end();
}
END_TEST

/* In its second second, by when most have one. */
START_TEST(a_name_that_was_given_late)
{
	begin();
	prctl(PR_SET_NAME, "before", 0, 0, 0);
	ck_assert_int_eq(thread_names__met(names, self, (uint32_t)getpid()), 0);
	self->kept = true;
	prctl(PR_SET_NAME, "early", 0, 0, 0);
	thread_names__look_again(names, ps);
	thread_names__look_again(names, ps);
	prctl(PR_SET_NAME, "late", 0, 0, 0);
	thread_names__look_again(names, ps);
	processes__exited(ps, getpid());
	ck_assert_str_eq(name_of((uint32_t)getpid()), "early");
	end();
}
END_TEST

/* A first thread has the name of its process; of another nothing is left. */
START_TEST(one_that_is_gone)
{
	begin();
	self->kept = true;
	memcpy(self->comm, "was here", sizeof("was here"));
	processes__exited(ps, getpid());
	ck_assert_int_eq(thread_names__met(names, self, (uint32_t)getpid()), 0);
	ck_assert_int_eq(thread_names__met(names, self, 4194303), 0);
	ck_assert_str_eq(name_of((uint32_t)getpid()), "was here");
	ck_assert_ptr_null(name_of(4194303));
	end();
}
END_TEST

UNIT_MAIN("thread_names", the_name_of_the_end_holds, one_that_ended_keeps_its_name,
	  a_name_that_was_given_late, one_that_is_gone)
