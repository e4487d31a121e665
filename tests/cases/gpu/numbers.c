// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* G-11: launches whose numbers are all different, by each entry point, so that mixed-up arguments
 * show: grid 11 x 12 x 13, block 4 x 5 x 6, 1040 bytes of shared memory, a stream whose handle is
 * printed. */
#include "gpuapp.h"

int main(void)
{
    CUstream s;
    unsigned long long id = 0;
    uint64_t ns = 70000;
    void *params[] = { &ns };
    gpu_start(0);
    CUfunction f = load_kernel("spin_a");
    MUST(cuStreamCreate(&s, CU_STREAM_NONBLOCKING));
    cuStreamGetId(s, &id);
    printf("grid 11,12,13 block 4,5,6 shared 1040 stream %p (id %llu) and the default stream\n",
           (void *)s, id);
    for (int i = 0; i < 20; i++) {
        CUlaunchConfig c = { 11, 12, 13, 4, 5, 6, 1040, s, 0, 0 };
        CU(cuLaunchKernel(f, 11, 12, 13, 4, 5, 6, 1040, s, params, 0));
        CU(cuLaunchKernel(f, 11, 12, 13, 4, 5, 6, 1040, 0, params, 0));
        CU(cuLaunchKernelEx(&c, f, params, 0));
        CU(cuLaunchCooperativeKernel(f, 11, 1, 1, 4, 5, 6, 1040, s, params));
        CU(cuCtxSynchronize());
    }
    printf("80 launches, %d failed\n", failures);
    return failures != 0;
}
