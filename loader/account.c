// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "loader/account.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "loader/base/fault.h"
#include "loader/base/table.h"
#include "loader/graph_book.h"
#include "loader/join.h"
#include "loader/runs.h"
#include "loader/stacks.h"

/*
 * A target that makes up launches, or names, must not fill our memory. Real ones wait for a few
 * thousand results, and have some ten thousand names of a kilobyte at most.
 */
#define MAX_WAITING (1u << 18)
#define MAX_NAME_BYTES (64u << 20)
#define NAME_COST 128u		/* of one, beside its text */

/* Devices whose constants are kept; ordinals beyond have raw durations. */
#define MAX_DEVICES 64

struct account {
	struct account_shared *shared;
	uint32_t process;
	struct join *join;
	struct table *names;		/* generation -> sizes << 32 | work, both of works.h */
	struct table *latest;		/* function -> generation */
	struct graph_book *graphs;
	struct table *strata;		/* stratum of the channel -> of strata.h */
	struct table *runs;		/* launch id -> number of its run (runs.h), while it waits */
	uint32_t in_runs;		/* launches of its runs that are not whole yet */
	size_t name_bytes;
	struct calibration calibration[MAX_DEVICES];
	const struct channel *channel;	/* at the end: which waits are under way then */
	uint64_t ended;			/* and when that is */
	uint64_t seen;
	bool no_memory;
};

static int on_joined(void *ctx, const struct join_launch *launch, const struct channel_result *r);

struct account *account__new(struct account_shared *shared, uint32_t process)
{
	struct account *a = calloc(1, sizeof(*a));

	if (!a)
		return NULL;
	a->shared = shared;
	a->process = process;
	a->join = join__new(MAX_WAITING, on_joined);
	a->names = table__new();
	a->latest = table__new();
	a->strata = table__new();
	a->graphs = graph_book__new(shared->graphs);
	a->runs = table__new();
	if (a->join && a->names && a->latest && a->strata && a->graphs && a->runs)
		return a;
	account__free(a);
	return NULL;
}

void account__free(struct account *a)
{
	if (!a)
		return;
	join__free(a->join);
	table__free(a->names);
	table__free(a->latest);
	table__free(a->strata);
	graph_book__free(a->graphs);
	table__free(a->runs);
	free(a);
}

void account__new_session(struct account *a)
{
	struct table *none = table__new();
	struct graph_book *book;

	/* Else two strata are one, of both sessions. */
	if (!none)
		return;
	table__free(a->strata);
	a->strata = none;
	/* Nor do generations of graphs go on where another program was executed. */
	book = graph_book__new(a->shared->graphs);
	if (!book)
		return;
	graph_book__free(a->graphs);
	a->graphs = book;
}

uint64_t account__seen(const struct account *a)
{
	return a->seen;
}

bool account__no_memory(struct account *a)
{
	bool was = a->no_memory;

	a->no_memory = false;
	return was;
}

/* --- into the tally ------------------------------------------------------------------------- */

static bool is_outside(const struct account_shared *shared, const struct rec_launch *rec)
{
	return rec->head.time < shared->from || rec->head.time >= shared->to;
}

/* Device time of a bracket; false: its device's constant isn't known. */
static bool calibrate(const struct account *a, const struct channel_result *r, uint64_t *ns)
{
	bool known = r->device >= 0 && r->device < MAX_DEVICES;

	return calibration__apply(known ? &a->calibration[r->device] : NULL, r, ns);
}

/* Not executed now, or not at all: no launch to count. */
static bool has_not_run(const struct channel_result *r)
{
	return r->cause == CAUSE_CAPTURED || r->cause == CAUSE_LAUNCH_FAILED;
}

/*
 * Which launches, or waits, a record of that weight stands for, itself included; `counts`: it is a launch or
 * copy of the capture. False: out of memory.
 */
static bool find_stratum(struct account *a, uint32_t word, uint32_t weight, bool counts, uint32_t *id)
{
	uint32_t local = CHANNEL_STRATUM(word);
	uint64_t known = 0;

	*id = 0;
	if (!local) {
		strata__saw(a->shared->strata, 0, 1, counts);
		return true;
	}
	if (!table__get(a->strata, local, &known)) {
		known = strata__add(a->shared->strata);
		if (!known || table__set(a->strata, local, known))
			return false;
	}
	*id = (uint32_t)known;
	strata__saw(a->shared->strata, *id, weight, counts);
	return true;
}

