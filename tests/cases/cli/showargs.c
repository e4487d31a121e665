// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* C-01: prints its arguments, one a line in brackets, then spins for a second. */
#include "../common/stop.h"
#include <stdio.h>
static volatile unsigned long sink;
int main(int argc, char **argv)
{
    for (int i = 1; i < argc; i++)
        printf("[%s]\n", argv[i]);
    fflush(stdout);
    stop_after(1);
    for (;;)
        sink++;
}
