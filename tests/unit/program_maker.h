/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Builds programs of tests/programs in ways that only the test at hand needs. */
#ifndef TESTS_PROGRAM_MAKER_H
#define TESTS_PROGRAM_MAKER_H

#include <check.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static inline const char *program__top(void)
{
	return getenv("TOP") ? getenv("TOP") : ".";
}

/*
 * Compiles a program into a folder of its own. False: this machine has no such compiler or linker;
 * the plain compiler must be there, since it has built us.
 */
static inline bool program__build(const char *how, const char *source, char *program, size_t size)
{
	char command[1024], folder[256];

	snprintf(folder, sizeof(folder), "%s/unwind-XXXXXX",
		 getenv("TMPDIR") ? getenv("TMPDIR") : "/tmp");
	ck_assert_ptr_nonnull(mkdtemp(folder));
	snprintf(program, size, "%s/program", folder);
	snprintf(command, sizeof(command), "%s -o %s %s/tests/programs/%s -lpthread 2>&1", how,
		 program, program__top(), source);
	if (system(command) == 0)
		return true;
	ck_assert_msg(strncmp(how, "clang", 5) == 0, "%s", command);
	printf("left out, does not build here: %s\n", command);
	rmdir(folder);
	return false;
}

static inline void program__remove(char *program)
{
	unlink(program);
	*strrchr(program, '/') = '\0';
	rmdir(program);
}

#endif
