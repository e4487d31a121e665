// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Launches under conditions that a guest in the process may not expect.
 *
 *	gpu_hazards shared COUNT	two threads, one stream
 *	gpu_hazards other		on a stream whose context isn't current
 *	gpu_hazards streams COUNT	one launch on each of so many streams, all alive
 *	gpu_hazards churn COUNT		a new stream for each launch, destroyed at once
 *	gpu_hazards multi		one call that launches on two devices (STANDIN_DEVICES=2)
 *	gpu_hazards threads COUNT	so many threads, one after the other, five launches each
 *	gpu_hazards errno		errno survives a launch
 *	gpu_hazards failing		launches that the driver refuses
 *	gpu_hazards modules COUNT	a new module for each launch, unloaded at once
 *	gpu_hazards steady COUNT MS	one launch each MS milliseconds
 *	gpu_hazards gone		waits put into streams, and by a thread, whose context is gone
 *	gpu_hazards inside FIFO		a list of launches while another thread is inside of a launch into
 *					the same stream (STANDIN_GATE=cuLaunchKernel:FIFO)
 * With a guest that raises SIGUSR1 inside a launch:
 *	gpu_hazards jump | nested | above | forked	what the handler does: jumps out of it,
 *			launches, launches on a stack of its own above the thread's, forks
 *
 * Prints what the driver accepted, and any difference from what it ought to have been.
 */
#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>

#include "tests/programs/gpu_app.h"

static const char module_text[] = PTX(SPIN("one") SPIN("two") SPIN("inner"));
static struct account acc[] = { { "", "", 0, 0 } };
static CUcontext context;
static CUmodule module;
static CUstream stream, other_stream;
static CUfunction one, two, inner;
static sigjmp_buf back;
static const char *mode;
static pid_t first, forked;
static unsigned long wrong;

static NOINLINE void launch(CUfunction f, CUstream s, uint64_t ns)
{
	account__add(&acc[0], app__launch(f, s, ns), ns);
	KEEP_FRAME();
}

static void *share(void *arg)
{
	MUST(cuCtxSetCurrent(context));
	for (long i = 0; i < (long)arg; i++)
		__atomic_add_fetch(&acc[0].launches, app__launch(two, stream, 1000) == CU_OK,
				   __ATOMIC_RELAXED);
	return NULL;
}

static void shared(long count)
{
	pthread_t thread;

	pthread_create(&thread, NULL, share, (void *)count);
	for (long i = 0; i < count; i++)
		__atomic_add_fetch(&acc[0].launches, app__launch(one, stream, 1000) == CU_OK,
				   __ATOMIC_RELAXED);
	pthread_join(thread, NULL);
}

/* Three launches before the stream's own context was ever current for one, one there, three more. */
static void other(void)
{
	CUcontext second;

	MUST(cuCtxCreate_v2(&second, 0, 0));
	for (int i = 0; i < 3; i++)
		launch(one, stream, 10000);
	MUST(cuCtxSetCurrent(context));
	launch(one, stream, 10000);
	MUST(cuCtxSetCurrent(second));
	for (int i = 0; i < 3; i++)
		launch(one, stream, 10000);
	MUST(cuStreamSynchronize(stream));
}

static void many_streams(long count)
{
	for (long i = 0; i < count; i++) {
		CUstream s = app__stream();

		launch(one, s, 1000);
		if (i % 50 == 49)
			MUST(cuCtxSynchronize());
	}
}

static void churn(long count)
{
	for (long i = 0; i < count; i++) {
		CUstream s = app__stream();

		launch(one, s, 1000);
		if (i % 2)
			MUST(cuStreamSynchronize(s));
		MUST(cuStreamDestroy_v2(s));
	}
}

static void multi(void)
{
	CUmultiDeviceLaunch list[2];
	uint64_t ns = 10000;
	void *params[] = { &ns };
	CUcontext second;

	memset(list, 0, sizeof(list));
	list[0].stream = stream;
	list[0].func = one;
	MUST(cuDevicePrimaryCtxRetain(&second, 1));
	MUST(cuCtxSetCurrent(second));
	list[1].stream = app__stream();
	list[1].func = app__function(app__module(module_text), "spin_two");
	for (int i = 0; i < 2; i++) {
		list[i].gridX = 7 + (unsigned int)i;
		list[i].gridY = list[i].gridZ = 1;
		list[i].blockX = 32;
		list[i].blockY = list[i].blockZ = 1;
		list[i].params = params;
	}
	for (int i = 0; i < 5; i++)
		if (!cuLaunchCooperativeKernelMultiDevice(list, 2, 0))
			acc[0].launches += 2;
	MUST(cuCtxSynchronize());
}

