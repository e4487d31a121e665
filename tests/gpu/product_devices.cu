// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * One process on two devices, with kernels that time themselves: a thread for each device at the same time,
 * one thread that goes from one to the other, a context of its own beside the primary one, and copies between
 * the devices. Its own account:
 *
 *	product_devices [ROUNDS]	default 40
 *
 *	chain PATH KERNEL LAUNCHES NS	as product_chains has them
 *	copy COUNT BYTES WHAT PATH	as product_copies has them
 *	device NUMBER LAUNCHES COPIES NS	of each device; NS of its kernels
 */
#include "tests/gpu/product_app.h"

#include <pthread.h>

#define BLOCKS 64
#define MAX_LAUNCHES 4096
#define BATCH 10		/* rounds between two waits */
#define COPY_BYTES (256ull << 20)

#define KERNEL(name) __global__ void name(span *s, unsigned long long ns) { spin(s, ns); }
KERNEL(k_alone)
KERNEL(k_turn)
KERNEL(k_own)
KERNEL(k_plug)

enum { ALONE_0, ALONE_1, TURN_0, TURN_1, OWN, PLUG_0, PLUG_1, NR_CHAINS };

static const struct {
	const char *path, *kernel;
	int device;
	unsigned long long ns;
} chain[NR_CHAINS] = {
	{ "alone;on_first", "k_alone", 0, 200000 },
	{ "alone;on_second", "k_alone", 1, 350000 },
	{ "main;turns;turn_to_first", "k_turn", 0, 250000 },
	{ "main;turns;turn_to_second", "k_turn", 1, 300000 },
	{ "main;own_context;own_leaf", "k_own", 1, 220000 },
	{ "alone;plug_first", "k_plug", 0, 2000000 },
	{ "alone;plug_second", "k_plug", 1, 2000000 },
};

/* The spans of one device's launches, in the host's memory: nothing is copied to read them. */
struct spans {
	span *of;
	unsigned char owner[MAX_LAUNCHES];
	int launches;
};

static span *take(struct spans *s, int c)
{
	if (s->launches == MAX_LAUNCHES)
		exit(9);
	s->owner[s->launches] = (unsigned char)c;
	return &s->of[(size_t)s->launches++ * BLOCKS];
}

static void prepare(struct spans *s)
{
	s->launches = 0;
	OK(cudaHostAlloc((void **)&s->of, (size_t)MAX_LAUNCHES * BLOCKS * sizeof(span),
			 cudaHostAllocPortable | cudaHostAllocMapped));
}

#define LAUNCH(kernel, c, s, stream) do { \
		kernel<<<BLOCKS, 32, 0, stream>>>(take(s, c), chain[c].ns); \
		OK(cudaGetLastError()); \
		KEEP_FRAME(); \
	} while (0)

static struct spans alone_spans[2], turn_spans, own_spans;
static int rounds;

static NOINLINE void on_first(struct spans *s, cudaStream_t stream)
{
	LAUNCH(k_alone, ALONE_0, s, stream);
}

static NOINLINE void on_second(struct spans *s, cudaStream_t stream)
{
	LAUNCH(k_alone, ALONE_1, s, stream);
}

static NOINLINE void plug_first(struct spans *s, cudaStream_t stream)
{
	LAUNCH(k_plug, PLUG_0, s, stream);
}

static NOINLINE void plug_second(struct spans *s, cudaStream_t stream)
{
	LAUNCH(k_plug, PLUG_1, s, stream);
}

/* A thread of its own for each device, both busy at the same time. */
static NOINLINE void *alone(void *arg)
{
	struct spans *s = (struct spans *)arg;
	int device = s != alone_spans;
	cudaStream_t stream;

	OK(cudaSetDevice(device));
	OK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
	for (int i = 0; i < rounds; i++) {
		if (i % BATCH == 0) {
			OK(cudaStreamSynchronize(stream));
			device ? plug_second(s, stream) : plug_first(s, stream);
		}
		device ? on_second(s, stream) : on_first(s, stream);
	}
	OK(cudaStreamSynchronize(stream));
	KEEP_FRAME();
	return NULL;
}

static NOINLINE void turn_to_first(cudaStream_t stream)
{
	LAUNCH(k_turn, TURN_0, &turn_spans, stream);
}

static NOINLINE void turn_to_second(cudaStream_t stream)
{
	LAUNCH(k_turn, TURN_1, &turn_spans, stream);
}

/* One thread that goes from device to device; the second time in the default streams. */
static NOINLINE void turns(void)
{
	cudaStream_t stream[2];

	for (int d = 0; d < 2; d++) {
		OK(cudaSetDevice(d));
		OK(cudaStreamCreateWithFlags(&stream[d], cudaStreamNonBlocking));
	}
	for (int i = 0; i < rounds; i++) {
		bool named = i % 2;

		OK(cudaSetDevice(0));
		turn_to_first(named ? stream[0] : NULL);
		OK(cudaSetDevice(1));
		turn_to_second(named ? stream[1] : NULL);
	}
	for (int d = 0; d < 2; d++) {
		OK(cudaSetDevice(d));
		OK(cudaDeviceSynchronize());
	}
	KEEP_FRAME();
}

