// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* S-01: lives for a given number of milliseconds of CPU time. usage: blink [ms]   (default 60) */
#include "../common/stop.h"
#include <time.h>
static volatile unsigned long sink;

NOINLINE void blink_inner(unsigned long n)
{
    for (unsigned long i = 0; i < n; i++)
        sink++;
}

NOINLINE void blink_outer(long ms)
{
    struct timespec a, b;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &a);
    do {
        blink_inner(200000);
        clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &b);
    } while ((b.tv_sec - a.tv_sec) * 1000 + (b.tv_nsec - a.tv_nsec) / 1000000 < ms);
}

int main(int argc, char **argv)
{
    blink_outer(argc > 1 ? atol(argv[1]) : 60);
    return 0;
}
