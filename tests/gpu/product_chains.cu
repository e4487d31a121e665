// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Launches from call chains that are alike in part, by kernels that time themselves:
 *
 *	product_chains busy ROUNDS	the stream always has earlier work; waits after some rounds
 *	product_chains idle ROUNDS	waits after each launch
 *	product_chains far ROUNDS	never waits: runs ahead until the driver's queue is full
 *
 * With a third argument "gated" it does a first round, prints "ready" and waits for a line on stdin; only
 * what comes after that counts. At the end it prints "done" and waits again.
 *
 * Prints "chain PATH KERNEL LAUNCHES NS" for each chain: functions from the outermost on, NS the sum
 * of the spans. A PATH without main runs in a thread of its own.
 */
#include "tests/gpu/product_app.h"

#include <cstring>
#include <pthread.h>
#include <unistd.h>

#define BLOCKS 132
#define MAX_LAUNCHES 20000
#define PLUG_NS 2000000ull
#define BATCH 5			/* rounds between two waits: 60 launches */

#define KERNEL(name) __global__ void name(span *s, unsigned long long ns) { spin(s, ns); }
KERNEL(k_shared)
KERNEL(k_train)
KERNEL(k_evaluate)
KERNEL(k_recurse)
KERNEL(k_compare)
KERNEL(k_ex)
KERNEL(k_cooperative)
KERNEL(k_thread)
KERNEL(k_short)
KERNEL(k_plug)
template <typename T> __global__ void k_template(span *s, T ns) { spin(s, ns); }

enum { TRAIN_SHARED, EVAL_SHARED, TRAIN_OWN, EVAL_OWN, RECURSE_1, RECURSE_3, SORTED, BY_EX,
       BY_COOPERATIVE, BY_TEMPLATE, THREADED, SHORT, PLUG, NR_CHAINS };

static const struct {
	const char *path, *kernel;
	unsigned long long ns;
} chain[NR_CHAINS] = {
	{ "main;round;train;layer;shared_leaf", "k_shared", 200000 },
	{ "main;round;evaluate;layer;shared_leaf", "k_shared", 300000 },
	{ "main;round;train;own_leaf", "k_train", 400000 },
	{ "main;round;evaluate;own_leaf", "k_evaluate", 1000000 },
	{ "main;round;recurse;recurse_end", "k_recurse", 200000 },
	{ "main;round;recurse;recurse;recurse;recurse_end", "k_recurse", 250000 },
	{ "main;round;sorted;compare", "k_compare", 200000 },
	{ "main;round;by_ex", "k_ex", 200000 },
	{ "main;round;by_cooperative", "k_cooperative", 220000 },
	{ "main;round;by_template", "k_template", 200000 },
	{ "threaded;thread_leaf", "k_thread", 200000 },
	{ "main;round;short_leaf", "k_short", 10000 },
	{ "main;plug", "k_plug", PLUG_NS },
};

static span *spans;
static unsigned char *owner;
static int launches;
static cudaStream_t stream;
static bool wait_each;

static span *take(int c)
{
	if (launches == MAX_LAUNCHES)
		exit(9);
	owner[launches] = (unsigned char)c;
	return &spans[(size_t)launches++ * BLOCKS];
}

static void after(void)
{
	OK(cudaGetLastError());
	if (wait_each) {
		OK(cudaStreamSynchronize(stream));
		usleep(20);
	}
}

#define LAUNCH(kernel, c) do { \
		kernel<<<BLOCKS, 32, 0, stream>>>(take(c), chain[c].ns); \
		after(); \
		KEEP_FRAME(); \
	} while (0)

static NOINLINE void shared_leaf(int c)
{
	LAUNCH(k_shared, c);
}

static NOINLINE void layer(int c)
{
	shared_leaf(c);
	KEEP_FRAME();
}

static NOINLINE void own_leaf(int c)
{
	if (c == TRAIN_OWN)
		LAUNCH(k_train, c);
	else
		LAUNCH(k_evaluate, c);
}

static NOINLINE void train(void)
{
	layer(TRAIN_SHARED);
	own_leaf(TRAIN_OWN);
	KEEP_FRAME();
}

static NOINLINE void evaluate(void)
{
	layer(EVAL_SHARED);
	own_leaf(EVAL_OWN);
	KEEP_FRAME();
}

static NOINLINE void recurse_end(int c)
{
	LAUNCH(k_recurse, c);
}

static NOINLINE void recurse(int depth, int c)
{
	if (depth > 1)
		recurse(depth - 1, c);
	else
		recurse_end(c);
	KEEP_FRAME();
}

