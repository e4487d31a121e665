// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Threads that launch at a given pace, each from chains of its own, so that a launch given to the
 * wrong thread or the wrong chain shows. RATE 0: as fast as they can, COUNT launches a thread.
 *
 *	gpu_paced THREADS RATE SECONDS [NS]	RATE launches a second, all threads together
 *	gpu_paced THREADS 0 COUNT [NS]
 *
 * A paced thread makes exactly RATE / THREADS * SECONDS launches; if the machine can't keep the
 * pace it takes longer. Prints "took" and "late", in ms: how far behind the slowest got at most.
 */
#include <sys/prctl.h>
#include "tests/programs/gpu_app.h"

#define MAX_THREADS 16
#define STEPS 3
#define TICK_NS 1000000		/* a thread sleeps that long, then launches what is due */

static const char module_text[] = PTX(SPIN("first") SPIN("second") SPIN("third"));
static const char *const kernel_names[STEPS] = { "spin_first", "spin_second", "spin_third" };

struct worker {
	pthread_t thread;
	int index;
	CUfunction kernel[STEPS];
	CUstream stream;
	long count;
	int64_t late;
	char path[STEPS][96];
	struct account acc[STEPS];
};

static struct worker workers[MAX_THREADS];
static CUcontext context;
static CUmodule module;
static uint64_t unit = 1000;
static double rate;		/* of one thread, launches a nanosecond */
static pthread_barrier_t all_ready;

static inline __attribute__((always_inline)) void step(struct worker *w, int which)
{
	uint64_t ns = unit * (uint64_t)(which + 1);

	account__add(&w->acc[which], app__launch(w->kernel[which], w->stream, ns), ns);
	KEEP_FRAME();
}

/* The chain of thread N: lane_N, then one of three functions that also bear its number. */
#define LANE(n)                                                                                   \
	static NOINLINE void first_##n(struct worker *w) { step(w, 0); }                          \
	static NOINLINE void second_##n(struct worker *w) { step(w, 1); }                         \
	static NOINLINE void third_##n(struct worker *w) { step(w, 2); }                          \
	static NOINLINE void lane_##n(struct worker *w, long i)                                   \
	{                                                                                         \
		if (i % 4 == 0)                                                                   \
			second_##n(w);                                                            \
		else if (i % 7 == 0)                                                              \
			third_##n(w);                                                             \
		else                                                                              \
			first_##n(w);                                                             \
		KEEP_FRAME();                                                                     \
	}
LANE(0) LANE(1) LANE(2) LANE(3) LANE(4) LANE(5) LANE(6) LANE(7)
LANE(8) LANE(9) LANE(10) LANE(11) LANE(12) LANE(13) LANE(14) LANE(15)

static void (*const lanes[MAX_THREADS])(struct worker *, long) = {
	lane_0, lane_1, lane_2, lane_3, lane_4, lane_5, lane_6, lane_7,
	lane_8, lane_9, lane_10, lane_11, lane_12, lane_13, lane_14, lane_15,
};

static void sleep_until(int64_t when)
{
	struct timespec t = { when / 1000000000, when % 1000000000 };

	while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, NULL))
		;
}

static NOINLINE void *paced(void *arg)
{
	struct worker *w = arg;
	int64_t begun;
	long done = 0;

	prctl(PR_SET_TIMERSLACK, 1000UL);
	MUST(cuCtxSetCurrent(context));
	w->stream = app__stream();
	pthread_barrier_wait(&all_ready);
	begun = app__now();
	for (int64_t tick = 1; done < w->count; tick++) {
		int64_t at = begun + tick * TICK_NS, late;
		long due = (long)((double)(tick * TICK_NS) * rate + 0.5);

		sleep_until(at);
		late = app__now() - at;
		w->late = late > w->late ? late : w->late;
		for (; done < due && done < w->count; done++)
			lanes[w->index](w, done);
	}
	MUST(cuStreamSynchronize(w->stream));
	return NULL;
}

static NOINLINE void *unpaced(void *arg)
{
	struct worker *w = arg;

	MUST(cuCtxSetCurrent(context));
	w->stream = app__stream();
	pthread_barrier_wait(&all_ready);
	for (long i = 0; i < w->count; i++)
		lanes[w->index](w, i);
	MUST(cuStreamSynchronize(w->stream));
	return NULL;
}

static void prepare(struct worker *w, int index, bool pace)
{
	static const char *const step_names[STEPS] = { "first", "second", "third" };

	w->index = index;
	for (int k = 0; k < STEPS; k++) {
		w->kernel[k] = app__function(module, kernel_names[k]);
		snprintf(w->path[k], sizeof(w->path[k]), "%s;lane_%d;%s_%d",
			 pace ? "paced" : "unpaced", index, step_names[k], index);
		w->acc[k] = (struct account){ w->path[k], kernel_names[k], 0, 0 };
	}
}

int main(int argc, char **argv)
{
	int threads = argc > 3 ? atoi(argv[1]) : 0;
	double all = argc > 3 ? atof(argv[2]) : 0, length = argc > 3 ? atof(argv[3]) : 0;
	struct account sum[MAX_THREADS * STEPS];
	int64_t begun, late = 0;
	size_t n = 0;

	if (threads < 1 || threads > MAX_THREADS || all < 0 || length <= 0) {
		fputs("usage: gpu_paced THREADS RATE SECONDS [NS] | THREADS 0 COUNT [NS]\n",
		      stderr);
		return 64;
	}
	if (argc > 4)
		unit = strtoull(argv[4], NULL, 10);
	rate = all / threads / 1e9;
	context = app__start();
	module = app__module(module_text);
	pthread_barrier_init(&all_ready, NULL, (unsigned)threads);
	begun = app__now();
	for (int i = 0; i < threads; i++) {
		struct worker *w = &workers[i];

		prepare(w, i, all > 0);
		w->count = (long)(all > 0 ? all / threads * length : length);
		if (pthread_create(&w->thread, NULL, all > 0 ? paced : unpaced, w))
			return 8;
	}
	for (int i = 0; i < threads; i++) {
		pthread_join(workers[i].thread, NULL);
		late = workers[i].late > late ? workers[i].late : late;
		memcpy(&sum[n], workers[i].acc, sizeof(workers[i].acc));
		n += STEPS;
	}
	printf("took %.1f\nlate %.1f\n", (double)(app__now() - begun) / 1e6, (double)late / 1e6);
	account__print(sum, n);
	account__print_total(sum, n);
	return app_failures != 0;
}