static void *five(void *arg)
{
	CUstream s = arg;

	MUST(cuCtxSetCurrent(context));
	for (int i = 0; i < 5; i++)
		launch(one, s, 1000);
	return NULL;
}

static void many_threads(long count)
{
	for (long i = 0; i < count; i++) {
		pthread_t thread;

		if (pthread_create(&thread, NULL, five, stream))
			exit(9);
		pthread_join(thread, NULL);
		if (i % 20 == 19)
			MUST(cuStreamSynchronize(stream));
	}
}

static void keep_errno(void)
{
	for (int i = 0; i < 200; i++) {
		errno = 1000 + i;
		launch(one, i % 2 ? stream : NULL, 1000);
		wrong += errno != 1000 + i;
		errno = 77;
		MUST(cuStreamSynchronize(stream));
		wrong += errno != 77;
	}
}

static void failing(void)
{
	uint64_t ns = 1000;
	void *params[] = { &ns };

	for (int i = 0; i < 10; i++) {
		launch(one, stream, 1000);
		wrong += cuLaunchKernel(one, 0, 1, 1, 32, 1, 1, 0, stream, params, NULL) !=
			 CU_INVALID_VALUE;
		wrong += cuLaunchKernel(NULL, 1, 1, 1, 32, 1, 1, 0, stream, params, NULL) == CU_OK;
		wrong += cuLaunchKernelEx(NULL, one, params, NULL) == CU_OK;
	}
}

static void modules(long count)
{
	for (long i = 0; i < count; i++) {
		CUmodule m = app__module(i % 2 ? PTX(SPIN("left")) : PTX(SPIN("right")));
		CUfunction f = app__function(m, i % 2 ? "spin_left" : "spin_right");

		launch(f, stream, 1000);
		launch(one, stream, 1000);
		MUST(cuStreamSynchronize(stream));
		MUST(cuModuleUnload(m));
	}
}

static void steady(long count, long ms)
{
	for (long i = 0; i < count; i++) {
		launch(one, stream, 20000);
		usleep((useconds_t)ms * 1000);
	}
	MUST(cuStreamSynchronize(stream));
}

static void nothing(void *arg)
{
	(void)arg;
}

/* It stays the current one of another thread. */
static void *destroy(void *arg)
{
	MUST(cuCtxDestroy_v2(arg));
	return NULL;
}

static void gone(void)
{
	CUdeviceptr word;
	pthread_t thread;
	CUcontext second;
	CUstream s;

	MUST(cuMemAlloc_v2(&word, 4));
	MUST(cuMemsetD8_v2(word, 1, 4));
	MUST(cuCtxCreate_v2(&second, 0, 0));
	s = app__stream();
	launch(one, stream, 1000);
	pthread_create(&thread, NULL, destroy, second);
	pthread_join(thread, NULL);
	wrong += cuStreamWaitValue32_v2(s, word, 1, CU_WAIT_GEQ) != CU_CONTEXT_IS_DESTROYED;
	wrong += cuLaunchHostFunc(s, nothing, NULL) != CU_CONTEXT_IS_DESTROYED;
	wrong += cuLaunchHostFunc(NULL, nothing, NULL) != CU_CONTEXT_IS_DESTROYED;
	MUST(cuLaunchHostFunc(stream, nothing, NULL));
	MUST(cuStreamWaitValue32_v2(stream, word, 1, CU_WAIT_GEQ));
	MUST(cuCtxSetCurrent(context));
}

static void *launch_outer(void *arg)
{
	(void)arg;
	MUST(cuCtxSetCurrent(context));
	launch(one, stream, 10000);
	return NULL;
}

/* Another thread, which is inside of the driver's call by now (STANDIN_GATE). */
static pthread_t launch_at_gate(const char *fifo)
{
	char ready[4096];
	pthread_t thread;

	snprintf(ready, sizeof(ready), "%s.ready", fifo);
	pthread_create(&thread, NULL, launch_outer, NULL);
	while (access(ready, F_OK))
		usleep(100);
	return thread;
}

static void inside(const char *fifo)
{
	uint64_t ns = 10000;
	void *params[] = { &ns };
	CUmultiDeviceLaunch list = { two, 1, 1, 1, 32, 1, 1, 0, stream, params };
	pthread_t thread;
	FILE *f;

	thread = launch_at_gate(fifo);
	MUST(cuLaunchCooperativeKernelMultiDevice(&list, 1, 0));
	acc[0].launches++;
	f = fopen(fifo, "we");
	wrong += !f || fputc('x', f) < 0 || fclose(f);
	pthread_join(thread, NULL);
}

