// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* G-03: a program that hardly uses the driver. usage: idle fork|count|one
 *   fork   makes no driver call, forks; the child initialises and launches (must succeed)
 *   count  cuInit and cuDeviceGetCount only, spins 2 s
 *   one    uses device 0 of two (STANDIN_DEVICES=2); device 1 must stay untouched
 * Prints whether contexts exist that the program did not make. */
#include "gpuapp.h"
#include <sys/wait.h>
CUresult cuDevicePrimaryCtxGetState(CUdevice, unsigned *, int *);
static volatile unsigned long sink;

NOINLINE static void host_work(void)
{
    int64_t end = now_ns() + 2000000000;
    while (now_ns() < end)
        for (int i = 0; i < 100000; i++)
            sink++;
}

static void show(void)
{
    int n = 0, active;
    unsigned flags;
    CUcontext c = 0;
    cuDeviceGetCount(&n);
    for (int d = 0; d < n; d++) {
        active = -1;
        cuDevicePrimaryCtxGetState(d, &flags, &active);
        printf("device %d: primary context %s\n", d, active ? "active" : "inactive");
    }
    cuCtxGetCurrent(&c);
    printf("current context: %s\n", c ? "yes" : "none");
    fflush(stdout);
}

static void some_launches(void)
{
    CUfunction f = load_kernel("spin_a");
    for (int i = 0; i < 200; i++)
        CU(launch_ns(f, 0, 100000));
    CU(cuCtxSynchronize());
}

int main(int argc, char **argv)
{
    const char *mode = argc > 1 ? argv[1] : "count";
    int n, status = 0;
    if (!strcmp(mode, "fork")) {
        if (fork() == 0) {
            gpu_start(0);
            some_launches();
            printf("child: %d failures\n", failures);
            fflush(stdout);
            exit(failures != 0);
        }
        host_work();
        wait(&status);
        printf("child ended with %d\n", status);
        return status != 0;
    }
    if (!strcmp(mode, "one")) {
        gpu_start(0);
        some_launches();
    } else {
        MUST(cuInit(0));
        MUST(cuDeviceGetCount(&n));
    }
    host_work();
    show();
    return failures != 0;
}
