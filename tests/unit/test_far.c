// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Which file systems are far away, and that files of far ones read like any other. */
#include <errno.h>
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "loader/base/far.h"
#include "loader/file_systems.h"
#include "tests/unit/unit.h"

#define SIZE 300000

START_TEST(lines_of_mountinfo)
{
	static const char near_line[] = "36 35 98:0 /mnt1 /mnt2 rw,noatime master:1 - ext3 /dev/root rw\n";
	bool near = false;

	ck_assert(file_systems__parse(near_line, 36, &near));
	ck_assert(near);
	ck_assert(!file_systems__parse(near_line, 3, &near));
	ck_assert(!file_systems__parse(near_line, 35, &near));
	ck_assert(!file_systems__parse(near_line, 360, &near));
	ck_assert(file_systems__parse("7 1 0:3 / /x rw - nfs4 host:/x rw", 7, &near));
	ck_assert(!near);
	ck_assert(file_systems__parse("7 1 0:3 / /x rw - fuse.tmpfs tmpfs rw", 7, &near));
	ck_assert(!near);
	ck_assert(file_systems__parse("7 1 0:3 / /x rw - ext", 7, &near));
	ck_assert(!near);
	ck_assert(file_systems__parse("7 1 0:3 / /x rw - tmpfs", 7, &near));
	ck_assert(near);
	/* A name with blanks is escaped there: the first " - " is the kernel's. */
	ck_assert(file_systems__parse("7 1 0:3 / /x\\040-\\040tmpfs rw - fuse a rw", 7, &near));
	ck_assert(!near);
	ck_assert(!file_systems__parse("7 1 0:3 / /x rw", 7, &near));
	ck_assert(!file_systems__parse("", 0, &near));
}
END_TEST

static int file(void)
{
	static uint8_t bytes[SIZE];
	int fd = memfd_create("x", MFD_CLOEXEC);

	for (size_t i = 0; i < SIZE; i++)
		bytes[i] = (uint8_t)(i * 7 + i / 251);
	ck_assert_int_eq(write(fd, bytes, SIZE), SIZE);
	return fd;
}

/* All of it, in pieces of any size. */
static void same(int a, int b)
{
	static uint8_t x[SIZE + 10], y[SIZE + 10];
	ssize_t done = 0, n;

	while ((n = far__read(a, x + done, sizeof(x) - (size_t)done, (uint64_t)done)) > 0)
		done += n;
	ck_assert_int_eq(done, SIZE);
	ck_assert_int_eq(pread(b, y, sizeof(y), 0), SIZE);
	ck_assert_mem_eq(x, y, SIZE);
	ck_assert_int_eq(far__read(a, x, 10, SIZE - 4), 4);
	ck_assert_mem_eq(x, y + SIZE - 4, 4);
	ck_assert_int_eq(far__read(a, x, 10, SIZE), 0);
	ck_assert_int_eq(far__read(a, x, 10, UINT64_MAX), 0);
	ck_assert_int_eq(far__read(a, x, 0, 5), 0);
}

START_TEST(far_files_read_like_others)
{
	int plain = file(), handle = open("/proc/self/exe", O_PATH | O_CLOEXEC), far, own;
	char path[64], byte;

	ck_assert_int_eq(far__size(plain), SIZE);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", plain);
	own = open(path, O_PATH | O_CLOEXEC);
	far = far__open(own, 1, SIZE);
	ck_assert_int_ge(far, 0);
	close(own);
	same(far, plain);
	ck_assert_int_eq(far__size(far), SIZE);
	ck_assert_int_eq(far__size(plain), SIZE);
	/* Who doesn't know that it is far finds nothing, and waits for nobody. */
	ck_assert_int_eq(read(far, &byte, 1), 0);
	far__close(far__open(handle, 1, 10));	/* a second one of the same device */
	far__close(far);
	ck_assert_int_lt(far__read(far, &byte, 1, 0), 0);
	ck_assert_int_eq(far__size(far), -1);
	ck_assert_int_eq(far__size(open("/", O_RDONLY | O_DIRECTORY)), -1);
	ck_assert_int_eq(errno, EISDIR);
}
END_TEST

