/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Common parts of the GPU programs: PTX with kernels that spin for a given time, error reports. */
#ifndef CASES_GPUAPP_H
#define CASES_GPUAPP_H
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "../../simcuda/cu.h"
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define SPIN_KERNEL(name) \
    ".visible .entry " name "(.param .u64 ns) {\n" \
    " .reg .u64 %ra, %rb, %rc, %rd; .reg .pred %pp;\n" \
    " ld.param.u64 %rd, [ns];\n mov.u64 %ra, %globaltimer;\n" \
    "AGAIN: mov.u64 %rb, %globaltimer;\n sub.u64 %rc, %rb, %ra;\n setp.lt.u64 %pp, %rc, %rd;\n" \
    " @%pp bra AGAIN;\n ret;\n}\n"
static const char ptx_text[] __attribute__((unused)) =
    ".version 7.0\n.target sm_75\n.address_size 64\n"
    SPIN_KERNEL("spin_a") SPIN_KERNEL("spin_b") SPIN_KERNEL("spin_c")
    ".visible .entry empty_kernel() { ret; }\n";

static int failures __attribute__((unused));
static inline CUresult said_(CUresult r, const char *what)
{
    if (r) {
        fprintf(stderr, "%s -> %d\n", what, r);
        failures++;
    }
    return r;
}
#define CU(call) said_((call), #call)
#define MUST(call) do { if (said_((call), #call)) _exit(9); } while (0)

static inline int64_t now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}
static inline CUcontext gpu_start(int device)
{
    CUcontext c;
    CUdevice d;
    MUST(cuInit(0));
    MUST(cuDeviceGet(&d, device));
    MUST(cuDevicePrimaryCtxRetain(&c, d));
    MUST(cuCtxSetCurrent(c));
    return c;
}
static inline CUfunction load_kernel(const char *name)
{
    CUmodule m;
    CUfunction f;
    MUST(cuModuleLoadData(&m, ptx_text));
    MUST(cuModuleGetFunction(&f, m, name));
    return f;
}
static inline CUresult launch_ns(CUfunction f, CUstream s, uint64_t ns)
{
    void *params[] = { &ns };
    return cuLaunchKernel(f, 1, 1, 1, 32, 1, 1, 0, s, params, 0);
}
#define NOINLINE __attribute__((noinline, noclone))
#define KEEP() __asm__ volatile("" ::: "memory")
#endif
