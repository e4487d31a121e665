// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "symbols/lines_worker.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "symbols/dwarf.h"
#include "symbols/lines.h"
#include "symbols/lines_reply.h"

#define NOBODY 65534
#define CPU_SECONDS 60

#if defined(__x86_64__)
#define OWN_ARCH AUDIT_ARCH_X86_64
#elif defined(__aarch64__)
#define OWN_ARCH AUDIT_ARCH_AARCH64
#endif

#define ALLOW(name) \
	BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_##name, 0, 1), \
	BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)

/* Memory, the file that is open, the socket, the end; all else, opening files for one, fails. */
static int allow_few_calls(void)
{
	struct sock_filter filter[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, arch)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, OWN_ARCH, 1, 0),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		ALLOW(mmap), ALLOW(munmap), ALLOW(mremap), ALLOW(mprotect), ALLOW(madvise), ALLOW(brk),
		ALLOW(pread64), ALLOW(read), ALLOW(lseek), ALLOW(fstat), ALLOW(newfstatat),
		ALLOW(recvfrom), ALLOW(sendto), ALLOW(futex), ALLOW(rt_sigreturn), ALLOW(exit_group),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
	};
	struct sock_fprog program = { sizeof(filter) / sizeof(filter[0]), filter };

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
		return -errno;
	return prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program, 0, 0) ? -errno : 0;
}

static void limit(int what, rlim_t to)
{
	const struct rlimit r = { to, to };

	setrlimit(what, &r);
}

enum { FILE_FD = 3, SOCK_FD = 4, ALT_FD = 5, NR_FDS = 6 };

/* Nothing is left open but the file, the socket and, if there is one, the other file. */
static int keep_only(int fd, int alt, int sock)
{
	int high_fd = fcntl(fd, F_DUPFD, NR_FDS), high_sock = fcntl(sock, F_DUPFD, NR_FDS);
	int high_alt = alt < 0 ? -1 : fcntl(alt, F_DUPFD, NR_FDS), null = open("/dev/null", O_RDWR);

	if (high_fd < 0 || high_sock < 0 || null < 0)
		return -errno;
	/* Whoever reads our standard output must not wait for this process's end of it. */
	if (dup2(null, 0) < 0 || dup2(null, 1) < 0 || dup2(high_fd, FILE_FD) < 0 ||
	    dup2(high_sock, SOCK_FD) < 0 || (high_alt >= 0 && dup2(high_alt, ALT_FD) < 0))
		return -errno;
	return syscall(SYS_close_range, high_alt < 0 ? ALT_FD : NR_FDS, ~0u, 0) ? -errno : 0;
}

static int lose_rights(pid_t parent)
{
	limit(RLIMIT_CORE, 0);
	limit(RLIMIT_FSIZE, 0);
	limit(RLIMIT_CPU, CPU_SECONDS);
#ifndef __SANITIZE_ADDRESS__	/* which reserves more than there is memory */
	limit(RLIMIT_DATA, LINES_MEMORY);
#endif
	if (!geteuid() && (setgroups(0, NULL) || setresgid(NOBODY, NOBODY, NOBODY) ||
			   setresuid(NOBODY, NOBODY, NOBODY)))
		return -errno;
	/* Losing rights forgets this, so it comes after; the parent may have ended meanwhile. */
	if (prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) || getppid() != parent)
		return -ESRCH;
	return allow_few_calls();
}

static void serve(int fd, int alt, int sock)
{
	struct dwarf_file *file = dwarf_file__new(fd, alt);
	static char message[LINES_MESSAGE];
	struct dwarf_answer answer = {};
	uint64_t address;
	size_t len;

	while (recv(sock, &address, sizeof(address), 0) == sizeof(address)) {
		if (file)
			dwarf_file__find(file, address, &answer);
		len = lines_reply__write(&answer, file ? 0 : LINES_NO_INFO, message);
		if (send(sock, message, len, MSG_NOSIGNAL) < 0)
			break;
	}
}

pid_t lines_worker__start(int fd, int alt, int *sock)
{
	pid_t parent = getpid(), pid;
	int pair[2], err;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair))
		return -errno;
	pid = fork();
	if (pid == 0) {
		if (!keep_only(fd, alt, pair[1]) && !lose_rights(parent))
			serve(FILE_FD, alt < 0 ? -1 : ALT_FD, SOCK_FD);
		_exit(0);
	}
	err = -errno;
	close(pair[1]);
	if (pid < 0) {
		close(pair[0]);
		return err;
	}
	*sock = pair[0];
	return pid;
}
