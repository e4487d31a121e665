// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "loader/command.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

struct command {
	pid_t pid;
	int pidfd;
	int go;			/* write end: a byte releases the child, end of file ends it */
	int failed;		/* read end: errno of exec, or end of file */
	bool ended;
	int status;
};

/* In the child: async-signal-safe calls only, execvp in glibc included. */
static void child(const struct command_request *r, int go, int failed)
{
	char byte;
	int err;

	if (read(go, &byte, 1) != 1)
		_exit(125);
	err = caller__become(r->caller);
	if (!err)
		err = inherited__restore(r->inherited);
	if (!err) {
		/* The command is looked for in its own PATH. */
		environ = r->environment;
		execvp(r->argv[0], r->argv);
		err = -errno;
	}
	if (write(failed, &err, sizeof(err)) != sizeof(err))
		_exit(125);
	_exit(err == -ENOENT ? 127 : 126);
}

int command__new(const struct command_request *request, struct command **out)
{
	int go[2] = { -1, -1 }, failed[2] = { -1, -1 }, err;
	struct command *c = calloc(1, sizeof(*c));

	if (!c)
		return -ENOMEM;
	c->pidfd = c->go = c->failed = -1;
	if (pipe2(go, O_CLOEXEC) || pipe2(failed, O_CLOEXEC)) {
		err = -errno;
		goto fail;
	}
	c->pid = fork();
	if (c->pid < 0) {
		err = -errno;
		goto fail;
	}
	if (!c->pid) {
		close(go[1]);
		close(failed[0]);
		child(request, go[0], failed[1]);
	}
	close(go[0]);
	close(failed[1]);
	c->go = go[1];
	c->failed = failed[0];
	c->pidfd = (int)syscall(SYS_pidfd_open, c->pid, 0);
	if (c->pidfd < 0) {
		err = -errno;
		command__free(c);
		return err;
	}
	*out = c;
	return 0;
fail:
	close(go[0]);
	close(go[1]);
	close(failed[0]);
	close(failed[1]);
	free(c);
	return err;
}

void command__free(struct command *c)
{
	if (!c)
		return;
	if (c->go >= 0) {
		close(c->go);
		if (!c->ended)
			waitpid(c->pid, NULL, 0);	/* it ends by itself: it was never released */
	}
	if (c->failed >= 0)
		close(c->failed);
	if (c->pidfd >= 0)
		close(c->pidfd);
	free(c);
}

pid_t command__pid(const struct command *c)
{
	return c->pid;
}

int command__pidfd(const struct command *c)
{
	return c->pidfd;
}

int command__release(struct command *c)
{
	int err = 0;
	ssize_t n;

	if (write(c->go, "", 1) != 1)
		return -errno;
	close(c->go);
	c->go = -1;
	do
		n = read(c->failed, &err, sizeof(err));
	while (n < 0 && errno == EINTR);
	return n == sizeof(err) ? err : 0;
}

void command__signal(struct command *c, int signal)
{
	/* Until it is waited for its id is no other's. */
	if (!c->ended)
		kill(c->pid, signal);
}

bool command__ended(struct command *c, int *status)
{
	if (!c->ended && waitpid(c->pid, &c->status, WNOHANG) == c->pid)
		c->ended = true;
	*status = c->status;
	return c->ended;
}
