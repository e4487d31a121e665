// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* L-04: spins half of the time and sleeps the other half; on SIGTERM and SIGINT it says so and ends
 * with status 0. SECS limits it (default 30). */
#include "../common/stop.h"
#include <errno.h>
#include <stdio.h>
#include <time.h>
static volatile unsigned long sink;
static volatile sig_atomic_t got;

static void note(int sig) { got = sig; }

NOINLINE void steady_work(void)
{
    for (unsigned long i = 0; i < 20000000UL && !got; i++)
        sink++;
}

int main(void)
{
    struct timespec nap = { 0, 20000000 };
    signal(SIGTERM, note);
    signal(SIGINT, note);
    stop_after(30);
    while (!got) {
        steady_work();
        nanosleep(&nap, 0);
    }
    printf("steady: ended by signal %d\n", (int)got);
    return 0;
}
