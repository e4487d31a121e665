// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "loader/thread_names.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "loader/base/array.h"
#include "loader/base/table.h"
#include "loader/comm.h"

struct thread_name {
	uint32_t process;	/* its index */
	uint32_t tid;
	char name[GPUCOLLECT_COMM_LEN];	/* "": not known */
};

struct thread_names {
	struct table *by_thread;	/* index of the process << 32 | tid */
	struct thread_name *thread;	/* as they were met: an exec makes a later process */
	size_t nr, room;
	size_t looked, known;	/* looked at a second time; there a second ago */
};

struct thread_names *thread_names__new(void)
{
	struct thread_names *t = calloc(1, sizeof(*t));

	if (!t)
		return NULL;
	t->by_thread = table__new();
	if (t->by_thread)
		return t;
	free(t);
	return NULL;
}

void thread_names__free(struct thread_names *t)
{
	if (!t)
		return;
	table__free(t->by_thread);
	free(t->thread);
	free(t);
}

int thread_names__met(struct thread_names *t, const struct process *p, uint32_t tid)
{
	uint64_t key = (uint64_t)p->index << 32 | tid, known;
	struct thread_name *n;

	if (!tid || table__get(t->by_thread, key, &known))
		return 0;
	if (array__reserve((void **)&t->thread, &t->room, t->nr, sizeof(*t->thread)) ||
	    table__set(t->by_thread, key, t->nr))
		return -ENOMEM;
	n = &t->thread[t->nr++];
	*n = (struct thread_name){ .process = p->index, .tid = tid };
	if (tid == (uint32_t)p->tgid)
		memcpy(n->name, p->comm, sizeof(n->name));
	if (!p->exited)
		comm__read(p->tgid, (pid_t)tid, n->name);
	return 0;
}

static const struct process *look(struct thread_name *n, const struct processes *processes)
{
	const struct process *p = processes__at(processes, n->process);

	if (!p->exited)
		comm__read(p->tgid, (pid_t)n->tid, n->name);
	return p;
}

void thread_names__look_again(struct thread_names *t, const struct processes *processes)
{
	for (; t->looked < t->known; t->looked++)
		look(&t->thread[t->looked], processes);
	t->known = t->nr;
}

int thread_names__add(struct thread_names *t, const struct processes *processes, struct profile *p)
{
	size_t i;
	int err = 0;

	for (i = 0; i < t->nr && !err; i++) {
		struct thread_name *n = &t->thread[i];
		const struct process *of = look(n, processes);

		if (n->name[0])
			err = profile__name_thread(p, (uint32_t)of->tgid, n->tid, n->name);
	}
	return err;
}
