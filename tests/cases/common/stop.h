/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Ends a program after N seconds with status 0 without touching its hot loop.
 * The limit is the environment variable SECS, else the default given. CPU_SECS, where it is set, is one
 * of CPU time: on a busy machine a program with both runs longer, and does as much as elsewhere. */
#ifndef STOP_H
#define STOP_H
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <unistd.h>

static void stop_now_(int sig) { (void)sig; _exit(0); }

static inline void stop_after(unsigned seconds)
{
    const char *env = getenv("SECS"), *cpu = getenv("CPU_SECS");
    struct itimerval of_cpu = { { 0, 0 }, { cpu ? atoi(cpu) : 0, 0 } };
    struct sigaction sa;
    memset(&sa, 0, sizeof sa);
    sa.sa_handler = stop_now_;
    sigaction(SIGALRM, &sa, 0);
    sigaction(SIGPROF, &sa, 0);
    if (cpu)
        setitimer(ITIMER_PROF, &of_cpu, 0);
    alarm(env && atoi(env) > 0 ? (unsigned)atoi(env) : seconds);
}

#define NOINLINE __attribute__((noinline, noclone))
/* Keeps a call from becoming a jump and a function from being merged. */
#define KEEP() __asm__ volatile("" ::: "memory")
#endif
