// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "loader/holder.h"

#include <errno.h>
#include <stddef.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "loader/base/far.h"
#include "loader/base/log.h"
#include "loader/maps.h"

static bool peek(pid_t pid, uint64_t address, void *to, size_t len)
{
	return far__read_memory(pid, address, to, len) == (ssize_t)len;
}

static bool is_owner(pid_t pid, const struct channel_identity *identity)
{
	uint32_t owner = 0;

	return identity->owner && identity->segment_fd >= 0 &&
	       peek(pid, identity->owner, &owner, sizeof(owner)) && owner == 1;
}

int holder__segment(pid_t pid, const struct channel_identity *identity, struct channel **channel)
{
	int pidfd, fd, err;

	if (!is_owner(pid, identity))
		return -ENOENT;
	pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
	if (pidfd < 0)
		return -errno;
	fd = (int)syscall(SYS_pidfd_getfd, pidfd, identity->segment_fd, 0);
	err = fd < 0 ? (errno == EBADF ? -ENOENT : -errno) : channel__open(fd, channel);
	if (fd >= 0)
		close(fd);
	close(pidfd);
	return err;
}

struct hidden {
	pid_t pid;
	uint64_t collector;
};

static int look_at(const struct maps_line *line, void *arg)
{
	const uint64_t at = offsetof(struct channel_segment, collector);
	struct hidden *h = arg;
	uint64_t magic = 0;

	if (strncmp(line->path, "/memfd:gpucollect", 17) || line->offset ||
	    !peek(h->pid, line->start, &magic, sizeof(magic)) || magic != CHANNEL_MAGIC)
		return 0;
	if (!peek(h->pid, line->start + at, &h->collector, sizeof(h->collector)))
		h->collector = 0;
	return 1;
}

/* Without its descriptor the library refuses whoever comes while another is there; so it is asked itself. */
static bool is_hidden(pid_t pid)
{
	struct hidden h = { .pid = pid };

	maps__read_all(pid, look_at, &h);
	return h.collector;
}

int holder__find(pid_t pid, const struct channel_identity *identity, pid_t *holder)
{
	struct channel *channel = NULL;
	int err;

	*holder = 0;
	if (!is_owner(pid, identity))
		return 0;
	err = holder__segment(pid, identity, &channel);
	if (err)
		return is_hidden(pid) ? -EBUSY : 0;
	err = channel__holder(channel, holder);
	channel__close(channel);
	return err;
}

void holder__say(const struct options *options, pid_t pid, pid_t holder)
{
	bool only = options->nr_pids == 1 && pid == options->pids[0];

	if (!holder)
		log_error("process %d is already recorded by a gpucollect; which one can't be told, since "
			  "the process has closed its descriptor: wait for its end", (int)pid);
	else if (only)
		log_error("process %d is already recorded by gpucollect, pid %d: wait for its end, or stop "
			  "it with kill -INT %d", (int)pid, (int)holder, (int)holder);
	else
		log_warn_some("process %d is already recorded by gpucollect, pid %d: %s left out",
			      (int)pid, (int)holder, options->all ? "its GPU work is" : "it is");
}
