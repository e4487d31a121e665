// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Captures graphs in every mode, on blocking and other streams, while a second thread launches into
 * a stream of its own, so that somebody has event brackets under way all the time. What it prints
 * must be the same with and without gpucollect:
 *
 *	mode M stream S: RESULT
 *	graph PATH REPLAYS NODES NS	on stderr, as it holds times: NS between the first node's
 *					start and the last one's end, all replays together
 *	chain PATH KERNEL LAUNCHES NS	likewise: the other thread's
 *
 * product_capture SECONDS goes on with captures for so long, and ends at the first that fails:
 *
 *	more: all of them alike		and their number on stderr
 */
#include "tests/gpu/product_app.h"

#include <atomic>
#include <ctime>
#include <pthread.h>
#include <unistd.h>

#define NODES 40
#define REPLAYS 20
#define NODE_NS 20000ull

struct shared {
	unsigned long long sum, replay;
	span replays[10 * REPLAYS];
	span beside;
};

__global__ void k_node(shared *d, int first, int last)
{
	if (first)
		d->replays[d->replay].begin = global_ns();
	spin(NULL, NODE_NS);
	d->sum++;
	if (last)
		d->replays[d->replay++].end = global_ns();
}

__global__ void k_fork(shared *d)
{
	atomicAdd(&d->sum, 100ull);
}

__global__ void k_beside(shared *d)
{
	unsigned long long begin = global_ns();

	spin(NULL, 5000);
	atomicAdd(&d->beside.end, global_ns() - begin);
	atomicAdd(&d->beside.begin, 1ull);
}

static shared *device;
static std::atomic<bool> over;
static unsigned long beside_launches;

static NOINLINE void beside_leaf(cudaStream_t s)
{
	k_beside<<<1, 1, 0, s>>>(device);
	OK(cudaGetLastError());
	KEEP_FRAME();
}

static NOINLINE void *beside(void *arg)
{
	/* Launches and nothing else: waiting would be an error while others capture. */
	while (!over) {
		beside_leaf((cudaStream_t)arg);
		beside_launches++;
		usleep(50);
	}
	KEEP_FRAME();
	return NULL;
}

static NOINLINE void capture_node(cudaStream_t s, int first, int last)
{
	k_node<<<1, 1, 0, s>>>(device, first, last);
	OK(cudaGetLastError());
	KEEP_FRAME();
}

static NOINLINE void replay(cudaGraphExec_t exec, cudaStream_t s)
{
	OK(cudaGraphLaunch(exec, s));
	KEEP_FRAME();
}

/* What all launches together have summed up by then. */
static NOINLINE unsigned long long capture(cudaStreamCaptureMode mode, bool blocking)
{
	unsigned int flags = blocking ? cudaStreamDefault : cudaStreamNonBlocking;
	cudaStream_t s, forked;
	cudaGraphExec_t exec;
	cudaEvent_t out, back;
	unsigned long long sum;
	cudaGraph_t graph;

	OK(cudaStreamCreateWithFlags(&s, flags));
	OK(cudaStreamCreateWithFlags(&forked, flags));
	OK(cudaEventCreateWithFlags(&out, cudaEventDisableTiming));
	OK(cudaEventCreateWithFlags(&back, cudaEventDisableTiming));
	OK(cudaStreamBeginCapture(s, mode));
	capture_node(s, 1, 0);
	for (int i = 0; i < NODES - 2; i++) {
		capture_node(s, 0, 0);
		if (i % 10 == 0)
			usleep(5000);	/* a harvester has its turn in here */
	}
	OK(cudaEventRecord(out, s));
	OK(cudaStreamWaitEvent(forked, out, 0));
	k_fork<<<1, 1, 0, forked>>>(device);
	OK(cudaGetLastError());
	OK(cudaEventRecord(back, forked));
	OK(cudaStreamWaitEvent(s, back, 0));
	capture_node(s, 0, 1);
	OK(cudaStreamEndCapture(s, &graph));
	OK(cudaGraphInstantiate(&exec, graph, 0));
	for (int i = 0; i < REPLAYS; i++)
		replay(exec, s);
	OK(cudaStreamSynchronize(s));
	OK(cudaMemcpyAsync(&sum, &device->sum, sizeof(sum), cudaMemcpyDeviceToHost, s));
	OK(cudaStreamSynchronize(s));
	OK(cudaGraphExecDestroy(exec));
	OK(cudaGraphDestroy(graph));
	OK(cudaEventDestroy(out));
	OK(cudaEventDestroy(back));
	OK(cudaStreamDestroy(s));
	OK(cudaStreamDestroy(forked));
	KEEP_FRAME();
	return sum;
}