static int sort_launched;

static NOINLINE int compare(const void *a, const void *b)
{
	if (!sort_launched++)
		LAUNCH(k_compare, SORTED);
	return *(const int *)a - *(const int *)b;
}

static NOINLINE void sorted(void)
{
	int numbers[] = { 3, 1, 2 };

	sort_launched = 0;
	qsort(numbers, 3, sizeof(numbers[0]), compare);
	KEEP_FRAME();
}

static NOINLINE void by_ex(void)
{
	cudaLaunchConfig_t config = {};

	config.gridDim = BLOCKS;
	config.blockDim = 32;
	config.stream = stream;
	OK(cudaLaunchKernelEx(&config, k_ex, take(BY_EX), chain[BY_EX].ns));
	after();
	KEEP_FRAME();
}

static NOINLINE void by_cooperative(void)
{
	span *s = take(BY_COOPERATIVE);
	unsigned long long ns = chain[BY_COOPERATIVE].ns;
	void *args[] = { &s, &ns };

	OK(cudaLaunchCooperativeKernel((void *)k_cooperative, dim3(BLOCKS), dim3(32), args, 0, stream));
	after();
	KEEP_FRAME();
}

static NOINLINE void by_template(void)
{
	LAUNCH(k_template, BY_TEMPLATE);
}

static NOINLINE void short_leaf(void)
{
	LAUNCH(k_short, SHORT);
}

static NOINLINE void plug(void)
{
	LAUNCH(k_plug, PLUG);
}

static NOINLINE void thread_leaf(void)
{
	LAUNCH(k_thread, THREADED);
}

static pthread_barrier_t meet;

static NOINLINE void *threaded(void *arg)
{
	for (int i = *(int *)arg; i > 0; i--) {
		pthread_barrier_wait(&meet);
		thread_leaf();
		pthread_barrier_wait(&meet);
	}
	KEEP_FRAME();
	return NULL;
}

static NOINLINE void round(void)
{
	train();
	evaluate();
	recurse(1, RECURSE_1);
	recurse(3, RECURSE_3);
	sorted();
	by_ex();
	by_cooperative();
	by_template();
	short_leaf();
	pthread_barrier_wait(&meet);
	pthread_barrier_wait(&meet);
	KEEP_FRAME();
}

/* In a read, as servers wait; the buffers are the truth's, which begins anew. */
static void gate(const char *word)
{
	char line[16];

	OK(cudaDeviceSynchronize());
	printf("%s\n", word);
	fflush(stdout);
	if (!fgets(line, sizeof(line), stdin))
		exit(4);
}

static void print_truth(const span *s)
{
	unsigned long count[NR_CHAINS] = {};
	unsigned long long ns[NR_CHAINS] = {};

	for (int i = 0; i < launches; i++) {
		count[owner[i]]++;
		ns[owner[i]] += span_ns(s + (size_t)i * BLOCKS, BLOCKS);
	}
	for (int c = 0; c < NR_CHAINS; c++)
		if (count[c])
			printf("chain %s %s %lu %llu\n", chain[c].path, chain[c].kernel, count[c],
			       ns[c]);
}

int main(int argc, char **argv)
{
	const char *mode = argc > 1 ? argv[1] : "busy";
	int rounds = argc > 2 ? atoi(argv[2]) : 100;
	size_t size = (size_t)MAX_LAUNCHES * BLOCKS * sizeof(span);
	span *host = (span *)malloc(size);
	bool gated = argc > 3 && !strcmp(argv[3], "gated");
	int all = rounds + gated;
	pthread_t thread;

	wait_each = !strcmp(mode, "idle");
	owner = (unsigned char *)calloc(MAX_LAUNCHES, 1);
	OK(cudaMalloc(&spans, size));
	OK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
	pthread_barrier_init(&meet, NULL, 2);
	pthread_create(&thread, NULL, threaded, &all);
	if (gated) {
		plug();
		round();
		gate("ready");
		launches = 0;
	}
	for (int i = 0; i < rounds; i++) {
		if (!strcmp(mode, "busy") && i % BATCH == 0) {
			OK(cudaStreamSynchronize(stream));
			plug();
		}
		round();
	}
	pthread_join(thread, NULL);
	OK(cudaStreamSynchronize(stream));
	size = (size_t)launches * BLOCKS * sizeof(span);
	OK(cudaMemcpy(host, spans, size, cudaMemcpyDeviceToHost));
	print_truth(host);
	printf("total %d 0\n", launches);
	if (gated)
		gate("done");
	return 7;	/* must come through */
}
