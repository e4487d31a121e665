// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "loader/base/proc.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "tests/unit/unit.h"

/* Fields 4 to 52 of a process, as a kernel wrote them. */
#define REST " 1 4242 4242 34816 4242 4194304 112 0 0 0 3 1 0 0 20 0 1 0 98765 2506752 210 " \
	     "18446744073709551615 1 1 0 0 0 0 65536 3670020 1266777851 0 0 0 17 0 0 0 0 0 0 0 0 0 0 " \
	     "0 0 0 0\n"

START_TEST(names_may_hold_anything)
{
	static const char *const names[] = {
		"sh", "", ")", "(", "a) S 7 (b", ") Z 9", " ", "a\nTgid: 5", "\xff\x80",
		"((((((((((((((", "x (y) z",
	};
	struct proc_stat stat;

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		char data[512];

		snprintf(data, sizeof(data), "4242 (%s) S" REST, names[i]);
		ck_assert_int_eq(proc__parse_stat(data, &stat), 0);
		ck_assert_str_eq(stat.name, names[i]);
		ck_assert_int_eq(stat.state, 'S');
		ck_assert_int_eq(stat.parent, 1);
		ck_assert_uint_eq(stat.started, 98765);
		ck_assert(!stat.kernel && !stat.ending);
	}
}
END_TEST

START_TEST(flags)
{
	struct proc_stat stat;

	ck_assert_int_eq(proc__parse_stat("7 (a) D 1 7 7 0 -1 4194308 1 0 0 0 3 1 0 0 20 0 1 0 9", &stat), 0);
	ck_assert(stat.ending && !stat.kernel);
	ck_assert_int_eq(proc__parse_stat("7 (a) S 2 0 0 0 -1 2129984 0 0 0 0 3 1 0 0 20 0 1 0 9", &stat), 0);
	ck_assert(stat.kernel && !stat.ending);
}
END_TEST

START_TEST(long_names_are_cut)
{
	char data[1024], name[200];
	struct proc_stat stat;

	memset(name, 'n', sizeof(name));
	name[sizeof(name) - 1] = '\0';
	snprintf(data, sizeof(data), "4242 (%s) R" REST, name);
	ck_assert_int_eq(proc__parse_stat(data, &stat), 0);
	ck_assert_uint_eq(strlen(stat.name), PROC_NAME - 1);
	ck_assert_int_eq(stat.state, 'R');
}
END_TEST

/* Every beginning of a line either has all that is wanted, or is refused. */
START_TEST(what_is_cut_is_refused)
{
	const char whole[] = "4242 (a b) S" REST;
	const size_t enough = (size_t)(strstr(whole, "98765") - whole);
	struct proc_stat stat;
	char data[sizeof(whole)];

	for (size_t len = 0; len < sizeof(whole); len++) {
		memcpy(data, whole, len);
		data[len] = '\0';
		ck_assert_int_eq(proc__parse_stat(data, &stat), len > enough ? 0 : -EBADMSG);
	}
	ck_assert_int_eq(proc__parse_stat(")(", &stat), -EBADMSG);
}
END_TEST

START_TEST(numbers_of_a_status_line)
{
	static const struct {
		const char *line, *field;
		int err;
		uint64_t value;
	} rows[] = {
		{ "Seccomp:\t2\n", "Seccomp", 0, 2 },
		{ "Seccomp:\t0", "Seccomp", 0, 0 },
		{ "Tgid: 17", "Tgid", 0, 17 },
		{ "FDSize:18446744073709551615\n", "FDSize", 0, UINT64_MAX },
		{ "Seccomp_filters:\t1\n", "Seccomp", -ENODATA, 0 },
		{ "Seccomp:\n", "Seccomp", -ENODATA, 0 },
		{ "Seccomp:\t\n", "Seccomp", -ENODATA, 0 },
		{ "Seccomp:\t-1\n", "Seccomp", -ENODATA, 0 },
		{ "Seccomp:\tx\n", "Seccomp", -ENODATA, 0 },
		{ "NSTgid:\t3\n", "Tgid", -ENODATA, 0 },
		{ "Name:\tTgid: 5\n", "Tgid", -ENODATA, 0 },
		{ "Tg", "Tgid", -ENODATA, 0 },
		{ "", "Tgid", -ENODATA, 0 },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		uint64_t value = 0;

		ck_assert_msg(proc__parse_number(rows[i].line, rows[i].field, &value) == rows[i].err &&
			      value == rows[i].value, "row %zu: %llu", i, (unsigned long long)value);
	}
}
END_TEST

