// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Launches that may overlap, and all that can stand between them, in the order that the command line says.
 *
 *	gpu_runs WORD…
 *
 * a … d	a launch of spin_a … spin_d, of 1, 2, 4 and 8 times NS (5,000,000; the variable RUNS_NS)
 * A … D	the same as a programmatic dependent launch
 * a: A: …	the same by another thread
 * bad		a dependent launch that the driver refuses
 * 1 2 0	what follows goes into the first stream, the second, the default one
 * sync ctx event	waits for the stream, the context, an event behind all work
 * ctx2		waits for the context while another one is current
 * copy set host value wait	a copy to the device, a set, a host function, a wait for a value that is
 *		there, a wait for an event of the other stream
 * graph	a launch of a graph of two spin_b;	capture	the same two are captured once more
 * record	an event of the program's own
 * destroy	the stream is destroyed, and another one made
 * reset	the primary context is reset, and all made again
 * fork		a child launches "a A" and ends
 * race		four threads at once launch and wait in the three streams, and in one that they make and end
 * sleep idle	1 ms, 300 ms;	quit	ends the program
 * trap		inexact results are trapped from here on;	untrap	no more: none may have been noted
 * poke		in 50 ms another thread sends SIGUSR1, and launches spin_c in the second stream 50 ms later
 * WORD*N	N times; (, ) and )*N: what is between them, N times
 *
 * What the handler of SIGUSR1 does says RUNS_SIGNAL: jump (out of the word), launch (spin_d in the second
 * stream), fork.
 */
#include <ctype.h>
#include <setjmp.h>
#include <sys/wait.h>
#include "tests/programs/gpu_app.h"

static const char module_text[] = PTX(SPIN("a") SPIN("b") SPIN("c") SPIN("d"));
static CUfunction kernel[4];
static CUstream streams[3], stream;
static CUgraphExec graph;
static CUdeviceptr memory;
static CUevent events[2];
static uint64_t unit = 5000000;
static unsigned value = 1, traps;
static int now;
static pid_t first, forked;
static sigjmp_buf back;
static pthread_t poker;

static CUresult dependent(CUfunction f, uint64_t ns, unsigned threads)
{
	CUlaunchAttribute a = { .id = CU_ATTR_PDL, .value.allowed = 1 };
	CUlaunchConfig c = { 1, 1, 1, threads, 1, 1, 0, stream, &a, 1 };
	void *params[] = { &ns };

	return cuLaunchKernelEx(&c, f, params, NULL);
}

static void launch(char which)
{
	int i = tolower(which) - 'a';
	uint64_t ns = unit << i;

	if (islower(which))
		MUST(app__launch(kernel[i], stream, ns));
	else
		MUST(dependent(kernel[i], ns, 32));
}

static void *launch_there(void *which)
{
	CUcontext ctx;

	MUST(cuDevicePrimaryCtxRetain(&ctx, 0));
	MUST(cuCtxSetCurrent(ctx));
	launch(*(const char *)which);
	MUST(cuDevicePrimaryCtxRelease_v2(0));
	return NULL;
}

static void by_another(const char *which)
{
	pthread_t t;

	if (pthread_create(&t, NULL, launch_there, (void *)which) || pthread_join(t, NULL))
		exit(9);
}

#define RACE_TURNS 3000

static __thread CUstream there;

static void race_turn(unsigned *seed)
{
	unsigned what = (unsigned)rand_r(seed) % 100, which = what % 4;
	uint64_t ns = 1000u << which;
	CUlaunchAttribute a = { .id = CU_ATTR_PDL, .value.allowed = 1 };
	CUlaunchConfig c = { 1, 1, 1, 32, 1, 1, 0, there, &a, 1 };
	void *params[] = { &ns };

	if (what < 30)
		MUST(app__launch(kernel[which], there, ns));
	else if (what < 92)
		MUST(cuLaunchKernelEx(&c, kernel[which], params, NULL));
	else if (what < 94)
		MUST(cuStreamSynchronize(there));
	else if (what < 95)
		MUST(cuCtxSynchronize());
	else if (what < 96)
		MUST(cuStreamWaitEvent(there, events[0], 0));
	else if (what < 97)
		MUST(cuMemsetD8Async(memory, 0, 64, there));
}

