// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* General GPU target. usage: launches [COUNT] [NS] [THREADS] [PAUSE_US]
 * Each thread launches COUNT kernels of NS nanoseconds on its own stream (spin_a in even threads,
 * spin_b in odd ones) and waits for the stream every 64 launches. Prints the number of
 * launches that succeeded and the state at the end; exit status 3 if the driver reported an error.
 */
#include "gpuapp.h"
static long count, pause_us;
static uint64_t length;
static CUcontext ctx;
static long done;
static int last_error;

NOINLINE CUresult do_launch(CUfunction f, CUstream s)
{
    CUresult r = launch_ns(f, s, length);
    KEEP();
    return r;
}

static void *worker(void *arg)
{
    long me = (long)arg;
    CUstream s;
    MUST(cuCtxSetCurrent(ctx));
    CUfunction f = load_kernel(me & 1 ? "spin_b" : "spin_a");
    MUST(cuStreamCreate(&s, CU_STREAM_NONBLOCKING));
    for (long i = 0; i < count; i++) {
        CUresult r = do_launch(f, s);
        if (r)
            last_error = r;
        else
            __atomic_add_fetch(&done, 1, __ATOMIC_RELAXED);
        if (i % 64 == 63 && (r = cuStreamSynchronize(s))) {
            last_error = r;
            break;
        }
        if (pause_us)
            usleep((useconds_t)pause_us);
    }
    CUresult r = cuStreamSynchronize(s);
    if (r)
        last_error = r;
    return 0;
}

int main(int argc, char **argv)
{
    pthread_t t[256];
    int threads = argc > 3 ? atoi(argv[3]) : 1;
    count = argc > 1 ? atol(argv[1]) : 1000;
    length = argc > 2 ? strtoull(argv[2], 0, 10) : 50000;
    pause_us = argc > 4 ? atol(argv[4]) : 0;
    if (threads > 256)
        threads = 256;
    ctx = gpu_start(0);
    for (long i = 0; i < threads; i++)
        pthread_create(&t[i], 0, worker, (void *)i);
    for (int i = 0; i < threads; i++)
        pthread_join(t[i], 0);
    printf("launched %ld, last error %d\n", done, last_error);
    return last_error ? 3 : 0;
}
