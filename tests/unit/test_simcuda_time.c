// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Time on the virtual device: events, order of streams, queues, waits, contexts that go. */
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>
#include "tests/unit/simcuda.h"

/* Longer than this process could be kept from running between two calls. */
#define LONG_NS 250000000

/* As a float of milliseconds, which is what the driver gives. */
static float ms_of(double ns)
{
	return (float)(ns / 1e6);
}

static float elapsed(CUevent a, CUevent b)
{
	float ms = -1;

	ok(cu(cuEventElapsedTime_v2)(&ms, a, b));
	return ms;
}

static CUevent event(unsigned flags)
{
	CUevent e;

	ok(cu(cuEventCreate)(&e, flags));
	return e;
}

START_TEST(a_bracket_is_the_kernels_length)
{
	static const uint64_t lengths[] = { 640, 1660, 10240, 96190, 2000000, 30000000 };
	struct app a;
	CUevent e0, e1, e2;

	app__begin(&a);
	e0 = event(0), e1 = event(0), e2 = event(0);
	for (int busy = 0; busy < 2; busy++)
		for (size_t i = 0; i < sizeof(lengths) / sizeof(*lengths); i++) {
			if (busy)
				ok(app__spin(a.spin, a.stream, LONG_NS));
			ok(cu(cuEventRecord)(e0, a.stream));
			ck_assert_int_eq(cu(cuEventQuery)(e0), busy ? CU_NOT_READY : CU_OK);
			usleep(100);	/* the host's own pace does not count */
			ok(app__spin(a.spin, a.stream, lengths[i]));
			ok(cu(cuEventRecord)(e1, a.stream));
			ok(app__spin(a.spin, a.stream, 5000));
			ok(cu(cuEventRecord)(e2, a.stream));
			ok(cu(cuStreamSynchronize)(a.stream));
			ck_assert(elapsed(e0, e1) == ms_of((double)lengths[i]));
			ck_assert(elapsed(e1, e2) == ms_of(5000));
			ck_assert(elapsed(e0, e0) == 0);
		}
}
END_TEST

START_TEST(a_bracket_has_the_constants_asked_for)
{
	struct app a;
	CUevent e0, e1, e2;

	setenv("STANDIN_BRACKET_NS", "3456:6528:1250", 1);
	app__begin(&a);
	e0 = event(0), e1 = event(0), e2 = event(0);
	ok(cu(cuEventRecord)(e0, a.stream));
	ok(app__spin(a.spin, a.stream, LONG_NS));
	ok(cu(cuEventRecord)(e1, a.stream));
	ok(app__spin(a.spin, a.stream, 20000));
	ok(cu(cuEventRecord)(e2, a.stream));
	ok(cu(cuStreamSynchronize)(a.stream));
	ck_assert(elapsed(e0, e1) == ms_of((double)LONG_NS + 6528));
	ck_assert(elapsed(e1, e2) == ms_of(20000 + 3456));
	ok(app__spin(a.spin, a.stream, LONG_NS));
	ok(cu(cuEventRecord)(e0, a.stream));
	ok(cu(cuEventRecord)(e1, a.stream));
	ok(cu(cuStreamSynchronize)(a.stream));
	ck_assert(elapsed(e0, e1) == ms_of(1250));
}
END_TEST

START_TEST(a_bracket_around_a_copy_has_constants_of_its_own)
{
	CUevent e0, e1, e2;
	CUdeviceptr to;
	struct app a;
	char from[8] = "";

	setenv("STANDIN_BRACKET_NS", "3456:6528:1250", 1);
	setenv("STANDIN_COPY_BRACKET_NS", "2000:5000", 1);
	app__begin(&a);
	ok(cu(cuMemAlloc_v2)(&to, sizeof(from)));
	e0 = event(0), e1 = event(0), e2 = event(0);
	ok(cu(cuEventRecord)(e0, a.stream));
	ok(cu(cuMemcpyHtoDAsync_v2)(to, from, sizeof(from), a.stream));
	ok(app__spin(a.spin, a.stream, LONG_NS));
	ok(cu(cuEventRecord)(e1, a.stream));
	ok(cu(cuMemcpyHtoDAsync_v2)(to, from, sizeof(from), a.stream));
	ok(cu(cuEventRecord)(e2, a.stream));
	ok(cu(cuStreamSynchronize)(a.stream));
	ck_assert(elapsed(e1, e2) == ms_of(1001 + 2000));
	ok(cu(cuEventRecord)(e0, a.stream));
	ok(cu(cuMemcpyHtoDAsync_v2)(to, from, sizeof(from), a.stream));
	ok(cu(cuEventRecord)(e1, a.stream));
	ok(cu(cuStreamSynchronize)(a.stream));
	ck_assert(elapsed(e0, e1) == ms_of(1001 + 5000));
}
END_TEST

