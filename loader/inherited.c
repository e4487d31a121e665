// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "loader/inherited.h"

#include <errno.h>
#include <stddef.h>

int inherited__save(struct inherited *i)
{
	struct sigaction hangup;

	if (sigprocmask(SIG_BLOCK, NULL, &i->mask) || sigaction(SIGPIPE, NULL, &i->pipe) ||
	    sigaction(SIGXFSZ, NULL, &i->too_large) || sigaction(SIGQUIT, NULL, &i->quit) ||
	    sigaction(SIGHUP, NULL, &hangup) || getrlimit(RLIMIT_NOFILE, &i->files))
		return -errno;
	i->hangup_ignored = hangup.sa_handler == SIG_IGN;
	return 0;
}

void inherited__ignore(bool command)
{
	signal(SIGPIPE, SIG_IGN);
	signal(SIGXFSZ, SIG_IGN);
	if (command)
		signal(SIGQUIT, SIG_IGN);
}

int inherited__restore(const struct inherited *i)
{
	/* The mask last: a signal that came meanwhile is to meet the command's own state. */
	if (setrlimit(RLIMIT_NOFILE, &i->files) || sigaction(SIGPIPE, &i->pipe, NULL) ||
	    sigaction(SIGXFSZ, &i->too_large, NULL) || sigaction(SIGQUIT, &i->quit, NULL) ||
	    sigprocmask(SIG_SETMASK, &i->mask, NULL))
		return -errno;
	return 0;
}
