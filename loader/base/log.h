/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Messages for the user: always on stderr, one line each, never on stdout (that is data). */
#ifndef BASE_LOG_H
#define BASE_LOG_H

#include <stdbool.h>

enum log_level { LOG_ERROR = 0, LOG_WARN = 1, LOG_INFO = 2, LOG_DEBUG = 3 };

/* Messages above `level` are not printed; the default is LOG_INFO. */
void log__set_level(enum log_level level);

/*
 * Messages for scripts: each an object on a line of its own, {"gpucollect":"error","text":"…"}, and
 * "warning", "info" or "debug". No progress is shown then.
 */
void log__set_json(bool on);

/*
 * printf-like, without a final newline; keeps errno. A message is "gpucollect: …\n"; control
 * characters in it (names come from targets) are shown as '?', except that a newline begins a
 * further line. Long ones are cut and end in "…".
 */
void log__print(enum log_level level, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/*
 * A line that the next message or log__progress replaces. Only on a terminal, at LOG_INFO and
 * above, and at most twice a second: calling it often costs a clock reading.
 */
void log__progress(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
/* Erases the progress line, before something else writes to the terminal; see also log__key_shown. */
void log__progress_end(void);
/* The terminal has shown a key, "^C": if stderr is one, what comes next begins a line of its own. */
void log__key_shown(void);

/*
 * For what every process or file may cause again: true for the first LOG_SOME times, then says once that
 * there are more.
 */
#define LOG_SOME 10
bool log__some(unsigned int *times);

#define log_error(...) log__print(LOG_ERROR, __VA_ARGS__)
#define log_warn(...) log__print(LOG_WARN, __VA_ARGS__)
#define log_info(...) log__print(LOG_INFO, __VA_ARGS__)
#define log_debug(...) log__print(LOG_DEBUG, __VA_ARGS__)
#define log_warn_some(...) \
	do { \
		static unsigned int times_; \
		if (log__some(&times_)) \
			log_warn(__VA_ARGS__); \
	} while (0)

#endif