/* A thread is ended inside the driver's call; later ones in the same stream are none of its business. */
static void ended(const char *fifo)
{
	uint64_t ns = 1000;
	void *params[] = { &ns };
	CUmultiDeviceLaunch list = { two, 1, 1, 1, 32, 1, 1, 0, stream, params };
	pthread_t thread;
	void *result;

	MUST(cuLaunchCooperativeKernelMultiDevice(&list, 1, 0));
	acc[0].launches++;
	thread = launch_at_gate(fifo);
	pthread_cancel(thread);
	pthread_join(thread, &result);
	wrong += result != PTHREAD_CANCELED;
	usleep(1500000);
	for (int i = 0; i < 100; i++) {
		launch(one, stream, 1000);
		MUST(cuStreamSynchronize(stream));
	}
}

/* The program has inexact results trapped, and looks at what was sticky. */
static void traps(void)
{
	unsigned int own = __builtin_ia32_stmxcsr() & ~0x103fu;

	__builtin_ia32_ldmxcsr(own);
	for (int i = 0; i < 200; i++)
		launch(one, stream, 1000);
	MUST(cuStreamSynchronize(stream));
	wrong += __builtin_ia32_stmxcsr() != own;
	__builtin_ia32_ldmxcsr(own | 0x1000);
}

static void on_signal(int sig)
{
	(void)sig;
	if (!strcmp(mode, "jump"))
		siglongjmp(back, 1);
	if (!strcmp(mode, "forked")) {
		forked = fork();
		return;
	}
	launch(inner, other_stream, 5000);
}

/* A thread whose stack lies below the signal stack. */
static void *signalled(void *arg)
{
	volatile int jumped = 0;

	if (arg) {
		const stack_t ss = { .ss_sp = arg, .ss_size = 1 << 16 };

		sigaltstack(&ss, NULL);
	}
	MUST(cuCtxSetCurrent(context));
	for (volatile int i = 0; i < 50; i++) {
		if (sigsetjmp(back, 1))
			jumped++;
		else
			launch(one, stream, 5000);
	}
	if (getpid() != first)
		_exit(0);
	printf("jumped %d\n", jumped);
	return NULL;
}

static void with_signals(void)
{
	struct sigaction act = { .sa_handler = on_signal,
				 .sa_flags = strcmp(mode, "above") ? 0 : SA_ONSTACK };
	char *area = mmap(NULL, 2 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	pthread_attr_t attr;
	pthread_t thread;

	sigaction(SIGUSR1, &act, NULL);
	pthread_attr_init(&attr);
	pthread_attr_setstack(&attr, area, 1 << 20);
	pthread_create(&thread, &attr, signalled, strcmp(mode, "above") ? NULL : area + (1 << 20));
	pthread_join(thread, NULL);
}

int main(int argc, char **argv)
{
	long count = argc > 2 ? atol(argv[2]) : 1000;
	int status = 0;

	mode = argc > 1 ? argv[1] : "";
	first = getpid();
	context = app__start();
	module = app__module(module_text);
	one = app__function(module, "spin_one");
	two = app__function(module, "spin_two");
	inner = app__function(module, "spin_inner");
	stream = app__stream();
	other_stream = app__stream();
	if (!strcmp(mode, "shared"))
		shared(count);
	else if (!strcmp(mode, "other"))
		other();
	else if (!strcmp(mode, "streams"))
		many_streams(count);
	else if (!strcmp(mode, "churn"))
		churn(count);
	else if (!strcmp(mode, "multi"))
		multi();
	else if (!strcmp(mode, "threads"))
		many_threads(count);
	else if (!strcmp(mode, "errno"))
		keep_errno();
	else if (!strcmp(mode, "failing"))
		failing();
	else if (!strcmp(mode, "modules"))
		modules(count);
	else if (!strcmp(mode, "steady"))
		steady(count, argc > 3 ? atol(argv[3]) : 1);
	else if (!strcmp(mode, "gone"))
		gone();
	else if (!strcmp(mode, "inside"))
		inside(argv[2]);
	else if (!strcmp(mode, "traps"))
		traps();
	else if (!strcmp(mode, "ended"))
		ended(argv[2]);
	else
		with_signals();
	if (forked > 0 && (waitpid(forked, &status, 0) != forked || status))
		wrong++;
	MUST(cuCtxSynchronize());
	printf("accepted %lu, wrong %lu\n", acc[0].launches, wrong);
	return wrong != 0;
}