START_TEST(a_kernel_can_tell_its_own_times)
{
	uint64_t ns = 20000;
	CUdeviceptr at;
	void *params[] = { &ns, &at };
	CUevent e0, e1;
	CUmodule module;
	CUfunction f;
	int64_t *told;
	struct app a;

	app__begin(&a);
	ok(cu(cuModuleLoadData)(&module, ".visible .entry spin_and_tell(.param .u64 ns)"));
	ok(cu(cuModuleGetFunction)(&f, module, "spin_and_tell"));
	ok(cu(cuMemAlloc_v2)(&at, 5 * sizeof(*told)));
	told = (void *)(uintptr_t)at;
	e0 = event(0), e1 = event(0);
	ok(cu(cuEventRecord)(e0, a.stream));
	ok(cu(cuLaunchKernel)(f, 1, 1, 1, 1, 1, 1, 0, a.stream, params, NULL));
	ok(cu(cuEventRecord)(e1, a.stream));
	ok(cu(cuStreamSynchronize)(a.stream));
	ck_assert(elapsed(e0, e1) == ms_of(20700));
	ck_assert_int_eq(told[1] - told[0], 20000);
	ck_assert_int_eq(told[3] - told[2], 20000);
	ck_assert_int_eq(told[4], 1);
}
END_TEST

START_TEST(elapsed_time_refuses_as_the_driver_does)
{
	struct app a;
	CUevent timed, untimed, fresh;
	float ms = 42;

	app__begin(&a);
	timed = event(0), untimed = event(CU_EVENT_DISABLE_TIMING), fresh = event(0);
	ok(cu(cuEventQuery)(fresh));
	ok(app__spin(a.spin, a.stream, 50000000));
	ok(cu(cuEventRecord)(timed, a.stream));
	ok(cu(cuEventRecord)(untimed, a.stream));
	ck_assert_int_eq(cu(cuEventElapsedTime_v2)(&ms, timed, timed), CU_NOT_READY);
	ck_assert_int_eq(cu(cuEventElapsedTime_v2)(&ms, timed, untimed), CU_INVALID_HANDLE);
	ck_assert_int_eq(cu(cuEventElapsedTime_v2)(&ms, timed, fresh), CU_INVALID_HANDLE);
	ck_assert(ms == 42);
	ok(cu(cuEventSynchronize)(timed));
	ck_assert(elapsed(timed, timed) == 0);
}
END_TEST

/* --- the device's own account against its events ---------------------------------------------- */
struct row {
	char entry[64], kernel[64], grid[32], block[32], stream[32];
	unsigned shared, context;
	long long start, end;
};

static int read_rows(const char *path, struct row *rows, int n)
{
	FILE *fp = fopen(path, "re");
	char line[512];
	int i = 0;

	ck_assert(fp != NULL);
	while (i < n && fgets(line, sizeof(line), fp)) {
		struct row *r = &rows[i];

		if (sscanf(line, "%*d %*d %63s %63s %31s %31s %u %31s %u %lld %lld", r->entry,
			   r->kernel, r->grid, r->block, &r->shared, r->stream, &r->context,
			   &r->start, &r->end) == 9)
			i++;
	}
	fclose(fp);
	return i;
}

static const char *truth_path(void)
{
	static char path[4096];
	const char *dir = getenv("TEST_TMP");

	snprintf(path, sizeof(path), "%s/truth.%d", dir ? dir : "/tmp", (int)getpid());
	unlink(path);
	return path;
}

