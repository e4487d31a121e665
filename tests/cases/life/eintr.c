// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* L-06: counts interrupted and shortened waits, and prints signal mask and handlers at the
 * start, at the end and in a child. usage: eintr [seconds]   (default 10)
 * The output must be the same with and without the profiler. */
#define _GNU_SOURCE
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/select.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static unsigned long interrupted, early, rounds;
static volatile unsigned long sink;

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static void checked(int r, double began, double wanted)
{
    if (r < 0 && errno == EINTR)
        interrupted++;
    else if (now() - began < wanted - 0.0015)
        early++;
    rounds++;
}

static void show(const char *where)
{
    sigset_t set;
    int blocked = 0, handled = 0;
    sigprocmask(SIG_SETMASK, 0, &set);
    for (int s = 1; s < 65; s++) {
        struct sigaction sa;
        blocked += sigismember(&set, s) == 1;
        if (sigaction(s, 0, &sa) == 0 && sa.sa_handler != SIG_DFL)
            handled++;
    }
    printf("%s: blocked %d, not default %d\n", where, blocked, handled);
    fflush(stdout);
}

static void one_round(int epfd, int pipefd)
{
    struct pollfd p = { pipefd, POLLIN, 0 };
    struct timeval tv = { 0, 100000 };
    struct timespec ts = { 0, 100000000 };
    struct epoll_event ev;
    fd_set set;
    double t;

    t = now(), checked(poll(&p, 1, 100), t, 0.1);
    FD_ZERO(&set);
    FD_SET(pipefd, &set);
    t = now(), checked(select(pipefd + 1, &set, 0, 0, &tv), t, 0.1);
    t = now(), checked(epoll_wait(epfd, &ev, 1, 100), t, 0.1);
    t = now(), checked(nanosleep(&ts, 0), t, 0.1);
    for (int i = 0; i < 30000000; i++)
        sink++;
}

int main(int argc, char **argv)
{
    double end = now() + (argc > 1 ? atof(argv[1]) : 10);
    int fds[2], epfd = epoll_create1(0);
    struct epoll_event ev = { .events = EPOLLIN };

    if (pipe(fds))
        return 1;
    epoll_ctl(epfd, EPOLL_CTL_ADD, fds[0], &ev);
    show("start");
    if (fork() == 0) {
        show("child");
        _exit(0);
    }
    wait(0);
    while (now() < end)
        one_round(epfd, fds[0]);
    show("end");
    printf("interrupted %lu, early %lu\n", interrupted, early);
    fprintf(stderr, "%lu waits\n", rounds);
    return interrupted || early ? 1 : 0;
}