START_TEST(this_process)
{
	struct proc_stat stat;
	struct timespec now;
	double age;

	prctl(PR_SET_NAME, "a) Z (b");
	ck_assert_int_eq(proc__stat(getpid(), 0, &stat), 0);
	ck_assert_str_eq(stat.name, "a) Z (b");
	ck_assert_int_eq(stat.state, 'R');
	ck_assert_int_eq(stat.parent, getppid());
	ck_assert(!stat.kernel);
	clock_gettime(CLOCK_BOOTTIME, &now);
	age = (double)now.tv_sec - (double)stat.started / (double)sysconf(_SC_CLK_TCK);
	/* check ends a case after two minutes. */
	ck_assert(age > -1 && age < 600);
}
END_TEST

static void *sleeper(void *arg)
{
	pid_t *tid = arg;

	prctl(PR_SET_NAME, "sleeper");
	__atomic_store_n(tid, (pid_t)syscall(SYS_gettid), __ATOMIC_RELEASE);
	for (;;)
		pause();
	return NULL;
}

/* Another thread's is not the first one's. */
START_TEST(a_thread_of_it)
{
	struct proc_stat stat;
	pthread_t thread;
	pid_t tid = 0, at;

	prctl(PR_SET_NAME, "first");
	ck_assert_int_eq(pthread_create(&thread, NULL, sleeper, &tid), 0);
	do {
		at = __atomic_load_n(&tid, __ATOMIC_ACQUIRE);
		ck_assert_int_eq(proc__stat(getpid(), at, &stat), 0);
	} while (!at || strcmp(stat.name, "sleeper") || stat.state != 'S');
	ck_assert_int_eq(proc__stat(getpid(), 0, &stat), 0);
	ck_assert_str_eq(stat.name, "first");
}
END_TEST

/* Its states up to when nothing is left of it. */
START_TEST(a_child)
{
	struct proc_stat stat, first;
	siginfo_t info;
	uint64_t n;
	pid_t pid = fork();

	if (!pid)
		for (;;)
			pause();
	ck_assert_int_eq(proc__stat(pid, 0, &first), 0);
	ck_assert_int_eq(first.parent, getpid());
	ck_assert(!first.ending);
	kill(pid, SIGSTOP);
	ck_assert_int_eq(waitid(P_PID, (id_t)pid, &info, WSTOPPED), 0);
	ck_assert_int_eq(proc__stat(pid, 0, &stat), 0);
	ck_assert_int_eq(stat.state, 'T');
	ck_assert_uint_eq(stat.started, first.started);
	kill(pid, SIGKILL);
	ck_assert_int_eq(waitid(P_PID, (id_t)pid, &info, WEXITED | WNOWAIT), 0);
	ck_assert_int_eq(proc__stat(pid, 0, &stat), 0);
	ck_assert_int_eq(stat.state, 'Z');
	ck_assert(stat.ending);
	waitpid(pid, NULL, 0);
	ck_assert_int_eq(proc__stat(pid, 0, &stat), -ENOENT);
	ck_assert_int_eq(proc__number(pid, "Tgid", &n), -ENOENT);
}
END_TEST

START_TEST(numbers_of_this_process)
{
	uint64_t n;

	ck_assert_int_eq(proc__number(getpid(), "Tgid", &n), 0);
	ck_assert_uint_eq(n, (uint64_t)getpid());
	ck_assert_int_eq(proc__number(getpid(), "FDSize", &n), 0);
	ck_assert_uint_ge(n, 3);
	ck_assert_int_eq(proc__number(getpid(), "NoSuchField", &n), -ENODATA);
	ck_assert_int_eq(proc__number(getpid(), "Name", &n), -ENODATA);
}
END_TEST

/* The kernel's own: kthreadd is process 2 of the machine, which is not visible from every container. */
START_TEST(threads_of_the_kernel)
{
	struct proc_stat stat;

	if (!proc__stat(2, 0, &stat) && !strcmp(stat.name, "kthreadd"))
		ck_assert(stat.kernel);
}
END_TEST

UNIT_MAIN("proc", names_may_hold_anything, flags, long_names_are_cut, what_is_cut_is_refused,
	  numbers_of_a_status_line, this_process, a_thread_of_it, a_child, numbers_of_this_process,
	  threads_of_the_kernel)
