// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "loader/closer.h"

#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>

#define MAX_THREADS 8

struct task {
	struct task *next;
	void (*fn)(void *arg);
	void *arg;
};

struct closer {
	pthread_mutex_t lock;
	pthread_cond_t changed;
	struct task *first, **last;
	pthread_t thread[MAX_THREADS];
	unsigned int threads;
	unsigned int idle;	/* threads that wait for a task */
	unsigned int open;	/* tasks that are not done */
	bool stop;
};

struct closer *closer__new(void)
{
	struct closer *c = calloc(1, sizeof(*c));

	if (!c)
		return NULL;
	pthread_mutex_init(&c->lock, NULL);
	pthread_cond_init(&c->changed, NULL);
	c->last = &c->first;
	return c;
}

/* With the lock held. */
static struct task *take(struct closer *c)
{
	struct task *t;

	c->idle++;
	while (!c->first && !c->stop)
		pthread_cond_wait(&c->changed, &c->lock);
	c->idle--;
	t = c->first;
	if (!t)
		return NULL;
	c->first = t->next;
	if (!c->first)
		c->last = &c->first;
	return t;
}

static void *work(void *arg)
{
	struct closer *c = arg;
	struct task *t;

	pthread_mutex_lock(&c->lock);
	while ((t = take(c))) {
		pthread_mutex_unlock(&c->lock);
		t->fn(t->arg);
		free(t);
		pthread_mutex_lock(&c->lock);
		c->open--;
		pthread_cond_broadcast(&c->changed);
	}
	pthread_mutex_unlock(&c->lock);
	return NULL;
}

/* Signals are read by the first thread alone. With the lock held. */
static bool start_thread(struct closer *c)
{
	sigset_t all, old;
	int err;

	if (c->threads == MAX_THREADS)
		return false;
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	err = pthread_create(&c->thread[c->threads], NULL, work, c);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	c->threads += !err;
	return !err;
}

void closer__add(struct closer *c, void (*fn)(void *arg), void *arg)
{
	struct task *t = malloc(sizeof(*t));
	bool queued = false;

	pthread_mutex_lock(&c->lock);
	if (t && (c->idle > 0 || start_thread(c) || c->threads)) {
		*t = (struct task){ .fn = fn, .arg = arg };
		*c->last = t;
		c->last = &t->next;
		c->open++;
		queued = true;
		pthread_cond_broadcast(&c->changed);
	}
	pthread_mutex_unlock(&c->lock);
	if (queued)
		return;
	free(t);
	fn(arg);
}

void closer__wait(struct closer *c)
{
	pthread_mutex_lock(&c->lock);
	while (c->open)
		pthread_cond_wait(&c->changed, &c->lock);
	pthread_mutex_unlock(&c->lock);
}

void closer__free(struct closer *c)
{
	unsigned int i;

	if (!c)
		return;
	closer__wait(c);
	pthread_mutex_lock(&c->lock);
	c->stop = true;
	pthread_cond_broadcast(&c->changed);
	pthread_mutex_unlock(&c->lock);
	for (i = 0; i < c->threads; i++)
		pthread_join(c->thread[i], NULL);
	pthread_cond_destroy(&c->changed);
	pthread_mutex_destroy(&c->lock);
	free(c);
}
