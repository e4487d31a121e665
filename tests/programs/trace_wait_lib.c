// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* A library whose constructor waits for standard input: whoever loads it is in the dynamic loader. */
#include <stdio.h>
#include <unistd.h>

static __attribute__((constructor)) void wait_for_input(void)
{
	char byte;

	if (read(STDIN_FILENO, &byte, 1) < 0)
		perror("read");
}
