// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* What the device keeps per thread: context stack, capture mode, default streams, counts. */
#include "sim.h"
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

__thread struct thread *thread_self_ __attribute__((tls_model("initial-exec")));

static struct slab slab = SLAB(struct thread);
static pthread_mutex_t list_lock = PTHREAD_MUTEX_INITIALIZER;
static struct thread *all;
static uint64_t totals_of_ended[C_NR];
static pthread_key_t key;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void thread__ends(void *arg)
{
	struct thread *t = arg;

	trace__thread_ends(t);
	while (t->streams) {
		CUstream s = t->streams;

		t->streams = s->next_own;
		stream__free(s);
	}
	pthread_mutex_lock(&list_lock);
	for (int i = 0; i < C_NR; i++)
		totals_of_ended[i] += t->count[i];
	*t->link = t->next;
	if (t->next)
		t->next->link = t->link;
	pthread_mutex_unlock(&list_lock);
	thread_self_ = NULL;
	slab__put(&slab, t);
}

static void make_key(void)
{
	pthread_key_create(&key, thread__ends);
}

struct thread *thread__make(void)
{
	struct thread *t = slab__get(&slab);

	pthread_once(&once, make_key);
	memset(t, 0, sizeof(*t));
	t->tid = (int)syscall(SYS_gettid);
	pthread_mutex_lock(&list_lock);
	t->next = all;
	t->link = &all;
	if (all)
		all->link = &t->next;
	all = t;
	pthread_mutex_unlock(&list_lock);
	pthread_setspecific(key, t);
	thread_self_ = t;
	return t;
}

/* The parent's threads do not exist in a forked child, nor do their unwritten lines. */
void thread__forget_all(void)
{
	pthread_mutex_init(&list_lock, NULL);
	pthread_mutex_init(&slab.lock, NULL);
	all = NULL;
	memset(totals_of_ended, 0, sizeof(totals_of_ended));
	if (thread_self_)
		pthread_setspecific(key, NULL);
	thread_self_ = NULL;
	trace__forget();
}

void thread__totals(uint64_t total[C_NR])
{
	pthread_mutex_lock(&list_lock);
	memcpy(total, totals_of_ended, sizeof(totals_of_ended));
	for (struct thread *t = all; t; t = t->next)
		for (int i = 0; i < C_NR; i++)
			total[i] += __atomic_load_n(&t->count[i], __ATOMIC_RELAXED);
	pthread_mutex_unlock(&list_lock);
}
