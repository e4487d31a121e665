// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * What the harvester and the launch path may call, when, and at which price.
 *   probe_harvest cost | contexts | capture | null | log
 */
#include "probe_common.h"

static CUfunction f_empty, f_spin;
static CUkernel k_empty;
static CUcontext ctx, ctx2;
static CUstream stream, stream2, other_ctx_stream;
static CUdevice dev;
static CUevent done_a, done_b, busy_a, busy_b, spare, never, ctx2_event;

static void spin_us(CUstream s, unsigned long long us)
{
	unsigned long long ns = us * 1000, none = 0;
	void *args[] = { &ns, &none };

	MUST(cu.LaunchKernel(f_spin, 1, 1, 1, 1, 1, 1, 0, s, args, NULL));
}

/* Leaves busy_a complete or pending and busy_b pending for about that long. */
static void make_busy(unsigned long long us)
{
	MUST(cu.EventRecord(busy_a, stream2));
	spin_us(stream2, us);
	MUST(cu.EventRecord(busy_b, stream2));
}

static void set_up(void)
{
	CUlibrary library;
	CUmodule module;

	MUST(cu.Init(0));
	MUST(cu.DeviceGet(&dev, 0));
	MUST(cu.PrimaryRetain(&ctx, dev));
	MUST(cu.CtxSetCurrent(ctx));
	MUST(cu.ModuleLoad(&module, probe_cubin()));
	MUST(cu.ModuleGetFunction(&f_empty, module, "k_empty"));
	MUST(cu.ModuleGetFunction(&f_spin, module, "k_spin"));
	MUST(cu.LibraryLoadFromFile(&library, probe_cubin(), NULL, NULL, 0, NULL, NULL, 0));
	MUST(cu.LibraryGetKernel(&k_empty, library, "k_empty"));
	MUST(cu.StreamCreate(&stream, CU_STREAM_NON_BLOCKING));
	MUST(cu.StreamCreate(&stream2, CU_STREAM_NON_BLOCKING));
	CUevent *events[] = { &done_a, &done_b, &busy_a, &busy_b, &spare, &never };

	for (int i = 0; i < 6; i++)
		MUST(cu.EventCreate(events[i], 0));
	MUST(cu.EventRecord(done_a, stream));
	spin_us(stream, 10);
	MUST(cu.EventRecord(done_b, stream));
	MUST(cu.EventRecord(spare, stream));
	MUST(cu.CtxSynchronize());
}

/* ---- what can be asked, as numbered operations ---- */

enum op { EL_DONE, EL_PENDING, EL_SELF_DONE, EL_SELF_PENDING, EL_NEVER, EL1_DONE, EL1_PENDING,
	QUERY_DONE, QUERY_PENDING, CAPTURING, CAPTURING_NULL, GET_CTX, GET_CTX_NULL, GET_CURRENT,
	NAME_F, NAME_K_AS_F, CREATE, RECORD, RECORD_NULL, RECORD_PTSZ, SYNC_DONE,
	SET_CURRENT, LAUNCH_NULL, LAUNCH_OTHER,
	NAME_F_AS_K, NAME_K, OPS };

static const char *const op_names[] = { "Elapsed_v2 complete", "Elapsed_v2 pending",
	"Elapsed_v2(e,e) complete", "Elapsed_v2(e,e) pending", "Elapsed_v2 never recorded",
	"Elapsed v1 complete", "Elapsed v1 pending", "EventQuery complete", "EventQuery pending",
	"StreamIsCapturing", "StreamIsCapturing(NULL)", "StreamGetCtx", "StreamGetCtx(NULL)",
	"CtxGetCurrent", "FuncGetName", "FuncGetName of a CUkernel", "EventCreate+Destroy",
	"EventRecord other stream", "EventRecord(NULL)", "EventRecord_ptsz(NULL)",
	"EventSynchronize complete", "CtxSetCurrent", "Launch on NULL", "Launch on another stream",
	"KernelGetName of a CUfunction", "KernelGetName" };

