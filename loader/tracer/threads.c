// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "loader/tracer/threads.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/futex.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "loader/base/array.h"

#define NR_ARGS 6

static enum thread_kind classify_futex(const uint64_t *args)
{
	uint64_t op = args[1] & FUTEX_CMD_MASK;

	if (op != FUTEX_WAIT && op != FUTEX_WAIT_BITSET)
		return THREAD_UNFIT;
	return args[3] ? THREAD_TIMED : THREAD_ASLEEP;
}

static enum thread_kind classify_call(uint64_t nr, const uint64_t *args, int *fd)
{
	switch (nr) {
	case SYS_futex:
		return classify_futex(args);
	case SYS_clock_nanosleep:
		return args[1] & TIMER_ABSTIME ? THREAD_WAITING : THREAD_TIMED;
	case SYS_nanosleep:
	case SYS_poll:
	case SYS_restart_syscall:	/* what they are after a stop */
		return THREAD_TIMED;
	/* The kernel has written the time that is left to where it read the limit. */
	case SYS_select:
	case SYS_pselect6:
	case SYS_ppoll:
	case SYS_wait4:
	case SYS_waitid:
	case SYS_rt_sigsuspend:
	case SYS_pause:
	case SYS_flock:
		return THREAD_WAITING;
	case SYS_read:
	case SYS_readv:
		*fd = (int)args[0];
		return THREAD_WAITING;
	default:
		return THREAD_UNFIT;
	}
}

enum thread_kind threads__classify(const char *line, struct thread_choice *choice, int *fd)
{
	uint64_t args[NR_ARGS];
	int64_t nr;

	*fd = -1;
	choice->sp = choice->pc = 0;
	if (!strncmp(line, "running", 7))
		return THREAD_RUNNING;
	if (sscanf(line, "%" SCNd64 " %" SCNx64 " %" SCNx64 " %" SCNx64 " %" SCNx64 " %" SCNx64
		   " %" SCNx64 " %" SCNx64 " %" SCNx64, &nr, &args[0], &args[1], &args[2], &args[3],
		   &args[4], &args[5], &choice->sp, &choice->pc) != 9 || nr < 0)
		return THREAD_UNFIT;
	return classify_call((uint64_t)nr, args, fd);
}

/* Where a read that got nothing yet begins again; of devices, terminals and sockets not all do. */
static bool reads_begin_again(pid_t pid, pid_t tid, int fd)
{
	static const char *const kinds[] = {
		"anon_inode:[eventfd]", "anon_inode:inotify", "anon_inode:[timerfd]",
		"anon_inode:[signalfd]",
	};
	char path[64], link[64];
	struct stat st;
	ssize_t n;

	snprintf(path, sizeof(path), "/proc/%d/task/%d/fd/%d", (int)pid, (int)tid, fd);
	if (!stat(path, &st) && S_ISFIFO(st.st_mode))	/* a pipe, with a name or without */
		return true;
	n = readlink(path, link, sizeof(link) - 1);
	if (n < 0)
		return false;
	link[n] = '\0';
	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
		if (!strncmp(link, kinds[i], strlen(kinds[i])))
			return true;
	return false;
}

static void look(pid_t pid, struct thread_choice *choice)
{
	char path[64], line[256];
	ssize_t n;
	int fd;

	choice->kind = THREAD_UNFIT;
	snprintf(path, sizeof(path), "/proc/%d/task/%d/syscall", (int)pid, (int)choice->tid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return;
	n = read(fd, line, sizeof(line) - 1);
	close(fd);
	if (n <= 0)
		return;
	line[n] = '\0';
	choice->kind = threads__classify(line, choice, &fd);
	if (fd >= 0 && !reads_begin_again(pid, choice->tid, fd))
		choice->kind = THREAD_UNFIT;
}

static int by_kind(const void *a, const void *b)
{
	const struct thread_choice *x = a, *y = b;

	return (x->kind > y->kind) - (x->kind < y->kind);
}

int threads__list(pid_t pid, struct thread_choice **threads, size_t *nr)
{
	struct dirent *entry;
	size_t room = 0;
	char path[64];
	int err = 0;
	DIR *dir;

	*threads = NULL;
	*nr = 0;
	snprintf(path, sizeof(path), "/proc/%d/task", (int)pid);
	dir = opendir(path);
	if (!dir)
		return errno == ENOENT ? -ESRCH : -errno;
	while (!err && (entry = readdir(dir))) {
		if (!isdigit((unsigned char)entry->d_name[0]))
			continue;
		err = array__reserve((void **)threads, &room, *nr, sizeof(**threads));
		if (err)
			break;
		(*threads)[*nr].tid = (pid_t)strtol(entry->d_name, NULL, 10);
		look(pid, &(*threads)[*nr]);
		*nr += (*threads)[*nr].kind != THREAD_UNFIT;
	}
	closedir(dir);
	if (*nr)
		qsort(*threads, *nr, sizeof(**threads), by_kind);
	return err;
}
