// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "loader/base/fault.h"

#ifdef GPUCOLLECT_FAULTS

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

void fault__point(const char *name)
{
	static unsigned long passed;
	const char *wanted = getenv("GPUCOLLECT_FAULT");
	size_t len = strlen(name);
	unsigned long nth = 1;
	char *rest;

	if (!wanted || strncmp(wanted, name, len) || !strchr("@:", wanted[len]))
		return;
	rest = (char *)(size_t)(wanted + len);
	if (*rest == '@')
		nth = strtoul(rest + 1, &rest, 10);
	if (++passed != nth)
		return;
	/* The stop is this thread's, or it would go on for a while until it hears of it. */
	if (strcmp(rest, ":stop"))
		kill(getpid(), SIGKILL);
	else
		raise(SIGSTOP);
}

#endif