static int operate(enum op op)
{
	CUstreamCaptureStatus status;
	const char *name;
	CUcontext c;
	CUevent e;
	float ms;
	int rc;

	switch (op) {
	case EL_DONE: return cu.Elapsed(&ms, done_a, done_b);
	case EL_PENDING: return cu.Elapsed(&ms, busy_a, busy_b);
	case EL_SELF_DONE: return cu.Elapsed(&ms, done_b, done_b);
	case EL_SELF_PENDING: return cu.Elapsed(&ms, busy_b, busy_b);
	case EL_NEVER: return cu.Elapsed(&ms, done_a, never);
	case EL1_DONE: return cu.Elapsed1(&ms, done_a, done_b);
	case EL1_PENDING: return cu.Elapsed1(&ms, busy_a, busy_b);
	case QUERY_DONE: return cu.EventQuery(done_b);
	case QUERY_PENDING: return cu.EventQuery(busy_b);
	case CAPTURING: return cu.StreamIsCapturing(stream, &status);
	case CAPTURING_NULL: return cu.StreamIsCapturing(NULL, &status);
	case GET_CTX: return cu.StreamGetCtx(stream, &c);
	case GET_CTX_NULL: return cu.StreamGetCtx(NULL, &c);
	case GET_CURRENT: return cu.CtxGetCurrent(&c);
	case NAME_F: return cu.FuncGetName(&name, f_empty);
	case NAME_K_AS_F: return cu.FuncGetName(&name, (CUfunction)k_empty);
	case CREATE:
		rc = cu.EventCreate(&e, 0);
		return rc ? rc : cu.EventDestroy(e);
	case RECORD: return cu.EventRecord(spare, stream2);
	case RECORD_NULL: return cu.EventRecord(spare, NULL);
	case RECORD_PTSZ: return cu.EventRecordPtsz(spare, NULL);
	case SYNC_DONE: return cu.EventSynchronize(done_b);
	case SET_CURRENT: return cu.CtxSetCurrent(ctx);
	case LAUNCH_NULL: return cu.LaunchKernel(f_empty, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL);
	case LAUNCH_OTHER:
		return cu.LaunchKernel(f_empty, 1, 1, 1, 1, 1, 1, 0, stream2, NULL, NULL);
	case NAME_F_AS_K: return cu.KernelGetName(&name, (CUkernel)f_empty);
	case NAME_K: return cu.KernelGetName(&name, k_empty);
	default: return -1;
	}
}

/* ---- cost ---- */

static void cost_table(const char *who)
{
	printf("-- %s: result and ns a call (median of 15 rounds of 300)\n", who);
	for (int op = 0; op < OPS; op++) {
		double v[15];
		int rc = 0, mixed = 0;

		if (op == RECORD || op == RECORD_NULL || op == RECORD_PTSZ || op == LAUNCH_NULL ||
		    op == LAUNCH_OTHER)
			continue;
		for (int r = 0; r < 15; r++) {
			uint64_t start;

			make_busy(3000);
			start = now_ns();
			for (int i = 0; i < 300; i++) {
				int x = operate((enum op)op);

				mixed += i && x != rc;
				rc = x;
			}
			v[r] = (double)(now_ns() - start) / 300;
			MUST(cu.StreamSynchronize(stream2));
		}
		qsort(v, 15, sizeof(v[0]), probe_by_value);
		printf("   %-28s rc %3d%s %8.1f ns\n", op_names[op], rc, mixed ? " (changed)" : "",
		       v[7]);
	}
}

static void record_cost(void)
{
	static double rec[2000], launch[2000];
	uint64_t t[3];

	for (int i = 0; i < 2000; i++) {
		t[0] = now_ns();
		MUST(cu.EventRecord(spare, stream));
		t[1] = now_ns();
		MUST(cu.LaunchKernel(f_empty, 1, 1, 1, 32, 1, 1, 0, stream, NULL, NULL));
		t[2] = now_ns();
		rec[i] = (double)(t[1] - t[0]);
		launch[i] = (double)(t[2] - t[1]);
		if (i % 100 == 99)
			MUST(cu.StreamSynchronize(stream));
	}
	probe_spread("record, ns", rec, 2000);
	probe_spread("launch, ns", launch, 2000);
}

/* A foreign thread measures while the main thread keeps the context. */
static pthread_barrier_t gate;