static void *race(void *number)
{
	unsigned seed = (unsigned)(uintptr_t)number;
	CUstream own = NULL;
	CUcontext ctx;

	MUST(cuDevicePrimaryCtxRetain(&ctx, 0));
	MUST(cuCtxSetCurrent(ctx));
	for (int i = 0; i < RACE_TURNS; i++) {
		if (i % 16 == 0) {
			if (own)
				MUST(cuStreamDestroy_v2(own));
			own = app__stream();
			there = rand_r(&seed) % 4 ? streams[rand_r(&seed) % 3] : own;
		}
		race_turn(&seed);
	}
	MUST(cuStreamDestroy_v2(own));
	MUST(cuDevicePrimaryCtxRelease_v2(0));
	return NULL;
}

static void race_all(void)
{
	pthread_t t[4];

	MUST(cuEventRecord(events[0], streams[1]));
	for (uintptr_t i = 0; i < 4; i++)
		if (pthread_create(&t[i], NULL, race, (void *)(i + 1)))
			exit(9);
	for (int i = 0; i < 4; i++)
		pthread_join(t[i], NULL);
}

static CUgraphExec capture(void)
{
	CUgraphExec x;
	CUgraph g;

	MUST(cuStreamBeginCapture_v2(stream, 2));
	launch('b');
	launch('B');
	MUST(cuStreamEndCapture(stream, &g));
	MUST(cuGraphInstantiateWithFlags(&x, g, 0));
	return x;
}

static void set_up(void)
{
	CUmodule m = app__module(module_text);
	char name[] = "spin_a";

	for (int i = 0; i < 4; i++) {
		name[5] = (char)('a' + i);
		kernel[i] = app__function(m, name);
	}
	for (int i = 1; i < 3; i++)
		streams[i] = app__stream();
	for (int i = 0; i < 2; i++)
		MUST(cuEventCreate(&events[i], 0));
	MUST(cuMemAlloc_v2(&memory, 4096));
	graph = NULL;
	stream = streams[now = 1];
}

static void nothing(void *arg)
{
	(void)arg;
}

static void child(void)
{
	int pid = fork();

	if (!pid) {
		uint64_t ns = unit;

		app__launch(kernel[0], stream, ns);
		dependent(kernel[0], ns, 32);
		_exit(0);
	}
	waitpid(pid, NULL, 0);
}

static void on_signal(int sig)
{
	const char *what = getenv("RUNS_SIGNAL");

	(void)sig;
	if (!strcmp(what, "jump"))
		siglongjmp(back, 1);
	if (!strcmp(what, "fork")) {
		forked = fork();
		if (!forked)	/* what the driver has to say to it is no matter */
			close(2);
	} else
		MUST(app__launch(kernel[3], streams[2], unit));
}

static void *poke(void *thread)
{
	uint64_t ns = unit;
	CUcontext ctx;

	MUST(cuDevicePrimaryCtxRetain(&ctx, 0));
	MUST(cuCtxSetCurrent(ctx));
	usleep(50000);
	pthread_kill(*(pthread_t *)thread, SIGUSR1);
	usleep(50000);
	MUST(app__launch(kernel[2], streams[2], ns));
	return NULL;
}

static void start_poker(void)
{
	static pthread_t self;

	self = pthread_self();
	if (pthread_create(&poker, NULL, poke, &self))
		exit(9);
}

static void trap(bool on)
{
	if (on) {
		traps = __builtin_ia32_stmxcsr() & ~0x103fu;
		__builtin_ia32_ldmxcsr(traps);
	} else {
		app_failures += __builtin_ia32_stmxcsr() != traps;
		__builtin_ia32_ldmxcsr(traps | 0x1000);
	}
}

static void destroy(void)
{
	MUST(cuStreamDestroy_v2(stream));
	stream = streams[now] = app__stream();
}

static void wait_for_other(void)
{
	CUstream other = streams[now == 1 ? 2 : 1];

	MUST(cuEventRecord(events[1], other));
	MUST(cuStreamWaitEvent(stream, events[1], 0));
}

