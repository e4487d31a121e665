// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* G-13: very many launches under very many names. Only with the stand-in.
 * usage: flood [TOTAL] [NAMES] [THREADS]   (default 2000000 launches, 5000 names, 200 threads)
 * On SIGINT it stops launching and ends at once with status 0. */
#include "gpuapp.h"
static CUfunction *fn;
static int names, threads;
static long total;
static CUcontext ctx;
static volatile sig_atomic_t stop;

static void on_int(int sig) { (void)sig; stop = 1; }

static void *worker(void *arg)
{
    long me = (long)arg;
    CUstream s;
    MUST(cuCtxSetCurrent(ctx));
    MUST(cuStreamCreate(&s, CU_STREAM_NONBLOCKING));
    for (long i = me; i < total && !stop; i += threads) {
        CU(cuLaunchKernel(fn[i % names], 1, 1, 1, 32, 1, 1, 0, s, 0, 0));
        if (i % 512 == me % 512)
            CU(cuStreamSynchronize(s));
    }
    return 0;
}

int main(int argc, char **argv)
{
    total = argc > 1 ? atol(argv[1]) : 2000000;
    names = argc > 2 ? atoi(argv[2]) : 5000;
    threads = argc > 3 ? atoi(argv[3]) : 200;
    CUmodule m;
    char *text = malloc((size_t)names * 40 + 64), *p = text;
    pthread_t *t = calloc((size_t)threads, sizeof *t);
    int64_t t0;
    signal(SIGINT, on_int);
    p += sprintf(p, "STANDIN\n");
    for (int i = 0; i < names; i++)
        p += sprintf(p, "_Z10kernel_%03dILi%dEEvPf\n", i % 1000, i);
    ctx = gpu_start(0);
    MUST(cuModuleLoadData(&m, text));
    fn = calloc((size_t)names, sizeof *fn);
    MUST(cuModuleEnumerateFunctions(fn, (unsigned)names, m));
    t0 = now_ns();
    for (long i = 0; i < threads; i++)
        pthread_create(&t[i], 0, worker, (void *)i);
    for (int i = 0; i < threads; i++)
        pthread_join(t[i], 0);
    printf("up to %ld launches in %.2f s, %d failures\n", total, (double)(now_ns() - t0) / 1e9,
           failures);
    return failures != 0;
}
