// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Which threads are chosen by what /proc says of them, and by the names of functions they are in. */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "loader/tracer/exports.h"
#include "loader/tracer/libc.h"
#include "loader/tracer/libc_calls.h"
#include "loader/tracer/space.h"
#include "loader/tracer/threads.h"
#include "tests/unit/unit.h"

static enum thread_kind kind_of(const char *line)
{
	struct thread_choice choice;
	int fd;

	return threads__classify(line, &choice, &fd);
}

/* A line of /proc/PID/syscall: see proc(5). */
static enum thread_kind kind_of_call(long nr, unsigned long a, unsigned long b, unsigned long c,
				     unsigned long d, unsigned long e)
{
	char line[256];

	snprintf(line, sizeof(line), "%ld 0x%lx 0x%lx 0x%lx 0x%lx 0x%lx 0x0 0x7ffe1230 0x7f0012\n", nr,
		 a, b, c, d, e);
	return kind_of(line);
}

START_TEST(calls)
{
	struct thread_choice choice;
	int fd;

	/* FUTEX_WAIT, _WAIT_BITSET, private and not; then with a time limit; then FUTEX_LOCK_PI. */
	ck_assert_int_eq(kind_of_call(SYS_futex, 0x1000, 0, 2, 0, 0), THREAD_ASLEEP);
	ck_assert_int_eq(kind_of_call(SYS_futex, 0x1000, 128, 2, 0, 0), THREAD_ASLEEP);
	ck_assert_int_eq(kind_of_call(SYS_futex, 0x1000, 128 + 256 + 9, 2, 0, 0), THREAD_ASLEEP);
	ck_assert_int_eq(kind_of_call(SYS_futex, 0x1000, 128, 2, 0x2000, 0), THREAD_TIMED);
	ck_assert_int_eq(kind_of_call(SYS_futex, 0x1000, 6, 2, 0, 0), THREAD_UNFIT);
	ck_assert_int_eq(kind_of_call(SYS_epoll_wait, 3, 0x1000, 1, -1ul, 0), THREAD_UNFIT);
	ck_assert_int_eq(kind_of_call(SYS_recvfrom, 3, 0x1000, 1, 0, 0), THREAD_UNFIT);
	ck_assert_int_eq(kind_of_call(SYS_write, 3, 0x1000, 1, 0, 0), THREAD_UNFIT);
	ck_assert_int_eq(kind_of_call(SYS_ioctl, 3, 0x1000, 1, 0, 0), THREAD_UNFIT);
	ck_assert_int_eq(kind_of_call(SYS_wait4, -1ul, 0, 0, 0, 0), THREAD_WAITING);
	ck_assert_int_eq(kind_of_call(1000000, 0, 0, 0, 0, 0), THREAD_UNFIT);
	ck_assert_int_eq(kind_of("running\n"), THREAD_RUNNING);
	/* Asleep, but in no call: a page fault. Then what is no such line. */
	ck_assert_int_eq(kind_of("-1 0x7ffe1230 0x7f0012\n"), THREAD_UNFIT);
	ck_assert_int_eq(kind_of(""), THREAD_UNFIT);
	ck_assert_int_eq(kind_of("202 0x0\n"), THREAD_UNFIT);
	ck_assert_int_eq(threads__classify("0 0x11 0x1 0x2 0x3 0x4 0x5 0x7ffe1230 0x7f0012", &choice, &fd),
			 THREAD_WAITING);
	ck_assert_int_eq(fd, 0x11);
	ck_assert_uint_eq(choice.sp, 0x7ffe1230);
	ck_assert_uint_eq(choice.pc, 0x7f0012);
}
END_TEST

