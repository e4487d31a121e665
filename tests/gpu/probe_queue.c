// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * How much can be queued behind a stream that is held, until a call blocks?
 *   probe_queue HOLD EVENTS KIND [N]
 * HOLD: value (stream wait on a word of memory), spin (a kernel), host (a host function)
 * EVENTS: records around each launch, 0, 1, 2; KIND: empty, args, memset, none (records only),
 * untimed (as empty, events without timing), other (records go to a second, idle stream),
 * capped (records around the first 64 launches only), graph (launches of a graph of 10 kernels)
 * With N one thread alone queues N launches and then releases: does it survive?
 */
#include "probe_common.h"

enum { QUEUE_MOST = 30000 };

static CUfunction f_empty, f_args, f_hold;
static CUgraphExec graph_exec;
static CUstream held, idle;
static CUcontext ctx;
static unsigned int *flag;
static CUdeviceptr flag_dev, scratch;
static _Atomic long made, calls;
static _Atomic int in_record, finished;
static CUevent old_a, old_b;

static void release(void)
{
	__atomic_store_n(flag, 1u, __ATOMIC_SEQ_CST);
}

static void CUDA_CB wait_host(void *data)
{
	uint64_t start = now_ns();

	(void)data;
	while (!__atomic_load_n(flag, __ATOMIC_SEQ_CST) && now_ns() - start < 6000000000ull)
		sleep_us(100);
}

static int hold(const char *how)
{
	unsigned long long limit = 6000000000ull;
	void *args[] = { &flag_dev, &limit };

	if (!strcmp(how, "value"))
		return cu.StreamWaitValue32(held, flag_dev, 1, CU_STREAM_WAIT_VALUE_EQ);
	if (!strcmp(how, "spin"))
		return cu.LaunchKernel(f_hold, 1, 1, 1, 1, 1, 1, 0, held, args, NULL);
	return cu.LaunchHostFunc(held, wait_host, NULL);
}

static int work(const char *kind)
{
	static unsigned long long v;
	void *args[] = { &v, &v, &v, &v, &v, &v, &v, &v, &v };

	if (!strcmp(kind, "args"))
		return cu.LaunchKernel(f_args, 1, 1, 1, 32, 1, 1, 0, held, args, NULL);
	if (!strcmp(kind, "memset"))
		return cu.MemsetD8Async(scratch, 0, 64, held);
	if (!strcmp(kind, "none"))
		return 0;
	if (!strcmp(kind, "graph"))
		return cu.GraphLaunch(graph_exec, held);
	return cu.LaunchKernel(f_empty, 1, 1, 1, 32, 1, 1, 0, held, NULL, NULL);
}

/* Runs when the launching thread is stuck: which calls of another thread are stuck with it? */
static void *bystander(void *arg)
{
	uint64_t t[8];
	float ms;
	int rc[6];

	(void)arg;
	cu.CtxSetCurrent(ctx);
	t[0] = now_ns();
	rc[0] = cu.Elapsed(&ms, old_a, old_b);
	t[1] = now_ns();
	rc[1] = cu.EventQuery(old_b);
	t[2] = now_ns();
	rc[2] = cu.EventRecord(old_a, idle);
	t[3] = now_ns();
	rc[3] = cu.LaunchKernel(f_empty, 1, 1, 1, 32, 1, 1, 0, idle, NULL, NULL);
	t[4] = now_ns();
	rc[4] = cu.StreamIsCapturing(held, &(CUstreamCaptureStatus){ 0 });
	t[5] = now_ns();
	rc[5] = cu.EventRecord(old_a, held);
	t[6] = now_ns();
	printf("   beside it: elapsed %d %.1f us, query %d %.1f, record on an idle stream %d %.1f, "
	       "launch there %d %.1f, capturing? %d %.1f, record on the held stream %d %.1f\n",
	       rc[0], (double)(t[1] - t[0]) / 1e3, rc[1], (double)(t[2] - t[1]) / 1e3, rc[2],
	       (double)(t[3] - t[2]) / 1e3, rc[3], (double)(t[4] - t[3]) / 1e3, rc[4],
	       (double)(t[5] - t[4]) / 1e3, rc[5], (double)(t[6] - t[5]) / 1e3);
	return NULL;
}

