// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* G-10: six threads launch on six streams while one record of an event blocks inside the driver
 * until another thread has launched something. Run with STANDIN_RECORD_BLOCKS=N (say 40); the
 * program records an event of its own after every fifth launch, so that the Nth record may be its
 * own or one made for it.
 * The stand-in reports on stderr whether another thread got through. usage: locked [COUNT] */
#include "gpuapp.h"
static CUcontext ctx;
static long count;

static void *worker(void *arg)
{
    CUstream s;
    CUevent e;
    MUST(cuCtxSetCurrent(ctx));
    CUfunction f = load_kernel("spin_a");
    MUST(cuStreamCreate(&s, CU_STREAM_NONBLOCKING));
    MUST(cuEventCreate(&e, 2));
    for (long i = 0; i < count; i++) {
        CU(launch_ns(f, s, 30000));
        if (i % 5 == 4) {
            CU(cuEventRecord(e, s));
            CU(cuEventSynchronize(e));
        }
        usleep(200);
    }
    CU(cuStreamSynchronize(s));
    return arg;
}

int main(int argc, char **argv)
{
    pthread_t t[6];
    int64_t t0 = now_ns();
    count = argc > 1 ? atol(argv[1]) : 500;
    ctx = gpu_start(0);
    for (int i = 0; i < 6; i++)
        pthread_create(&t[i], 0, worker, 0);
    for (int i = 0; i < 6; i++)
        pthread_join(t[i], 0);
    printf("%ld launches, %d failures\n", 6 * count, failures);
    fprintf(stderr, "took %.1f s\n", (double)(now_ns() - t0) / 1e9);
    return failures != 0;
}