START_TEST(names)
{
	static const char *const fine[] = {
		"pthread_cond_wait", "read", "__read", "__poll", "memcpy", "__memcpy", "strlen",
		"__libc_start_main", "clock_nanosleep", "wait4", "accept", "wmemset",
	};
	static const char *const none[] = {
		"malloc", "free", "calloc", "__libc_malloc", "memalign", "strdup", "dlopen", "dlsym",
		"dl_iterate_phdr", "fork", "__libc_fork", "exit", "atexit", "__cxa_atexit",
		"pthread_create", "pthread_once", "fgets", "_IO_getc", "fopen", "setlocale", "getaddrinfo",
		"", "_", "rea", "reads", "zzz",
	};
	static const char *const allocators[] = {
		"malloc", "_Znwm", "_ZdlPv", "je_malloc", "mi_free", "tc_malloc", "tcmalloc_x", "free",
		"_rjem_je_arena",
	};

	for (size_t i = 0; i < sizeof(fine) / sizeof(fine[0]); i++)
		ck_assert_msg(libc_calls__harmless(fine[i]), "%s", fine[i]);
	for (size_t i = 0; i < sizeof(none) / sizeof(none[0]); i++)
		ck_assert_msg(!libc_calls__harmless(none[i]), "%s", none[i]);
	for (size_t i = 0; i < sizeof(allocators) / sizeof(allocators[0]); i++)
		ck_assert_msg(libc_calls__allocates(allocators[i]), "%s", allocators[i]);
	ck_assert(!libc_calls__allocates("main"));
	ck_assert(libc_calls__is_start("__libc_start_main"));
}
END_TEST

/* Compared with what the dynamic loader says. */
START_TEST(exported_symbols)
{
	static const char *const wanted[] = { "getpid", "pthread_create", "__errno_location", "qsort" };
	struct exports e;
	uint64_t address;
	Dl_info info;
	int fd;

	ck_assert_int_ne(dladdr(dlsym(RTLD_DEFAULT, "getpid"), &info), 0);
	fd = open(info.dli_fname, O_RDONLY);
	ck_assert_int_eq(exports__open(&e, fd), 0);
	ck_assert(exports__is_called(&e, "libc.so.6"));
	ck_assert(!exports__is_called(&e, "libc.so"));
	for (size_t i = 0; i < sizeof(wanted) / sizeof(wanted[0]); i++) {
		char *at = dlsym(RTLD_DEFAULT, wanted[i]);

		ck_assert_int_eq(exports__find(&e, wanted[i], &address), 0);
		ck_assert_uint_eq(address, (uint64_t)(at - (char *)info.dli_fbase));
	}
	ck_assert_int_eq(exports__find(&e, "no_such_function", &address), -ENOENT);
	exports__close(&e);
	close(fd);
}
END_TEST

/* Its own C library, as another process has it at the same place: a forked one. */
START_TEST(finds_the_library)
{
	char why[128] = "";
	struct space s;
	struct libc l;
	pid_t child = fork();

	if (!child) {
		pause();
		_exit(0);
	}
	ck_assert_int_eq(space__open(&s, child), 0);
	ck_assert_int_eq(libc__find(&l, &s, why, sizeof(why)), 0);
	ck_assert_uint_eq(l.dlopen, (uint64_t)(uintptr_t)dlsym(RTLD_DEFAULT, "dlopen"));
	ck_assert_mem_eq((void *)(uintptr_t)l.syscall, "\x0f\x05\xc3", 3);
	ck_assert_mem_eq((void *)(uintptr_t)l.restore_rt, "\x48\xc7\xc0\x0f\0\0\0\x0f\x05", 9);
	ck_assert_int_eq(libc__verify(&l, &s), 0);
	ck_assert_uint_ne(s.program, 0);
	ck_assert_uint_ne(s.loader, 0);
	ck_assert_ptr_nonnull(space__area(&s, (uint64_t)(uintptr_t)why));
	ck_assert(space__area(&s, (uint64_t)(uintptr_t)why)->main_stack);
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
	ck_assert_int_ne(libc__verify(&l, &s), 0);
	space__free(&s);
}
END_TEST

UNIT_MAIN("tracer_choice", calls, names, exported_symbols, finds_the_library)
