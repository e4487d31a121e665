// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* L-02: usage: execs thread | chain N
 *   thread   a second thread spins 2 s in before_exec, then execs this file; the new image
 *            spins in after_exec (same process id, other comm and mappings)
 *   chain N  N execs in a row, 50 ms of spinning in each (step_spin) */
#include "../common/stop.h"
#include <pthread.h>
#include <stdio.h>
#include <time.h>
static volatile unsigned long sink;

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

NOINLINE void spin_for(double seconds)
{
    double end = now() + seconds;
    while (now() < end)
        for (int i = 0; i < 200000; i++)
            sink++;
}

NOINLINE void before_exec(void) { spin_for(2); KEEP(); }
NOINLINE void after_exec(void) { spin_for(2); KEEP(); }
NOINLINE void step_spin(void) { spin_for(0.05); KEEP(); }

static void *thread_main(void *arg)
{
    before_exec();
    execl("/proc/self/exe", "second", "after", (char *)0);
    return arg;
}

int main(int argc, char **argv)
{
    if (argc > 1 && !strcmp(argv[1], "after")) {
        after_exec();
        return 0;
    }
    if (argc > 2 && !strcmp(argv[1], "chain")) {
        char left[16];
        int n = atoi(argv[2]);
        step_spin();
        if (n <= 1)
            return 0;
        snprintf(left, sizeof left, "%d", n - 1);
        execl("/proc/self/exe", n & 1 ? "odd" : "even", "chain", left, (char *)0);
        return 1;
    }
    pthread_t t;
    pthread_create(&t, 0, thread_main, 0);
    pthread_join(t, 0);
    return 1;
}