static void *foreign(void *arg)
{
	const char *how = arg;

	if (!strcmp(how, "other"))
		MUST(cu.CtxSetCurrent(ctx2));
	if (!strcmp(how, "same"))
		MUST(cu.CtxSetCurrent(ctx));
	printf("-- foreign thread, current context: %s\n", how);
	for (int op = 0; op < OPS; op++) {
		double v[15];
		int rc = 0, mixed = 0;

		for (int r = 0; r < 15; r++) {
			uint64_t start;

			pthread_barrier_wait(&gate);
			pthread_barrier_wait(&gate);
			start = now_ns();
			for (int i = 0; i < 100; i++) {
				int x = op == SET_CURRENT || op == LAUNCH_NULL ||
					op == LAUNCH_OTHER ? 0 : operate((enum op)op);

				mixed += i && x != rc;
				rc = x;
			}
			v[r] = (double)(now_ns() - start) / 100;
			pthread_barrier_wait(&gate);
		}
		qsort(v, 15, sizeof(v[0]), probe_by_value);
		printf("   %-28s rc %3d%s %8.1f ns\n", op_names[op], rc, mixed ? " (changed)" : "",
		       v[7]);
	}
	return NULL;
}

static void with_foreign(const char *how)
{
	pthread_t t;

	pthread_barrier_init(&gate, NULL, 2);
	pthread_create(&t, NULL, foreign, (void *)(uintptr_t)how);
	for (int op = 0; op < OPS; op++)
		for (int r = 0; r < 15; r++) {
			pthread_barrier_wait(&gate);
			make_busy(3000);
			pthread_barrier_wait(&gate);
			pthread_barrier_wait(&gate);
			MUST(cu.CtxSynchronize());
		}
	pthread_join(t, NULL);
}

static void do_cost(void)
{
	cost_table("launching thread, own context current");
	record_cost();
	MUST(cu.CtxCreate(&ctx2, 0, dev));
	MUST(cu.CtxSetCurrent(ctx));
	with_foreign("none");
	with_foreign("other");
	with_foreign("same");
}

/* ---- contexts and special streams ---- */

static void show_stream_ctx(const char *now)
{
	static const char *const names[] = { "NULL", "legacy", "per-thread", "own", "of ctx2" };
	CUstream streams[] = { NULL, (CUstream)1, (CUstream)2, stream, other_ctx_stream };

	printf("-- current %s:\n", now);
	for (int i = 0; i < 5; i++) {
		CUstreamCaptureStatus status;
		CUcontext c = NULL;
		int rc = cu.StreamGetCtx(streams[i], &c);

		printf("   StreamGetCtx(%s) rc %d %s; IsCapturing rc %d; record(event of ctx) %d, "
		       "record(event of ctx2) %d", names[i], rc, rc ? "-" : c == ctx ? "ctx" :
		       c == ctx2 ? "ctx2" : "?", cu.StreamIsCapturing(streams[i], &status),
		       cu.EventRecord(spare, streams[i]), cu.EventRecord(ctx2_event, streams[i]));
		printf("; launch %d\n", cu.LaunchKernel(f_empty, 1, 1, 1, 1, 1, 1, 0, streams[i],
							NULL, NULL));
	}
}

static void *no_context(void *arg)
{
	(void)arg;
	show_stream_ctx("none (fresh thread)");
	return NULL;
}

static void do_contexts(void)
{
	pthread_t t;
	float ms;

	MUST(cu.CtxCreate(&ctx2, 0, dev));
	MUST(cu.StreamCreate(&other_ctx_stream, CU_STREAM_NON_BLOCKING));
	MUST(cu.EventCreate(&ctx2_event, 0));
	show_stream_ctx("ctx2");
	MUST(cu.CtxSetCurrent(ctx));
	show_stream_ctx("ctx");
	pthread_create(&t, NULL, no_context, NULL);
	pthread_join(t, NULL);
	MUST(cu.CtxSetCurrent(ctx));
	printf("   Elapsed_v2 across contexts: %d\n", cu.Elapsed(&ms, done_a, ctx2_event));
	printf("   synchronise %d\n", cu.CtxSynchronize());
}

/* ---- captures ---- */

static int worker_mode, worker_rc, worker_status;
static unsigned int capture_flags = CU_STREAM_DEFAULT;
static enum op worker_op;

static void *worker(void *arg)
{
	CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;

	(void)arg;
	if (worker_mode == 2)
		cu.CtxSetCurrent(ctx);
	else if (worker_mode == 1)
		cu.ExchangeMode(&mode);
	if (worker_op == RECORD || worker_op == CREATE)
		cu.CtxSetCurrent(ctx);
	worker_rc = operate(worker_op);
	return NULL;
}