/* The number of what it runs and a kernel's sizes; 0: not known. 0 or -ENOMEM. */
static int find_work(struct account *a, const struct channel_result *r, struct tally_key *key)
{
	uint64_t work = 0;

	if (r->flags & LAUNCH_COPY)
		work = r->copy;
	else if (r->flags & LAUNCH_GRAPH)
		return graph_book__find(a->graphs, r->name, &a->shared->counters.lost_graphs, &key->work);
	else if (!r->name || !table__get(a->names, r->name, &work))
		work = 0;
	key->work = (uint32_t)work;
	key->sizes = (uint32_t)(work >> 32);
	return 0;
}

static int add_shape(struct account *a, const struct tally_key *key, const struct join_launch *launch,
		     uint32_t stands_for, uint64_t ns)
{
	if (!launch || key->kind != TALLY_LAUNCH || key->flags & TALLY_GRAPH || !key->work)
		return 0;
	return shapes__add(a->shared->shapes, a->process, key->work, &launch->shape, ns, stands_for);
}

static int add_to(struct account *a, uint64_t launch, uint32_t run, uint32_t entry)
{
	uint32_t whole;
	int err = runs__add(a->shared->runs, run, entry, &whole);

	table__remove(a->runs, launch);
	a->in_runs -= whole;
	return err;
}

/* One of several that have a time together. */
static int add_to_run(struct account *a, struct tally_key *key, const struct channel_result *r)
{
	struct tally_add add = { .count = 1 };
	uint32_t entry;
	uint64_t run, ignored;
	int err;

	if (!calibrate(a, r, &ignored))
		key->flags |= TALLY_UNCALIBRATED;
	add.untimed = !table__get(a->runs, r->launch, &run);
	err = tally__add(a->shared->tally, key, &add);
	if (err || add.untimed)
		return err;
	a->shared->counters.in_runs++;
	err = tally__index(a->shared->tally, key, &entry);
	return err ? err : add_to(a, r->launch, (uint32_t)run, entry);
}

static int add_result(struct account *a, const struct join_launch *launch, uint32_t stratum,
		      const struct channel_result *r)
{
	struct launches_counters *counters = &a->shared->counters;
	bool copy = r->flags & LAUNCH_COPY;
	struct tally_key key = {
		.kind = copy ? TALLY_COPY : TALLY_LAUNCH,
		.process = a->process,
		.tid = launch ? launch->tid : 0,
		.user = launch ? launch->stack : STACKS_NONE,
		.stratum = stratum,
		.device = r->device,
		.stream = r->stream,
		.flags = !copy && r->flags & LAUNCH_GRAPH ? TALLY_GRAPH : 0,
	};
	struct tally_add add = {
		.weight = r->stands_for, .block = r->stratum >> CHANNEL_BLOCK_SHIFT,
		.count = 1, .bytes = r->bytes,
	};
	int err;

	(copy ? counters->copies_by_cause : counters->by_cause)[r->cause] += r->stands_for;
	if (r->cause == CAUSE_CAPTURED && launch)
		return graph_book__captured(a->graphs, r->launch, launch->stack);
	if (has_not_run(r))
		return 0;
	err = find_work(a, r, &key);
	if (!err && r->cause == CAUSE_NONE && r->launches > 1)
		return add_to_run(a, &key, r);
	if (!err && r->cause == CAUSE_NONE) {
		add.timed = 1;
		add.others = r->weight - 1;
		if (!calibrate(a, r, &add.ns))
			key.flags |= TALLY_UNCALIBRATED;
		counters->graphs += key.flags & TALLY_GRAPH ? r->stands_for : 0;
		counters->graphs_whole += key.flags & TALLY_GRAPH && !key.work ? r->stands_for : 0;
		err = add_shape(a, &key, launch, r->stands_for, add.ns);
	}
	add.untimed = launches__by_mean((enum launch_cause)r->cause);
	add.left_out = r->cause == CAUSE_OUTSTANDING;
	return err ? err : tally__add(a->shared->tally, &key, &add);
}

/* The part of it that lies in the capture. */
static uint64_t inside(const struct account_shared *shared, uint64_t time, uint64_t ns)
{
	uint64_t from = time > shared->from ? time : shared->from, to;

	if (__builtin_add_overflow(time, ns, &to) || to > shared->to)
		to = shared->to;
	return to > from ? to - from : 0;
}

/* `stands_for` and `word` are its probe's: weight and stratum. */
static int add_wait(struct account *a, const struct join_launch *launch, uint32_t stratum, uint64_t ns,
		    uint32_t stands_for, uint32_t word)
{
	const struct tally_key key = {
		.kind = TALLY_WAIT,
		.process = a->process,
		.tid = launch ? launch->tid : 0,
		.user = launch ? launch->stack : STACKS_NONE,
		.stratum = stratum,
		.device = -1,
	};
	const struct tally_add add = {
		.weight = stands_for, .block = word >> CHANNEL_BLOCK_SHIFT, .count = 1, .timed = 1,
		.ns = launch ? inside(a->shared, launch->time, ns) : ns,
	};

	return add.ns ? tally__add(a->shared->tally, &key, &add) : 0;
}

