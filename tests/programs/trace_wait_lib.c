// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * A library whose constructor waits for standard input: whoever loads it is in the dynamic loader. Then
 * it waits for whatever the program does in trace_wait_for_others, if there is such a function.
 */
#include <stdio.h>
#include <unistd.h>

extern void trace_wait_for_others(void) __attribute__((weak));

static __attribute__((constructor)) void wait_for_input(void)
{
	char byte;

	if (read(STDIN_FILENO, &byte, 1) < 0)
		perror("read");
	if (trace_wait_for_others)
		trace_wait_for_others();
}
