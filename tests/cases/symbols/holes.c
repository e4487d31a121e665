// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* S-06: the symbol of the function that burns the time is removed after the build; its
 * neighbours keep theirs. */
#include "../common/stop.h"
static volatile unsigned long sink;

NOINLINE void neighbour_before(void) { sink += 2; }

NOINLINE void removed_symbol(void)
{
    for (;;)
        sink++;
}

NOINLINE void neighbour_behind(void) { sink += 3; }

int main(int argc, char **argv)
{
    (void)argv;
    stop_after(10);
    if (argc > 3) {
        neighbour_before();
        neighbour_behind();
    }
    removed_symbol();
    return 1;
}
