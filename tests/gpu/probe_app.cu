// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * An nvcc program with the static runtime and known numbers of launches: the hooks' counts and
 * CUPTI's kernel records of a twin run are compared with what it prints.
 */
#include <cooperative_groups.h>
#include <cstdio>
#include <cstdlib>
#include <cuda_runtime.h>

__global__ void app_plain(float *p, int n)
{
	int i = blockIdx.x * blockDim.x + threadIdx.x;

	if (i < n)
		p[i] = p[i] * 1.5f + 1.0f;
}

__global__ void app_coop(float *p)
{
	cooperative_groups::this_grid().sync();
	p[blockIdx.x] += 1.0f;
}

__global__ void app_ex(float *p)
{
	p[threadIdx.x] += 2.0f;
}

__global__ void app_captured(float *p)
{
	p[threadIdx.x] += 3.0f;
}

__global__ void app_child(float *p)
{
	p[threadIdx.x] += 4.0f;
}

#define OK(x) do { \
		cudaError_t e = (x); \
		if (e != cudaSuccess) { \
			printf("line %d: %s\n", __LINE__, cudaGetErrorString(e)); \
			exit(1); \
		} \
	} while (0)

static void launch_ex(float *p, cudaStream_t s, bool pdl)
{
	cudaLaunchAttribute attr = {};
	cudaLaunchConfig_t cfg = {};

	attr.id = cudaLaunchAttributeProgrammaticStreamSerialization;
	attr.val.programmaticStreamSerializationAllowed = 1;
	cfg.gridDim = 1;
	cfg.blockDim = 32;
	cfg.stream = s;
	cfg.attrs = &attr;
	cfg.numAttrs = pdl;
	OK(cudaLaunchKernelEx(&cfg, app_ex, p));
}

int main(void)
{
	const int n = 1 << 16;
	cudaGraphExec_t exec;
	cudaStream_t s;
	cudaGraph_t g;
	float *p, *host;

	OK(cudaMalloc(&p, n * sizeof(*p)));
	OK(cudaMallocHost(&host, n * sizeof(*p)));
	OK(cudaStreamCreate(&s));
	for (int i = 0; i < 300; i++)
		app_plain<<<n / 256, 256, 0, s>>>(p, n);
	for (int i = 0; i < 70; i++)
		app_plain<<<n / 256, 256>>>(p, n);
	for (int i = 0; i < 30; i++)
		app_plain<<<n / 256, 256, 0, cudaStreamPerThread>>>(p, n);
	for (int i = 0; i < 20; i++) {
		void *args[] = { &p };

		OK(cudaLaunchCooperativeKernel((void *)app_coop, dim3(8), dim3(32), args, 0, s));
	}
	for (int i = 0; i < 50; i++)
		launch_ex(p, s, i % 2);
	for (int i = 0; i < 40; i++) {
		OK(cudaMemsetAsync(p, 0, 1000 + i, s));
		OK(cudaMemset(p, 0, 64));
		OK(cudaMemset2DAsync(p, 512, 0, 100, 20, s));
		OK(cudaMemcpyAsync(p + 1024, p, 4096, cudaMemcpyDeviceToDevice, s));
		OK(cudaMemcpyAsync(host, p, 4096, cudaMemcpyDeviceToHost, s));
	}
	OK(cudaStreamBeginCapture(s, cudaStreamCaptureModeGlobal));
	for (int i = 0; i < 10; i++)
		app_captured<<<1, 32, 0, s>>>(p);
	OK(cudaMemsetAsync(p, 0, 1000, s));
	OK(cudaStreamEndCapture(s, &g));
	OK(cudaGraphInstantiate(&exec, g, 0));
	for (int i = 0; i < 25; i++)
		OK(cudaGraphLaunch(exec, s));
	OK(cudaDeviceSynchronize());
	printf("truth: app_plain 400, app_coop 20, app_ex 50 (25 with PDL), "
	       "app_captured 10 captured, 25 graph launches\n");
	return 0;
}
