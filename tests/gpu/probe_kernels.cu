// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Kernels of the hardware probes: they time themselves on the GPU's global timer. */

typedef unsigned long long u64;

static __device__ __forceinline__ u64 global_ns(void)
{
	u64 t;

	asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(t));
	return t;
}

extern "C" __global__ void k_empty(void)
{
}

extern "C" __global__ void k_args(u64 a, u64 b, u64 c, u64 d, u64 e, u64 f, u64 g, u64 h, u64 *out)
{
	if (out)
		*out = a + b + c + d + e + f + g + h;
}

/* out: two words for each block of this launch, start and end. */
extern "C" __global__ void k_spin(u64 ns, u64 *out)
{
	u64 start = global_ns(), end = start;

	while (end - start < ns)
		end = global_ns();
	if (out && threadIdx.x == 0) {
		out[2 * blockIdx.x] = start;
		out[2 * blockIdx.x + 1] = end;
	}
}

/* As k_spin, under a name of its own: what keeps a stream busy between measurements. */
extern "C" __global__ void k_fill(u64 ns)
{
	u64 start = global_ns();

	while (global_ns() - start < ns)
		;
}

/* Holds its stream until *flag is set by the host, at most limit ns. */
extern "C" __global__ void k_hold(volatile unsigned int *flag, u64 limit)
{
	u64 start = global_ns();

	while (!*flag && global_ns() - start < limit)
		;
}

/* n successive distinct readings of the global timer. */
extern "C" __global__ void k_ticks(u64 *out, int n)
{
	u64 last = global_ns();

	for (int i = 0; i < n; i++) {
		u64 t;

		do {
			t = global_ns();
		} while (t == last);
		out[i] = t - last;
		last = t;
	}
}