/* One that has no result is still going on, or was when the process ended; else its end was lost. */
static bool is_under_way(const struct account *a, const struct join_launch *launch)
{
	return a->channel && channel__is_waiting(a->channel, launch->id);
}

static int add_endless(struct account *a, const struct join_launch *launch, uint32_t stratum)
{
	if (a->ended <= launch->time)
		return 0;
	a->shared->counters.waiting++;
	return add_wait(a, launch, stratum, a->ended - launch->time, launch->weight, launch->stratum);
}

static int on_wait(struct account *a, const struct join_launch *launch, const struct channel_result *r)
{
	uint32_t stratum;

	if (!find_stratum(a, r ? r->stratum : launch->stratum, r ? r->stands_for : launch->weight, false,
			  &stratum))
		return -ENOMEM;
	a->shared->counters.waits_no_stack += !launch;
	if (r)
		return add_wait(a, launch, stratum, r->duration, r->stands_for, r->stratum);
	if (is_under_way(a, launch))
		return add_endless(a, launch, stratum);
	a->shared->counters.waits_no_end += inside(a->shared, launch->time, 1);
	return 0;
}

/* The host's time in a copy that it waits for, beside the copy itself. */
static int add_waited(struct account *a, const struct join_launch *launch, const struct channel_result *r,
		      uint32_t stratum)
{
	if (!r)
		return launch->flags & LAUNCH_COPY && is_under_way(a, launch) ?
			       add_endless(a, launch, stratum) : 0;
	return r->waited ? add_wait(a, launch, stratum, r->waited, r->stands_for, r->stratum) : 0;
}

/* A launch that is none of the capture's may be in a run with others that are. */
static int leave_run(struct account *a, const struct channel_result *r)
{
	uint64_t run;

	if (r->launches == 1 || !table__get(a->runs, r->launch, &run))
		return 0;
	return add_to(a, r->launch, (uint32_t)run, RUNS_NO_ENTRY);
}

/* One that is none of the capture's: a graph that is captured before may be launched later. */
static int take_outside(struct account *a, const struct join_launch *launch, const struct channel_result *r)
{
	if (r->cause == CAUSE_CAPTURED)
		return graph_book__captured(a->graphs, r->launch, launch->stack);
	return leave_run(a, r);
}

/* What stands for a result that was lost. */
static struct channel_result no_end_of(const struct account *a, const struct join_launch *launch)
{
	struct channel_result r = {
		.cause = launch->flags & LAUNCH_CAPTURED ? CAUSE_CAPTURED : CAUSE_NO_END,
		.launch = launch->id,
		.device = -1,
		.stands_for = launch->weight,
		.stratum = launch->stratum,
		.flags = (uint16_t)launch->flags,
		.copy = launch->copy,
		.bytes = launch->bytes,
	};
	uint64_t name = 0;

	if (!(launch->flags & LAUNCH_GRAPH) && table__get(a->latest, launch->function, &name))
		r.name = (uint32_t)name;
	return r;
}

static int on_joined(void *ctx, const struct join_launch *launch, const struct channel_result *r)
{
	bool outside = launch && launch->outside;
	struct launches_counters *counters;
	struct channel_result no_end;
	struct account *a = ctx;
	bool is_lost = !r;
	uint32_t stratum;
	int err;

	if ((r ? r->flags : launch->flags) & LAUNCH_WAIT)
		return on_wait(a, launch, r);
	if (is_lost) {
		no_end = no_end_of(a, launch);
		r = &no_end;
	}
	if (!find_stratum(a, r->stratum, r->stands_for, !outside && !has_not_run(r), &stratum))
		return -ENOMEM;
	err = add_waited(a, launch, is_lost ? NULL : r, stratum);
	if (err)
		return err;
	if (outside)
		return is_lost ? 0 : take_outside(a, launch, r);
	counters = &a->shared->counters;
	counters->no_end += is_lost && r->cause == CAUSE_NO_END;
	*(!is_lost && r->flags & LAUNCH_COPY ? &counters->copies_no_stack : &counters->no_stack) += !launch;
	return add_result(a, launch, stratum, r);
}

uint32_t account__weight(const struct rec_launch *rec)
{
	return rec->weight && rec->weight <= CHANNEL_MAX_STANDS_FOR ? rec->weight : 1;
}

