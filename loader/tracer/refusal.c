// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "loader/tracer/refusal.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/kcmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

struct status {
	char state;
	int parent, tracer, seccomp, threads;
	bool shadow_stack;
};

static int __attribute__((format(printf, 4, 5)))
refuse(int err, char *why, size_t size, const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	vsnprintf(why, size, fmt, args);
	va_end(args);
	return err;
}

static int read_status(pid_t pid, pid_t tid, struct status *s)
{
	char path[64], line[256];
	FILE *f;

	*s = (struct status){ 0 };
	snprintf(path, sizeof(path), "/proc/%d/task/%d/status", (int)pid, (int)tid);
	f = fopen(path, "re");
	if (!f)
		return -ESRCH;
	while (fgets(line, sizeof(line), f)) {
		sscanf(line, "State: %c", &s->state);
		sscanf(line, "PPid: %d", &s->parent);
		sscanf(line, "TracerPid: %d", &s->tracer);
		sscanf(line, "Seccomp: %d", &s->seccomp);
		sscanf(line, "Threads: %d", &s->threads);
		if (!strncmp(line, "x86_Thread_features:", 20))
			s->shadow_stack = strstr(line, "shstk");
	}
	fclose(f);
	return s->state ? 0 : -ESRCH;
}

static bool is_64_bit(pid_t pid)
{
	unsigned char ident[EI_NIDENT];
	char path[64];
	ssize_t n;
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/exe", (int)pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return true;	/* gone, or its first thread is: its code will tell */
	n = pread(fd, ident, sizeof(ident), 0);
	close(fd);
	return n == sizeof(ident) && !memcmp(ident, ELFMAG, SELFMAG) &&
	       ident[EI_CLASS] == ELFCLASS64;
}

/* A child by vfork that has not executed its program yet: what it does, it does to its parent. */
static bool shares_memory(pid_t pid, pid_t parent)
{
	return parent && !syscall(SYS_kcmp, pid, parent, KCMP_VM, 0, 0);
}

static int refuse_confined(const struct status *s, char *why, size_t size)
{
	if (s->seccomp)
		return refuse(-ENOTSUP, why, size,
			      "its system calls are filtered by seccomp, which could end it");
	if (s->shadow_stack)
		return refuse(-ENOTSUP, why, size, "it has a shadow stack");
	return 0;
}

int refusal__process(pid_t pid, char *why, size_t size)
{
	struct status s;

	/* Its first thread may have ended before the others. */
	if (read_status(pid, pid, &s) || s.state == 'X' || (s.state == 'Z' && s.threads < 2))
		return refuse(-ESRCH, why, size, "it is gone");
	if (s.tracer)
		return refuse(-EBUSY, why, size, "it is traced by process %d", s.tracer);
	if (s.state == 'T')
		return refuse(-EAGAIN, why, size, "it is stopped by a signal");
	if (!is_64_bit(pid))
		return refuse(-ENOTSUP, why, size, "it is no 64-bit program");
	if (shares_memory(pid, s.parent))
		return refuse(-ENOTSUP, why, size, "it shares its memory with its parent");
	return refuse_confined(&s, why, size);
}

int refusal__thread(pid_t pid, pid_t tid, char *why, size_t size)
{
	struct status s;

	if (read_status(pid, tid, &s) || s.state == 'X' || s.state == 'Z')
		return refuse(-ESRCH, why, size, "it is gone");
	if (s.tracer)
		return refuse(-EBUSY, why, size, "its thread %d is traced by process %d", (int)tid,
			      s.tracer);
	return refuse_confined(&s, why, size);
}

int refusal__confined(pid_t pid, pid_t tid, char *why, size_t size)
{
	struct status s;

	if (read_status(pid, tid, &s))
		return refuse(-ESRCH, why, size, "it is gone");
	return refuse_confined(&s, why, size);
}
