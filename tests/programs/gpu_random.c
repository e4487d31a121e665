// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * A program by chance, the same for the same numbers: three threads take turns in contexts, streams
 * of all kinds, events, launches, copies and sets by all entries, waits that it ends itself, captures,
 * graphs, and calls that fail. Prints each call with its result; what depends on the device's pace is left
 * out, so that two runs print the same.
 *
 *	gpu_random SEED [TURNS] [ENTRY FIFO]	default 150 turns
 *
 * With STANDIN_GATE=ENTRY:FIFO, once in its life one thread is inside of a launch by that entry while
 * another launches into the same stream. Every eighth seed ends with its work under way. Needs two devices
 * (STANDIN_DEVICES=2). Only for the virtual device: what it does to handles is no good idea elsewhere.
 */
#include <semaphore.h>
#include "tests/programs/gpu_random_copies.h"
#include "tests/programs/gpu_random_graphs.h"
#include "tests/programs/gpu_random_objects.h"

#define THREADS 3
struct worker {
	pthread_t thread;
	int number;
	sem_t go, done;
	void (*turn)(void);	/* NULL: end */
};

static struct worker workers[THREADS];
static int threads;		/* ever made */
static struct launch gated;
static unsigned long host_calls;

/* --- launches --------------------------------------------------------------------------------- */
static void launch_some(void)
{
	struct where w = where__pick(false);
	int n = one_in(3) ? 2 + (int)below(6) : 1;

	if (w.s && !one_in(4))
		set_ctx_of(w.s->ctx);
	while (n--) {
		if (one_in(4))
			copy_into(w, false);
		else
			launch_into(entry__pick(), w);
	}
}

/* A call without a stream waits for all that comes before it. */
static void copy_some(void)
{
	struct where w = where__pick(false);

	release_all();
	if (w.s && !one_in(4))
		set_ctx_of(w.s->ctx);
	for (int n = 1 + (int)below(4); n; n--)
		copy_into(w, true);
}

/* A chain whose members may overlap, and so long that the stream is hardly empty in between. */
static void launch_chain(void)
{
	struct where w = where__pick(false);
	bool head = one_in(2);
	struct launch l;

	for (int n = 2 + (int)below(5); n && avoided != EX && launch__fill(&l, EX, w); n--) {
		l.pdl = !head;
		l.ns = 100000 + below(200000);
		head = false;
		launch__run(&l);
	}
}

/* The program's own bracket: it must be that of the kernel. */
static void bracket(void)
{
	struct stream *s = stream__pick();
	CUevent e[2] = { NULL, NULL };
	struct launch l;
	float ms = 0;
	CUresult r;

	if (!s || avoided == KERNEL)
		return;
	release_all();
	set_ctx_of(s->ctx);
	if (!launch__fill(&l, KERNEL, where__of(s, false)) || cuEventCreate(&e[0], 0) ||
	    cuEventCreate(&e[1], 0))
		return;
	r = cuEventRecord(e[0], s->h);
	if (launch__run(&l) || r || cuEventRecord(e[1], s->h) || cuEventSynchronize(e[1]))
		r = -1;
	if (!r)
		r = cuEventElapsedTime_v2(&ms, e[0], e[1]);
	say(r, "bracket %s %.0f ns", l.where.text, r ? 0 : (double)ms * 1e6);
	for (int i = 0; i < 2; i++)
		say(cuEventDestroy_v2(e[i]), "cuEventDestroy");
}

/* --- waits that the program ends -------------------------------------------------------------- */
static void hold(void)
{
	struct where w = where__pick(one_in(3));
	CUdeviceptr p = one_in(30) ? 0 : (CUdeviceptr)(uintptr_t)&words[used_words];
	int burst = one_in(4) ? 20 + (int)below(20) : (int)below(4);
	struct where to = w;

	if (used_words == WORDS)
		return;
	if (one_in(2))
		say(CALL(w.own, cuStreamWaitValue32_v2, w.h, p, 1, CU_WAIT_GEQ), "hold wait_v2 %s %d",
		    w.text, w.own);
	else
		say(CALL(w.own, cuStreamWaitValue32, w.h, p, 1, CU_WAIT_EQ), "hold wait %s %d", w.text,
		    w.own);
	used_words++;
	if (w.s)
		set_ctx_of(w.s->ctx);
	while (burst--) {
		if (one_in(6))
			copy_into(to, false);
		else
			launch_into(entry__pick(), to);
	}
}

