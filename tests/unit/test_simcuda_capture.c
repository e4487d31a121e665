// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Stream capture on the virtual device: what is harmless and what ends a capture, by capture mode,
 * by the caller's thread and its mode. The expected values were measured on driver 580.159.04 (not
 * those of the last two rules, which the driver's manual states).
 */
#include <pthread.h>
#include <string.h>
#include "tests/unit/simcuda.h"

#define KILLS 0x10000			/* added to a result: the capture is dead after it */

static struct app app;
static CUevent done, pending, other_event;
static CUstream capturing, busy;

typedef CUresult (*call_fn)(void);

static CUresult call_elapsed(void)
{
	float ms;

	return cu(cuEventElapsedTime_v2)(&ms, done, done);
}

static CUresult call_elapsed_pending(void)
{
	float ms;

	return cu(cuEventElapsedTime)(&ms, pending, pending);
}

static CUresult call_query(void) { return cu(cuEventQuery)(done); }
static CUresult call_query_pending(void) { return cu(cuEventQuery)(pending); }
static CUresult call_synchronize(void) { return cu(cuEventSynchronize)(done); }

static CUresult call_is_capturing(void)
{
	int status;

	return cu(cuStreamIsCapturing)(busy, &status);
}

static CUresult call_is_capturing_null(void)
{
	int status;

	return cu(cuStreamIsCapturing)(NULL, &status);
}

static CUresult call_get_ctx(void)
{
	CUcontext c;

	return cu(cuStreamGetCtx)(busy, &c);
}

static CUresult call_get_ctx_null(void)
{
	CUcontext c;

	return cu(cuStreamGetCtx)(NULL, &c);
}

static CUresult call_create(void)
{
	CUevent e;
	CUresult r = cu(cuEventCreate)(&e, 0);

	return r ? r : cu(cuEventDestroy_v2)(e);
}

static CUresult call_name(void)
{
	const char *name;

	return cu(cuFuncGetName)(&name, app.spin);
}

static CUresult call_record(void) { return cu(cuEventRecord)(other_event, busy); }
static CUresult call_record_null(void) { return cu(cuEventRecord)(other_event, NULL); }
static CUresult call_record_own(void) { return cu(cuEventRecord_ptsz)(other_event, NULL); }
static CUresult call_launch(void) { return app__spin(app.spin, busy, 1); }

static CUresult call_ctx_synchronize(void) { return cu(cuCtxSynchronize)(); }

static CUresult call_alloc(void)
{
	CUdeviceptr p;

	return cu(cuMemAlloc_v2)(&p, 64);
}

/*
 * Columns: the capture is GLOBAL, THREAD_LOCAL, RELAXED and the caller another thread in its
 * default mode; the same with the caller in RELAXED mode; the same by the capturing thread itself.
 */
#define E900 (CU_CAPTURE_UNSUPPORTED | KILLS)
static const struct rule {
	const char *name;
	call_fn call;
	int other[3], other_relaxed[3], same[3];
} rules[] = {
	{ "elapsed", call_elapsed, { 0, 0, 0 }, { 0, 0, 0 }, { 0, 0, 0 } },
	{ "elapsed pending", call_elapsed_pending, { 600, 600, 600 }, { 600, 600, 600 },
	  { 600, 600, 600 } },
	{ "query", call_query, { E900, 0, 0 }, { 0, 0, 0 }, { E900, E900, 0 } },
	{ "query pending", call_query_pending, { E900, 600, 600 }, { 600, 600, 600 },
	  { E900, E900, 600 } },
	{ "synchronize", call_synchronize, { E900, 0, 0 }, { 0, 0, 0 }, { E900, E900, 0 } },
	{ "is capturing", call_is_capturing, { 0, 0, 0 }, { 0, 0, 0 }, { 0, 0, 0 } },
	{ "get ctx", call_get_ctx, { 0, 0, 0 }, { 0, 0, 0 }, { 0, 0, 0 } },
	{ "create and destroy", call_create, { 0, 0, 0 }, { 0, 0, 0 }, { 0, 0, 0 } },
	{ "name", call_name, { 0, 0, 0 }, { 0, 0, 0 }, { 0, 0, 0 } },
	{ "record elsewhere", call_record, { 0, 0, 0 }, { 0, 0, 0 }, { 0, 0, 0 } },
	{ "record on own stream", call_record_own, { 0, 0, 0 }, { 0, 0, 0 }, { 0, 0, 0 } },
	{ "launch elsewhere", call_launch, { 0, 0, 0 }, { 0, 0, 0 }, { 0, 0, 0 } },
	{ "allocate", call_alloc, { E900, 0, 0 }, { 0, 0, 0 }, { E900, E900, 0 } },
	{ "wait for the context", call_ctx_synchronize, { E900, E900, E900 }, { E900, E900, E900 },
	  { E900, E900, E900 } },
};