static pid_t child_of_ours(void)
{
	char path[64];
	int pid = 0;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/self/task/%d/children", (int)getpid());
	f = fopen(path, "r");
	if (f && fscanf(f, "%d", &pid) != 1)
		pid = 0;
	if (f)
		fclose(f);
	return pid;
}

/* It stands for a server that does not answer. */
START_TEST(nobody_waits_for_long)
{
	int plain = file(), far;
	char path[64], byte;
	pid_t reader;

	snprintf(path, sizeof(path), "/proc/self/fd/%d", plain);
	far = far__open(open(path, O_PATH | O_CLOEXEC), 1, SIZE);
	same(far, plain);
	reader = child_of_ours();
	ck_assert_int_gt(reader, 0);
	kill(reader, SIGSTOP);
	for (int i = 0; i < 100000; i++) {	/* one waits, the others know */
		if (far__read(far, &byte, 1, 0) >= 0 || errno != ETIMEDOUT)
			ck_abort_msg("%d: %s", i, strerror(errno));
	}
	ck_assert_int_eq(far__open(plain, 1, SIZE), -ETIMEDOUT);
	kill(reader, SIGCONT);
	for (int i = 0; i < 1000 && far__read(far, &byte, 1, 0) < 0; i++)
		usleep(10000);
	same(far, plain);
	kill(reader, SIGKILL);
	while (far__read(far, &byte, 1, 0) >= 0)
		;
	ck_assert_int_eq(errno, EPIPE);
}
END_TEST

/* A child whose memory at *at is there (with a 7 in it), or is only there when somebody answers. */
static pid_t child_with_memory(bool answered, void **at)
{
	struct uffdio_register all = { .mode = UFFDIO_REGISTER_MODE_MISSING };
	struct uffdio_api api = { .api = UFFD_API };
	int fd, ready[2];
	char done = 0;
	pid_t pid;

	*at = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	ck_assert_int_eq(pipe(ready), 0);
	pid = fork();
	if (pid) {
		close(ready[1]);
		ck_assert_int_eq(read(ready[0], &done, 1), 1);
		close(ready[0]);
		return done == 'y' ? pid : 0;
	}
	fd = answered ? 0 : (int)syscall(SYS_userfaultfd, O_CLOEXEC);
	all.range = (struct uffdio_range){ (uintptr_t)*at, 4096 };
	if (answered)
		*(volatile char *)*at = 7;
	else if (fd < 0 || ioctl(fd, UFFDIO_API, &api) || ioctl(fd, UFFDIO_REGISTER, &all))
		done = 'n';
	if (write(ready[1], done ? &done : "y", 1) == 1)
		pause();
	_exit(0);
}

START_TEST(memory_that_does_not_answer_hides_no_other)
{
	void *none, *some;
	pid_t silent = child_with_memory(false, &none), other = child_with_memory(true, &some);
	char byte = 0;

	if (!silent) {
		puts("skipped: there is no userfaultfd(2) here");
		kill(other, SIGKILL);
		return;
	}
	for (int i = 0; i < 3; i++) {
		ck_assert_int_eq(far__read_memory(silent, (uintptr_t)none, &byte, 1), -1);
		ck_assert_int_eq(errno, ETIMEDOUT);
		ck_assert_int_eq(far__read_memory(other, (uintptr_t)some, &byte, 1), 1);
		ck_assert_int_eq(byte, 7);
	}
	kill(silent, SIGKILL);
	kill(other, SIGKILL);
}
END_TEST

UNIT_MAIN("far", lines_of_mountinfo, far_files_read_like_others, nobody_waits_for_long,
	  memory_that_does_not_answer_hides_no_other)
