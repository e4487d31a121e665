// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Copies and sets of known kinds, sizes and directions, each from a function of its own, from pinned
 * and from pageable memory. Its own account, to be compared with what gpucollect says and with CUPTI's
 * memcpy and memset records:
 *
 *	product_copies [ROUNDS] [BYTES]		default 200 rounds of 1 MiB and more
 *
 *	copy COUNT BYTES WHAT PATH	WHAT as gpucollect calls it; a kind of CUPTI has the same name
 */
#include "tests/gpu/product_app.h"

enum { UP, UP_PAGEABLE, DOWN, DOWN_PAGEABLE, WITHIN, EITHER, PEER, SET, NR_WAYS };

static struct way {
	const char *what, *path;
	unsigned long long count, bytes;
} ways[NR_WAYS] = {
	{ "memcpy HtoD", "main;round_of;up", 0, 0 },
	{ "memcpy HtoD", "main;round_of;up_pageable", 0, 0 },
	{ "memcpy DtoH", "main;round_of;down", 0, 0 },
	{ "memcpy DtoH", "main;round_of;down_pageable", 0, 0 },
	{ "memcpy DtoD", "main;round_of;within", 0, 0 },
	{ "memcpy HtoD", "main;round_of;either", 0, 0 },
	{ "memcpy PtoP", "main;round_of;peer", 0, 0 },
	{ "memset", "main;round_of;set", 0, 0 },
};

static char *device, *other, *pinned, *pageable;
static cudaStream_t stream;

static void add(int way, size_t n)
{
	ways[way].count++;
	ways[way].bytes += n;
}

#define WAY(name, way, bytes, call)		\
	NOINLINE static void name(size_t n)	\
	{					\
		OK(call);			\
		add(way, bytes);		\
		KEEP_FRAME();			\
	}

WAY(up, UP, n, cudaMemcpyAsync(device, pinned, n, cudaMemcpyHostToDevice, stream))
WAY(up_pageable, UP_PAGEABLE, n, cudaMemcpyAsync(device, pageable, n, cudaMemcpyHostToDevice, stream))
WAY(down, DOWN, 2 * n, cudaMemcpyAsync(pinned, device, 2 * n, cudaMemcpyDeviceToHost, stream))
WAY(down_pageable, DOWN_PAGEABLE, n,
    cudaMemcpyAsync(pageable, device, n, cudaMemcpyDeviceToHost, stream))
WAY(within, WITHIN, 3 * n, cudaMemcpyAsync(other, device, 3 * n, cudaMemcpyDeviceToDevice, stream))
WAY(either, EITHER, n, cudaMemcpyAsync(device, pinned, n, cudaMemcpyDefault, stream))
WAY(peer, PEER, n, cudaMemcpyPeerAsync(other, 0, device, 0, n, stream))
WAY(set, SET, 4 * n, cudaMemsetAsync(device, 7, 4 * n, stream))

NOINLINE static void round_of(size_t n)
{
	up(n);
	up_pageable(n);
	down(n);
	down_pageable(n);
	within(n);
	either(n);
	peer(n);
	set(n);
	OK(cudaStreamSynchronize(stream));
	KEEP_FRAME();
}

int main(int argc, char **argv)
{
	size_t rounds = argc > 1 ? strtoul(argv[1], NULL, 10) : 200;
	size_t bytes = argc > 2 ? strtoul(argv[2], NULL, 10) : 1 << 20;
	size_t room = 4 * (bytes + 64 * rounds);

	OK(cudaMalloc(&device, room));
	OK(cudaMalloc(&other, room));
	OK(cudaMallocHost(&pinned, room));
	pageable = (char *)calloc(1, room);
	OK(cudaStreamCreate(&stream));
	for (size_t i = 0; i < rounds; i++)
		round_of(bytes + 64 * i);
	for (int i = 0; i < NR_WAYS; i++)
		printf("copy %llu %llu %s %s\n", ways[i].count, ways[i].bytes, ways[i].what,
		       ways[i].path);
	return 0;
}
