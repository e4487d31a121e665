// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Stands in for the timing library's probe sites in a test: each hit becomes a line in the file
 * TIMING_SITES, appended, so that it may be the stand-in driver's trace: then the order of probes
 * and driver calls shows.
 *
 *	PID TID site KIND ID FUNCTION STREAM GRID BLOCK SHARED ENTRY FLAGS WEIGHT
 *	PID TID hello FD
 *
 * TIMING_RAISE=N[,M]: raises SIGUSR1 at the Nth hit, and at every Mth from there on.
 * TIMING_WAIT=FILE: a launch stays at its site as long as there is that file.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/types.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "gpu_timing/channel.h"

#define HIDDEN __attribute__((visibility("hidden")))

HIDDEN void gpucollect_site_nop1(uint64_t id, const void *launch);
HIDDEN void gpucollect_site_nop5(uint64_t id, const void *launch);

static void raise_at(void)
{
	static long hits, first = -1, every;
	const char *text = getenv("TIMING_RAISE");

	if (first < 0 && (!text || sscanf(text, "%ld,%ld", &first, &every) < 1))
		first = 0;
	hits++;
	if (first && (hits == first || (every && hits > first && (hits - first) % every == 0)))
		raise(SIGUSR1);
}

static void wait_at(void)
{
	const char *file = getenv("TIMING_WAIT");

	while (file && !access(file, F_OK))
		usleep(1000);
}

static void hit(int kind, uint64_t id, const void *arg)
{
	const struct channel_launch *l = arg;
	static int fd = -1;
	int saved = errno, pid = getpid(), tid = (int)syscall(SYS_gettid), n;
	char line[400];

	if (fd < 0) {
		const char *path = getenv("TIMING_SITES");

		fd = path ? open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666) : -1;
	}
	if (!id)
		n = snprintf(line, sizeof(line), "%d %d hello %ld\n", pid, tid, (long)arg);
	else
		n = snprintf(line, sizeof(line),
			     "%d %d site %d %llu %llx %llx %u,%u,%u %u,%u,%u %u %u %u %u\n", pid,
			     tid, kind, l->id, l->function, l->stream, l->grid[0], l->grid[1],
			     l->grid[2], l->block[0], l->block[1], l->block[2], l->shared_bytes,
			     l->entry, l->flags, l->weight);
	if (fd >= 0 && write(fd, line, (size_t)n) != n)
		abort();
	if (id && id != l->id)
		abort();
	if (id) {
		wait_at();
		raise_at();
	}
	errno = saved;
}

void gpucollect_site_nop1(uint64_t id, const void *launch)
{
	hit(SITE_NOP1, id, launch);
}

void gpucollect_site_nop5(uint64_t id, const void *launch)
{
	hit(SITE_NOP5, id, launch);
}
