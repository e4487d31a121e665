// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * A program that runs, and lets the timing library in by itself, the way a tracer would: tests of
 * attach and detach without ptrace. Commands are lines of standard input, each answered by a line:
 *
 *	init			starts the driver (with -u not done at the start)
 *	start N			N launching threads, each with its own stream; they wait
 *	burst N | upto N	each launches N times more, or until it has N launches: "made TOTAL"
 *	run | pause		they launch on and on: "running"; they wait again: "made TOTAL"
 *	hash			"hash X Y…": what each thread has seen: every result, times between its own
 *				events, memory: the same for the same number of launches
 *	attach			dlopen, and gpucollect_attach is called
 *	stub HOW OFFSET		by the stub at that place of the file; HOW: ok, nofile, nosymbol, cancelled,
 *				late (cancelled while dlopen runs), wrong (another version's size),
 *				nothread (none can be started), large (none with a small stack)
 *				both: "attached STATUS STAGE SESSIONS ERRNO PAGE ERROR", ERRNO 1: it was
 *				kept; PAGE 1: the stub's page stays; a new session has said hello where
 *				STATUS is 0
 *	hold N | release	one more thread queues N launches behind a wait: "held"; "made N"
 *	renew			all streams, modules and the context are made anew: "renewed"
 *	contexts N		so many further contexts, two launches in each: "made N"
 *	capture			a capture is begun, global, and three launches go into it: "capturing"
 *	captured		three more; its graph is made: "graph N"
 *	replay N		it is launched N times: "replayed NS"
 *	chain N			N programmatic dependent launches: "chained NS", from the first's start to
 *				the last's end
 *	forget close|reuse	all descriptors that are none of its own; their numbers are free then, or
 *				other files': "forgotten N"
 *	fork			a child answers from then on, until its own quit: "child PID"
 *	quit			"bye"
 *
 *	gpu_attach [-u] [-c] [-p US] LIBRARY	US: pause after 16 launches (100); -c: each thread has
 *				a context of its own, and another one after every 96 launches
 */
#include <sys/wait.h>

#include "tests/programs/gpu_app.h"
#include "tests/programs/way_in.h"

#define MAX_THREADS 16
#define KERNELS 4
#define OWN_EVENTS 8		/* one launch of so many is between events of the program's own */
#define SYNC 32
#define LIFE 96			/* launches of a context of a thread's own: a multiple of SYNC */

struct worker {
	pthread_t thread;
	int number;
	CUcontext context;
	CUmodule module;
	CUfunction kernels[KERNELS];
	CUstream stream;
	CUevent begin, end;
	bool recorded;
	CUdeviceptr word;
	uint32_t *value;
	uint64_t random, hash;
	unsigned long made, until;
};

static const char module_text[] = PTX(SPIN("a") SPIN("b") SPIN("c") SPIN("d"));
static CUcontext context;
static CUmodule module;
static CUfunction kernels[KERNELS];
static bool own_contexts;
static struct worker workers[MAX_THREADS];
static int nr_workers;
static useconds_t pause_us = 100;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t wake = PTHREAD_COND_INITIALIZER, rested = PTHREAD_COND_INITIALIZER;
static int resting;
static bool stop_all;

static void add(struct worker *w, uint64_t value)
{
	w->hash = (w->hash ^ value) * 0x100000001b3ull;
}

static uint64_t next(struct worker *w)
{
	w->random = w->random * 6364136223846793005ull + 1442695040888963407ull;
	return w->random >> 33;
}

static void step(struct worker *w)
{
	bool own = w->made % OWN_EVENTS == 0;
	uint64_t ns = 1000 + next(w) % 20000;
	CUfunction f = w->kernels[next(w) % KERNELS];
	float ms = 0;

	if (own)
		MUST(cuEventRecord(w->begin, w->stream));
	add(w, (uint64_t)app__launch(f, w->stream, ns));
	if (own)
		MUST(cuEventRecord(w->end, w->stream));
	w->recorded |= own;
	__atomic_store_n(&w->made, w->made + 1, __ATOMIC_RELEASE);
	if (w->made % SYNC)
		return;
	MUST(cuMemsetD32Async(w->word, (unsigned int)w->made, 1, w->stream));
	MUST(cuStreamSynchronize(w->stream));
	if (w->recorded)
		MUST(cuEventElapsedTime(&ms, w->begin, w->end));
	add(w, (uint64_t)(ms * 1e6f));
	add(w, *w->value);
}

static void make_stream(struct worker *w)
{
	void *p;

	w->stream = app__stream();
	w->recorded = false;
	MUST(cuEventCreate(&w->begin, 0));
	MUST(cuEventCreate(&w->end, 0));
	MUST(cuMemAllocHost_v2(&p, sizeof(*w->value)));
	MUST(cuMemHostGetDevicePointer_v2(&w->word, p, 0));
	w->value = p;
}

static void find_kernels(CUmodule m, CUfunction f[KERNELS])
{
	static const char *const names[KERNELS] = { "spin_a", "spin_b", "spin_c", "spin_d" };

	for (int i = 0; i < KERNELS; i++)
		f[i] = app__function(m, names[i]);
}

static void settle(struct worker *w)
{
	if (own_contexts) {
		MUST(cuCtxCreate_v2(&w->context, 0, 0));
		w->module = app__module(module_text);
		find_kernels(w->module, w->kernels);
	} else {
		w->context = context;
		memcpy(w->kernels, kernels, sizeof(kernels));
	}
	make_stream(w);
}

/* In the middle of whatever a guest is doing: the addresses come again at once. */
static void live_anew(struct worker *w)
{
	MUST(cuMemFreeHost(w->value));
	if (w->made / LIFE % 2) {
		MUST(cuStreamDestroy_v2(w->stream));
		MUST(cuModuleUnload(w->module));
	}
	MUST(cuCtxDestroy_v2(w->context));
	settle(w);
}

static void *work(void *arg)
{
	struct worker *w = arg;

	for (;;) {
		pthread_mutex_lock(&lock);
		while (!stop_all && w->made >= w->until) {
			resting++;
			pthread_cond_signal(&rested);
			pthread_cond_wait(&wake, &lock);
			resting--;
		}
		pthread_mutex_unlock(&lock);
		if (stop_all)
			return NULL;
		MUST(cuCtxSetCurrent(w->context));
		while (w->made < __atomic_load_n(&w->until, __ATOMIC_ACQUIRE)) {
			step(w);
			if (own_contexts && w->made % LIFE == 0)
				live_anew(w);
			if (pause_us && w->made % 16 == 0)
				usleep(pause_us);
		}
	}
}

static void start_driver(void)
{
	context = app__start();
	module = app__module(module_text);
	find_kernels(module, kernels);
}

static void start_workers(int nr)
{
	for (; nr_workers < nr && nr_workers < MAX_THREADS; nr_workers++) {
		struct worker *w = &workers[nr_workers];

		w->number = nr_workers;
		w->random = w->hash = (uint64_t)nr_workers + 1;
		settle(w);
		if (pthread_create(&w->thread, NULL, work, w))
			exit(8);
	}
}

/* The workers' new ends; all of them awake. `far`: an end that is never reached. */
static void let_go(unsigned long further, unsigned long upto, bool far)
{
	pthread_mutex_lock(&lock);
	for (int i = 0; i < nr_workers; i++)
		workers[i].until = far ? ~0ul : upto ? upto : workers[i].made + further;
	pthread_cond_broadcast(&wake);
	pthread_mutex_unlock(&lock);
}

static unsigned long wait_for_rest(void)
{
	unsigned long made = 0;

	pthread_mutex_lock(&lock);
	for (;;) {
		bool all = resting == nr_workers;

		for (int i = 0; i < nr_workers; i++)
			all &= workers[i].made >= workers[i].until;
		if (all)
			break;
		pthread_cond_wait(&rested, &lock);
	}
	for (int i = 0; i < nr_workers; i++)
		made += workers[i].made;
	pthread_mutex_unlock(&lock);
	return made;
}

static void pause_workers(void)
{
	for (int i = 0; i < nr_workers; i++)
		__atomic_store_n(&workers[i].until, 0, __ATOMIC_RELEASE);
}

/* --- a thread that sleeps in the driver -------------------------------------------------------- */

static struct {
	pthread_t thread;
	long count;
	unsigned long made;
	unsigned int *word;
	bool there;
} held;

static void *hold(void *arg)
{
	CUdeviceptr flag;
	CUstream s;
	void *p;

	(void)arg;
	MUST(cuCtxSetCurrent(context));
	s = app__stream();
	MUST(cuMemAllocHost_v2(&p, 4096));
	MUST(cuMemHostGetDevicePointer_v2(&flag, p, 0));
	held.word = p;
	__atomic_store_n(held.word, 0, __ATOMIC_SEQ_CST);
	MUST(cuStreamWaitValue32_v2(s, flag, 1, CU_WAIT_GEQ));
	__atomic_store_n(&held.there, true, __ATOMIC_RELEASE);
	for (long i = 0; i < held.count; i++) {
		MUST(app__launch(kernels[0], s, 1000));
		__atomic_add_fetch(&held.made, 1, __ATOMIC_RELEASE);
	}
	MUST(cuStreamSynchronize(s));
	MUST(cuStreamDestroy_v2(s));
	MUST(cuMemFreeHost(p));
	return NULL;
}

/* Answered when the thread doesn't get on any more. */
static void start_holding(long count)
{
	unsigned long before = ~0ul;

	held.count = count;
	held.made = 0;
	held.there = false;
	if (pthread_create(&held.thread, NULL, hold, NULL))
		exit(8);
	while (!__atomic_load_n(&held.there, __ATOMIC_ACQUIRE) ||
	       before != __atomic_load_n(&held.made, __ATOMIC_ACQUIRE)) {
		before = __atomic_load_n(&held.made, __ATOMIC_ACQUIRE);
		usleep(200000);
	}
	printf("held %lu\n", before);
}

static void release(void)
{
	__atomic_store_n(held.word, 1, __ATOMIC_SEQ_CST);
	pthread_join(held.thread, NULL);
	printf("made %lu\n", held.made);
}

/* -------------------------------------------------------------------------------------------- */

/* The same addresses for other things. */
static void renew(void)
{
	for (int i = 0; i < nr_workers; i++) {
		MUST(cuEventDestroy_v2(workers[i].begin));
		MUST(cuEventDestroy_v2(workers[i].end));
		MUST(cuMemFreeHost(workers[i].value));
		MUST(cuStreamDestroy_v2(workers[i].stream));
	}
	MUST(cuModuleUnload(module));
	MUST(cuDevicePrimaryCtxReset_v2(0));
	start_driver();
	for (int i = 0; i < nr_workers; i++)
		settle(&workers[i]);
}

static void more_contexts(unsigned long n)
{
	unsigned long made = 0;
	CUcontext old, one;
	CUmodule m;
	CUstream s;

	MUST(cuCtxGetCurrent(&old));
	for (unsigned long i = 0; i < n; i++) {
		MUST(cuCtxCreate_v2(&one, 0, 0));
		m = app__module(module_text);
		s = app__stream();
		for (int k = 0; k < 2; k++)
			made += !app__launch(app__function(m, "spin_a"), s, 1000);
		MUST(cuStreamSynchronize(s));
		MUST(cuCtxPopCurrent_v2(&one));
	}
	MUST(cuCtxSetCurrent(old));
	printf("made %lu\n", made);
}

/* --- graphs and chains ------------------------------------------------------------------------- */

static struct {
	CUstream stream;
	CUevent begin, end;
	CUgraphExec graph;
} other;

static void make_other(void)
{
	if (other.stream)
		return;
	other.stream = app__stream();
	MUST(cuEventCreate(&other.begin, 0));
	MUST(cuEventCreate(&other.end, 0));
}

static void capture(bool begin)
{
	CUgraph g;

	make_other();
	if (begin)
		MUST(cuStreamBeginCapture_v2(other.stream, CU_MODE_GLOBAL));
	for (int i = 0; i < 3; i++)
		MUST(app__launch(kernels[i], other.stream, 5000));
	if (begin) {
		printf("capturing\n");
		return;
	}
	MUST(cuStreamEndCapture(other.stream, &g));
	MUST(cuGraphInstantiateWithFlags(&other.graph, g, 0));
	MUST(cuGraphDestroy(g));
	printf("graph 6\n");
}

static void between_events(const char *what, void (*launch)(unsigned long i), unsigned long n)
{
	float ms;

	make_other();
	MUST(cuEventRecord(other.begin, other.stream));
	for (unsigned long i = 0; i < n; i++)
		launch(i);
	MUST(cuEventRecord(other.end, other.stream));
	MUST(cuStreamSynchronize(other.stream));
	MUST(cuEventElapsedTime_v2(&ms, other.begin, other.end));
	printf("%s %.0f\n", what, (double)ms * 1e6);
}

static void launch_graph(unsigned long i)
{
	(void)i;
	MUST(cuGraphLaunch(other.graph, other.stream));
}

static void launch_dependent(unsigned long i)
{
	CUlaunchAttribute a = { .id = CU_ATTR_PDL, .value.allowed = 1 };
	CUlaunchConfig c = { 1, 1, 1, 32, 1, 1, 0, other.stream, &a, 1 };
	uint64_t ns = 100000000;	/* longer than a loaded machine pauses */
	void *params[] = { &ns };

	MUST(cuLaunchKernelEx(&c, kernels[i % KERNELS], params, NULL));
}

static void print_hashes(void)
{
	printf("hash");
	for (int i = 0; i < nr_workers; i++)
		printf(" %016llx", (unsigned long long)workers[i].hash);
	printf("\n");
}

/* As daemons do. */
static void forget_descriptors(bool reuse)
{
	int n = 0;

	for (int fd = 3; fd < 4096; fd++) {
		if (fcntl(fd, F_GETFD) < 0)
			continue;
		n++;
		if (reuse)
			dup2(STDIN_FILENO, fd);
		else
			close(fd);
	}
	printf("forgotten %d\n", n);
}

static bool fork_child(void)
{
	pid_t pid = fork();

	if (pid < 0)
		exit(8);
	if (pid) {
		waitpid(pid, NULL, 0);
		return false;
	}
	nr_workers = resting = 0;
	printf("child %d\n", (int)getpid());
	return true;
}

static bool obey(const char *line)
{
	char word[32] = "", how[32] = "";
	unsigned long n = 0;

	if (sscanf(line, "%31s %lu", word, &n) < 1)
		return true;
	if (!strcmp(word, "init")) {
		start_driver();
		printf("ready\n");
	} else if (!strcmp(word, "start")) {
		start_workers((int)n);
		printf("made %lu\n", wait_for_rest());
	} else if (!strcmp(word, "burst") || !strcmp(word, "upto")) {
		let_go(n, word[0] == 'u' ? n : 0, false);
		printf("made %lu\n", wait_for_rest());
	} else if (!strcmp(word, "run")) {
		let_go(0, 0, true);
		printf("running\n");
	} else if (!strcmp(word, "pause")) {
		pause_workers();
		printf("made %lu\n", wait_for_rest());
	} else if (!strcmp(word, "hash")) {
		print_hashes();
	} else if (!strcmp(word, "attach")) {
		attach_directly();
	} else if (!strcmp(word, "stub") && sscanf(line, "%*s %31s %lu", how, &n) == 2) {
		attach_by_stub(how, n);
	} else if (!strcmp(word, "hold")) {
		start_holding((long)n);
	} else if (!strcmp(word, "release")) {
		release();
	} else if (!strcmp(word, "renew")) {
		renew();
		printf("renewed\n");
	} else if (!strcmp(word, "capture") || !strcmp(word, "captured")) {
		capture(!word[7]);
	} else if (!strcmp(word, "replay")) {
		between_events("replayed", launch_graph, n);
	} else if (!strcmp(word, "chain")) {
		between_events("chained", launch_dependent, n);
	} else if (!strcmp(word, "contexts")) {
		more_contexts(n);
	} else if (!strcmp(word, "forget") && sscanf(line, "%*s %31s", how) == 1) {
		forget_descriptors(how[0] == 'r');
	} else if (!strcmp(word, "fork")) {
		return fork_child() || true;
	} else if (!strcmp(word, "quit")) {
		printf("bye\n");
		return false;
	} else {
		printf("what?\n");
	}
	return true;
}

/* What the driver's log gets: a test that counts its lines fails with them at hand. CUDA 12.9 and later. */
static void show_log(void *ctx, int level, char *text, size_t len)
{
	(void)ctx, (void)level;
	fprintf(stderr, "the driver's log, thread %d: %.*s\n", (int)gettid(), (int)len, text);
}

static void register_log(void)
{
	int (*call)(void (*)(void *, int, char *, size_t), void *, void **);

	*(void **)&call = dlsym(RTLD_DEFAULT, "cuLogsRegisterCallback");
	if (call)
		call(show_log, NULL, NULL);
}

int main(int argc, char **argv)
{
	bool later = false;
	char line[256];
	int o;

	while ((o = getopt(argc, argv, "ucp:")) != -1)
		switch (o) {
		case 'u': later = true; break;
		case 'c': own_contexts = true; break;
		case 'p': pause_us = (useconds_t)atol(optarg); break;
		default: return 64;
		}
	library_path = argv[optind];
	if (!library_path)
		return 64;
	setvbuf(stdout, NULL, _IOLBF, 0);
	setvbuf(stdin, NULL, _IONBF, 0);	/* a forked child reads on */
	register_log();
	if (!later)
		start_driver();
	printf("ready\n");
	while (fgets(line, sizeof(line), stdin) && obey(line))
		;
	return app_failures != 0;
}
