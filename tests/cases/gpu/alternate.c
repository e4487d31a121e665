// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* G-06: one thread uses two contexts by turns: two devices if there are two (STANDIN_DEVICES=2),
 * else two contexts on one device. Kernels of 30 us (spin_a) in the first, 60 us (spin_b) in the
 * second.
 * usage: alternate [COUNT]   Ends with 1 if any call failed. */
#include "gpuapp.h"

int main(int argc, char **argv)
{
    long count = argc > 1 ? atol(argv[1]) : 2000;
    int n = 0;
    CUcontext c[2];
    CUstream s[2];
    CUfunction f[2];

    c[0] = gpu_start(0);
    cuDeviceGetCount(&n);
    if (n > 1)
        c[1] = gpu_start(1);
    else
        MUST(cuCtxCreate_v2(&c[1], 0, 0));
    for (int k = 0; k < 2; k++) {
        MUST(cuCtxSetCurrent(c[k]));
        MUST(cuStreamCreate(&s[k], CU_STREAM_NONBLOCKING));
        f[k] = load_kernel(k ? "spin_b" : "spin_a");
    }
    for (long i = 0; i < count; i++) {
        int k = (int)(i & 1);
        CU(cuCtxSetCurrent(c[k]));
        /* now and then on the default stream */
        CU(launch_ns(f[k], i % 10 < 2 ? 0 : s[k], k ? 60000 : 30000));
        if (i % 64 == 63)
            CU(cuCtxSynchronize());
    }
    for (int k = 0; k < 2; k++) {
        CU(cuCtxSetCurrent(c[k]));
        CU(cuCtxSynchronize());
    }
    printf("%ld launches on %s, %d failed calls\n", count, n > 1 ? "two devices" : "two contexts",
           failures);
    return failures != 0;
}