static void wait_for_event(void)
{
	MUST(cuEventRecord(events[0], stream));
	MUST(cuEventSynchronize(events[0]));
}

static void wait_for_context(void)
{
	CUcontext here, other;

	MUST(cuCtxGetCurrent(&here));
	MUST(cuCtxCreate_v2(&other, 0, 0));
	MUST(cuCtxSynchronize_v2(here));
	MUST(cuCtxDestroy_v2(other));
	MUST(cuCtxSetCurrent(here));
}

static bool is(const char *word, const char *what)
{
	return !strcmp(word, what);
}

static void waiting(const char *w)
{
	if (is(w, "sync"))
		MUST(cuStreamSynchronize(stream));
	else if (is(w, "ctx"))
		MUST(cuCtxSynchronize());
	else if (is(w, "ctx2"))
		wait_for_context();
	else if (is(w, "event"))
		wait_for_event();
	else if (is(w, "host"))
		MUST(cuLaunchHostFunc(stream, nothing, NULL));
	else if (is(w, "value"))
		MUST(cuStreamWaitValue32(stream, (CUdeviceptr)(uintptr_t)&value, 1, CU_WAIT_EQ));
	else if (is(w, "wait"))
		wait_for_other();
	else if (is(w, "sleep") || is(w, "idle"))
		usleep(is(w, "idle") ? 300000 : 1000);
	else
		exit(64);
}

static void other_work(const char *w)
{
	static char bytes[4096];

	if (is(w, "copy"))
		MUST(cuMemcpyHtoDAsync_v2(memory, bytes, sizeof(bytes), stream));
	else if (is(w, "set"))
		MUST(cuMemsetD8Async(memory, 0, sizeof(bytes), stream));
	else if (is(w, "graph") && graph)
		MUST(cuGraphLaunch(graph, stream));
	else if (is(w, "capture"))
		graph = capture();
	else if (is(w, "record"))
		MUST(cuEventRecord(events[0], stream));
	else
		waiting(w);
}

static void word(const char *w)
{
	if (strchr("abcdABCD", w[0]) && !w[1])
		launch(w[0]);
	else if (strchr("abcdABCD", w[0]) && w[1] == ':')
		by_another(w);
	else if (is(w, "bad"))
		app_failures += dependent(kernel[0], unit, 4096) == CU_OK;
	else if (isdigit(w[0]))
		stream = streams[now = w[0] - '0'];
	else if (is(w, "race"))
		race_all();
	else if (is(w, "quit"))
		exit(0);
	else if (is(w, "destroy"))
		destroy();
	else if (is(w, "fork"))
		child();
	else if (is(w, "poke"))
		start_poker();
	else if (is(w, "trap") || is(w, "untrap"))
		trap(is(w, "trap"));
	else if (is(w, "reset")) {
		MUST(cuDevicePrimaryCtxReset_v2(0));
		app__start();
		set_up();
	} else
		other_work(w);
}

static void word_to_end(const char *w)
{
	if (!sigsetjmp(back, 1))
		word(w);
	if (getpid() != first)
		_exit(0);
}

static int run(char **words, int from, int to)
{
	while (from < to) {
		char w[32], *star;
		int times = 1, end = from, depth = 0;

		do {		/* to the bracket that closes, or the word alone */
			depth += is(words[end], "(") - (words[end][0] == ')');
		} while (depth && ++end < to);
		snprintf(w, sizeof(w), "%s", words[end]);
		star = strchr(w, '*');
		if (star) {
			times = atoi(star + 1);
			*star = '\0';
		}
		while (times-- > 0)
			if (end > from)
				run(words, from + 1, end);
			else
				word_to_end(w);
		from = end + 1;
	}
	return 0;
}

int main(int argc, char **argv)
{
	if (getenv("RUNS_NS"))
		unit = strtoull(getenv("RUNS_NS"), NULL, 10);
	first = getpid();
	signal(SIGUSR1, on_signal);
	app__start();
	set_up();
	run(argv, 1, argc);
	if (poker)
		pthread_join(poker, NULL);
	if (forked > 0)
		waitpid(forked, NULL, 0);
	MUST(cuCtxSynchronize());
	return app_failures != 0;
}
