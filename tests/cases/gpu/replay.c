// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* G-05: a graph of five kernels is replayed many times. usage: replay [COUNT] [WAIT_MS] [NS]
 * The graph is made first; then the program waits WAIT_MS (time to attach a profiler) and
 * replays. Prints its own resident memory after a tenth and at the end. */
#include "gpuapp.h"

static long resident_kb(void)
{
    long pages = 0;
    FILE *fp = fopen("/proc/self/statm", "r");
    if (fp) {
        if (fscanf(fp, "%*d %ld", &pages) != 1)
            pages = 0;
        fclose(fp);
    }
    return pages * 4;
}

int main(int argc, char **argv)
{
    long count = argc > 1 ? atol(argv[1]) : 100000, early = 0;
    int wait_ms = argc > 2 ? atoi(argv[2]) : 0;
    uint64_t ns = argc > 3 ? strtoull(argv[3], 0, 10) : 2000;
    CUstream s;
    CUgraph g;
    CUgraphExec x;

    gpu_start(0);
    CUfunction a = load_kernel("spin_a"), b = load_kernel("spin_b");
    MUST(cuStreamCreate(&s, CU_STREAM_NONBLOCKING));
    CU(launch_ns(a, s, ns));
    CU(launch_ns(b, s, ns));
    CU(cuStreamSynchronize(s));
    MUST(cuStreamBeginCapture_v2(s, CU_MODE_THREAD));
    for (int k = 0; k < 5; k++)
        CU(launch_ns(k & 1 ? b : a, s, ns));
    MUST(cuStreamEndCapture(s, &g));
    MUST(cuGraphInstantiateWithFlags(&x, g, 0));
    printf("ready, pid %d\n", (int)getpid());
    fflush(stdout);
    usleep((useconds_t)wait_ms * 1000);
    for (long i = 0; i < count; i++) {
        if (cuGraphLaunch(x, s))
            failures++;
        if (i % 100 == 99)
            CU(cuStreamSynchronize(s));
        if (i == count / 10)
            early = resident_kb();
    }
    CU(cuStreamSynchronize(s));
    printf("%ld replays, %d failures, resident %ld kB after a tenth, %ld kB at the end\n", count,
           failures, early, resident_kb());
    return failures != 0;
}
