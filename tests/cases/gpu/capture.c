// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* G-04: stream capture. usage: capture other|forkjoin|plain [ROUNDS]
 *   plain     captures five kernels on one stream
 *   forkjoin  the same with a side stream that is forked and joined by events inside the capture
 *   other     while thread A captures (global mode), thread B launches kernels on its own stream
 *             all the time
 * Each round: capture, count the nodes, instantiate, launch three times, destroy. Prints the node
 * counts and results seen; the text must be the same with and without the profiler. */
#include "gpuapp.h"
static CUcontext ctx;
static volatile int stop;
static long others, other_errors;

static void *other_thread(void *arg)
{
    CUstream s;
    MUST(cuCtxSetCurrent(ctx));
    MUST(cuStreamCreate(&s, CU_STREAM_NONBLOCKING));
    CUfunction f = load_kernel("spin_b");
    __atomic_add_fetch(&others, 1, __ATOMIC_RELEASE);
    while (!stop) {
        other_errors += launch_ns(f, s, 20000) != 0;
        others++;
        usleep(50);
    }
    return arg;
}

int main(int argc, char **argv)
{
    const char *mode = argc > 1 ? argv[1] : "plain";
    int rounds = argc > 2 ? atoi(argv[2]) : 50, good = 0;
    size_t nodes = 0, seen = 0;
    CUstream s, side;
    CUevent fork_ev, join_ev;
    pthread_t t;

    ctx = gpu_start(0);
    CUfunction a = load_kernel("spin_a"), c = load_kernel("spin_c");
    MUST(cuStreamCreate(&s, CU_STREAM_NONBLOCKING));
    MUST(cuStreamCreate(&side, CU_STREAM_NONBLOCKING));
    MUST(cuEventCreate(&fork_ev, 2));
    MUST(cuEventCreate(&join_ev, 2));
    CU(launch_ns(a, s, 20000)); /* everything is loaded before the first capture */
    CU(launch_ns(c, side, 20000));
    CU(cuCtxSynchronize());
    if (!strcmp(mode, "other")) {
        pthread_create(&t, 0, other_thread, 0);
        while (!__atomic_load_n(&others, __ATOMIC_ACQUIRE))
            usleep(100);
    }
    for (int i = 0; i < rounds; i++) {
        CUgraph g = 0;
        CUgraphExec x = 0;
        CU(cuStreamBeginCapture_v2(s, CU_MODE_GLOBAL));
        for (int k = 0; k < 5; k++)
            CU(launch_ns(a, s, 20000));
        if (!strcmp(mode, "forkjoin")) {
            CU(cuEventRecord(fork_ev, s));
            CU(cuStreamWaitEvent(side, fork_ev, 0));
            CU(launch_ns(c, side, 20000));
            CU(cuEventRecord(join_ev, side));
            CU(cuStreamWaitEvent(s, join_ev, 0));
        }
        if (!strcmp(mode, "other"))
            usleep(20000);
        if (CU(cuStreamEndCapture(s, &g)) == 0 && g) {
            CU(cuGraphGetNodes(g, 0, &nodes));
            if (i && nodes != seen)
                printf("round %d: %zu nodes instead of %zu\n", i, nodes, seen);
            seen = nodes;
            CU(cuGraphInstantiateWithFlags(&x, g, 0));
            for (int k = 0; k < 3; k++)
                CU(cuGraphLaunch(x, s));
            CU(cuStreamSynchronize(s));
            CU(cuGraphExecDestroy(x));
            CU(cuGraphDestroy(g));
            good++;
        }
    }
    stop = 1;
    if (!strcmp(mode, "other"))
        pthread_join(t, 0);
    printf("%s: %d of %d captures, %zu nodes each, %d failed calls, "
           "%ld failed launches elsewhere\n",
           mode, good, rounds, seen, failures, other_errors);
    return failures || other_errors;
}