int account__launch(struct account *a, const struct rec_launch *rec, uint32_t stack)
{
	struct join_launch launch = {
		.stack = stack, .tid = rec->tid, .function = rec->function, .flags = rec->flags,
		.outside = is_outside(a->shared, rec), .weight = account__weight(rec),
		.stratum = rec->stratum, .id = rec->id, .time = rec->head.time,
	};

	memcpy(launch.shape.grid, rec->grid, sizeof(rec->grid));
	memcpy(launch.shape.block, rec->block, sizeof(rec->block));
	launch.shape.shared_bytes = rec->shared_bytes;
	if (CHANNEL_STRATUM(launch.stratum) >= CHANNEL_STRATA)
		launch.stratum = 0;
	if (rec->flags & LAUNCH_COPY) {
		launch.copy = rec->grid[2] < NR_COPY_KINDS ? rec->grid[2] : COPY_UNKNOWN;
		launch.bytes = copy__bytes(rec->grid);
	}
	a->seen++;
	return join__launch(a->join, rec->id, &launch, a);
}

int account__probed(struct account_shared *shared, uint32_t process, const struct rec_launch *rec,
		    uint32_t stack)
{
	const struct tally_add one = { .count = 1 };
	struct tally_key key = {
		.kind = TALLY_LAUNCH,
		.process = process,
		.tid = rec->tid,
		.user = stack,
		.device = -1,
		.stream = rec->stream,
		.flags = rec->flags & LAUNCH_GRAPH ? TALLY_GRAPH : 0,
	};

	if (is_outside(shared, rec))
		return 0;
	shared->counters.without_library++;
	return tally__add(shared->tally, &key, &one);
}

void account__finish(struct account *a, const struct channel *channel, uint64_t time)
{
	uint64_t local, id;
	size_t pos = 0;

	a->channel = channel;
	a->ended = time;
	join__finish(a->join, a);
	a->channel = NULL;
	while (channel && table__next(a->strata, &pos, &local, &id))
		strata__set_launches(a->shared->strata, (uint32_t)id,
				     channel__launches_of(channel, (uint32_t)local));
}

/* --- what a channel holds --------------------------------------------------------------------- */

/* A run: each of its launches is to meet its record. */
static int add_run(struct account *a, const struct channel_result *r)
{
	struct channel_result one = *r;
	uint32_t run = 0, i;
	uint64_t ns;
	int err = 0;

	/* Made up ones may never be whole: beyond that they are taken for launches without a time. */
	if (r->cause == CAUSE_NONE && a->in_runs + r->launches <= MAX_WAITING) {
		calibrate(a, r, &ns);
		run = runs__begin(a->shared->runs, r->launches, ns, r->weight);
		err = run ? 0 : -ENOMEM;
		a->in_runs += run ? r->launches : 0;
	}
	for (i = 0; i < r->launches; i++) {
		if (i) {
			one.launch = r->more[i - 1].launch;
			one.name = r->more[i - 1].name;
		}
		if (run)
			err = table__set(a->runs, one.launch, run) ? -ENOMEM : err;
		err = join__result(a->join, &one, a) ? -ENOMEM : err;
	}
	return err;
}

static void on_result(void *ctx, const struct channel_result *r)
{
	struct account *a = ctx;

	FAULT_POINT("time");
	a->no_memory |= (r->launches > 1 ? add_run(a, r) : join__result(a->join, r, a)) != 0;
}

static void on_name(void *ctx, const struct channel_name *name)
{
	uint32_t work, sizes = works__sizes(name->registers, name->shared_bytes);
	struct account *a = ctx;

	if (name->len + NAME_COST > MAX_NAME_BYTES - a->name_bytes) {
		a->shared->counters.lost_names++;
		return;
	}
	if (name->status == NAME_ERROR)
		return;
	a->name_bytes += name->len + NAME_COST;
	work = name->status == NAME_NULL ? WORKS_NAMELESS :
	       works__add(a->shared->works, name->text, name->len);
	a->no_memory |= !work ||
			table__set(a->names, name->generation, (uint64_t)sizes << 32 | work) ||
			table__set(a->latest, name->function, name->generation);
}

static void on_device(void *ctx, const struct channel_device *d)
{
	struct account *a = ctx;

	if (d->device >= 0 && d->device < MAX_DEVICES)
		calibrations__find(a->shared->calibrations, d->text, d->len, d->version,
				   &a->calibration[d->device]);
}

static void on_graph(void *ctx, const struct channel_graph *g, uint32_t nr)
{
	struct account *a = ctx;

	a->no_memory |= graph_book__add(a->graphs, g, nr, a->names, &a->shared->counters.lost_graphs) != 0;
}

const struct channel_handler account__handler = {
	.result = on_result, .name = on_name, .device = on_device, .graph = on_graph,
};