/* On the NULL stream: harmless while a non-blocking stream captures; else the same in all modes. */
#define E906 (CU_CAPTURE_IMPLICIT | KILLS)
static const struct null_rule {
	const char *name;
	call_fn call;
	int blocking;
} null_rules[] = {
	{ "is capturing, NULL", call_is_capturing_null, CU_CAPTURE_IMPLICIT },
	{ "get ctx, NULL", call_get_ctx_null, E906 },
	{ "record, NULL", call_record_null, E906 },
};

struct caller {
	call_fn call;
	int mode, result;
	CUcontext context;
};

static void *call_it(void *arg)
{
	struct caller *c = arg;

	ok(cu(cuCtxSetCurrent)(c->context));
	ok(cu(cuThreadExchangeStreamCaptureMode)(&c->mode));
	c->result = c->call();
	return NULL;
}

static int by_other_thread(call_fn call, int mode, CUcontext context)
{
	struct caller c = { call, mode, -1, context };
	pthread_t t;

	pthread_create(&t, NULL, call_it, &c);
	pthread_join(t, NULL);
	return c.result;
}

enum { OTHER, OTHER_RELAXED, SAME, NO_CONTEXT };

/* The result of the call inside a capture, with KILLS added if the capture did not survive. */
static int inside(int capture_mode, int who, call_fn call)
{
	CUgraph g = NULL;
	int r, end;

	ok(cu(cuStreamBeginCapture_v2)(capturing, capture_mode));
	ok(app__spin(app.spin, capturing, 1));
	if (who == SAME)
		r = call();
	else
		r = by_other_thread(call, who == OTHER_RELAXED ? CU_MODE_RELAXED : CU_MODE_GLOBAL,
				    who == NO_CONTEXT ? NULL : app.context);
	end = cu(cuStreamEndCapture)(capturing, &g);
	if (end == CU_CAPTURE_INVALIDATED)
		return r | KILLS;
	ck_assert_int_eq(end, CU_OK);
	ok(cu(cuGraphDestroy)(g));
	return r;
}

static void prepare(unsigned stream_flags)
{
	app__begin(&app);
	capturing = NULL;
	ok(cu(cuStreamCreate)(&capturing, stream_flags));
	ok(cu(cuStreamCreate)(&busy, CU_STREAM_NONBLOCKING));
	ok(cu(cuEventCreate)(&done, 0));
	ok(cu(cuEventCreate)(&pending, 0));
	ok(cu(cuEventCreate)(&other_event, 0));
	ok(cu(cuEventRecord)(done, busy));
	ok(app__spin(app.spin, app.stream, 60000000000));	/* a minute: pending all the time */
	ok(cu(cuEventRecord)(pending, app.stream));
	ok(cu(cuEventSynchronize)(done));
}

START_TEST(rules_hold_in_every_mode)
{
	prepare(CU_STREAM_NONBLOCKING);
	for (size_t i = 0; i < sizeof(rules) / sizeof(*rules); i++)
		for (int mode = 0; mode < 3; mode++) {
			const struct rule *r = &rules[i];
			int want[] = { r->other[mode], r->other_relaxed[mode], r->same[mode] };

			for (int who = OTHER; who <= SAME; who++) {
				int got = inside(mode, who, r->call);

				ck_assert_msg(got == want[who],
					      "%s, capture mode %d, caller %d: %x not %x", r->name,
					      mode, who, (unsigned)got, (unsigned)want[who]);
			}
		}
}
END_TEST

