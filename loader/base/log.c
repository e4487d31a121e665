// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "loader/base/log.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>

static enum log_level max_level = LOG_INFO;

void log__set_level(enum log_level level)
{
	max_level = level;
}

void log__print(enum log_level level, const char *fmt, ...)
{
	static const char *const prefix[] = { "error: ", "warning: ", "", "debug: " };
	int saved = errno;
	char line[2048];
	va_list ap;

	if (level > max_level)
		return;
	va_start(ap, fmt);
	vsnprintf(line, sizeof(line), fmt, ap);
	va_end(ap);
	/* One call a line, so that lines of the target and ours don't mix on a shared stderr. */
	fprintf(stderr, "gpucollect: %s%s\n", prefix[level], line);
	errno = saved;
}