static const struct {
	cudaStreamCaptureMode mode;
	const char *name;
} modes[] = {
	{ cudaStreamCaptureModeGlobal, "global" },
	{ cudaStreamCaptureModeThreadLocal, "thread-local" },
	{ cudaStreamCaptureModeRelaxed, "relaxed" },
};

static double seconds(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* Captures for so long; the number of those that did not add what each does. */
static int capture_more(double want, unsigned long long sum, unsigned long long each)
{
	double end = seconds() + want;
	int made = 0, wrong = 0;
	unsigned long long now;

	while (seconds() < end) {
		/* The array of replays holds no more than those that are told of one by one. */
		OK(cudaMemset(&device->replay, 0, sizeof(device->replay)));
		now = capture(modes[made / 2 % 3].mode, made % 2);
		wrong += now - sum != each;
		sum = now;
		made++;
	}
	printf("more: %s\n", wrong ? "not all alike" : "all of them alike");
	fprintf(stderr, "more: %d captures\n", made);
	return wrong;
}

int main(int argc, char **argv)
{
	double want = argc > 1 ? atof(argv[1]) : 0;
	unsigned long long ns = 0, sum = 0, before = 0;
	int wrong = 0;
	cudaStream_t own, s;
	static shared host;
	pthread_t thread;

	OK(cudaMalloc(&device, sizeof(*device)));
	OK(cudaMemset(device, 0, sizeof(*device)));
	OK(cudaStreamCreateWithFlags(&own, cudaStreamNonBlocking));
	OK(cudaStreamCreateWithFlags(&s, cudaStreamNonBlocking));
	/* Kernels are loaded by their first use, which is not allowed during a capture. */
	for (const void *f : { (const void *)k_node, (const void *)k_fork, (const void *)k_beside }) {
		cudaFuncAttributes attributes;

		OK(cudaFuncGetAttributes(&attributes, f));
	}
	pthread_create(&thread, NULL, beside, own);
	for (auto &m : modes)
		for (int blocking = 0; blocking < 2; blocking++) {
			before = sum;
			sum = capture(m.mode, blocking);
			printf("mode %s stream %s: sum %llu\n", m.name, blocking ? "blocking" : "other", sum);
		}
	OK(cudaMemcpy(&host, device, sizeof(host), cudaMemcpyDeviceToHost));
	if (want > 0)
		wrong = capture_more(want, sum, sum - before);
	over = true;
	pthread_join(thread, NULL);
	OK(cudaDeviceSynchronize());
	OK(cudaMemcpy(&host.beside, &device->beside, sizeof(host.beside), cudaMemcpyDeviceToHost));
	for (unsigned long long i = 0; i < host.replay; i++)
		ns += host.replays[i].end - host.replays[i].begin;
	if (want <= 0)
		fprintf(stderr, "graph main;capture;replay %llu %d %llu\n", host.replay, NODES + 1, ns);
	fprintf(stderr, "chain beside;beside_leaf k_beside %lu %llu\n", beside_launches,
		host.beside.end);
	printf("beside: %s\n", host.beside.begin == beside_launches ? "all ran" : "lost");
	return wrong || host.beside.begin != beside_launches;
}
