// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* U-02: a handler on an alternate signal stack spins.
 * usage: altstack main|above|below
 *   main   raise from the main thread (alternate stack somewhere in the mmap area)
 *   above  raise from a thread whose own stack lies BELOW the alternate stack
 *   below  raise from a thread whose own stack lies ABOVE the alternate stack */
#include "../common/stop.h"
#include <pthread.h>
#include <stdio.h>
#include <sys/mman.h>

#define PART (256 * 1024)
static volatile unsigned long sink;
static char *alt_memory;

NOINLINE void busy_in_handler(void)
{
    for (;;)
        sink++;
}

static void handler(int sig)
{
    (void)sig;
    busy_in_handler();
    KEEP();
}

NOINLINE void raiser(int depth)
{
    if (depth)
        raiser(depth - 1);
    else
        raise(SIGUSR1);
    sink++;
}

NOINLINE void start_raising(void)
{
    stack_t st;
    struct sigaction sa;
    int here;

    memset(&st, 0, sizeof st);
    st.ss_sp = alt_memory;
    st.ss_size = PART;
    sigaltstack(&st, 0);
    memset(&sa, 0, sizeof sa);
    sa.sa_handler = handler;
    sa.sa_flags = SA_ONSTACK;
    sigaction(SIGUSR1, &sa, 0);
    printf("normal stack %p, alternate stack %p..%p\n", (void *)&here, (void *)alt_memory,
           (void *)(alt_memory + PART));
    fflush(stdout);
    raiser(5);
    KEEP();
}

static void *thread_main(void *arg)
{
    start_raising();
    return arg;
}

int main(int argc, char **argv)
{
    const char *mode = argc > 1 ? argv[1] : "main";
    char *area = mmap(0, 4 * PART, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    pthread_attr_t attr;
    pthread_t t;

    stop_after(10);
    if (!strcmp(mode, "main")) {
        alt_memory = area;
        start_raising();
        return 1;
    }
    alt_memory = strcmp(mode, "above") ? area : area + 2 * PART;
    pthread_attr_init(&attr);
    pthread_attr_setstack(&attr, strcmp(mode, "above") ? area + 2 * PART : area, PART);
    pthread_create(&t, &attr, thread_main, 0);
    pthread_join(t, 0);
    return 1;
}
