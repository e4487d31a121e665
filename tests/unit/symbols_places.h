/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Files that tests build, and the places in them that symbols_truth.c tells. */
#ifndef TESTS_SYMBOLS_PLACES_H
#define TESTS_SYMBOLS_PLACES_H

#include <check.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "symbols/file.h"

#define TRUTH_SOURCE "tests/unit/symbols_truth.c"

static char places_dir[256];

__attribute__((format(printf, 1, 2)))
static inline int places__sh(const char *fmt, ...)
{
	char command[4096];
	va_list args;
	int n;

	va_start(args, fmt);
	n = vsnprintf(command, sizeof(command), fmt, args);
	va_end(args);
	ck_assert_int_lt(n, (int)sizeof(command));
	return system(command);
}

static inline void places__make_dir(void)
{
	const char *base = getenv("TEST_TMP") ?: getenv("TMPDIR") ?: "/tmp";

	snprintf(places_dir, sizeof(places_dir), "%s/symbols.XXXXXX", base);
	ck_assert_ptr_nonnull(mkdtemp(places_dir));
}

static inline void places__remove_dir(void)
{
	places__sh("rm -rf %s", places_dir);
}

struct place {
	char kind, name[64], path[512];
	unsigned long offset;
};

static inline int places__read(struct place *places, int max)
{
	char path[512];
	FILE *f;
	int nr = 0;

	snprintf(path, sizeof(path), "%s/truth", places_dir);
	f = fopen(path, "r");
	ck_assert_ptr_nonnull(f);
	while (nr < max && fscanf(f, " %c %63s %lx %511[^\n]", &places[nr].kind, places[nr].name,
				  &places[nr].offset, places[nr].path) == 4)
		nr++;
	fclose(f);
	return nr;
}

static inline struct symbol_file *places__open(const char *path, int *fd)
{
	struct symbol_file *f;

	*fd = open(path, O_RDONLY);
	ck_assert_int_ge(*fd, 0);
	f = symbol_file__open(*fd);
	ck_assert_ptr_nonnull(f);
	return f;
}

#endif