static void null_stream(unsigned flags)
{
	prepare(flags);
	for (size_t i = 0; i < sizeof(null_rules) / sizeof(*null_rules); i++)
		for (int mode = 0; mode < 3; mode++)
			for (int who = OTHER; who <= SAME; who++) {
				const struct null_rule *r = &null_rules[i];
				int got = inside(mode, who, r->call);

				ck_assert_msg(got == (flags ? 0 : r->blocking),
					      "%s, capture mode %d, caller %d: %x", r->name, mode,
					      who, (unsigned)got);
			}
}

START_TEST(null_stream_beside_a_blocking_capture) { null_stream(0); }
END_TEST
START_TEST(null_stream_beside_another_capture) { null_stream(CU_STREAM_NONBLOCKING); }
END_TEST

START_TEST(null_stream_without_a_context)
{
	prepare(0);
	for (int mode = 0; mode < 3; mode++) {
		ck_assert_int_eq(inside(mode, NO_CONTEXT, call_is_capturing_null),
				 CU_INVALID_CONTEXT);
		ck_assert_int_eq(inside(mode, NO_CONTEXT, call_get_ctx_null), CU_INVALID_CONTEXT);
		ck_assert_int_eq(inside(mode, NO_CONTEXT, call_record_own), CU_INVALID_CONTEXT);
		ck_assert_int_eq(inside(mode, NO_CONTEXT, call_record_null), E906);
		ck_assert_int_eq(inside(mode, NO_CONTEXT, call_record), CU_OK);
		ck_assert_int_eq(inside(mode, NO_CONTEXT, call_get_ctx), CU_OK);
	}
	ck_assert_int_eq(by_other_thread(call_record_null, CU_MODE_GLOBAL, NULL),
			 CU_INVALID_CONTEXT);
}
END_TEST

START_TEST(captured_events_are_dependencies_not_times)
{
	CUgraphNode nodes[4];
	CUstream side;
	CUevent fork, join;
	CUgraph g;
	size_t n = 4;
	float ms;
	int type;

	prepare(CU_STREAM_NONBLOCKING);
	ok(cu(cuStreamCreate)(&side, CU_STREAM_NONBLOCKING));
	ok(cu(cuEventCreate)(&fork, 0));
	ok(cu(cuEventCreate)(&join, 0));
	ok(cu(cuStreamBeginCapture_v2)(capturing, CU_MODE_RELAXED));
	ok(app__spin(app.spin, capturing, 1));
	ok(cu(cuEventRecord)(fork, capturing));
	ok(cu(cuStreamWaitEvent)(side, fork, 0));
	ok(app__spin(app.spin, side, 1));
	ok(cu(cuEventRecord)(join, side));
	ok(cu(cuStreamWaitEvent)(capturing, join, 0));
	ck_assert_int_eq(cu(cuEventElapsedTime_v2)(&ms, fork, join), CU_CAPTURED_EVENT);
	ok(cu(cuStreamEndCapture)(capturing, &g));
	ok(cu(cuGraphGetNodes)(g, nodes, &n));
	ck_assert_uint_eq(n, 2);	/* records add none */
	ok(cu(cuGraphNodeGetType)(nodes[1], &type));
	ck_assert_int_eq(type, CU_NODE_KERNEL);
	ck_assert_int_eq(cu(cuEventQuery)(fork), CU_CAPTURED_EVENT);
	ok(cu(cuEventRecord)(fork, busy));
	ok(cu(cuEventSynchronize)(fork));
}
END_TEST

