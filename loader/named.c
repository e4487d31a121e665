// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "loader/named.h"

#include <errno.h>
#include <poll.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "loader/base/log.h"
#include "loader/base/proc.h"

#define LISTS "; ps -e lists those that run"
#define KERNEL "process %d (%s) is a thread of the kernel, which launches nothing on a GPU"
#define WAY_OUT "--metric cpu shows its CPU time"

/* Of a thread its process, since that is what is recorded. */
static pid_t process_of(pid_t pid)
{
	uint64_t tgid;

	if (proc__number(pid, "Tgid", &tgid) || !tgid || tgid == (uint64_t)pid)
		return pid;
	log_info("%d is a thread of process %d, which is recorded", (int)pid, (int)tgid);
	return (pid_t)tgid;
}

/* Though its parent hasn't asked for its status yet: such a process never ends a second time. */
static bool has_ended(pid_t pid)
{
	struct pollfd p = { .fd = (int)syscall(SYS_pidfd_open, pid, 0), .events = POLLIN };
	bool ended = p.fd >= 0 && poll(&p, 1, 0) > 0;

	if (p.fd >= 0)
		close(p.fd);
	return ended;
}

/* What -p says is asked for by name, so that it can't be had is said. 0, -ESRCH, -ENOTSUP: leave it out. */
static int check(const struct options *o, pid_t *pid)
{
	struct proc_stat stat;
	int err = proc__stat(*pid, 0, &stat);

	if (err == -ENOENT || err == -ESRCH) {
		log_error("there is no process %d" LISTS, (int)*pid);
		return -ESRCH;
	}
	*pid = process_of(*pid);
	/* As in bash -c 'gpucollect -p $$', which becomes the last command that it has. */
	if (*pid == getpid()) {
		log_error("process %d is this gpucollect itself" LISTS, (int)*pid);
		return -ESRCH;
	}
	if (has_ended(*pid)) {
		log_error("process %d has ended" LISTS, (int)*pid);
		return -ESRCH;
	}
	if (err || !stat.kernel || o->metric == METRIC_CPU)
		return 0;
	if (o->nr_pids == 1)
		log_error(KERNEL "; " WAY_OUT, (int)*pid, stat.name);
	else
		log_warn_some(KERNEL ", so it is left out; " WAY_OUT, (int)*pid, stat.name);
	return -ENOTSUP;
}

int named__each(const struct options *o, pids_fn fn, void *ctx)
{
	size_t i, taken = 0;
	int err = 0;

	for (i = 0; i < o->nr_pids && !err; i++) {
		pid_t pid = o->pids[i];

		err = check(o, &pid);
		if (err == -ENOTSUP) {
			err = 0;
			continue;
		}
		taken++;
		if (!err)
			err = fn(ctx, pid);
		if (!err)
			err = pids__descendants(pid, fn, ctx);
	}
	if (err || taken || !o->nr_pids)
		return err;
	if (o->nr_pids > 1)
		log_error("none of the processes that -p names is left to record");
	return -ESRCH;
}
