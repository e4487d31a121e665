// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "symbols/lines.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "loader/base/clock.h"
#include "symbols/dwarf.h"
#include "symbols/lines_reply.h"
#include "symbols/lines_worker.h"

struct lines_pool {
	struct lines *running[LINES_PROCESSES];
	uint64_t left_ns;
	uint64_t questions;
	bool (*pulse)(void *ctx);
	void *ctx;
	char message[LINES_MESSAGE];
	char text[LINES_REPLY_TEXT];
	struct lines_frame frames[DWARF_MAX_FRAMES];
};

struct lines {
	struct lines_pool *pool;
	int fd, alt, sock;
	pid_t pid;		/* 0: not running */
	uint64_t left_ns;
	uint64_t asked;		/* number of the last question */
	const char *missing;
	bool given_up;
};

struct lines_pool *lines_pool__new(void)
{
	struct lines_pool *p = calloc(1, sizeof(*p));

	if (p)
		p->left_ns = LINES_TOTAL_NS;
	return p;
}

void lines_pool__free(struct lines_pool *p)
{
	free(p);
}

void lines_pool__set_pulse(struct lines_pool *p, bool (*pulse)(void *ctx), void *ctx)
{
	p->pulse = pulse;
	p->ctx = ctx;
}

struct lines *lines__new(struct lines_pool *p, int fd, int alt)
{
	struct lines *l = calloc(1, sizeof(*l));
	struct stat st;

	if (!l) {
		if (alt >= 0)
			close(alt);
		return NULL;
	}
	l->pool = p;
	l->fd = fd;
	l->alt = alt;
	l->left_ns = LINES_FILE_NS;
	if (fstat(fd, &st) || (uint64_t)st.st_size > LINES_MAX_FILE) {
		l->given_up = true;
		l->missing = "its debug information is larger than 4 GiB";
	}
	return l;
}

/* Always at once: a process that nobody asks any more has nothing to finish. */
static void stop(struct lines *l)
{
	if (!l->pid)
		return;
	for (int i = 0; i < LINES_PROCESSES; i++)
		if (l->pool->running[i] == l)
			l->pool->running[i] = NULL;
	close(l->sock);
	kill(l->pid, SIGKILL);
	while (waitpid(l->pid, NULL, 0) < 0 && errno == EINTR)
		;
	l->pid = 0;
}

static void give_up(struct lines *l, const char *why)
{
	stop(l);
	l->given_up = true;
	l->missing = why;
}

void lines__free(struct lines *l)
{
	if (!l)
		return;
	stop(l);
	if (l->alt >= 0)
		close(l->alt);
	free(l);
}

static int start(struct lines *l)
{
	struct lines_pool *p = l->pool;
	struct lines *oldest = NULL;
	int slot = -1;

	for (int i = 0; i < LINES_PROCESSES && slot < 0; i++) {
		if (!p->running[i])
			slot = i;
		else if (!oldest || p->running[i]->asked < oldest->asked)
			oldest = p->running[i];
	}
	for (int i = 0; i < LINES_PROCESSES && slot < 0; i++)
		if (p->running[i] == oldest)
			slot = i;
	if (p->running[slot])
		stop(p->running[slot]);
	l->pid = lines_worker__start(l->fd, l->alt, &l->sock);
	if (l->pid < 0) {
		l->pid = 0;
		return -1;
	}
	p->running[slot] = l;
	return 0;
}

/* Bytes of the answer; 0: it took too long; negative: the process has ended, or we are to. */
static ssize_t receive(struct lines *l)
{
	struct pollfd fd = { .fd = l->sock, .events = POLLIN };
	struct lines_pool *p = l->pool;
	uint64_t begin = clock__now_ns(), took = 0;
	uint64_t most = l->left_ns < p->left_ns ? l->left_ns : p->left_ns;
	ssize_t len = 0;

	while (!len && took < most) {
		int ready = poll(&fd, 1, LINES_PULSE_MS);

		if (ready > 0)
			len = recv(l->sock, p->message, sizeof(p->message), MSG_DONTWAIT) ?: -1;
		else if ((ready < 0 && errno != EINTR) || (p->pulse && p->pulse(p->ctx)))
			len = -1;
		took = clock__now_ns() - begin;
	}
	l->left_ns -= took < l->left_ns ? took : l->left_ns;
	p->left_ns -= took < p->left_ns ? took : p->left_ns;
	return len;
}

static ssize_t ask(struct lines *l, uint64_t address)
{
	ssize_t len = -1;

	l->asked = ++l->pool->questions;
	if (!l->pid && start(l)) {
		give_up(l, "no process could be started to read its debug information");
		return -1;
	}
	if (send(l->sock, &address, sizeof(address), MSG_NOSIGNAL) == sizeof(address))
		len = receive(l);
	if (len == 0)
		give_up(l, "reading its debug information took too long");
	else if (len < 0)
		give_up(l, "reading its debug information failed");
	return len;
}

static size_t take(struct lines *l, size_t len)
{
	struct lines_pool *p = l->pool;
	uint32_t flags = 0;
	size_t nr = lines_reply__parse(p->message, len, &flags, p->frames, p->text);

	if (flags & LINES_NO_INFO)
		give_up(l, "its debug information can't be read");
	else if (flags & LINES_SPLIT)
		l->missing = "its debug information is split, which is not read (.dwo files)";
	else if (flags & LINES_NAMELESS)
		l->missing = "their names stand in a file that isn't here (.gnu_debugaltlink)";
	else if (flags & LINES_CUT)
		l->missing = "names of more than 64 KiB";
	return nr;
}

size_t lines__find(struct lines *l, uint64_t address, const struct lines_frame **frames)
{
	ssize_t len;

	if (!l->given_up && (!l->left_ns || !l->pool->left_ns))
		give_up(l, "reading debug information took too long");
	if (l->given_up)
		return 0;
	len = ask(l, address);
	*frames = l->pool->frames;
	return len > 0 ? take(l, (size_t)len) : 0;
}

const char *lines__missing(const struct lines *l)
{
	return l->missing;
}
