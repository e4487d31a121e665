// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "loader/due.h"

#include "loader/base/clock.h"

/*
 * Unknown code makes mappings be read again; where that was in vain many times, not more often than
 * this. Readings that take longer than this get a part of our time only: there may be a million
 * mappings.
 */
#define REREAD_NS 5000000ull
#define REREAD_PART 10

bool due__add(struct due *d, pid_t tgid, bool now)
{
	unsigned int i;

	for (i = 0; i < d->nr && d->process[i].tgid != tgid; i++)
		;
	if (i == DUE_MAX)
		return false;
	if (i == d->nr) {
		d->process[d->nr++].now = now;
		d->process[i].tgid = tgid;
	}
	d->process[i].now |= now;
	return true;
}

bool due__is_cheap(const struct process *p, uint64_t now)
{
	return p->read_took < REREAD_NS || now >= p->read_at + REREAD_PART * p->read_took;
}

bool due__may_reread(const struct process *p, uint64_t time)
{
	uint64_t now = clock__now_ns();

	if (time + REREAD_NS <= p->read_at || !due__is_cheap(p, now))
		return false;
	return p->fruitless < PROCESSES_FRUITLESS || now >= p->read_at + REREAD_NS;
}
