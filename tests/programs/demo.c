// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The program that `make demo` profiles: training steps of a make-believe model. The same kernel is
 * launched from several places, so that only a call path says where the device's time goes. Each
 * kernel spins for a given time; the program keeps its own account and prints it at the end.
 * Runs on a real driver and on tests/simcuda.
 *
 *	demo [STEPS]	200 steps take about two seconds of device time
 *	demo --probe	status 0 if there is a driver with a device that can run this
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "tests/simcuda/cu.h"

#define NOINLINE __attribute__((noinline, noclone))
/* Code behind the last call of a function: no tail call may take its frame out of the stack. */
#define KEEP_FRAME() __asm__ volatile("" ::: "memory")

/* Spins until the parameter's number of nanoseconds has passed on the device's clock. */
#define SPIN(name) \
	".visible .entry spin_" name "(.param .u64 duration)\n" \
	"{\n" \
	"	.reg .u64 %start, %now, %past, %want;\n" \
	"	.reg .pred %more;\n" \
	"	ld.param.u64 %want, [duration];\n" \
	"	mov.u64 %start, %globaltimer;\n" \
	"SPIN:\n" \
	"	mov.u64 %now, %globaltimer;\n" \
	"	sub.u64 %past, %now, %start;\n" \
	"	setp.lt.u64 %more, %past, %want;\n" \
	"	@%more bra SPIN;\n" \
	"	ret;\n" \
	"}\n"

static const char module_text[] =
	".version 7.0\n.target sm_75\n.address_size 64\n"
	SPIN("matmul") SPIN("softmax") SPIN("gelu") SPIN("cross_entropy") SPIN("adam");

enum kernel { MATMUL, SOFTMAX, GELU, CROSS_ENTROPY, ADAM, NR_KERNELS };
static const char *const kernel_names[NR_KERNELS] = {
	"spin_matmul", "spin_softmax", "spin_gelu", "spin_cross_entropy", "spin_adam",
};

enum place { ATTENTION, MLP, LOSS, ATTENTION_BACKWARD, MLP_BACKWARD, OPTIMIZER, NR_PLACES };
static const char *const place_names[NR_PLACES] = {
	"train;train_step;forward;attention", "train;train_step;forward;mlp",
	"train;train_step;loss", "train;train_step;backward;attention_backward",
	"train;train_step;backward;mlp_backward", "train;train_step;optimizer_step",
};

struct account {
	unsigned long launches;
	uint64_t ns;
};

struct model {
	CUstream stream;
	CUfunction kernel[NR_KERNELS];
	struct account account[NR_PLACES][NR_KERNELS];
	uint32_t sample[4096];
	uint32_t checksum;
};

static void must(CUresult result, const char *what)
{
	const char *name = NULL;

	if (result == CU_OK)
		return;
	cuGetErrorName(result, &name);
	fprintf(stderr, "demo: %s: %s\n", what, name ? name : "unknown error");
	exit(1);
}

/* One call for all launches, as programs have it: only the path tells them apart. */
NOINLINE static void launch(struct model *m, enum place at, enum kernel k, uint64_t us)
{
	uint64_t ns = us * 1000;
	void *params[] = { &ns };

	must(cuLaunchKernel(m->kernel[k], 1, 1, 1, 1, 1, 1, 0, m->stream, params, NULL),
	     "cuLaunchKernel");
	m->account[at][k].launches++;
	m->account[at][k].ns += ns;
}

NOINLINE static void attention(struct model *m)
{
	launch(m, ATTENTION, MATMUL, 600);
	launch(m, ATTENTION, SOFTMAX, 300);
	launch(m, ATTENTION, MATMUL, 600);
	KEEP_FRAME();
}

NOINLINE static void mlp(struct model *m)
{
	launch(m, MLP, MATMUL, 900);
	launch(m, MLP, GELU, 200);
	launch(m, MLP, MATMUL, 900);
	KEEP_FRAME();
}

NOINLINE static void forward(struct model *m)
{
	attention(m);
	mlp(m);
	KEEP_FRAME();
}

NOINLINE static void loss(struct model *m)
{
	launch(m, LOSS, CROSS_ENTROPY, 250);
	KEEP_FRAME();
}