static void one_capture(CUstreamCaptureMode mode, int who, enum op op, char *text, size_t size)
{
	CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
	int begin, launch, end;
	CUgraph graph = NULL;
	size_t nodes = 0;
	pthread_t t;
	CUstream s;

	/* By default a blocking stream, so that the NULL stream depends on it. */
	MUST(cu.StreamCreate(&s, capture_flags));
	make_busy(1500);
	begin = cu.StreamBeginCapture(s, mode);
	worker_op = op;
	worker_mode = who;
	if (who < 3) {
		pthread_create(&t, NULL, worker, NULL);
		pthread_join(t, NULL);
	} else if (who == 3) {
		worker_rc = operate(op);
	} else {
		CUstreamCaptureMode relaxed = CU_STREAM_CAPTURE_MODE_RELAXED;

		cu.ExchangeMode(&relaxed);
		worker_rc = operate(op);
		cu.ExchangeMode(&relaxed);
	}
	cu.StreamIsCapturing(s, &status);
	worker_status = (int)status;
	launch = cu.LaunchKernel(f_empty, 1, 1, 1, 1, 1, 1, 0, s, NULL, NULL);
	end = cu.StreamEndCapture(s, &graph);
	if (!end && graph)
		cu.GraphGetNodes(graph, NULL, &nodes);
	if (graph)
		cu.GraphDestroy(graph);
	if (!begin && !launch && !end && nodes == 1)
		snprintf(text, size, "%d", worker_rc);
	else
		snprintf(text, size, "%d BROKEN(%d,%d,%d,%d,%zu)", worker_rc, begin, worker_status,
			 launch, end, nodes);
	cu.CtxSynchronize();
	cu.StreamDestroy(s);
}

static void do_capture(void)
{
	static const char *const modes[] = { "GLOBAL", "THREAD_LOCAL", "RELAXED" };
	static const char *const whos[] = { "another thread, default mode, no context",
		"another thread, RELAXED, no context", "another thread, default mode, same context",
		"the capturing thread", "the capturing thread, RELAXED" };

	printf("result of the call, BROKEN(begin, status, launch, end, nodes) if the capture was "
	       "harmed\n");
	for (int m = 0; m < 3; m++)
		for (int w = 0; w < 5; w++) {
			printf("-- capture %s, called by %s\n", modes[m], whos[w]);
			for (int op = 0; op < SET_CURRENT; op++) {
				char text[100];

				one_capture((CUstreamCaptureMode)m, w, (enum op)op, text,
					    sizeof(text));
				printf("   %-28s %s\n", op_names[op], text);
			}
		}
}

/* The NULL stream beside the capture of a stream that does not wait for it. */
static void do_null(void)
{
	static const enum op ops[] = { CAPTURING_NULL, GET_CTX_NULL, RECORD_NULL, RECORD_PTSZ,
		LAUNCH_NULL, LAUNCH_OTHER };

	for (int flags = 0; flags < 2; flags++)
		for (int m = 0; m < 3; m++)
			for (int w = 2; w < 4; w++) {
				capture_flags = (unsigned int)flags;
				printf("-- %s stream, mode %d, called by %s\n", flags ?
				       "non-blocking" : "blocking", m, w == 2 ? "another thread" :
				       "the capturing thread");
				for (int i = 0; i < 6; i++) {
					char text[100];

					one_capture((CUstreamCaptureMode)m, w, ops[i], text,
						    sizeof(text));
					printf("   %-28s %s\n", op_names[ops[i]], text);
				}
			}
}

/* ---- the driver's error log ---- */

static int log_calls;
static char log_text[300];

static void on_log(void *data, CUlogLevel level, char *message, size_t length)
{
	(void)data;
	log_calls++;
	snprintf(log_text, sizeof(log_text), "level %d: %.*s", (int)level,
		 (int)(length < 250 ? length : 250), message);
}

/* What the exported entry calls: the value of its dispatch slot. */
static void *behind(void *entry)
{
	const unsigned char *code = entry;

	for (int i = 22; i < 60; i++) {
		int32_t rel;

		if (code[i] != 0xff || code[i + 1] != 0x15)
			continue;
		memcpy(&rel, code + i + 2, 4);
		return *(void **)(uintptr_t)(code + i + 6 + rel);
	}
	return entry;
}

static void log_one(const char *what, int rc)
{
	printf("   %-40s rc %3d, log entries %d %s\n", what, rc, log_calls, log_text);
	log_calls = 0;
	log_text[0] = 0;
}

