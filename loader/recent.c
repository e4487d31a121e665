// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "loader/recent.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define NR_EVENTS 4096		/* a power of two; of two hundred processes that live for a moment */
#define MAX_LINES 512		/* of one process */
#define PATH_LEN 192

struct event {
	struct sampling_event event;	/* path: not used */
	char path[PATH_LEN];
};

struct recent {
	uint64_t nr;		/* ever added */
	pid_t tgid[NR_EVENTS];	/* as in the events: close together, since all are looked through */
	struct event event[NR_EVENTS];
};

struct recent *recent__new(void)
{
	return calloc(1, sizeof(struct recent));
}

void recent__free(struct recent *r)
{
	free(r);
}

void recent__add(struct recent *r, const struct sampling_event *event)
{
	struct event *e = &r->event[r->nr % NR_EVENTS];
	size_t len = event->exec ? 0 : strnlen(event->path, PATH_LEN - 1);

	r->tgid[r->nr++ % NR_EVENTS] = event->tgid;
	e->event = *event;
	memcpy(e->path, event->path, len);
	e->path[len] = '\0';
}

static int by_time(const void *a, const void *b)
{
	const struct event *x = *(struct event *const *)a, *y = *(struct event *const *)b;

	return (x->event.time > y->event.time) - (x->event.time < y->event.time);
}

/* Those of one program of a process, in order: CPUs tell theirs one after the other. */
static size_t find(const struct recent *r, pid_t tgid, uint64_t time, const struct event **found)
{
	uint64_t i = r->nr > NR_EVENTS ? r->nr - NR_EVENTS : 0;
	size_t nr = 0, first = 0, at;

	for (; i < r->nr && nr < MAX_LINES; i++)
		if (r->tgid[i % NR_EVENTS] == tgid)
			found[nr++] = &r->event[i % NR_EVENTS];
	qsort(found, nr, sizeof(*found), by_time);
	for (at = 0; at < nr; at++) {
		if (!found[at]->event.exec)
			continue;
		if (found[at]->event.time > time)
			break;
		first = at + 1;
	}
	memmove(found, found + first, (at - first) * sizeof(*found));
	return at - first;
}

bool recent__replaced(const struct recent *r, pid_t tgid, uint64_t time)
{
	uint64_t i = r->nr > NR_EVENTS ? r->nr - NR_EVENTS : 0;

	for (; i < r->nr; i++)
		if (r->tgid[i % NR_EVENTS] == tgid && r->event[i % NR_EVENTS].event.exec &&
		    r->event[i % NR_EVENTS].event.time > time)
			return true;
	return false;
}

struct piece {
	uint64_t start, end, offset;
	const struct event *event;
};

/* Lays a mapping over those before it. `pieces` has room for twice as many as there are events. */
static size_t lay(struct piece *pieces, size_t nr, const struct event *e)
{
	struct piece new = {
		e->event.start, e->event.start + e->event.size, e->event.offset, e,
	};
	size_t i, kept = 0, more = 0;
	struct piece rest;

	if (new.end <= new.start)
		return nr;
	for (i = 0; i < nr; i++) {
		struct piece p = pieces[i];

		if (p.start < new.end && p.end > new.end && p.start < new.start) {
			rest = p;	/* both ends of one that is hit in the middle: at most one is */
			more = 1;
		}
		if (p.end <= new.start || p.start >= new.end) {
			pieces[kept++] = p;
		} else if (p.start < new.start) {
			p.end = new.start;
			pieces[kept++] = p;
		} else if (p.end > new.end) {
			p.offset += new.end - p.start;
			p.start = new.end;
			pieces[kept++] = p;
		}
	}
	if (more) {
		rest.offset += new.end - rest.start;
		rest.start = new.end;
		pieces[kept++] = rest;
	}
	pieces[kept++] = new;
	return kept;
}

static int by_start(const void *a, const void *b)
{
	const struct piece *x = a, *y = b;

	return (x->start > y->start) - (x->start < y->start);
}

static int tell(const struct piece *p, int (*fn)(const struct maps_line *line, void *arg), void *arg)
{
	char path[PATH_LEN];
	struct maps_line line = {
		.start = p->start,
		.end = p->end,
		.offset = p->offset,
		.inode = p->event->event.inode,
		.dev_major = p->event->event.dev_major,
		.dev_minor = p->event->event.dev_minor,
		.executable = true,
		.path = path,
	};

	/* What perf calls so has no name in /proc/PID/maps. */
	strcpy(path, strcmp(p->event->path, "//anon") ? p->event->path : "");
	return fn(&line, arg);
}

int recent__each(const struct recent *r, pid_t tgid, uint64_t time,
		 int (*fn)(const struct maps_line *line, void *arg), void *arg)
{
	const struct event *events[MAX_LINES];
	struct piece pieces[2 * MAX_LINES];
	size_t nr = find(r, tgid, time, events), pieces_nr = 0, i;
	int err = nr ? 0 : -ESRCH;

	for (i = 0; i < nr; i++)
		pieces_nr = lay(pieces, pieces_nr, events[i]);
	qsort(pieces, pieces_nr, sizeof(*pieces), by_start);
	for (i = 0; i < pieces_nr && !err; i++)
		err = tell(&pieces[i], fn, arg);
	return err;
}
