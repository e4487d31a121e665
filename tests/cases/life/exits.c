// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* L-05: ends in a chosen way after half a second of work.
 * usage: exits CODE          exit status CODE
 *        exits signal N      dies from signal N (default action) */
#include "../common/stop.h"
#include <sys/resource.h>
#include <time.h>
static volatile unsigned long sink;

NOINLINE void half_second(void)
{
    clock_t end = clock() + CLOCKS_PER_SEC / 2;
    while (clock() < end)
        for (int i = 0; i < 100000; i++)
            sink++;
}

int main(int argc, char **argv)
{
    struct rlimit none = { 0, 0 };
    setrlimit(RLIMIT_CORE, &none);
    half_second();
    if (argc > 2 && !strcmp(argv[1], "signal")) {
        signal(atoi(argv[2]), SIG_DFL);
        raise(atoi(argv[2]));
        pause();
    }
    return argc > 1 ? atoi(argv[1]) : 0;
}