START_TEST(captures_end_badly_where_they_should)
{
	CUstream side;
	CUevent e;
	CUgraph g = NULL;

	prepare(CU_STREAM_NONBLOCKING);
	ok(cu(cuStreamCreate)(&side, CU_STREAM_NONBLOCKING));
	ok(cu(cuEventCreate)(&e, CU_EVENT_DISABLE_TIMING));
	/* a side stream that was not joined */
	ok(cu(cuStreamBeginCapture_v2)(capturing, CU_MODE_THREAD));
	ok(cu(cuEventRecord)(e, capturing));
	ok(cu(cuStreamWaitEvent)(side, e, 0));
	ok(app__spin(app.spin, side, 1));
	ck_assert_int_eq(cu(cuStreamEndCapture)(side, &g), CU_CAPTURE_UNMATCHED);
	ck_assert_int_eq(cu(cuStreamEndCapture)(capturing, &g), CU_CAPTURE_UNJOINED);
	/* a wait for something outside */
	ok(cu(cuEventRecord)(e, busy));
	ok(cu(cuStreamBeginCapture_v2)(capturing, CU_MODE_THREAD));
	ck_assert_int_eq(cu(cuStreamWaitEvent)(capturing, e, 0), CU_CAPTURE_ISOLATION);
	ck_assert_int_eq(app__spin(app.spin, capturing, 1), CU_CAPTURE_INVALIDATED);
	ck_assert_int_eq(cu(cuStreamEndCapture)(capturing, &g), CU_CAPTURE_INVALIDATED);
	ck_assert_ptr_null(g);
	/* the streams are free again */
	ok(app__spin(app.spin, capturing, 1));
	ok(app__spin(app.spin, side, 1));
	ck_assert_int_eq(cu(cuStreamBeginCapture_v2)(NULL, CU_MODE_THREAD),
			 CU_CAPTURE_UNSUPPORTED);
}
END_TEST

START_TEST(a_graph_runs_as_long_as_its_longest_path)
{
	CUstream side;
	CUevent fork, join, e0, e1;
	CUgraphExec x;
	CUgraph g;
	float ms;

	prepare(CU_STREAM_NONBLOCKING);
	ok(cu(cuStreamCreate)(&side, CU_STREAM_NONBLOCKING));
	ok(cu(cuEventCreate)(&fork, CU_EVENT_DISABLE_TIMING));
	ok(cu(cuEventCreate)(&join, CU_EVENT_DISABLE_TIMING));
	ok(cu(cuEventCreate)(&e0, 0));
	ok(cu(cuEventCreate)(&e1, 0));
	ok(cu(cuStreamBeginCapture_v2)(capturing, CU_MODE_GLOBAL));
	ok(app__spin(app.spin, capturing, 1000));
	ok(cu(cuEventRecord)(fork, capturing));
	ok(cu(cuStreamWaitEvent)(side, fork, 0));
	ok(app__spin(app.spin, side, 50000));
	ok(app__spin(app.spin, capturing, 20000));
	ok(cu(cuEventRecord)(join, side));
	ok(cu(cuStreamWaitEvent)(capturing, join, 0));
	ok(app__spin(app.spin, capturing, 300));
	ok(cu(cuStreamEndCapture)(capturing, &g));
	ok(cu(cuGraphInstantiateWithFlags)(&x, g, 0));
	for (int i = 0; i < 3; i++) {
		ok(cu(cuEventRecord)(e0, busy));
		ok(cu(cuGraphLaunch)(x, busy));
		ok(cu(cuEventRecord)(e1, busy));
		ok(cu(cuStreamSynchronize)(busy));
		ok(cu(cuEventElapsedTime_v2)(&ms, e0, e1));
		ck_assert(ms == (float)(51300 / 1e6));
	}
	ok(cu(cuGraphExecUpdate_v2)(x, g, NULL));
	ok(cu(cuGraphExecDestroy)(x));
}
END_TEST

UNIT_MAIN("simcuda capture", rules_hold_in_every_mode, null_stream_beside_a_blocking_capture,
	  null_stream_beside_another_capture, null_stream_without_a_context,
	  captured_events_are_dependencies_not_times,
	  captures_end_badly_where_they_should, a_graph_runs_as_long_as_its_longest_path)
