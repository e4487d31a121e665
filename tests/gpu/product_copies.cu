// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Copies and sets of known kinds, shapes and sizes, each from a function of its own. Its own account, to be
 * compared with what gpucollect says and with CUPTI's memcpy and memset records:
 *
 *	product_copies [HOW] [ROUNDS] [BYTES]	default: all, 20 rounds of 64 MiB
 *
 * HOW: shapes: from pinned memory, within the device and with arrays; batch: the batches alone, of which
 * CUPTI may have other records than one each; pageable: what the calls themselves copy, too; all.
 *
 *	copy COUNT BYTES WHAT PATH	WHAT as gpucollect calls it; a kind of CUPTI has the same name
 */
#include "tests/gpu/product_app.h"

#include <cstring>

#define MAX_WAYS 24
#define ROW (1u << 20)		/* from row to row; rows are a little shorter */
#define ELEMENTS 16384		/* floats in a row of an array */
#define TIMES 8			/* so much more is moved where no memory of the host is */
#define PARTS 4			/* of a batch */

static struct way {
	const char *what, *path;
	unsigned long long count, bytes;
} ways[MAX_WAYS];

static char *device, *other, *pinned, *pageable;
static cudaArray_t array, second;
static cudaStream_t stream;

static void add(const char *path, const char *what, size_t n)
{
	struct way *w = ways;

	while (w->path && strcmp(w->path, path))
		w++;
	w->path = path;
	w->what = what;
	w->count++;
	w->bytes += n;
}