START_TEST(truth_and_events_agree)
{
	enum { N = 500 };
	const char *path = truth_path();
	static struct row rows[N + 1];
	static CUevent e[N][2];
	struct app a;

	setenv("STANDIN_TRUTH", path, 1);
	app__begin(&a);
	for (int i = 0; i < N; i++) {
		e[i][0] = event(0);
		e[i][1] = event(0);
		ok(cu(cuEventRecord)(e[i][0], a.stream));
		ok(app__spin(a.spin, a.stream, (uint64_t)(i * 37 % 9000)));
		ok(cu(cuEventRecord)(e[i][1], a.stream));
	}
	ok(cu(cuStreamSynchronize)(a.stream));
	ck_assert_int_eq(read_rows(path, rows, N + 1), N);
	for (int i = 0; i < N; i++) {
		ck_assert_int_eq(rows[i].end - rows[i].start, i * 37 % 9000);
		ck_assert(elapsed(e[i][0], e[i][1]) ==
			  ms_of((double)(rows[i].end - rows[i].start)));
		ck_assert(!i || rows[i].start >= rows[i - 1].end);
	}
	unlink(path);
}
END_TEST

START_TEST(streams_are_ordered_as_they_should)
{
	const char *path = truth_path();
	CUstream blocking, own = CU_STREAM_PER_THREAD;
	struct row r[6];
	struct app a;

	setenv("STANDIN_TRUTH", path, 1);
	app__begin(&a);
	ok(cu(cuStreamCreate)(&blocking, 0));
	ok(app__spin(a.spin, blocking, LONG_NS));
	ok(app__spin(a.spin, a.stream, LONG_NS));
	ok(app__spin(a.spin, NULL, LONG_NS));
	ok(app__spin(a.spin, own, 1000));
	ok(app__spin(a.spin, blocking, 1000));
	ok(app__spin(a.spin, a.stream, 1000));
	ok(cu(cuCtxSynchronize)());
	ck_assert_int_eq(read_rows(path, r, 6), 6);
	ck_assert(r[1].start < r[0].end);	/* beside the blocking one */
	ck_assert(r[2].start >= r[0].end);	/* the legacy stream after that, not the other */
	ck_assert(r[2].start < r[1].end);
	ck_assert(r[3].start >= r[2].end && r[4].start >= r[2].end);
	ck_assert(r[5].start >= r[1].end && r[5].start < r[2].end);
	unlink(path);
}
END_TEST

START_TEST(dependent_launches_overlap_unless_an_event_lies_between)
{
	const char *path = truth_path();
	CUlaunchAttribute attr = { .id = CU_ATTR_PDL, .value.allowed = 1 };
	uint64_t ns = LONG_NS;
	void *params[] = { &ns };
	struct row r[6];
	struct app a;
	CUlaunchConfig c;

	setenv("STANDIN_TRUTH", path, 1);
	app__begin(&a);
	c = (CUlaunchConfig){ 1, 1, 1, 32, 1, 1, 0, a.stream, &attr, 1 };
	for (int i = 0; i < 3; i++)
		ok(cu(cuLaunchKernelEx)(&c, a.spin, params, NULL));
	ok(cu(cuEventRecord)(event(0), a.stream));
	ok(cu(cuLaunchKernelEx)(&c, a.spin, params, NULL));
	attr.value.allowed = 0;
	ok(cu(cuLaunchKernelEx)(&c, a.spin, params, NULL));
	ok(cu(cuStreamSynchronize)(a.stream));
	ck_assert_int_eq(read_rows(path, r, 6), 5);
	for (int i = 0; i < 5; i++)
		ck_assert_int_eq(r[i].end - r[i].start, (long long)ns);
	ck_assert(r[1].start < r[0].end && r[2].start < r[1].end);
	ck_assert(r[3].start >= r[2].end && r[4].start >= r[3].end);
	unlink(path);
}
END_TEST

/* --- waits and queues ------------------------------------------------------------------------- */
static int launches_made;

/* Once the launching thread has not moved for a while. */
static void *release_when_stuck(void *word)
{
	int before = 0, seen;

	for (int still = 0; still < 10; before = seen) {
		usleep(10000);
		seen = __atomic_load_n(&launches_made, __ATOMIC_SEQ_CST);
		still = seen && seen == before ? still + 1 : 0;
	}
	__atomic_store_n((unsigned *)word, 1, __ATOMIC_SEQ_CST);
	return NULL;
}

