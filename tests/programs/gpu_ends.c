// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Launches, then goes on or ends in the way named. All but `before` launch 100 kernels first and
 * wait for them.
 *
 *	gpu_ends return | exit | _exit | abort | term | kill	status 0, 5, 6, by SIGABRT, …
 *	gpu_ends running	returns while a kernel of 300 ms runs
 *	gpu_ends thread		the first thread ends, another launches 100 more and exits with 0
 *	gpu_ends atexit		launches once more from an exit handler, which must succeed
 *	gpu_ends late		launches once more from an exit handler that came before cuInit: 4
 *	gpu_ends exec		replaces itself by `gpu_ends return`
 *	gpu_ends fork		a child tries to launch (3), a second one runs `gpu_ends return`
 *	gpu_ends before		forks before any driver call; both launch
 *
 * Each process that launched prints its own account, with its process id.
 */
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include "tests/programs/gpu_app.h"

enum { WORK, LAST, LATE_THREAD, HANDLER, FORKED, BEFORE, NR_CHAINS };
static const char module_text[] = PTX(SPIN("work") SPIN("last"));
static struct account acc[NR_CHAINS] = {
	[WORK] = { "main;work;launch_work", "spin_work", 0, 0 },
	[LAST] = { "main;end_by;launch_last", "spin_last", 0, 0 },
	[LATE_THREAD] = { "go_on;work;launch_work", "spin_work", 0, 0 },
	[HANDLER] = { "*;at_exit;launch_work", "spin_work", 0, 0 },
	[FORKED] = { "main;end_by;forked_children;work;launch_work", "spin_work", 0, 0 },
	[BEFORE] = { "main;fork_before;work;launch_work", "spin_work", 0, 0 },
};
static CUcontext context;
static CUfunction work_kernel, last_kernel;
static CUstream stream;
static bool started;
static int expected_at_exit = -1;

static void print_account(void)
{
	printf("pid %d\n", (int)getpid());
	account__print(acc, NR_CHAINS);
	account__print_total(acc, NR_CHAINS);
	fflush(stdout);
}

static NOINLINE CUresult launch_work(struct account *a)
{
	CUresult r = app__launch(work_kernel, stream, 100000);

	account__add(a, r, 100000);
	KEEP_FRAME();
	return r;
}

static NOINLINE void work(struct account *a)
{
	for (int i = 0; i < 100; i++)
		launch_work(a);
	MUST(cuStreamSynchronize(stream));
	KEEP_FRAME();
}

static NOINLINE void launch_last(void)
{
	account__add(&acc[LAST], app__launch(last_kernel, stream, 300000000), 300000000);
	KEEP_FRAME();
}

static void prepare(void)
{
	CUmodule m;

	context = app__start();
	m = app__module(module_text);
	work_kernel = app__function(m, "spin_work");
	last_kernel = app__function(m, "spin_last");
	stream = app__stream();
	started = true;
}

static NOINLINE void at_exit(void)
{
	unsigned long failures = app_failures;
	CUresult r;

	if (!started || expected_at_exit < 0)
		return;
	r = launch_work(&acc[HANDLER]);
	app_failures = failures + (r != expected_at_exit);
	print_account();
	if (r == expected_at_exit)
		return;
	fprintf(stderr, "launch at exit: %d instead of %d\n", r, expected_at_exit);
	_exit(7);
}

static NOINLINE void *go_on(void *arg)
{
	(void)arg;
	MUST(cuCtxSetCurrent(context));
	usleep(100000);
	work(&acc[LATE_THREAD]);
	print_account();
	exit(app_failures != 0);
}

static int wait_for(pid_t pid)
{
	int status = -1;

	waitpid(pid, &status, 0);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

static NOINLINE int forked_children(char *self)
{
	pid_t pid = fork();
	int first, second;

	if (!pid)
		_exit(app__launch(work_kernel, stream, 1000));	/* 3: the device is the parent's */
	first = wait_for(pid);
	pid = fork();
	if (!pid) {
		execl(self, self, "return", (char *)NULL);
		_exit(126);
	}
	second = wait_for(pid);
	work(&acc[FORKED]);
	printf("children %d %d\n", first, second);
	print_account();
	return first != CU_NOT_INITIALIZED || second;
}

static NOINLINE int fork_before(void)
{
	pid_t pid = fork();
	int status;

	prepare();
	work(&acc[BEFORE]);
	if (!pid) {
		print_account();
		exit(app_failures != 0);
	}
	status = wait_for(pid);
	print_account();
	return app_failures || status;
}

/* Times are read by a thread of the library's: it may have to wait for a CPU, and not for long. */
static void let_times_be_read(const char *mode)
{
	static const char *const sudden[] = { "_exit", "abort", "term", "kill", "exec" };

	for (size_t i = 0; i < sizeof(sudden) / sizeof(sudden[0]); i++)
		if (!strcmp(mode, sudden[i]))
			usleep(200000);
}

static NOINLINE int end_by(const char *mode, char *self)
{
	pthread_t t;

	let_times_be_read(mode);
	if (!strcmp(mode, "exec")) {
		print_account();
		execl(self, self, "return", (char *)NULL);
		return 126;
	}
	if (!strcmp(mode, "fork")) {
		int status = forked_children(self);

		KEEP_FRAME();
		return status;
	}
	if (!strcmp(mode, "thread")) {
		if (pthread_create(&t, NULL, go_on, NULL))
			return 8;
		pthread_exit(NULL);
	}
	if (!strcmp(mode, "atexit") || !strcmp(mode, "late")) {
		expected_at_exit = !strcmp(mode, "late") ? CU_DEINITIALIZED : CU_OK;
		return 0;
	}
	if (strcmp(mode, "return"))
		launch_last();
	print_account();
	if (!strcmp(mode, "exit"))
		exit(5);
	if (!strcmp(mode, "_exit"))
		_exit(6);
	if (!strcmp(mode, "abort"))
		abort();
	if (!strcmp(mode, "term"))
		raise(SIGTERM);
	if (!strcmp(mode, "kill"))
		raise(SIGKILL);
	return app_failures != 0;
}

int main(int argc, char **argv)
{
	const char *mode = argc > 1 ? argv[1] : "return";
	struct rlimit none = { 0, 0 };
	int status;

	setrlimit(RLIMIT_CORE, &none);
	if (!strcmp(mode, "before")) {
		status = fork_before();
		KEEP_FRAME();
		return status;
	}
	if (!strcmp(mode, "late"))
		atexit(at_exit);
	prepare();
	if (!strcmp(mode, "atexit"))
		atexit(at_exit);
	work(&acc[WORK]);
	status = end_by(mode, argv[0]);
	KEEP_FRAME();
	return status;
}