static void *watch(void *arg)
{
	long last = -1, now;
	pthread_t other;
	int still = 0;

	(void)arg;
	while (!finished) {
		sleep_us(20000);
		now = calls;
		still = now == last ? still + 1 : 0;
		last = now;
		if (still < 15)
			continue;
		printf("   blocked: %ld launches made, inside %s\n", made,
		       in_record ? "a record" : "the work call");
		pthread_create(&other, NULL, bystander, NULL);
		sleep_us(400000);
		release();
		pthread_join(other, NULL);
		return NULL;
	}
	return NULL;
}

static void set_up(void)
{
	CUmodule module;
	CUgraph graph;
	CUdevice dev;

	MUST(cu.Init(0));
	MUST(cu.DeviceGet(&dev, 0));
	MUST(cu.PrimaryRetain(&ctx, dev));
	MUST(cu.CtxSetCurrent(ctx));
	MUST(cu.ModuleLoad(&module, probe_cubin()));
	MUST(cu.ModuleGetFunction(&f_empty, module, "k_empty"));
	MUST(cu.ModuleGetFunction(&f_args, module, "k_args"));
	MUST(cu.ModuleGetFunction(&f_hold, module, "k_hold"));
	MUST(cu.StreamCreate(&held, CU_STREAM_NON_BLOCKING));
	MUST(cu.StreamCreate(&idle, CU_STREAM_NON_BLOCKING));
	MUST(cu.MemHostAlloc((void **)&flag, 4096, CU_MEMHOSTALLOC_DEVICEMAP));
	MUST(cu.MemHostGetDevicePointer(&flag_dev, flag, 0));
	MUST(cu.MemAlloc(&scratch, 4096));
	MUST(cu.EventCreate(&old_a, 0));
	MUST(cu.EventCreate(&old_b, 0));
	MUST(cu.StreamBeginCapture(held, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
	for (int i = 0; i < 10; i++)
		MUST(work("empty"));
	MUST(cu.StreamEndCapture(held, &graph));
	MUST(cu.GraphInstantiate(&graph_exec, graph, 0));
	MUST(cu.GraphLaunch(graph_exec, held));
	*flag = 0;
	MUST(cu.EventRecord(old_a, idle));
	MUST(work("empty"));
	MUST(work("args"));
	MUST(cu.EventRecord(old_b, idle));
	MUST(cu.CtxSynchronize());
}

int main(int argc, char **argv)
{
	static CUevent events[2 * QUEUE_MOST];
	const char *how = argc > 1 ? argv[1] : "value", *kind = argc > 3 ? argv[3] : "empty";
	int n_events = argc > 2 ? atoi(argv[2]) : 0, rc = 0;
	long n = argc > 4 ? atol(argv[4]) : 0, most = n ? n : QUEUE_MOST;
	uint64_t worst = 0, start;
	pthread_t watcher;
	long worst_at = 0;

	setvbuf(stdout, NULL, _IOLBF, 0);
	cu_load();
	set_up();
	if (n_events && most > 6000)
		most = 6000;
	for (long i = 0; i < most * n_events; i++)
		MUST(cu.EventCreate(&events[i], strcmp(kind, "untimed") ? 0 :
				    CU_EVENT_DISABLE_TIMING));
	printf("hold %s, %d records, work %s%s\n", how, n_events, kind, n ? ", alone" : "");
	MUST(hold(how));
	if (!n)
		pthread_create(&watcher, NULL, watch, NULL);
	for (long i = 0; i < most && !rc; i++) {
		CUstream s = strcmp(kind, "other") ? held : idle;

		if (!strcmp(kind, "capped") && i == 64)
			n_events = 0;

		start = now_ns();
		in_record = 1;
		if (n_events)
			rc |= cu.EventRecord(events[i * n_events], s);
		calls++;
		in_record = 0;
		rc |= work(kind);
		calls++;
		in_record = 1;
		if (n_events > 1)
			rc |= cu.EventRecord(events[i * n_events + 1], s);
		calls++;
		made++;
		start = now_ns() - start;
		if (start > worst)
			worst = start, worst_at = i;
		if (*flag)
			break;
	}
	finished = 1;
	printf("   queued %ld launches, result %d, slowest step %.1f us at launch %ld\n", made, rc,
	       (double)worst / 1e3, worst_at);
	release();
	printf("   synchronise %d\n", cu.CtxSynchronize());
	if (!n)
		pthread_join(watcher, NULL);
	return 0;
}