/* The same failing call through the entry and behind it: who writes the log? */
static void log_behind(void)
{
	int (*elapsed)(float *, CUevent, CUevent) =
		(int (*)(float *, CUevent, CUevent))behind((void *)cu.Elapsed);
	int (*func_name)(const char **, CUfunction) =
		(int (*)(const char **, CUfunction))behind((void *)cu.FuncGetName);
	int (*kernel_name)(const char **, CUkernel) =
		(int (*)(const char **, CUkernel))behind((void *)cu.KernelGetName);
	const char *name = NULL;
	float ms;

	log_one("(rest)", 0);
	log_one("Elapsed never recorded, entry", cu.Elapsed(&ms, done_a, never));
	log_one("Elapsed never recorded, behind it", elapsed(&ms, done_a, never));
	log_one("FuncGetName of a CUkernel, entry", cu.FuncGetName(&name, (CUfunction)k_empty));
	log_one("FuncGetName of a CUkernel, behind it", func_name(&name, (CUfunction)k_empty));
	log_one("KernelGetName of a CUfunction, entry", cu.KernelGetName(&name, (CUkernel)f_empty));
	log_one("KernelGetName of a CUfunction, behind", kernel_name(&name, (CUkernel)f_empty));
	log_one("FuncGetName, behind it", func_name(&name, f_empty));
	printf("   name %s, words at the handles %s %s\n", name ? name : "-",
	       *(const char **)((uintptr_t)f_empty + 8), *(const char **)((uintptr_t)k_empty + 8));
}

static void do_log(void)
{
	static const enum op ops[] = { EL_DONE, EL_PENDING, EL_SELF_PENDING, EL_NEVER, EL1_PENDING,
		QUERY_PENDING, NAME_F, NAME_K_AS_F, NAME_K, NAME_F_AS_K, CAPTURING,
		CAPTURING_NULL };
	CUstreamCaptureStatus status;
	CUstream s;
	CUgraph graph;
	CUlogsCallbackHandle handle;
	char buffer[4000];
	size_t size = sizeof(buffer);
	CUevent e;

	printf("register %d\n", cu.LogsRegister(on_log, NULL, &handle));
	for (unsigned int i = 0; i < sizeof(ops) / sizeof(ops[0]); i++) {
		int rc;

		make_busy(2000);
		log_calls = 0;
		log_text[0] = 0;
		rc = operate(ops[i]);
		printf("   %-28s rc %3d, log entries %d %s\n", op_names[ops[i]], rc, log_calls,
		       log_text);
		MUST(cu.CtxSynchronize());
	}
	log_calls = 0;
	log_behind();
	MUST(cu.StreamCreate(&s, CU_STREAM_DEFAULT));
	MUST(cu.StreamBeginCapture(s, CU_STREAM_CAPTURE_MODE_GLOBAL));
	log_one("IsCapturing(NULL) beside a capture", cu.StreamIsCapturing(NULL, &status));
	log_one("IsCapturing of the capturing stream", cu.StreamIsCapturing(s, &status));
	MUST(cu.StreamEndCapture(s, &graph));
	MUST(cu.CtxCreate(&ctx2, 0, dev));
	MUST(cu.EventCreate(&ctx2_event, 0));
	MUST(cu.CtxDestroy(ctx2));
	{
		float ms;

		log_one("Elapsed, context destroyed", cu.Elapsed(&ms, ctx2_event, ctx2_event));
	}
	MUST(cu.CtxSetCurrent(ctx));
	log_calls = 0;
	cu.EventCreate(&e, 0x12345);
	printf("   control, EventCreate with bad flags: log entries %d %s\n", log_calls, log_text);
	printf("dump %d\n", cu.LogsDump(NULL, buffer, &size, 0));
	printf("%.*s\n", (int)(size < sizeof(buffer) ? size : sizeof(buffer)), buffer);
}

int main(int argc, char **argv)
{
	const char *what = argc > 1 ? argv[1] : "cost";

	setvbuf(stdout, NULL, _IOLBF, 0);
	cu_load();
	set_up();
	if (!strcmp(what, "cost"))
		do_cost();
	else if (!strcmp(what, "contexts"))
		do_contexts();
	else if (!strcmp(what, "capture"))
		do_capture();
	else if (!strcmp(what, "null"))
		do_null();
	else
		do_log();
	return 0;
}
