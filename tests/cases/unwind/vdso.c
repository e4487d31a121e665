// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* U-07: most of the time is spent inside the vDSO. usage: vdso [threads]
 * one thread: clock_gettime; more threads: gettimeofday in each. */
#include "../common/stop.h"
#include <pthread.h>
#include <sys/time.h>
#include <time.h>
static volatile unsigned long sink;

NOINLINE void ask_clock(void)
{
    struct timespec ts;
    for (;;) {
        clock_gettime(CLOCK_MONOTONIC, &ts);
        sink += (unsigned long)ts.tv_nsec;
    }
}

NOINLINE void ask_day(void)
{
    struct timeval tv;
    for (;;) {
        gettimeofday(&tv, 0);
        sink += (unsigned long)tv.tv_usec;
    }
}

static void *asker(void *arg)
{
    ask_day();
    return arg;
}

int main(int argc, char **argv)
{
    int threads = argc > 1 ? atoi(argv[1]) : 1;
    stop_after(10);
    if (threads <= 1)
        ask_clock();
    for (int i = 0; i < threads; i++) {
        pthread_t t;
        pthread_create(&t, 0, asker, 0);
    }
    for (;;)
        pause();
}