static void release(void)
{
	struct where w = where__pick(one_in(3));
	unsigned i = used_words ? below(used_words) : 0;

	if (one_in(2))
		__atomic_store_n(&words[i], 1, __ATOMIC_SEQ_CST);
	else
		say(CALL(w.own, cuStreamWriteValue32_v2, w.h, (CUdeviceptr)(uintptr_t)&words[i], 1, 0),
		    "write %s %d", w.text, w.own);
}

static void on_host(void *arg)
{
	usleep((useconds_t)(uintptr_t)arg);
	__atomic_add_fetch(&host_calls, 1, __ATOMIC_RELAXED);
}

static void on_callback(CUstream s, CUresult r, void *arg)
{
	(void)s, (void)r;
	on_host(arg);
}

static void host_function(void)
{
	struct where w = where__pick(one_in(3));
	void *us = (void *)(uintptr_t)below(100);

	if (one_in(2))
		say(CALL(w.own, cuLaunchHostFunc, w.h, one_in(30) ? NULL : on_host, us),
		    "hold function %s %d", w.text, w.own);
	else
		say(CALL(w.own, cuStreamAddCallback, w.h, on_callback, us, 0), "hold callback %s %d", w.text,
		    w.own);
}

/* --- calls that no driver takes --------------------------------------------------------------- */
static void fail(void)
{
	CUfunction f;
	CUgraph g;

	switch (below(8)) {
	case 0:
		say(cuStreamBeginCapture_v2(CU_STREAM_LEGACY_HANDLE, 0), "capture of the legacy stream");
		break;
	case 1:
		say(cuStreamEndCapture(CU_STREAM_PER_THREAD, &g), "no capture to end");
		break;
	case 2:
		say(cuStreamDestroy_v2(NULL), "cuStreamDestroy of none");
		break;
	case 3:
		say(cuEventRecord(NULL, NULL), "cuEventRecord of none");
		break;
	case 4:
		say(cuCtxDestroy_v2(NULL), "cuCtxDestroy of none");
		break;
	case 5:
		say(cuDevicePrimaryCtxReset_v2(99), "reset of no device");
		break;
	case 6:
		say(cuModuleUnload(NULL), "cuModuleUnload of none");
		break;
	default:
		say(cuModuleGetFunction(&f, NULL, "none"), "cuModuleGetFunction of none");
		break;
	}
}

static const struct {
	unsigned share;
	void (*turn)(void);
} table[] = {
	{ 45, launch_some }, { 12, copy_some }, { 4, launch_chain }, { 3, bracket }, { 8, make_stream },
	{ 4, end_stream }, { 4, make_event }, { 2, end_event }, { 6, record }, { 6, wait_event }, { 6, ask },
	{ 6, synchronize }, { 4, hold }, { 5, release }, { 4, host_function },
	{ 4, begin_capture }, { 6, end_captures }, { 4, fork_and_join }, { 2, capture_own },
	{ 1, exchange_mode }, { 2, build_graph }, { 1, update_graph }, { 2, end_graph }, { 5, load_module },
	{ 3, unload_module }, { 4, make_ctx }, { 3, end_ctx }, { 2, retain }, { 6, set_ctx }, { 2, fail },
};

/* --- turns ------------------------------------------------------------------------------------ */
static void *work(void *arg)
{
	struct worker *w = arg;

	for (;;) {
		sem_wait(&w->go);
		if (!w->turn)
			return NULL;
		w->turn();
		sem_post(&w->done);
	}
}

static void worker__start(struct worker *w)
{
	w->number = ++threads;
	sem_init(&w->go, 0, 0);
	sem_init(&w->done, 0, 0);
	if (pthread_create(&w->thread, NULL, work, w))
		exit(8);
}

static void worker__begin(struct worker *w, void (*turn)(void))
{
	w->turn = turn;
	me = w->number;
	sem_post(&w->go);
}

static void worker__turn(struct worker *w, void (*turn)(void))
{
	worker__begin(w, turn);
	sem_wait(&w->done);
}

static void worker__renew(struct worker *w)
{
	for (size_t i = 0; i < NR(streams); i++)
		if (streams[i].id && streams[i].capturer == w->number)
			return;
	worker__begin(w, NULL);
	pthread_join(w->thread, NULL);
	worker__start(w);
}

static void any_turn(void)
{
	unsigned sum = 0, pick;

	for (size_t i = 0; i < NR(table); i++)
		sum += table[i].share;
	pick = below(sum);
	/* Where no context is current nearly everything fails. */
	if (ctx__now() <= 0 && !one_in(6)) {
		retain();
		set_ctx();
	}
	for (size_t i = 0; i < NR(table); i++) {
		if (pick < table[i].share) {
			table[i].turn();
			return;
		}
		pick -= table[i].share;
	}
}