START_TEST(a_wait_for_a_value_holds_the_stream)
{
	static unsigned word;
	CUdeviceptr address = (CUdeviceptr)(uintptr_t)&word;
	CUstream other;
	CUevent e0, e1, joined;
	struct app a;
	float ms;

	app__begin(&a);
	e0 = event(0), e1 = event(0), joined = event(0);
	ok(cu(cuStreamCreate)(&other, CU_STREAM_NONBLOCKING));
	ok(cu(cuStreamWaitValue32_v2)(a.stream, address, 1, CU_WAIT_GEQ));
	ok(cu(cuEventRecord)(e0, a.stream));
	ok(app__spin(a.spin, a.stream, 70000));
	ok(cu(cuEventRecord)(e1, a.stream));
	ok(cu(cuStreamWaitEvent)(other, e1, 0));
	ok(app__spin(a.spin, other, 1000));
	ok(cu(cuEventRecord)(joined, other));
	usleep(20000);
	ck_assert_int_eq(cu(cuStreamQuery)(a.stream), CU_NOT_READY);
	ck_assert_int_eq(cu(cuStreamQuery)(other), CU_NOT_READY);
	ck_assert_int_eq(cu(cuEventElapsedTime_v2)(&ms, e0, e1), CU_NOT_READY);
	ck_assert_int_eq(cu(cuEventElapsedTime_v2)(&ms, e0, e0), CU_NOT_READY);
	__atomic_store_n(&word, 1, __ATOMIC_SEQ_CST);
	ok(cu(cuEventSynchronize)(joined));
	ck_assert(elapsed(e0, e1) == ms_of(70000));
	ok(cu(cuStreamQuery)(a.stream));
}
END_TEST

/* Measured: the wait takes two entries, a launch and a timed record one, an untimed record none. */
static void fill_queue(int records, unsigned flags, int expected)
{
	static unsigned word;
	struct app a;
	pthread_t t;
	CUevent e;

	setenv("STANDIN_QUEUE", "102", 1);
	app__begin(&a);
	e = event(flags);
	ok(cu(cuStreamWaitValue32)(a.stream, (CUdeviceptr)(uintptr_t)&word, 1, CU_WAIT_EQ));
	pthread_create(&t, NULL, release_when_stuck, &word);
	while (!__atomic_load_n(&word, __ATOMIC_SEQ_CST)) {
		for (int i = 0; i < records; i++)
			ok(cu(cuEventRecord)(e, a.stream));
		ok(app__spin(a.spin, a.stream, 0));
		__atomic_add_fetch(&launches_made, 1, __ATOMIC_SEQ_CST);
	}
	pthread_join(t, NULL);
	ok(cu(cuStreamSynchronize)(a.stream));
	ck_assert_int_eq(launches_made - 1, expected);	/* the last one had to wait */
}

START_TEST(a_queue_blocks_at_its_limit) { fill_queue(0, 0, 100); }
END_TEST
START_TEST(a_timed_record_takes_an_entry) { fill_queue(1, 0, 50); }
END_TEST
START_TEST(an_untimed_record_takes_none) { fill_queue(2, CU_EVENT_DISABLE_TIMING, 100); }
END_TEST

static int64_t called_at;

static void host_function(void *arg)
{
	usleep(30000);
	*(int64_t *)arg = now();
}

START_TEST(a_host_function_runs_in_order)
{
	const char *path = truth_path();
	struct row r[2];
	struct app a;

	setenv("STANDIN_TRUTH", path, 1);
	app__begin(&a);
	ok(app__spin(a.spin, a.stream, 20000000));
	ok(cu(cuLaunchHostFunc)(a.stream, host_function, &called_at));
	ok(app__spin(a.spin, a.stream, 1000));
	ok(cu(cuStreamSynchronize)(a.stream));
	ok(cu(cuCtxSynchronize)());
	ck_assert_int_eq(read_rows(path, r, 2), 2);
	ck_assert(called_at >= r[0].end + 30000000 && r[1].start >= called_at);
	unlink(path);
}
END_TEST

