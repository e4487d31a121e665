/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* A model of some values, and the table and closing lines that are made of it. */
#ifndef TESTS_UNIT_SUMMARY_MAKER_H
#define TESTS_UNIT_SUMMARY_MAKER_H

#include <stdio.h>
#include <string.h>

#include "loader/output/closing.h"
#include "loader/output/summary.h"
#include "tests/unit/unit.h"

static inline uint32_t label(struct profile *p)
{
	struct profile_labels l = { .pid = 1, .tid = 1, .device = 0, .rank = PROFILE_NO_LABEL };
	uint32_t id;

	ck_assert_int_eq(profile__labels(p, &l, &id), 0);
	return id;
}

static inline void add(struct profile *p, const struct profile_frame *frames, size_t nr,
		       enum profile_metric metric, unsigned int flags, uint64_t value, uint64_t count)
{
	uint32_t node = PROFILE_ROOT, frame;

	for (; nr; nr--, frames++) {
		ck_assert_int_eq(profile__frame(p, frames, &frame), 0);
		ck_assert_int_eq(profile__node(p, node, frame, &node), 0);
	}
	ck_assert_int_eq(profile__add(p, node, label(p), metric, flags, value, count), 0);
}

#define PROCESS { .kind = PROFILE_PROCESS, .name = "train", .id = 42 }
#define NATIVE(n) { .kind = PROFILE_NATIVE, .name = n, .module = "/bin/train" }
#define UNNAMED(n, m, why) \
	{ .kind = PROFILE_NATIVE, .name = n, .module = m, .unresolved = why }
#define GUESSED(n) \
	{ .kind = PROFILE_NATIVE, .name = n, .module = "/bin/train", .flags = PROFILE_GUESS }
#define GPU(n) { .kind = PROFILE_GPU, .name = n }
#define MARK(m, file) { .kind = PROFILE_MARK, .id = m, .module = file }
#define ADD(metric, flags, value, count, ...) do { \
	const struct profile_frame frames_[] = { PROCESS, __VA_ARGS__ }; \
	add(p, frames_, sizeof(frames_) / sizeof(frames_[0]), metric, flags, value, count); \
} while (0)
#define SAMPLES(n, ...) ADD(PROFILE_CPU_NS, 0, (n) * 50000000ull, n, __VA_ARGS__)

static inline char *summary(const struct profile *p, struct summary_options o)
{
	char *data = NULL;
	size_t len;
	FILE *f = open_memstream(&data, &len);

	ck_assert_int_eq(summary__write(p, &o, f), 0);
	fclose(f);
	return data;
}

static inline char *closing(const struct profile *p, struct closing_options o)
{
	char *data = NULL;
	size_t len;
	FILE *f = open_memstream(&data, &len);

	ck_assert_int_eq(closing__write(p, &o, f), 0);
	fclose(f);
	return data;
}

static inline void has(const char *text, const char *part)
{
	ck_assert_msg(strstr(text, part) != NULL, "'%s' is not in:\n%s", part, text);
}

static inline void lacks(const char *text, const char *part)
{
	ck_assert_msg(!strstr(text, part), "'%s' is in:\n%s", part, text);
}

#endif
