// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "loader/base/log.h"

#include <errno.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "loader/base/clock.h"
#include "loader/base/text.h"

#define LINE_MAX_BYTES 4096
#define PROGRESS_EVERY_NS 500000000ull

static enum log_level max_level = LOG_INFO;
static bool progress_shown;
static uint64_t progress_last;

void log__set_level(enum log_level level)
{
	max_level = level;
}

/*
 * One write a message, so that lines of the target and ours don't mix on a shared stderr; no
 * stdio, whose buffer or lock a caller might hold.
 */
static void emit(const char *data, size_t len)
{
	while (len) {
		ssize_t n = write(STDERR_FILENO, data, len);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return;
		data += n;
		len -= (size_t)n;
	}
}

/* Formats into buf (of LINE_MAX_BYTES), cleaned line by line; returns the length. */
static size_t format(char *buf, bool lines, const char *fmt, va_list ap)
{
	static const char cut[] = "…";
	int n = vsnprintf(buf, LINE_MAX_BYTES, fmt, ap);
	size_t len, in, out = 0, part;
	char *end;

	if (n < 0)
		return 0;
	len = (size_t)n;
	if (len >= LINE_MAX_BYTES) {
		len = text__cut(buf, LINE_MAX_BYTES - 1, LINE_MAX_BYTES - sizeof(cut));
		memcpy(buf + len, cut, sizeof(cut) - 1);
		len += sizeof(cut) - 1;
	}
	for (in = 0; in < len; in += part) {
		end = lines ? memchr(buf + in, '\n', len - in) : NULL;
		part = end ? (size_t)(end - buf) - in : len - in;
		out += text__clean(buf + out, buf + in, part, TEXT_TERMINAL);
		if (end) {
			buf[out++] = '\n';
			part++;
		}
	}
	return out;
}

void log__print(enum log_level level, const char *fmt, ...)
{
	static const char *const prefix[] = { "error: ", "warning: ", "", "debug: " };
	int saved = errno;
	char line[LINE_MAX_BYTES + 64];
	size_t len;
	va_list ap;

	if (level > max_level)
		return;
	len = (size_t)snprintf(line, 64, "%sgpucollect: %s", progress_shown ? "\r\033[K" : "",
			       prefix[level]);
	progress_shown = false;
	va_start(ap, fmt);
	len += format(line + len, true, fmt, ap);
	va_end(ap);
	line[len++] = '\n';
	emit(line, len);
	errno = saved;
}

bool log__some(unsigned int *times)
{
	if (*times > LOG_SOME)
		return false;
	if ((*times)++ < LOG_SOME)
		return true;
	log_warn("there are more like the last one; they are not shown");
	return false;
}

/* One that understands "erase to the end of the line". */
static bool is_terminal(void)
{
	const char *term = getenv("TERM");

	return isatty(STDERR_FILENO) && term && strcmp(term, "dumb");
}

void log__progress(const char *fmt, ...)
{
	int saved = errno;
	char line[LINE_MAX_BYTES + 64];
	uint64_t now;
	size_t len;
	va_list ap;

	if (max_level < LOG_INFO)
		goto out;
	now = clock__now_ns();
	if (progress_last && now - progress_last < PROGRESS_EVERY_NS)
		goto out;
	progress_last = now;
	if (!is_terminal())
		goto out;
	len = (size_t)snprintf(line, 64, "\r\033[Kgpucollect: ");
	va_start(ap, fmt);
	len += format(line + len, false, fmt, ap);
	va_end(ap);
	emit(line, len);
	progress_shown = true;
out:
	errno = saved;
}

void log__progress_end(void)
{
	int saved = errno;

	if (progress_shown)
		emit("\r\033[K", 4);
	progress_shown = false;
	errno = saved;
}