#define WAY(name, what, bytes, call)				\
	NOINLINE static void name(size_t n)			\
	{							\
		OK(call);					\
		add("main;round_of;" #name, what, bytes);	\
		KEEP_FRAME();					\
	}

WAY(up, "memcpy HtoD", n, cudaMemcpyAsync(device, pinned, n, cudaMemcpyHostToDevice, stream))
WAY(down, "memcpy DtoH", 2 * n, cudaMemcpyAsync(pinned, device, 2 * n, cudaMemcpyDeviceToHost, stream))
WAY(within, "memcpy DtoD", TIMES * n,
    cudaMemcpyAsync(other, device, TIMES * n, cudaMemcpyDeviceToDevice, stream))
WAY(either, "memcpy HtoD", n, cudaMemcpyAsync(device, pinned, n, cudaMemcpyDefault, stream))
WAY(peer, "memcpy PtoP", TIMES * n, cudaMemcpyPeerAsync(other, 0, device, 0, TIMES * n, stream))
WAY(set, "memset", TIMES * n, cudaMemsetAsync(device, 7, TIMES * n, stream))
WAY(up_pageable, "memcpy HtoD", n, cudaMemcpyAsync(device, pageable, n, cudaMemcpyHostToDevice, stream))
WAY(down_pageable, "memcpy DtoH", n, cudaMemcpyAsync(pageable, device, n, cudaMemcpyDeviceToHost, stream))

/* --- of two and three dimensions, and of arrays ------------------------------------------------ */
#define WIDTH (ROW - 256)
#define ROWS(n) ((n) / ROW)
#define FLAT(n) ((size_t)WIDTH * ROWS(n))
#define IN_ARRAY (ELEMENTS * sizeof(float))

WAY(flat_up, "memcpy HtoD", FLAT(n),
    cudaMemcpy2DAsync(device, ROW, pinned, ROW, WIDTH, ROWS(n), cudaMemcpyHostToDevice, stream))
WAY(flat_down, "memcpy DtoH", FLAT(n),
    cudaMemcpy2DAsync(pinned, ROW, device, ROW, WIDTH, ROWS(n), cudaMemcpyDeviceToHost, stream))
WAY(flat_either, "memcpy DtoH", FLAT(n),
    cudaMemcpy2DAsync(pinned, ROW, device, ROW, WIDTH, ROWS(n), cudaMemcpyDefault, stream))
WAY(flat_within, "memcpy DtoD", FLAT(TIMES * n),
    cudaMemcpy2DAsync(other, ROW, device, ROW, WIDTH, ROWS(TIMES * n), cudaMemcpyDeviceToDevice, stream))
WAY(flat_set, "memset", FLAT(TIMES * n), cudaMemset2DAsync(device, ROW, 7, WIDTH, ROWS(TIMES * n), stream))
WAY(array_up, "memcpy HtoA", n,
    cudaMemcpy2DToArrayAsync(array, 0, 0, pinned, IN_ARRAY, IN_ARRAY, n / IN_ARRAY,
			     cudaMemcpyHostToDevice, stream))
WAY(array_down, "memcpy AtoH", n,
    cudaMemcpy2DFromArrayAsync(pinned, IN_ARRAY, array, 0, 0, IN_ARRAY, n / IN_ARRAY,
			       cudaMemcpyDeviceToHost, stream))
WAY(array_in, "memcpy DtoA", TIMES * n,
    cudaMemcpy2DToArrayAsync(array, 0, 0, device, IN_ARRAY, IN_ARRAY, TIMES * n / IN_ARRAY,
			     cudaMemcpyDeviceToDevice, stream))
WAY(array_out, "memcpy AtoD", TIMES * n,
    cudaMemcpy2DFromArrayAsync(other, IN_ARRAY, array, 0, 0, IN_ARRAY, TIMES * n / IN_ARRAY,
			       cudaMemcpyDeviceToDevice, stream))

/* Layers of half of the rows; between two arrays an extent counts elements. */
static cudaError_t copy_solid(bool arrays, size_t n)
{
	cudaMemcpy3DParms p = {};

	p.kind = cudaMemcpyDeviceToDevice;
	if (arrays) {
		p.srcArray = array;
		p.dstArray = second;
		p.extent = make_cudaExtent(ELEMENTS, n / IN_ARRAY, 1);
	} else {
		p.srcPtr = make_cudaPitchedPtr(device, ROW, WIDTH, ROWS(n) / 2);
		p.dstPtr = make_cudaPitchedPtr(other, ROW, WIDTH, ROWS(n) / 2);
		p.extent = make_cudaExtent(WIDTH, ROWS(n) / 2, 2);
	}
	return cudaMemcpy3DAsync(&p, stream);
}

WAY(solid_within, "memcpy DtoD", FLAT(TIMES * n), copy_solid(false, TIMES * n))
WAY(array_within, "memcpy AtoA", TIMES * n, copy_solid(true, TIMES * n))

/* --- batches ----------------------------------------------------------------------------------- */
#if CUDART_VERSION >= 13000
static cudaError_t copy_batch(char *to, char *from, size_t n)
{
	const void *sources[PARTS];
	void *targets[PARTS];
	size_t sizes[PARTS], first = 0;
	cudaMemcpyAttributes in_order = {};

	in_order.srcAccessOrder = cudaMemcpySrcAccessOrderStream;
	for (size_t i = 0; i < PARTS; i++) {
		targets[i] = to + i * (n / PARTS);
		sources[i] = from + i * (n / PARTS);
		sizes[i] = n / PARTS;
	}
	return cudaMemcpyBatchAsync(targets, sources, sizes, PARTS, &in_order, &first, 1, stream);
}

WAY(batch_up, "memcpy HtoD", n, copy_batch(device, pinned, n))
WAY(batch_within, "memcpy DtoD", TIMES * n, copy_batch(other, device, TIMES * n))
#endif

NOINLINE static void round_of(const char *how, size_t n)
{
	bool all = !strcmp(how, "all");

	if (all || !strcmp(how, "shapes")) {
		static void (*const shapes[])(size_t n) = {
			up, down, within, either, peer, set, flat_up, flat_down, flat_either, flat_within,
			flat_set, array_up, array_down, array_in, array_out, solid_within, array_within,
		};

		for (size_t i = 0; i < sizeof(shapes) / sizeof(shapes[0]); i++)
			shapes[i](n);
	}
	if (all || !strcmp(how, "pageable")) {
		up_pageable(n);
		down_pageable(n);
	}
#if CUDART_VERSION >= 13000
	if (all || !strcmp(how, "batch")) {
		batch_up(n);
		batch_within(n);
	}
#endif
	OK(cudaStreamSynchronize(stream));
	KEEP_FRAME();
}

int main(int argc, char **argv)
{
	const char *how = argc > 1 ? argv[1] : "all";
	size_t rounds = argc > 2 ? strtoul(argv[2], NULL, 10) : 20;
	size_t bytes = argc > 3 ? strtoul(argv[3], NULL, 10) / ROW * ROW : 64 << 20;
	cudaChannelFormatDesc floats = cudaCreateChannelDesc<float>();

	OK(cudaMalloc(&device, TIMES * bytes));
	OK(cudaMalloc(&other, TIMES * bytes));
	OK(cudaMallocHost(&pinned, 2 * bytes));
	OK(cudaMallocArray(&array, &floats, ELEMENTS, TIMES * bytes / IN_ARRAY));
	OK(cudaMallocArray(&second, &floats, ELEMENTS, TIMES * bytes / IN_ARRAY));
	pageable = (char *)calloc(1, bytes);
	OK(cudaStreamCreate(&stream));
	for (size_t i = 0; i < rounds; i++)
		round_of(how, bytes);
	for (struct way *w = ways; w->path; w++)
		printf("copy %llu %llu %s %s\n", w->count, w->bytes, w->what, w->path);
	return 0;
}
