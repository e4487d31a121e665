// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Kernels that take different amounts of the device, launched through every kind of handle: of two modules
 * with one name, of a library, in a context of the program's own, first into a graph, and with another
 * kernel of the same name behind the same handle.
 *
 *	gpu_sizes
 *
 * At the end a line for each: "size NAME REGISTERS SHARED LAUNCHES"; 0 registers: it can't be told without
 * having the driver load something that the program has not loaded.
 */
#include "tests/programs/gpu_app.h"

#define LAUNCHES 6

static CUstream stream;

static void told(const char *name, int registers, int shared, int launches)
{
	printf("size %s %d %d %d\n", name, registers, shared, launches);
}

static void launch(CUfunction f)
{
	for (int i = 0; i < LAUNCHES; i++)
		MUST(app__launch(f, stream, 10000));
}

static CUfunction of_library(const char *text, const char *name)
{
	CUlibrary l;
	CUkernel k;

	MUST(cuLibraryLoadData(&l, text, NULL, NULL, 0, NULL, NULL, 0));
	MUST(cuLibraryGetKernel(&k, l, name));
	return (CUfunction)(void *)k;
}

static void plain(void)
{
	CUmodule m = app__module("STANDIN\nspin_small\nspin_wide\t168\t49152\nspin_twin\t40\t1024\n");
	CUmodule other = app__module("STANDIN\nspin_twin\t64\t0\n");
	CUmodule ptx = app__module(PTX(".visible .entry spin_ptx(.param .u64 ns)\n.maxnreg 24\n{\n"
				       "\t.shared .align 4 .b8 a[512];\n\t.shared .b8 b[16];\n\tret;\n}\n"));

	launch(app__function(m, "spin_small"));
	launch(app__function(m, "spin_wide"));
	launch(app__function(m, "spin_twin"));
	launch(app__function(other, "spin_twin"));
	launch(app__function(ptx, "spin_ptx"));
	launch(of_library("STANDIN\nspin_kernel\t255\t232448\n", "spin_kernel"));
	told("spin_small", 16, 0, LAUNCHES);
	told("spin_wide", 168, 49152, LAUNCHES);
	told("spin_twin", 40, 1024, LAUNCHES);
	told("spin_twin", 64, 0, LAUNCHES);
	told("spin_ptx", 24, 528, LAUNCHES);
	told("spin_kernel", 255, 232448, LAUNCHES);
}

/* Nothing is asked of the driver for a kernel that only goes into a graph. */
static void captured(void)
{
	CUfunction f = app__function(app__module("STANDIN\nspin_captured\t77\t16\n"), "spin_captured");
	CUgraph graph;

	MUST(cuStreamBeginCapture_v2(stream, CU_MODE_GLOBAL));
	MUST(app__launch(f, stream, 1000));
	MUST(cuStreamEndCapture(stream, &graph));
	MUST(cuGraphDestroy(graph));
	launch(f);
	told("spin_captured", 77, 16, LAUNCHES);
}

/* The handle comes again. */
static void again(void)
{
	CUmodule m = app__module("STANDIN\nspin_again\t20\t0\n");
	CUfunction f = app__function(m, "spin_again"), g;

	launch(f);
	MUST(cuStreamSynchronize(stream));
	MUST(cuModuleUnload(m));
	m = app__module("STANDIN\nspin_again\t21\t8\n");
	g = app__function(m, "spin_again");
	launch(g);
	told("spin_again", 20, 0, LAUNCHES);
	told("spin_again", 21, 8, LAUNCHES);
	if (f != g)
		printf("the handle is another\n");
}

/* A kernel of a library would have to be looked for in the primary context, where it isn't loaded. */
static void own_context(void)
{
	CUcontext c, before;
	CUfunction f;

	MUST(cuCtxGetCurrent(&before));
	MUST(cuCtxCreate_v2(&c, 0, 0));
	MUST(cuStreamCreate(&stream, CU_STREAM_NONBLOCKING));
	f = app__function(app__module("STANDIN\nspin_own\t50\t4\n"), "spin_own");
	launch(f);
	launch(of_library("STANDIN\nspin_unsaid\t51\t4\n", "spin_unsaid"));
	MUST(cuStreamSynchronize(stream));
	MUST(cuCtxSetCurrent(before));
	told("spin_own", 50, 4, LAUNCHES);
	told("spin_unsaid", 0, 0, LAUNCHES);
}

int main(void)
{
	app__start();
	stream = app__stream();
	plain();
	captured();
	again();
	MUST(cuStreamSynchronize(stream));
	own_context();
	return 0;
}
