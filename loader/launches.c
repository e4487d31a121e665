// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The launches of all processes: those with the library are targets. */
#include "loader/launches.h"

#include <errno.h>
#include <stdlib.h>

#include "loader/account.h"
#include "loader/base/array.h"
#include "loader/base/fault.h"
#include "loader/runs.h"
#include "loader/target.h"

#define POLLS_PER_LOOK 50	/* for system-call filters: about a second */

struct launches {
	struct launches_config config;
	struct target **target;
	size_t nr_targets, targets_size;
	struct target *last;
	bool stopping;
	unsigned int polls;
	struct account_shared shared;
};

struct launches *launches__new(const struct launches_config *config)
{
	struct launches *l = calloc(1, sizeof(*l));

	if (!l)
		return NULL;
	l->config = *config;
	l->shared.tally = config->tally;
	l->shared.calibrations = config->calibrations;
	l->shared.works = works__new();
	l->shared.strata = strata__new();
	l->shared.graphs = graphs__new();
	l->shared.shapes = shapes__new();
	l->shared.runs = runs__new();
	l->shared.to = UINT64_MAX;
	if (l->shared.works && l->shared.strata && l->shared.graphs && l->shared.shapes && l->shared.runs)
		return l;
	launches__free(l);
	return NULL;
}

void launches__only(struct launches *l, uint64_t from, uint64_t to)
{
	l->shared.from = from;
	l->shared.to = to;
}

/* --- processes with the library -------------------------------------------------------------- */

void launches__free(struct launches *l)
{
	size_t i;

	if (!l)
		return;
	for (i = 0; i < l->nr_targets; i++)
		target__free(l->target[i]);
	free(l->target);
	runs__free(l->shared.runs);
	works__free(l->shared.works);
	strata__free(l->shared.strata);
	graphs__free(l->shared.graphs);
	shapes__free(l->shared.shapes);
	free(l);
}

/* Launches come in bursts of one process: the one found last is looked at first. */
static struct target *find(struct launches *l, const struct process *p)
{
	size_t i;

	if (l->last && target__process(l->last) == p)
		return l->last;
	for (i = l->nr_targets; i > 0; i--)
		if (target__process(l->target[i - 1]) == p)
			return l->last = l->target[i - 1];
	return NULL;
}

static struct target *add(struct launches *l, struct process *p)
{
	struct target *t;

	if (array__reserve((void **)&l->target, &l->targets_size, l->nr_targets, sizeof(*l->target)))
		return NULL;
	t = target__new(&l->config, &l->shared, p);
	if (t)
		l->target[l->nr_targets++] = t;
	return t;
}

int launches__record(struct launches *l, struct process *p, const struct rec_launch *rec,
		     uint32_t stack)
{
	struct target *t = find(l, p);

	processes__ask_rank(p);
	if (!rec->id)
		return t && target__is_watched(t) ? 0 :
		       account__probed(&l->shared, p->index, rec, stack);
	if (!t)
		t = add(l, p);
	return t ? target__launch(t, rec, stack) : -ENOMEM;
}

void launches__hello(struct launches *l, struct process *p, int fd)
{
	struct target *t = find(l, p);

	FAULT_POINT("hello");
	/* Nobody answers it any more: it ends by itself before it has touched anything. */
	if (l->stopping)
		return;
	if (!t)
		t = add(l, p);
	/* First what the process may be about to take away. */
	if (t)
		target__hello(t, fd);
	processes__ask_rank(p);
}

void launches__heartbeat(struct launches *l)
{
	size_t i;

	for (i = 0; i < l->nr_targets; i++)
		target__heartbeat(l->target[i]);
}

static void look_for_filters(struct launches *l)
{
	size_t i;

	for (i = 0; i < l->nr_targets; i++)
		target__look_for_filter(l->target[i]);
}

void launches__poll(struct launches *l)
{
	size_t i;

	if (!(++l->polls % POLLS_PER_LOOK))
		look_for_filters(l);
	for (i = 0; i < l->nr_targets; i++)
		target__poll(l->target[i]);
}

void launches__exited(struct launches *l, struct process *p, uint64_t time)
{
	struct target *t = find(l, p);
	size_t i;

	if (!t)
		return;
	target__finish(t, time);
	for (i = 0; l->target[i] != t; i++)
		;
	l->target[i] = l->target[--l->nr_targets];
	l->last = NULL;
	target__free(t);
}

void launches__stop(struct launches *l)
{
	size_t i;

	l->stopping = true;
	look_for_filters(l);
	for (i = 0; i < l->nr_targets; i++)
		target__stop(l->target[i]);
	FAULT_POINT("libraries-told");
}

bool launches__stopped(const struct launches *l)
{
	size_t i;

	for (i = 0; i < l->nr_targets; i++)
		if (!target__stopped(l->target[i]))
			return false;
	return true;
}

void launches__finish(struct launches *l)
{
	while (l->nr_targets)
		launches__exited(l, target__process(l->target[0]), l->shared.to);
	tally__settle(l->config.tally);
}

bool launches__by_mean(enum launch_cause cause)
{
	switch (cause) {
	case CAUSE_PDL:
	case CAUSE_POOL_EMPTY:
	case CAUSE_OUTSTANDING:
	case CAUSE_OTHER_CONTEXT:
	case CAUSE_RECORD_FAILED:
	case CAUSE_DISTURBED:
	case CAUSE_NO_STREAM:
	case CAUSE_ENTRY:
	case CAUSE_BAD_TIME:
		return true;
	default:
		return false;
	}
}

void launches__counters(const struct launches *l, struct launches_counters *c)
{
	*c = l->shared.counters;
}

const struct runs *launches__runs(const struct launches *l)
{
	return l->shared.runs;
}

const char *launches__copy_name(uint32_t work)
{
	return channel__copy_text((enum copy_kind)work);
}

struct strata *launches__strata(const struct launches *l)
{
	return l->shared.strata;
}

const struct graphs *launches__graphs(const struct launches *l)
{
	return l->shared.graphs;
}

const struct shapes *launches__shapes(const struct launches *l)
{
	return l->shared.shapes;
}

const char *launches__name(const struct launches *l, uint32_t work)
{
	return works__get(l->shared.works, work);
}
