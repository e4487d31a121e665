// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "loader/output/stream.h"

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

/* 0 when fd takes something (or has failed: writing tells how). */
static int wait_for_room(const struct stream *s)
{
	struct pollfd fds[] = {
		{ .fd = s->fd, .events = POLLOUT },
		{ .fd = s->abort_fd, .events = POLLIN },	/* negative: ignored */
	};

	for (;;) {
		if (poll(fds, 2, -1) < 0) {
			if (errno == EINTR)
				continue;
			return -errno;
		}
		if (fds[1].revents)
			return -ECANCELED;
		if (fds[0].revents)
			return 0;
	}
}

/* 0 on error, as fopencookie wants it; else all of it. */
static ssize_t stream_write(void *cookie, const char *buf, size_t size)
{
	struct stream *s = cookie;
	size_t done = 0, part;
	ssize_t n;

	while (done < size && !s->err) {
		part = size - done;
		if (!s->regular) {
			/* A pipe that has room takes so much without blocking. */
			if (part > PIPE_BUF)
				part = PIPE_BUF;
			s->err = wait_for_room(s);
			if (s->err)
				break;
		}
		n = write(s->fd, buf + done, part);
		if (n > 0)
			done += (size_t)n;
		else if (!n)
			s->err = -EIO;
		else if (errno != EINTR && errno != EAGAIN)
			s->err = -errno;
	}
	if (s->err) {
		errno = -s->err;
		return 0;
	}
	return (ssize_t)size;
}

FILE *stream__open(struct stream *s, int fd, int abort_fd)
{
	struct stat st;
	FILE *f;

	*s = (struct stream){ .fd = fd, .abort_fd = abort_fd };
	if (fstat(fd, &st))
		return NULL;
	s->regular = S_ISREG(st.st_mode);
	f = fopencookie(s, "w", (cookie_io_functions_t){ .write = stream_write });
	if (f)
		setvbuf(f, NULL, _IOFBF, 65536);
	return f;
}
