// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* U-08: built with frame pointers; a tiny leaf is called all the time, so many
 * samples fall before its push of the frame pointer or after its pop. */
#include "../common/stop.h"
static volatile unsigned long sink;

NOINLINE unsigned long tiny_leaf(unsigned long x)
{
    volatile unsigned long kept = x;
    return kept + 1;
}

NOINLINE void middle(void)
{
    unsigned long x = 0;
    for (unsigned long i = 0; i < 200000000UL; i++)
        x = tiny_leaf(x);
    sink += x;
}

NOINLINE void outer(void)
{
    for (;;)
        middle();
}

int main(void)
{
    stop_after(10);
    outer();
    return 1;
}
