// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* L-01: the first thread ends after one second, a worker thread goes on. */
#include "../common/stop.h"
#include <pthread.h>
static volatile unsigned long sink;

NOINLINE void worker_hot(void)
{
    for (;;)
        sink++;
}

static void *worker(void *arg)
{
    worker_hot();
    return arg;
}

int main(void)
{
    pthread_t t;
    stop_after(10);
    pthread_create(&t, 0, worker, 0);
    sleep(1);
    pthread_exit(0);
}