NOINLINE static void attention_backward(struct model *m)
{
	for (int i = 0; i < 4; i++)
		launch(m, ATTENTION_BACKWARD, MATMUL, 500);
	launch(m, ATTENTION_BACKWARD, SOFTMAX, 350);
	KEEP_FRAME();
}

NOINLINE static void mlp_backward(struct model *m)
{
	launch(m, MLP_BACKWARD, MATMUL, 1600);
	launch(m, MLP_BACKWARD, GELU, 400);
	launch(m, MLP_BACKWARD, MATMUL, 1600);
	KEEP_FRAME();
}

NOINLINE static void backward(struct model *m)
{
	mlp_backward(m);
	attention_backward(m);
	KEEP_FRAME();
}

NOINLINE static void optimizer_step(struct model *m)
{
	launch(m, OPTIMIZER, ADAM, 800);
	KEEP_FRAME();
}

/* Work for the CPU while the device has some of its own: --metric cpu shows it. */
NOINLINE static void shuffle_samples(struct model *m, uint32_t seed)
{
	for (int round = 0; round < 50; round++) {
		for (size_t i = 0; i < 4096; i++) {
			seed = seed * 1664525u + 1013904223u;
			m->sample[i] ^= seed >> 7;
			m->checksum += m->sample[(i * 31) & 4095];
		}
	}
	KEEP_FRAME();
}

NOINLINE static void load_batch(struct model *m, int step)
{
	shuffle_samples(m, (uint32_t)step + 1);
	KEEP_FRAME();
}

NOINLINE static void train_step(struct model *m, int step)
{
	forward(m);
	loss(m);
	backward(m);
	optimizer_step(m);
	load_batch(m, step);
	must(cuStreamSynchronize(m->stream), "cuStreamSynchronize");
	KEEP_FRAME();
}

NOINLINE static void train(struct model *m, int steps)
{
	for (int step = 0; step < steps; step++)
		train_step(m, step);
	KEEP_FRAME();
}

static void model__open(struct model *m)
{
	CUdevice device;
	CUcontext context;
	CUmodule module;

	must(cuInit(0), "cuInit");
	must(cuDeviceGet(&device, 0), "cuDeviceGet");
	must(cuDevicePrimaryCtxRetain(&context, device), "cuDevicePrimaryCtxRetain");
	must(cuCtxSetCurrent(context), "cuCtxSetCurrent");
	must(cuModuleLoadData(&module, module_text), "cuModuleLoadData");
	for (int k = 0; k < NR_KERNELS; k++)
		must(cuModuleGetFunction(&m->kernel[k], module, kernel_names[k]),
		     kernel_names[k]);
	must(cuStreamCreate(&m->stream, CU_STREAM_NONBLOCKING), "cuStreamCreate");
}

static void print_account(const struct model *m)
{
	for (int p = 0; p < NR_PLACES; p++)
		for (int k = 0; k < NR_KERNELS; k++)
			if (m->account[p][k].launches)
				printf("%s;launch;%s %lu launches %llu ns\n", place_names[p],
				       kernel_names[k], m->account[p][k].launches,
				       (unsigned long long)m->account[p][k].ns);
}

static int probe(void)
{
	CUmodule module;
	CUcontext context;
	CUdevice device;
	int n = 0;

	if (cuInit(0) || cuDeviceGetCount(&n) || n < 1 || cuDeviceGet(&device, 0))
		return 1;
	if (cuDevicePrimaryCtxRetain(&context, device) || cuCtxSetCurrent(context))
		return 1;
	return cuModuleLoadData(&module, module_text) ? 1 : 0;
}

int main(int argc, char **argv)
{
	static struct model m;
	int steps = 200;

	if (argc == 2 && !strcmp(argv[1], "--probe"))
		return probe();
	if (argc == 2)
		steps = atoi(argv[1]);
	if (argc > 2 || steps < 1) {
		fprintf(stderr, "usage: demo [STEPS] | demo --probe\n");
		return 2;
	}
	model__open(&m);
	train(&m, steps);
	print_account(&m);
	return 0;
}