/* --- contexts --------------------------------------------------------------------------------- */
START_TEST(what_was_made_in_a_reset_context_is_dead)
{
	CUcontext again;
	struct app a;
	CUevent e;
	float ms;

	app__begin(&a);
	e = event(0);
	ok(cu(cuEventRecord)(e, a.stream));
	ok(cu(cuDevicePrimaryCtxReset_v2)(0));
	ok(cu(cuDevicePrimaryCtxRetain)(&again, 0));
	ok(cu(cuCtxSetCurrent)(again));
	ck_assert_ptr_eq(again, a.context);
	ck_assert_int_eq(cu(cuEventElapsedTime_v2)(&ms, e, e), CU_CONTEXT_IS_DESTROYED);
	ck_assert_int_eq(cu(cuEventQuery)(e), CU_CONTEXT_IS_DESTROYED);
	ck_assert_int_eq(cu(cuEventDestroy_v2)(e), CU_CONTEXT_IS_DESTROYED);
	ck_assert_int_eq(cu(cuEventRecord)(e, NULL), CU_CONTEXT_IS_DESTROYED);
	ck_assert_int_eq(app__spin(a.spin, a.stream, 1), CU_CONTEXT_IS_DESTROYED);
	ck_assert_int_eq(app__spin(a.spin, NULL, 1), CU_INVALID_HANDLE);
}
END_TEST

START_TEST(contexts_are_told_apart)
{
	CUcontext second, got;
	struct app a;
	CUevent here, there;
	float ms;

	app__begin(&a);
	here = event(0);
	ok(cu(cuCtxCreate_v2)(&second, 0, 0));
	there = event(0);
	ck_assert_int_eq(cu(cuEventRecord)(there, a.stream), CU_INVALID_HANDLE);
	ok(cu(cuEventRecord)(here, a.stream));
	ok(cu(cuEventRecord)(there, NULL));
	ck_assert_int_eq(cu(cuEventElapsedTime_v2)(&ms, here, there), CU_INVALID_HANDLE);
	ok(app__spin(a.spin, a.stream, 1));
	ck_assert_int_eq(app__spin(a.spin, NULL, 1), CU_INVALID_HANDLE);
	ok(cu(cuStreamGetCtx)(a.stream, &got));
	ck_assert_ptr_eq(got, a.context);
	ok(cu(cuStreamGetCtx)(NULL, &got));
	ck_assert_ptr_eq(got, second);
	ok(cu(cuCtxSetCurrent)(NULL));
	ck_assert_int_eq(cu(cuEventRecord)(here, NULL), CU_INVALID_CONTEXT);
	ck_assert_int_eq(cu(cuStreamGetCtx)(NULL, &got), CU_INVALID_CONTEXT);
	ok(app__spin(a.spin, a.stream, 1));
	ok(cu(cuEventRecord)(here, a.stream));
}
END_TEST

static CUevent asked;

static void *ask_all_the_time(void *arg)
{
	float ms;

	(void)arg;
	while (cu(cuEventElapsedTime_v2)(&ms, asked, asked) == CU_OK)
		;
	return NULL;
}

static void reset_while_asked(bool crash)
{
	struct app a;
	pthread_t t;

	setenv("STANDIN_CRASH", crash ? "1" : "0", 1);
	app__begin(&a);
	asked = event(0);
	ok(cu(cuEventRecord)(asked, a.stream));
	ok(cu(cuEventSynchronize)(asked));
	pthread_create(&t, NULL, ask_all_the_time, NULL);
	usleep(1000);
	ok(cu(cuDevicePrimaryCtxReset_v2)(0));
	pthread_join(t, NULL);
}

START_TEST(a_context_may_be_asked_to_its_end) { reset_while_asked(false); }
END_TEST
START_TEST(a_context_that_goes_while_asked_crashes)
{
	int status;
	pid_t pid = fork();

	if (!pid) {
		setrlimit(RLIMIT_CORE, &(struct rlimit){ 0, 0 });
		reset_while_asked(true);
		_exit(0);
	}
	waitpid(pid, &status, 0);
	ck_assert(WIFSIGNALED(status) && WTERMSIG(status) == SIGSEGV);
}
END_TEST

