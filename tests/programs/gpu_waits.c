// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Waits for the device by every call that does so, each from a function of its own, and times them itself.
 *
 *	gpu_waits [ROUNDS] [NS]		default 10 rounds, kernels of 200 us
 *	gpu_waits threads N ROUNDS NS	so many threads at once, each with a stream and lengths of its own
 *	gpu_waits often ROUNDS		waits of no length, as fast as it can, and a long one now and then
 *	gpu_waits held [THREADS]	each thread waits for what is released when standard input ends; says
 *					"ready PID" when all are inside
 *	gpu_waits errors		waits that fail: says what each call returned
 *
 * At the end one line for each wait: wait PATH TID BEGIN END, CLOCK_MONOTONIC ns around the call; and
 * "nowait PATH", for what is no wait.
 */
#include <sys/syscall.h>

#include "tests/programs/gpu_app.h"

#define MAX_WAITS 400000
#define MAX_THREADS 16

static struct one {
	const char *path;
	int tid;
	int64_t begin, end;
} *waits;

static unsigned long nr_waits;
static CUcontext context;
static CUmodule module;
static CUstream stream;
static CUfunction kernel;
static CUdeviceptr memory;
static CUevent event;
static char *pinned, pageable[4096];
static uint64_t length = 200000;
static volatile uint32_t *word;
static int inside;

static int own_tid(void)
{
	return (int)syscall(SYS_gettid);
}

static void add(const char *path, int64_t begin)
{
	unsigned long i = __atomic_fetch_add(&nr_waits, 1, __ATOMIC_RELAXED);

	if (i < MAX_WAITS)
		waits[i] = (struct one){ path, own_tid(), begin, app__now() };
}

