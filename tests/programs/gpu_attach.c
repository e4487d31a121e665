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
 *				late (cancelled while dlopen runs), wrong (another version's size)
 *				both: "attached STATUS STAGE SESSIONS ERRNO PAGE ERROR", ERRNO 1: it was
 *				kept; PAGE 1: the stub's page is still there; a new session has said hello
 *				where STATUS is 0
 *	hold N | release	one more thread queues N launches behind a wait: "held"; "made N"
 *	renew			all streams, modules and the context are made anew: "renewed"
 *	contexts N		so many further contexts, two launches in each: "made N"
 *	fork			a child answers from then on, until its own quit: "child PID"
 *	quit			"bye"
 *
 *	gpu_attach [-u] [-c] [-p US] LIBRARY	US: pause after 16 launches (100); -c: each thread has
 *				a context of its own, and another one after every 96 launches
 */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/types.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "gpu_timing/channel.h"
#include "tests/programs/gpu_app.h"

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
static const char *library_path;
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
static void *handle;

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

/* --- attach ---------------------------------------------------------------------------------- */

static int library_copy(void)
{
	int from = open(library_path, O_RDONLY | O_CLOEXEC);
	int fd = memfd_create("gpucollect-library", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	char buf[65536];
	ssize_t n;

	if (from < 0 || fd < 0)
		exit(8);
	while ((n = read(from, buf, sizeof(buf))) > 0)
		if (write(fd, buf, (size_t)n) != n)
			exit(8);
	close(from);
	fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE | F_SEAL_SEAL);
	return fd;
}

static struct channel_attach *under_way;

static void *dlopen_and_cancel(const char *path, int flags)
{
	void *p = dlopen(path, flags);

	under_way->cancelled = 1;
	return p;
}

static const struct channel_identity *identity(void)
{
	return handle ? dlsym(handle, "gpucollect_identity") : NULL;
}

static unsigned int sessions(void)
{
	const struct channel_identity *id = identity();

	return id && id->owner && *(const volatile __u32 *)id->owner ?
		       __atomic_load_n(&id->sessions, __ATOMIC_ACQUIRE) : 0;
}

/* The hello comes from the library's own thread; `before`: sessions before it. */
static void answer(const struct channel_attach *args, unsigned int before, bool kept, bool page)
{
	for (int i = 0; !args->status && sessions() == before && i < 10000; i++)
		usleep(1000);
	printf("attached %d %u %u %d %d %s\n", args->status, args->stage, sessions(), kept, page,
	       args->error[0] ? args->error : "-");
}

static void prepare(struct channel_attach *args)
{
	memset(args, 0, sizeof(*args));
	args->size = sizeof(*args);
	args->status = -EINPROGRESS;
	args->dlopen = (uint64_t)dlopen;
	args->dlsym = (uint64_t)dlsym;
	args->dlerror = (uint64_t)dlerror;
	args->errno_location = (uint64_t)__errno_location;
}

static void attach_directly(void)
{
	int (*attach)(struct channel_attach *);
	struct channel_attach args;
	unsigned int before;
	void *found;
	bool kept;

	if (!handle)
		handle = dlopen(library_path, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
	found = handle ? dlsym(handle, "gpucollect_attach") : NULL;
	if (!found) {
		printf("attached %d 0 0 0 0 %s\n", -ENOENT, dlerror());
		return;
	}
	memcpy(&attach, &found, sizeof(attach));
	prepare(&args);
	before = sessions();
	errno = 77;
	attach(&args);
	kept = errno == 77;
	answer(&args, before, kept, false);
}

static void attach_by_stub(const char *how, unsigned long offset)
{
	static int fd = -1;
	struct channel_attach args;
	int (*stub)(struct channel_attach *);
	unsigned char resident;
	unsigned int before;
	bool kept, page;
	void *at;

	if (fd < 0)
		fd = library_copy();
	at = mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, (off_t)offset);
	if (at == MAP_FAILED)
		exit(8);
	prepare(&args);
	args.stub = (uint64_t)at;
	args.stub_size = 4096;
	snprintf(args.path, sizeof(args.path), "/proc/self/fd/%d", fd);
	if (!strcmp(how, "nofile"))
		snprintf(args.path, sizeof(args.path), "/proc/self/fd/%d", 9999);
	else if (!strcmp(how, "nosymbol"))
		snprintf(args.path, sizeof(args.path), "libm.so.6");
	else if (!strcmp(how, "cancelled"))
		args.cancelled = 1;
	else if (!strcmp(how, "late"))
		args.dlopen = (uint64_t)dlopen_and_cancel;
	else if (!strcmp(how, "wrong"))
		args.size--;
	under_way = &args;
	before = sessions();
	memcpy(&stub, &at, sizeof(stub));
	errno = 77;
	stub(&args);
	kept = errno == 77;
	page = !mincore(at, 4096, &resident);
	if (page)
		munmap(at, 4096);
	if (!handle && args.stage >= ATTACH_FOUND)
		handle = dlopen(args.path, RTLD_NOW | RTLD_NOLOAD);
	answer(&args, before, kept, page);
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

static void print_hashes(void)
{
	printf("hash");
	for (int i = 0; i < nr_workers; i++)
		printf(" %016llx", (unsigned long long)workers[i].hash);
	printf("\n");
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
	} else if (!strcmp(word, "contexts")) {
		more_contexts(n);
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
	if (!later)
		start_driver();
	printf("ready\n");
	while (fgets(line, sizeof(line), stdin) && obey(line))
		;
	return app_failures != 0;
}
