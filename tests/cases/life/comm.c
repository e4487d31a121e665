// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* L-07: thread names that break simple readers of /proc. Each thread spins in its own function. */
#include "../common/stop.h"
#include <pthread.h>
#include <sys/prctl.h>
static volatile unsigned long sink;

NOINLINE void spin_bracket(void) { for (;;) sink++; }
NOINLINE void spin_spaces(void) { for (;;) sink += 2; }

static void *second(void *arg)
{
    prctl(PR_SET_NAME, "two words;x 7", 0, 0, 0);
    spin_spaces();
    return arg;
}

int main(void)
{
    pthread_t t;
    stop_after(10);
    pthread_create(&t, 0, second, 0);
    prctl(PR_SET_NAME, "k) R 1 2\n(z", 0, 0, 0);
    spin_bracket();
    return 1;
}