/* The stream `in` has work, then `call`. */
#define WAIT(name, in, call)									\
	static NOINLINE void name(void)								\
	{											\
		int64_t begin;									\
												\
		MUST(app__launch(kernel, in, length));						\
		begin = app__now();								\
		MUST(call);									\
		add("main;all;" #name, begin);							\
	}

WAIT(by_stream, stream, cuStreamSynchronize(stream))
WAIT(by_stream_own, stream, cuStreamSynchronize_ptsz(stream))
WAIT(by_context, stream, cuCtxSynchronize())
WAIT(by_this_context, stream, cuCtxSynchronize_v2(context))
WAIT(by_copy, NULL, cuMemcpyDtoH_v2(pinned, memory, 4096))
WAIT(by_copy_back, NULL, cuMemcpyHtoD_v2(memory, pinned, 4096))
WAIT(by_any_copy, NULL, cuMemcpy((CUdeviceptr)(uintptr_t)pinned, memory, 64))
WAIT(by_cpu, stream, cuMemcpyDtoHAsync_v2(pageable, memory, 4096, stream))
WAIT(by_any_cpu, stream, cuMemcpyAsync((CUdeviceptr)(uintptr_t)pageable, memory, 4096, stream))

static NOINLINE void by_event(void)
{
	int64_t begin;

	MUST(app__launch(kernel, stream, length));
	MUST(cuEventRecord(event, stream));
	begin = app__now();
	MUST(cuEventSynchronize(event));
	add("main;all;by_event", begin);
}

static NOINLINE void by_nothing(void)
{
	int64_t begin = app__now();

	MUST(cuStreamSynchronize(stream));
	add("main;all;by_nothing", begin);
}

/* What asks, and what only queues, waits for nothing. */
static NOINLINE void asking(void)
{
	MUST(app__launch(kernel, stream, length));
	while (cuStreamQuery(stream) == CU_NOT_READY)
		;
	MUST(cuEventRecord(event, stream));
	while (cuEventQuery(event) == CU_NOT_READY)
		;
	KEEP_FRAME();
}

static NOINLINE void queueing(void)
{
	MUST(cuMemcpyDtoHAsync_v2(pinned, memory, 4096, stream));
	MUST(cuMemcpyDtoD_v2(memory, memory + 64, 64));
	MUST(cuMemsetD8_v2(memory, 1, 64));
	KEEP_FRAME();
}

static void (*const calls[])(void) = {
	by_stream, by_stream_own, by_context, by_this_context, by_event, by_copy, by_copy_back, by_any_copy,
	by_cpu, by_any_cpu, asking, by_nothing, queueing, by_nothing,
};

static NOINLINE void all(long rounds)
{
	for (long i = 0; i < rounds; i++)
		for (size_t k = 0; k < sizeof(calls) / sizeof(calls[0]); k++)
			calls[k]();
	KEEP_FRAME();
}

static NOINLINE void wait_short(CUstream s, CUfunction f)
{
	int64_t begin;

	MUST(app__launch(f, s, length));
	begin = app__now();
	MUST(cuStreamSynchronize(s));
	add("threaded;wait_short", begin);
}

static NOINLINE void wait_long(CUstream s, CUfunction f)
{
	int64_t begin;

	MUST(app__launch(f, s, length * 3));
	begin = app__now();
	MUST(cuStreamSynchronize(s));
	add("threaded;wait_long", begin);
}

static long rounds_of_threads;

static NOINLINE void *threaded(void *arg)
{
	CUfunction f;
	CUstream s;

	MUST(cuCtxSetCurrent(context));
	f = app__function(module, "spin_wait");
	s = app__stream();
	for (long i = 0; i < rounds_of_threads; i++) {
		if (arg)
			wait_long(s, f);
		else
			wait_short(s, f);
	}
	return NULL;
}

static NOINLINE void often(long rounds)
{
	for (long i = 0; i < rounds; i++) {
		int64_t begin;

		if (i % 1000 == 999)
			MUST(app__launch(kernel, stream, length));
		begin = app__now();
		MUST(cuStreamSynchronize(stream));
		add("main;often", begin);
	}
}

/* Behind a wait that only this program ends. */
static NOINLINE void *held(void *arg)
{
	int64_t begin;
	CUstream s;
	CUresult r;

	(void)arg;
	MUST(cuCtxSetCurrent(context));
	s = app__stream();
	MUST(cuStreamWaitValue32_v2(s, (CUdeviceptr)(uintptr_t)word, 1, 0));
	__atomic_add_fetch(&inside, 1, __ATOMIC_SEQ_CST);
	begin = app__now();
	r = cuStreamSynchronize(s);
	add("held", begin);
	if (r)
		app_failures++;
	return NULL;
}

static void hold(int threads)
{
	pthread_t t[MAX_THREADS];
	char byte;

	for (int i = 0; i < threads; i++)
		if (pthread_create(&t[i], NULL, held, NULL))
			exit(8);
	while (__atomic_load_n(&inside, __ATOMIC_SEQ_CST) < threads)
		usleep(1000);
	/* From there into the call it is a step. */
	usleep(100000);
	printf("ready %d\n", (int)getpid());
	fflush(stdout);
	while (read(STDIN_FILENO, &byte, 1) > 0)
		;
	*word = 1;
	for (int i = 0; i < threads; i++)
		pthread_join(t[i], NULL);
}

static void start_threads(int threads)
{
	pthread_t t[MAX_THREADS];

	for (int i = 0; i < threads; i++)
		if (pthread_create(&t[i], NULL, threaded, i % 2 ? &t : NULL))
			exit(8);
	for (int i = 0; i < threads; i++)
		pthread_join(t[i], NULL);
}

#define SAY(call) printf("%s: %d\n", #call, (int)(call))

/* A capture makes them fail, and must come out of it as it would alone. */
static void errors(void)
{
	CUgraph graph = NULL;
	size_t nodes = 0;

	SAY(cuStreamSynchronize((CUstream)(uintptr_t)pinned));
	SAY(cuEventSynchronize((CUevent)(uintptr_t)pinned));
	SAY(cuCtxSynchronize_v2((CUcontext)(uintptr_t)pinned));
	SAY(cuStreamBeginCapture_v2(stream, CU_MODE_RELAXED));
	SAY(app__launch(kernel, stream, length));
	SAY(cuEventSynchronize(event));
	SAY(cuStreamEndCapture(stream, &graph));
	SAY(cuGraphGetNodes(graph, NULL, &nodes));
	printf("%zu nodes\n", nodes);
	SAY(cuStreamBeginCapture_v2(stream, CU_MODE_GLOBAL));
	SAY(app__launch(kernel, stream, length));
	SAY(cuStreamSynchronize(stream));
	SAY(cuMemcpyDtoH_v2(pageable, memory, 64));
	SAY(cuStreamEndCapture(stream, &graph));
	SAY(cuCtxSynchronize());
	SAY(cuStreamSynchronize(stream));
}

static void set_up(void)
{
	waits = calloc(MAX_WAITS, sizeof(*waits));
	if (!waits)
		exit(8);
	context = app__start();
	module = app__module(PTX(SPIN("wait")));
	kernel = app__function(module, "spin_wait");
	stream = app__stream();
	MUST(cuEventCreate(&event, 0));
	MUST(cuMemAlloc_v2(&memory, 8192));
	MUST(cuMemHostAlloc((void **)&pinned, 8192, 0));
	memset(pinned, 0, 8192);
	word = (volatile uint32_t *)(pinned + 4096);
}

int main(int argc, char **argv)
{
	const char *what = argc > 1 ? argv[1] : "10";
	int threads = argc > 2 ? atoi(argv[2]) : 1;

	set_up();
	if (!strcmp(what, "threads") && argc == 5 && threads <= MAX_THREADS) {
		rounds_of_threads = atol(argv[3]);
		length = strtoull(argv[4], NULL, 10);
		start_threads(threads);
	} else if (!strcmp(what, "often") && argc == 3) {
		often(atol(argv[2]));
	} else if (!strcmp(what, "held") && threads >= 1 && threads <= MAX_THREADS) {
		hold(threads);
	} else if (!strcmp(what, "errors")) {
		errors();
	} else {
		if (argc > 2)
			length = strtoull(argv[2], NULL, 10);
		all(atol(what));
		printf("nowait main;all;asking\nnowait main;all;queueing\n");
	}
	for (unsigned long i = 0; i < nr_waits && i < MAX_WAITS; i++)
		printf("wait %s %d %lld %lld\n", waits[i].path, waits[i].tid, (long long)waits[i].begin,
		       (long long)waits[i].end);
	return app_failures != 0;
}