/* --- a context beside the primary one ------------------------------------------------------------ */
static NOINLINE void own_leaf(void)
{
	LAUNCH(k_own, OWN, &own_spans, NULL);
}

static void *entry(const char *name)
{
	cudaDriverEntryPointQueryResult found;
	void *fn = NULL;

	OK(cudaGetDriverEntryPointByVersion(name, &fn, 4000, cudaEnableDefault, &found));
	if (found != cudaDriverEntryPointSuccess || !fn) {
		printf("no %s\n", name);
		exit(9);
	}
	return fn;
}

static NOINLINE void own_context(void)
{
	int (*create)(void **, unsigned int, int) = (int (*)(void **, unsigned int, int))entry("cuCtxCreate");
	int (*destroy)(void *) = (int (*)(void *))entry("cuCtxDestroy");
	void *context = NULL;

	if (create(&context, 0, 1)) {
		printf("no context\n");
		exit(9);
	}
	prepare(&own_spans);
	for (int i = 0; i < rounds; i++)
		own_leaf();
	OK(cudaDeviceSynchronize());
	/* It has to outlive its memory, which is the truth. */
	span *kept = (span *)malloc((size_t)own_spans.launches * BLOCKS * sizeof(span));
	for (int i = 0; i < own_spans.launches * BLOCKS; i++)
		kept[i] = own_spans.of[i];
	own_spans.of = kept;
	if (destroy(context)) {
		printf("context not destroyed\n");
		exit(9);
	}
	KEEP_FRAME();
}

/* --- copies ---------------------------------------------------------------------------------------- */
static struct way {
	const char *what, *path;
	int device;
	unsigned long long count, bytes;
} ways[] = {
	{ "memcpy PtoP", "main;copies;to_second", 0, 0, 0 },
	{ "memcpy PtoP", "main;copies;to_first", 1, 0, 0 },
};
static char *memory[2];

static NOINLINE void to_second(cudaStream_t stream)
{
	OK(cudaMemcpyPeerAsync(memory[1], 1, memory[0], 0, COPY_BYTES, stream));
	ways[0].count++;
	ways[0].bytes += COPY_BYTES;
	KEEP_FRAME();
}

static NOINLINE void to_first(cudaStream_t stream)
{
	OK(cudaMemcpyPeerAsync(memory[0], 0, memory[1], 1, COPY_BYTES / 2, stream));
	ways[1].count++;
	ways[1].bytes += COPY_BYTES / 2;
	KEEP_FRAME();
}

static NOINLINE void copies(void)
{
	cudaStream_t stream[2];
	int can;

	for (int d = 0; d < 2; d++) {
		OK(cudaSetDevice(d));
		OK(cudaDeviceCanAccessPeer(&can, d, !d));
		if (can)
			OK(cudaDeviceEnablePeerAccess(!d, 0));
		OK(cudaMalloc(&memory[d], COPY_BYTES));
		OK(cudaStreamCreateWithFlags(&stream[d], cudaStreamNonBlocking));
	}
	for (int i = 0; i < rounds; i++) {
		OK(cudaSetDevice(0));
		to_second(stream[0]);
		OK(cudaStreamSynchronize(stream[0]));
		OK(cudaSetDevice(1));
		to_first(stream[1]);
		OK(cudaStreamSynchronize(stream[1]));
	}
	KEEP_FRAME();
}

/* --- the account ------------------------------------------------------------------------------------- */
static unsigned long count[NR_CHAINS];
static unsigned long long sum[NR_CHAINS];

static void add_up(const struct spans *s)
{
	for (int i = 0; i < s->launches; i++) {
		count[s->owner[i]]++;
		sum[s->owner[i]] += span_ns(s->of + (size_t)i * BLOCKS, BLOCKS);
	}
}

static void print_account(void)
{
	for (int c = 0; c < NR_CHAINS; c++)
		printf("chain %s %s %lu %llu\n", chain[c].path, chain[c].kernel, count[c], sum[c]);
	for (auto &w : ways)
		printf("copy %llu %llu %s %s\n", w.count, w.bytes, w.what, w.path);
	for (int d = 0; d < 2; d++) {
		unsigned long long launches = 0, ns = 0;

		for (int c = 0; c < NR_CHAINS; c++)
			if (chain[c].device == d) {
				launches += count[c];
				ns += sum[c];
			}
		printf("device %d %llu %llu %llu\n", d, launches, ways[d].count, ns);
	}
}

int main(int argc, char **argv)
{
	pthread_t thread[2];
	int devices;

	rounds = argc > 1 ? atoi(argv[1]) : 40;
	OK(cudaGetDeviceCount(&devices));
	if (devices < 2) {
		printf("%d device\n", devices);
		return 77;
	}
	prepare(&alone_spans[0]);
	prepare(&alone_spans[1]);
	prepare(&turn_spans);
	for (int d = 0; d < 2; d++)
		pthread_create(&thread[d], NULL, alone, &alone_spans[d]);
	for (int d = 0; d < 2; d++)
		pthread_join(thread[d], NULL);
	turns();
	own_context();
	OK(cudaSetDevice(0));
	copies();
	add_up(&alone_spans[0]);
	add_up(&alone_spans[1]);
	add_up(&turn_spans);
	add_up(&own_spans);
	print_account();
	return 0;
}
