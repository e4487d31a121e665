// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The roots of processes: one descriptor each, and paths as they are seen from there. */
#include <fcntl.h>
#include <linux/types.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "loader/roots.h"
#include "tests/unit/unit.h"

static char dir[256];

/* A child in a root of its own, stopped there; with `apart` in a mount namespace of its own, too. */
static pid_t child_in(const char *root, bool apart)
{
	pid_t pid = fork();
	int status;

	if (pid == 0) {
		if ((apart && unshare(CLONE_NEWNS)) || chroot(root))
			_exit(1);
		raise(SIGSTOP);
		_exit(0);
	}
	ck_assert_int_eq(waitpid(pid, &status, WUNTRACED), pid);
	ck_assert(WIFSTOPPED(status));
	return pid;
}

static void end(pid_t pid)
{
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}

START_TEST(our_own)
{
	struct roots *r = roots__new();
	uint32_t own = roots__of(r, getpid());
	struct stat a, b;

	ck_assert_uint_ne(own, ROOTS_NONE);
	ck_assert_uint_eq(roots__of(r, getpid()), own);
	ck_assert_uint_eq(roots__of(r, getppid()), own);
	ck_assert_int_eq(fstat(roots__fd(r, own), &a), 0);
	ck_assert_int_eq(stat("/", &b), 0);
	ck_assert_uint_eq(a.st_ino, b.st_ino);
	ck_assert_str_eq(roots__path(r, own, "/usr/bin/x"), "/usr/bin/x");
	ck_assert_uint_eq(roots__of(r, 0x3ffffffe), ROOTS_NONE);
	ck_assert_int_eq(roots__fd(r, ROOTS_NONE), -1);
	ck_assert_int_eq(roots__fd(r, 77), -1);
	ck_assert_str_eq(roots__path(r, ROOTS_NONE, "/x"), "/x");
	roots__free(r);
	roots__free(NULL);
}
END_TEST

START_TEST(changed_roots)
{
	struct roots *r = roots__new();
	char path[300];
	struct stat st;
	uint32_t own = roots__of(r, getpid()), root, apart;
	pid_t pids[3];
	int fd;

	if (geteuid()) {
		printf("chroot needs root\n");
		roots__free(r);
		return;
	}
	snprintf(dir, sizeof(dir), "%s/roots.XXXXXX", getenv("TMPDIR") ?: "/tmp");
	ck_assert_ptr_nonnull(mkdtemp(dir));
	snprintf(path, sizeof(path), "%s/file", dir);
	fd = open(path, O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
	close(fd);
	pids[0] = child_in(dir, false);
	pids[1] = child_in(dir, false);
	pids[2] = child_in(dir, true);
	root = roots__of(r, pids[0]);
	ck_assert_uint_ne(root, ROOTS_NONE);
	ck_assert_uint_ne(root, own);
	ck_assert_uint_eq(roots__of(r, pids[1]), root);
	apart = roots__of(r, pids[2]);
	ck_assert_uint_ne(apart, root);
	for (int i = 0; i < 3; i++)
		end(pids[i]);
	/* they are gone, their roots aren't */
	ck_assert_int_eq(fstatat(roots__fd(r, root), "file", &st, 0), 0);
	ck_assert_int_eq(fstatat(roots__fd(r, apart), "file", &st, 0), 0);
	ck_assert_str_eq(roots__path(r, root, path), "/file");
	ck_assert_str_eq(roots__path(r, root, "/elsewhere"), "/elsewhere");
	snprintf(path, sizeof(path), "%sbeside/file", dir);
	ck_assert_str_eq(roots__path(r, root, path), path);
	roots__free(r);
	snprintf(path, sizeof(path), "%s/file", dir);
	unlink(path);
	rmdir(dir);
}
END_TEST

UNIT_MAIN("roots", our_own, changed_roots)