/* --- a launch inside of another thread's ------------------------------------------------------ */
static void use_first_ctx(void)
{
	say(cuCtxSetCurrent(contexts[0].h), "cuCtxSetCurrent c%d", contexts[0].id);
}

static void prepare_gate(void)
{
	struct where w = { .text = "null" };
	struct stream *s;
	enum entry entry = (enum entry)avoided;

	if (!contexts[0].id)
		ctx__made(&contexts[0], cuDevicePrimaryCtxRetain(&contexts[0].h, 0), "retain");
	use_first_ctx();
	while (!module__free())
		unload_module();
	load_module();
	s = stream__free() ? new_stream(below(2)) : stream__pick();
	if (s && (entry__is_own(entry) || !one_in(8)))
		w = where__of(s, false);
	for (int i = 0; i < 50 && !launch__fill(&gated, entry, w); i++)
		load_module();
}

static void launch_gated(void)
{
	launch__run(&gated);
}

/*
 * Into the same stream. (The legacy stream and blocking streams wait for each other, so that a launch
 * into another one may lengthen a bracket, too. The library does not notice that.)
 */
static void launch_inside(void)
{
	use_first_ctx();
	for (int n = one_in(4) ? 3 : 1; n; n--) {
		enum entry e = entry__pick();

		while (gated.where.s ? e == OLD || e == OLD_GRID : entry__is_own(e))
			e = entry__pick();
		launch_into(e, gated.where);
	}
}

/* The gate is at the end of the driver's function: the launch is made, but has not returned. */
static void pass_gate(const char *fifo)
{
	struct worker *a = &workers[below(THREADS)], *b = &workers[below(THREADS)];
	char ready[4096];
	FILE *f;

	for (int i = 0; i < THREADS; i++)
		worker__turn(&workers[i], end_captures);
	worker__turn(a, prepare_gate);
	worker__begin(a, launch_gated);
	snprintf(ready, sizeof(ready), "%s.ready", fifo);
	while (access(ready, F_OK))
		usleep(100);
	avoided = -1;
	during = gated.n;
	if (a != b)
		worker__turn(b, launch_inside);
	during = 0;
	f = fopen(fifo, "we");
	if (!f || fputc('x', f) < 0 || fclose(f))
		exit(11);
	sem_wait(&a->done);
}

/* --- beginning and end ------------------------------------------------------------------------ */
static void begin(void)
{
	void *p;

	MUST(cuInit(0));
	ctx__made(&contexts[0], cuDevicePrimaryCtxRetain(&contexts[0].h, 0), "retain");
	use_first_ctx();
	MUST(cuMemAllocHost_v2(&p, WORDS * sizeof(*words)));
	words = p;
	memset(words, 0, WORDS * sizeof(*words));
	make_memory();
	load_module();
	new_stream(CU_STREAM_NONBLOCKING);
	for (int i = 0; i < THREADS; i++) {
		worker__start(&workers[i]);
		worker__turn(&workers[i], use_first_ctx);
	}
	me = 0;
}

/* All that can end, ends. */
static void end(void)
{
	release_all();
	for (int i = 0; i < THREADS; i++)
		worker__turn(&workers[i], end_captures);
	me = 0;
	for (size_t i = 0; i < NR(contexts); i++) {
		if (!contexts[i].id)
			continue;
		say(cuCtxSetCurrent(contexts[i].h), "cuCtxSetCurrent c%d", contexts[i].id);
		say(cuCtxSynchronize(), "cuCtxSynchronize");
	}
}

int main(int argc, char **argv)
{
	unsigned long seed = argc > 1 ? strtoul(argv[1], NULL, 10) : 1;
	int turns = argc > 2 ? atoi(argv[2]) : 150;

	setvbuf(stdout, NULL, _IOLBF, 0);
	alarm(60);
	chance_state = seed;
	for (int i = 0; argc > 4 && i < NR_ENTRIES; i++)
		if (!strcmp(argv[3], entry_names[i]))
			avoided = i;
	begin();
	for (int i = 0; i < turns; i++) {
		if (argc > 4 && i == turns / 2)
			pass_gate(argv[4]);
		if (one_in(60))
			worker__renew(&workers[below(THREADS)]);
		worker__turn(&workers[below(THREADS)], any_turn);
	}
	if (seed % 8 == 7)
		printf("unfinished\n");
	else
		end();
	printf("made %d launches\n", launches);
	return 0;
}
