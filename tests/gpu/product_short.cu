// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Short kernels, and small copies and sets, whose brackets are for the most part what a bracket adds:
 *
 *	product_short busy ROUNDS	a round's work is queued behind a long kernel
 *	product_short idle ROUNDS	the stream is waited for before and after each
 *
 * Prints "made COUNT WHAT", a line for each kernel, by its name, and for each kind of copy.
 */
#include "tests/gpu/product_app.h"

#include <cstring>

#define PLUG_NS 500000ull
#define SMALL 4
#define BYTES 65536

extern "C" {
__global__ void k_plug(unsigned long long ns) { spin(NULL, ns); }
__global__ void k_1us(unsigned long long ns) { spin(NULL, ns); }
__global__ void k_10us(unsigned long long ns) { spin(NULL, ns); }
__global__ void k_100us(unsigned long long ns) { spin(NULL, ns); }
}

enum { K1, K10, K100, UP, DOWN, WITHIN, SET, PLUG, NR_KINDS };
static const char *const what[NR_KINDS] = {
	"k_1us", "k_10us", "k_100us", "memcpy HtoD", "memcpy DtoH", "memcpy DtoD", "memset", "k_plug",
};

static int made[NR_KINDS];
static char *device, *other, *pinned;
static cudaStream_t stream;

static void make(int kind)
{
	switch (kind) {
	case K1: k_1us<<<1, 1, 0, stream>>>(1000); break;
	case K10: k_10us<<<1, 1, 0, stream>>>(10000); break;
	case K100: k_100us<<<1, 1, 0, stream>>>(100000); break;
	case UP: OK(cudaMemcpyAsync(device, pinned, SMALL, cudaMemcpyHostToDevice, stream)); break;
	case DOWN: OK(cudaMemcpyAsync(pinned, device, SMALL, cudaMemcpyDeviceToHost, stream)); break;
	case WITHIN: OK(cudaMemcpyAsync(other, device, BYTES, cudaMemcpyDeviceToDevice, stream)); break;
	case SET: OK(cudaMemsetAsync(device, 7, BYTES, stream)); break;
	case PLUG: k_plug<<<1, 1, 0, stream>>>(PLUG_NS); break;
	}
	OK(cudaGetLastError());
	made[kind]++;
}

static void round_of(bool busy)
{
	if (busy)
		make(PLUG);
	for (int kind = K1; kind <= SET; kind++) {
		if (!busy)
			OK(cudaStreamSynchronize(stream));
		make(kind);
	}
	OK(cudaStreamSynchronize(stream));
}

int main(int argc, char **argv)
{
	bool busy = argc > 1 && !strcmp(argv[1], "busy");
	int rounds = argc > 2 ? atoi(argv[2]) : 500;

	OK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
	OK(cudaMalloc((void **)&device, BYTES));
	OK(cudaMalloc((void **)&other, BYTES));
	OK(cudaMallocHost((void **)&pinned, BYTES));
	for (int i = 0; i < rounds; i++)
		round_of(busy);
	for (int kind = 0; kind < NR_KINDS; kind++)
		if (made[kind])
			printf("made %d %s\n", made[kind], what[kind]);
	return 0;
}