/* Measured: in a child a record, a question for the time and for a capture answer 0, others 3. */
START_TEST(a_forked_child_gets_what_the_driver_gives)
{
	int status, capturing;
	struct app a;
	CUevent e, e2;
	float ms;
	pid_t pid;

	app__begin(&a);
	e = event(0);
	ok(cu(cuEventRecord)(e, a.stream));
	ok(cu(cuEventSynchronize)(e));
	pid = fork();
	if (!pid) {
		bool good = !cu(cuEventRecord)(e, a.stream) &&
			    !cu(cuEventElapsedTime_v2)(&ms, e, e) &&
			    !cu(cuStreamIsCapturing)(a.stream, &capturing) &&
			    cu(cuEventCreate)(&e2, 0) == CU_NOT_INITIALIZED &&
			    app__spin(a.spin, a.stream, 1) == CU_NOT_INITIALIZED &&
			    cu(cuInit)(0) == CU_NOT_INITIALIZED;
		_exit(!good);
	}
	waitpid(pid, &status, 0);
	ck_assert_int_eq(status, 0);
	ok(app__spin(a.spin, a.stream, 1));
}
END_TEST

START_TEST(events_outlive_their_stream)
{
	struct app a;
	CUevent e0, e1;
	CUstream next;

	app__begin(&a);
	e0 = event(0), e1 = event(0);
	ok(cu(cuEventRecord)(e0, a.stream));
	ok(app__spin(a.spin, a.stream, LONG_NS));
	ok(cu(cuEventRecord)(e1, a.stream));
	ok(cu(cuStreamDestroy_v2)(a.stream));
	ck_assert_int_eq(cu(cuEventQuery)(e1), CU_NOT_READY);
	ck_assert_int_eq(app__spin(a.spin, a.stream, 1), CU_INVALID_HANDLE);
	ok(cu(cuStreamCreate)(&next, CU_STREAM_NONBLOCKING));
	ck_assert_ptr_eq(next, a.stream);
	ok(cu(cuEventSynchronize)(e1));
	ck_assert(elapsed(e0, e1) == ms_of(LONG_NS));
}
END_TEST

START_TEST(an_event_may_be_reached_after_its_stream_is_gone)
{
	static unsigned word;
	struct app a;
	CUstream next;
	CUevent e;

	app__begin(&a);
	e = event(0);
	ok(cu(cuStreamWaitValue32)(a.stream, (CUdeviceptr)(uintptr_t)&word, 1, CU_WAIT_EQ));
	ok(cu(cuEventRecord)(e, a.stream));
	ok(cu(cuStreamDestroy_v2)(a.stream));
	__atomic_store_n(&word, 1, __ATOMIC_SEQ_CST);
	ok(cu(cuEventSynchronize)(e));
	/* the handle comes again once that work is done, and the event waits in none any more */
	do {
		usleep(1000);
		ok(cu(cuStreamCreate)(&next, CU_STREAM_NONBLOCKING));
	} while (next != a.stream);
	ok(cu(cuEventRecord)(e, next));
	ok(cu(cuEventSynchronize)(e));
}
END_TEST

UNIT_MAIN("simcuda time", a_bracket_is_the_kernels_length, a_bracket_has_the_constants_asked_for,
	  a_bracket_around_a_copy_has_constants_of_its_own,
	  a_kernel_can_tell_its_own_times, elapsed_time_refuses_as_the_driver_does, truth_and_events_agree,
	  streams_are_ordered_as_they_should,
	  dependent_launches_overlap_unless_an_event_lies_between,
	  a_wait_for_a_value_holds_the_stream, a_queue_blocks_at_its_limit,
	  a_timed_record_takes_an_entry, an_untimed_record_takes_none,
	  a_host_function_runs_in_order,
	  what_was_made_in_a_reset_context_is_dead, contexts_are_told_apart,
	  a_context_may_be_asked_to_its_end, a_context_that_goes_while_asked_crashes,
	  a_forked_child_gets_what_the_driver_gives, events_outlive_their_stream,
	  an_event_may_be_reached_after_its_stream_is_gone)
