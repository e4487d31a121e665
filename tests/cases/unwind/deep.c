// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* U-09, O-02: recursion of a given depth with 512-byte frames.
 * usage: deep [depth]   (default 2000)
 * Works through depths alternately: a third of the time at depth/10, the rest at the bottom. */
#include "../common/stop.h"
#include <sys/resource.h>
static volatile unsigned long sink;

NOINLINE void bottom(void)
{
    for (unsigned long i = 0; i < 100000000UL; i++)
        sink++;
}

NOINLINE int recurse(int depth)
{
    volatile char room[512];
    int r = 0;
    room[depth & 511] = (char)depth;
    if (depth)
        r = recurse(depth - 1);
    else
        bottom();
    return r + room[3];
}

int main(int argc, char **argv)
{
    int depth = argc > 1 ? atoi(argv[1]) : 2000;
    stop_after(10);
    for (int round = 0;; round++)
        sink += (unsigned long)recurse(round % 3 ? depth : depth / 10);
}
