// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* E-05: a GPU target under a strict system-call filter. usage: filtered kill|errno [SECONDS]
 * The driver is initialised first; then the filter allows only what the program and the stand-in
 * need; everything else kills the process (kill) or fails with EPERM (errno). Launches 1000 kernels
 * a second. */
#include "../gpu/gpuapp.h"
#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

static const int allowed[] = {
    SYS_read, SYS_write, SYS_close, SYS_fstat, SYS_newfstatat, SYS_mmap, SYS_munmap, SYS_mprotect,
    SYS_madvise, SYS_brk, SYS_futex, SYS_nanosleep, SYS_clock_nanosleep, SYS_clock_gettime,
    SYS_getpid, SYS_gettid, SYS_rt_sigaction, SYS_rt_sigprocmask, SYS_rt_sigreturn,
    SYS_restart_syscall, SYS_exit, SYS_exit_group, SYS_sched_yield };

static void filter(unsigned otherwise)
{
    struct sock_filter code[4 + 2 * sizeof allowed / sizeof *allowed + 1];
    unsigned n = 0;
    code[n++] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS,
                                             offsetof(struct seccomp_data, nr));
    for (unsigned i = 0; i < sizeof allowed / sizeof *allowed; i++) {
        code[n++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (unsigned)allowed[i],
                                                 0, 1);
        code[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
    }
    code[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, otherwise);
    struct sock_fprog prog = { (unsigned short)n, code };
    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &prog, 0, 0))
        perror("seccomp"), exit(8);
}

NOINLINE static CUresult launch_filtered(CUfunction f, CUstream s)
{
    CUresult r = launch_ns(f, s, 300000);
    KEEP();
    return r;
}

int main(int argc, char **argv)
{
    int kill_mode = argc < 2 || strcmp(argv[1], "errno");
    int64_t end = now_ns() + (int64_t)((argc > 2 ? atof(argv[2]) : 5) * 1e9);
    CUstream s;
    long n = 0;
    gpu_start(0);
    CUfunction f = load_kernel("spin_a");
    MUST(cuStreamCreate(&s, CU_STREAM_NONBLOCKING));
    CU(launch_ns(f, s, 1000));
    CU(cuStreamSynchronize(s));
    setvbuf(stdout, 0, _IONBF, 0);
    filter(kill_mode ? SECCOMP_RET_KILL_PROCESS : (SECCOMP_RET_ERRNO | EPERM));
    while (now_ns() < end) {
        CU(launch_filtered(f, s));
        n++;
        if (n % 16 == 0)
            CU(cuStreamSynchronize(s));
        usleep(700);
    }
    CU(cuStreamSynchronize(s));
    printf("survived %ld launches, %d failed\n", n, failures);
    return failures != 0;
}
