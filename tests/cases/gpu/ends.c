// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* G-08: ways to end. usage: ends return|exit|_exit|abort|kill|unsynced
 * Launches 100 kernels of 100 us, waits for them and for whoever reads their times, which may
 * have to wait for a CPU, then (except for "return") one more of 300 ms that nobody waits for,
 * then ends in the way named. */
#include "gpuapp.h"
#include <sys/resource.h>

int main(int argc, char **argv)
{
    const char *mode = argc > 1 ? argv[1] : "return";
    struct rlimit none = { 0, 0 };
    CUstream s;
    setrlimit(RLIMIT_CORE, &none);
    gpu_start(0);
    CUfunction a = load_kernel("spin_a"), c = load_kernel("spin_c");
    MUST(cuStreamCreate(&s, CU_STREAM_NONBLOCKING));
    for (int i = 0; i < 100; i++)
        CU(launch_ns(a, s, 100000));
    CU(cuStreamSynchronize(s));
    usleep(200000);
    if (strcmp(mode, "return"))
        CU(launch_ns(c, s, 300000000));
    printf("ending by %s\n", mode);
    fflush(stdout);
    if (!strcmp(mode, "exit"))
        exit(5);
    if (!strcmp(mode, "_exit"))
        _exit(6);
    if (!strcmp(mode, "abort"))
        abort();
    if (!strcmp(mode, "kill"))
        kill(getpid(), SIGKILL);
    return 0;
}
