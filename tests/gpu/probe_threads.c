// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Where the threads of a process are, and what a tracer finds there: probe_threads PID. One line for each
 * thread: its name, its system call by /proc and, once stopped, the rax that says how the kernel would go
 * on (-512 and so on); the size of the register state; how long a stop takes.
 */
#include <dirent.h>
#include <elf.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <time.h>

static double now_us(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec * 1e6 + (double)t.tv_nsec / 1e3;
}

static void read_line(const char *pid, const char *tid, const char *name, char *to, size_t size)
{
	char path[300];
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%s/task/%s/%s", pid, tid, name);
	f = fopen(path, "re");
	if (!f || !fgets(to, (int)size, f))
		snprintf(to, size, "(%s)", strerror(errno));
	to[strcspn(to, "\n")] = '\0';
	if (f)
		fclose(f);
}

static void look(const char *pid, const char *tid)
{
	static char state[1 << 16];
	struct iovec io = { state, sizeof(state) };
	struct user_regs_struct regs = { 0 };
	char comm[64], call[200];
	double begin, stopped;
	pid_t t = atoi(tid);
	int status = 0;

	read_line(pid, tid, "comm", comm, sizeof(comm));
	read_line(pid, tid, "syscall", call, sizeof(call));
	begin = now_us();
	if (ptrace(PTRACE_SEIZE, t, 0, 0) || ptrace(PTRACE_INTERRUPT, t, 0, 0) ||
	    waitpid(t, &status, __WALL) != t) {
		printf("%s %s: %s\n", tid, comm, strerror(errno));
		return;
	}
	stopped = now_us();
	ptrace(PTRACE_GETREGS, t, 0, &regs);
	if (ptrace(PTRACE_GETREGSET, t, NT_X86_XSTATE, &io))
		io.iov_len = 0;
	ptrace(PTRACE_DETACH, t, 0, 0);
	printf("%s %-16s call %-60.60s orig_rax %lld rax %lld xstate %zu stop %.0f us, held %.0f us\n", tid,
	       comm, call, (long long)regs.orig_rax, (long long)regs.rax, io.iov_len,
	       stopped - begin, now_us() - stopped);
}

int main(int argc, char **argv)
{
	char path[64];
	struct dirent *e;
	DIR *d;

	if (argc < 2)
		return 2;
	snprintf(path, sizeof(path), "/proc/%.20s/task", argv[1]);
	d = opendir(path);
	while (d && (e = readdir(d)))
		if (*e->d_name != '.')
			look(argv[1], e->d_name);
	return d ? closedir(d) : 1;
}
