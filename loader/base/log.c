// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "loader/base/log.h"

#include <errno.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "loader/base/clock.h"
#include "loader/base/json.h"
#include "loader/base/text.h"

#define LINE_MAX_BYTES 4096
#define PROGRESS_EVERY_NS 500000000ull

static enum log_level max_level = LOG_INFO;
static bool json;
static bool progress_shown;
static bool key_shown;
static uint64_t progress_last;

void log__set_level(enum log_level level)
{
	max_level = level;
}

void log__set_json(bool on)
{
	json = on;
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

/* What brings the cursor to the start of a line that is free. */
static const char *fresh_line(void)
{
	const char *how = progress_shown ? "\r\033[K" : key_shown && isatty(STDERR_FILENO) ? "\n" : "";

	progress_shown = key_shown = false;
	return how;
}

/* Formats into buf (of LINE_MAX_BYTES); returns the length, which is cut to what there is room for. */
static size_t format(char *buf, const char *fmt, va_list ap)
{
	static const char cut[] = "…";
	int n = vsnprintf(buf, LINE_MAX_BYTES, fmt, ap);
	size_t len;

	if (n < LINE_MAX_BYTES)
		return n < 0 ? 0 : (size_t)n;
	len = text__cut(buf, LINE_MAX_BYTES - 1, LINE_MAX_BYTES - sizeof(cut));
	memcpy(buf + len, cut, sizeof(cut));
	return len + sizeof(cut) - 1;
}

/* Makes it harmless, line by line or as one; returns the new length. */
static size_t clean(char *buf, size_t len, bool lines)
{
	size_t in, out = 0, part;
	char *end;

	for (in = 0; in < len; in += part) {
		end = lines ? memchr(buf + in, '\n', len - in) : NULL;
		part = end ? (size_t)(end - buf) - in : len - in;
		out += text__clean(buf + out, buf + in, part);
		if (end) {
			buf[out++] = '\n';
			part++;
		}
	}
	return out;
}

static void print_json(enum log_level level, const char *message)
{
	static const char *const kind[] = { "error", "warning", "info", "debug" };
	struct text t = { 0 };

	json__open(&t, NULL, '{');
	json__string(&t, "gpucollect", kind[level]);
	json__string(&t, "text", message);
	json__close(&t, '}');
	text__add_string(&t, "\n");
	if (!t.failed)
		emit(t.data, t.len);
	text__free(&t);
}

void log__print(enum log_level level, const char *fmt, ...)
{
	static const char *const prefix[] = { "error: ", "warning: ", "", "debug: " };
	int saved = errno;
	char line[LINE_MAX_BYTES + 64];
	size_t head = 0, len;
	va_list ap;

	if (level > max_level)
		return;
	if (!json)
		head = (size_t)snprintf(line, 64, "%sgpucollect: %s", fresh_line(), prefix[level]);
	va_start(ap, fmt);
	len = format(line + head, fmt, ap);
	va_end(ap);
	if (json) {
		print_json(level, line);
	} else {
		len = head + clean(line + head, len, true);
		line[len++] = '\n';
		emit(line, len);
	}
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

/*
 * A terminal that understands "erase to the end of the line", and ours: to a job in the background it
 * does not belong, and writing might stop it.
 */
static bool may_rewrite(void)
{
	const char *term = getenv("TERM");
	pid_t foreground;

	if (!isatty(STDERR_FILENO) || !term || !*term || !strcmp(term, "dumb"))
		return false;
	foreground = tcgetpgrp(STDERR_FILENO);	/* fails where it is no controlling terminal */
	return foreground < 0 || foreground == getpgrp();
}

/* A line that is wrapped could not be erased: its length, cut to the columns that there are. */
static size_t fit(const char *line, size_t len)
{
	static const size_t start = sizeof("\r\033[K") - 1;
	struct winsize w;
	size_t columns = 0, i, n;

	if (ioctl(STDERR_FILENO, TIOCGWINSZ, &w) || !w.ws_col)
		return len;
	for (i = start; i < len && columns + 1 < w.ws_col; i += n ? n : 1, columns++)
		n = text__utf8(line + i, len - i);
	return i < len ? i : len;
}

void log__progress(const char *fmt, ...)
{
	int saved = errno;
	char line[LINE_MAX_BYTES + 64];
	uint64_t now;
	size_t len;
	va_list ap;

	if (max_level < LOG_INFO || json)
		goto out;
	now = clock__now_ns();
	if (progress_last && now - progress_last < PROGRESS_EVERY_NS)
		goto out;
	progress_last = now;
	if (!may_rewrite())
		goto out;
	len = (size_t)snprintf(line, 64, "\r\033[Kgpucollect: ");
	va_start(ap, fmt);
	len += clean(line + len, format(line + len, fmt, ap), false);
	va_end(ap);
	emit(line, fit(line, len));
	progress_shown = true;
	key_shown = false;
out:
	errno = saved;
}

void log__key_shown(void)
{
	key_shown = true;
}

void log__progress_end(void)
{
	int saved = errno;
	const char *how = fresh_line();

	emit(how, strlen(how));
	errno = saved;
}
