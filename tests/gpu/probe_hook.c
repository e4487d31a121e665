// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The hooks. One generic hook per entry: six register arguments and ten stack words are passed
 * on, which covers every entry on the list (all integer arguments).
 */
#include "probe_hook.h"
#include "probe_common.h"


#define PROBE_BOTH(x) x, x "_ptsz"

/* Order: launches first, then what keeps the books, then other work in streams. */
static const char *const hook_names[] = {
	PROBE_BOTH("cuLaunchKernel"), PROBE_BOTH("cuLaunchKernelEx"),
	PROBE_BOTH("cuLaunchCooperativeKernel"), "cuLaunchCooperativeKernelMultiDevice",
	"cuLaunch", "cuLaunchGrid", "cuLaunchGridAsync", PROBE_BOTH("cuGraphLaunch"),
	PROBE_BOTH("cuGraphUpload"),
	PROBE_BOTH("cuStreamBeginCapture"), PROBE_BOTH("cuStreamBeginCapture_v2"),
	PROBE_BOTH("cuStreamBeginCaptureToGraph"), PROBE_BOTH("cuStreamEndCapture"),
	"cuGraphInstantiate", "cuGraphInstantiate_v2", "cuGraphInstantiateWithFlags",
	PROBE_BOTH("cuGraphInstantiateWithParams"), "cuGraphExecDestroy",
	"cuCtxDestroy", "cuCtxDestroy_v2", "cuDevicePrimaryCtxReset",
	"cuDevicePrimaryCtxReset_v2", "cuDevicePrimaryCtxRelease",
	"cuDevicePrimaryCtxRelease_v2", "cuGreenCtxDestroy", "cuStreamDestroy",
	"cuStreamDestroy_v2", "cuModuleUnload", "cuLibraryUnload", "cuCtxCreate",
	"cuCtxCreate_v2", "cuCtxCreate_v3", "cuCtxCreate_v4", "cuDevicePrimaryCtxRetain",
	PROBE_BOTH("cuEventRecord"), PROBE_BOTH("cuEventRecordWithFlags"),
	PROBE_BOTH("cuMemcpyAsync"), PROBE_BOTH("cuMemcpyHtoDAsync_v2"),
	PROBE_BOTH("cuMemcpyDtoHAsync_v2"), PROBE_BOTH("cuMemcpyDtoDAsync_v2"),
	PROBE_BOTH("cuMemcpyAtoHAsync_v2"), PROBE_BOTH("cuMemcpyHtoAAsync_v2"),
	PROBE_BOTH("cuMemcpyPeerAsync"), PROBE_BOTH("cuMemcpy2DAsync_v2"),
	PROBE_BOTH("cuMemcpy3DAsync_v2"), PROBE_BOTH("cuMemcpy3DPeerAsync"),
	PROBE_BOTH("cuMemcpyBatchAsync"), PROBE_BOTH("cuMemcpyBatchAsync_v2"),
	PROBE_BOTH("cuMemcpy3DBatchAsync"), PROBE_BOTH("cuMemcpy3DBatchAsync_v2"),
	PROBE_BOTH("cuMemsetD8Async"), PROBE_BOTH("cuMemsetD16Async"),
	PROBE_BOTH("cuMemsetD32Async"), PROBE_BOTH("cuMemsetD2D8Async"),
	PROBE_BOTH("cuMemsetD2D16Async"), PROBE_BOTH("cuMemsetD2D32Async"),
	PROBE_BOTH("cuMemAllocAsync"), PROBE_BOTH("cuMemAllocFromPoolAsync"),
	PROBE_BOTH("cuMemFreeAsync"), PROBE_BOTH("cuMemMapArrayAsync"),
	PROBE_BOTH("cuMemPrefetchAsync"), PROBE_BOTH("cuMemPrefetchAsync_v2"),
	PROBE_BOTH("cuMemPrefetchBatchAsync"), PROBE_BOTH("cuMemDiscardAndPrefetchBatchAsync"),
	PROBE_BOTH("cuMemDiscardBatchAsync"), PROBE_BOTH("cuMemBatchDecompressAsync"),
	PROBE_BOTH("cuStreamWaitEvent"), PROBE_BOTH("cuStreamWaitValue32"),
	PROBE_BOTH("cuStreamWaitValue32_v2"), PROBE_BOTH("cuStreamWaitValue64"),
	PROBE_BOTH("cuStreamWaitValue64_v2"), PROBE_BOTH("cuStreamWriteValue32"),
	PROBE_BOTH("cuStreamWriteValue32_v2"), PROBE_BOTH("cuStreamWriteValue64"),
	PROBE_BOTH("cuStreamWriteValue64_v2"), PROBE_BOTH("cuStreamBatchMemOp"),
	PROBE_BOTH("cuStreamBatchMemOp_v2"), PROBE_BOTH("cuStreamAddCallback"),
	PROBE_BOTH("cuLaunchHostFunc"), PROBE_BOTH("cuStreamAttachMemAsync"),
	PROBE_BOTH("cuSignalExternalSemaphoresAsync"),
	PROBE_BOTH("cuWaitExternalSemaphoresAsync"),
	"cuMemcpyDtoH_v2", "cuMemcpyHtoD_v2", "cuMemcpyDtoD_v2", "cuMemcpy",
	"cuMemsetD8_v2", "cuMemsetD32_v2",
};
#define PROBE_HOOKS ((int)(sizeof(hook_names) / sizeof(hook_names[0])))
#define PROBE_HOOKS_MAX 160
_Static_assert(PROBE_HOOKS <= PROBE_HOOKS_MAX, "more names than hooks");

static struct {
	uintptr_t original;
	_Atomic long calls;
	_Atomic long errors;
	_Atomic long inner;
} hooks[PROBE_HOOKS_MAX];

static _Atomic long nested[PROBE_HOOKS_MAX][PROBE_HOOKS_MAX];
static _Atomic long attributes[64];
static _Atomic long attribute_counts[8];
static _Atomic long pdl_on;
static _Atomic long hits;

static struct kernel_count {
	_Atomic uintptr_t handle;
	int entry;
	int kind;
	char name[256];
	_Atomic long live, captured, implicit;
} kernels[4096];

static __thread int depth;
static __thread int stack[8];

typedef long (*probe_fn)(long, long, long, long, long, long, long, long, long, long, long, long,
			 long, long, long, long);

static struct kernel_count *kernel_slot(uintptr_t handle, int entry)
{
	unsigned int at = (unsigned int)((handle >> 4) * 2654435761u) % 4096;

	for (int i = 0; i < 4096; i++, at = (at + 1) % 4096) {
		struct kernel_count *k = &kernels[at];
		uintptr_t none = 0;

		if (k->handle == handle && k->entry == entry)
			return k;
		if (k->handle || !__atomic_compare_exchange_n((uintptr_t *)&k->handle, &none,
				handle, 0, __ATOMIC_RELAXED, __ATOMIC_RELAXED))
			continue;
		k->entry = entry;
		const char *name = NULL;

		k->kind = 'F';
		if (cu.FuncGetName(&name, (CUfunction)handle)) {
			k->kind = 'K';
			name = NULL;
			if (cu.KernelGetName(&name, (CUkernel)handle))
				k->kind = '?';
		}
		snprintf(k->name, sizeof(k->name), "%s", name ? name : "(unknown)");
		return k;
	}
	return NULL;
}

static void count_kernel(int entry, uintptr_t handle, CUstream stream)
{
	struct kernel_count *k = kernel_slot(handle, entry);
	CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
	int rc;

	if (!stream && entry % 2)
		stream = (CUstream)2;	/* NULL in a _ptsz entry is the thread's own stream */
	rc = cu.StreamIsCapturing(stream, &status);

	if (!k)
		return;
	if (rc)
		k->implicit++;
	else if (status != CU_STREAM_CAPTURE_STATUS_NONE)
		k->captured++;
	else
		k->live++;
}

static void look_at_launch(int entry, long a0, long a1, long s8)
{
	const CUlaunchConfig *config = (const CUlaunchConfig *)a0;

	if (entry < 2 || entry == 4 || entry == 5) {
		count_kernel(entry, (uintptr_t)a0, (CUstream)s8);
	} else if (entry == 2 || entry == 3) {
		if (!config)
			return;
		attribute_counts[config->numAttrs < 7 ? config->numAttrs : 7]++;
		for (unsigned int i = 0; i < config->numAttrs && i < 64; i++) {
			attributes[config->attrs[i].id & 63]++;
			if (config->attrs[i].id == 6)
				pdl_on += *(const int *)&config->attrs[i].value;
		}
		count_kernel(entry, (uintptr_t)a1, config->hStream);
	}
}

static long hook_common(int me, long a0, long a1, long a2, long a3, long a4, long a5, long s0,
			long s1, long s2, long s3, long s4, long s5, long s6, long s7, long s8,
			long s9)
{
	long rc;

	hooks[me].calls++;
	if (!depth) {
		hits++;
	} else {
		nested[stack[(depth - 1) & 7]][me]++;
		hooks[me].inner++;
	}
	stack[depth & 7] = me;
	depth++;
	if (me < PROBE_LAUNCHES)
		look_at_launch(me, a0, a1, s2);
	rc = ((probe_fn)hooks[me].original)(a0, a1, a2, a3, a4, a5, s0, s1, s2, s3, s4, s5, s6,
					    s7, s8, s9);
	if ((int)rc)
		hooks[me].errors++;
	depth--;
	return rc;
}

#define H1(n) static long hook_##n(long a, long b, long c, long d, long e, long f, long g, \
		long h, long i, long j, long k, long l, long m, long o, long p, long q) \
	{ return hook_common(n, a, b, c, d, e, f, g, h, i, j, k, l, m, o, p, q); }
#define H10(n) H1(n##0) H1(n##1) H1(n##2) H1(n##3) H1(n##4) H1(n##5) H1(n##6) H1(n##7) H1(n##8) \
	H1(n##9)
#define P1(n) hook_##n,
#define P10(n) P1(n##0) P1(n##1) P1(n##2) P1(n##3) P1(n##4) P1(n##5) P1(n##6) P1(n##7) P1(n##8) \
	P1(n##9)
/* Hooks are numbered 100 to 259 so that token pasting makes no octal numbers. */
#define H160 H10(10) H10(11) H10(12) H10(13) H10(14) H10(15) H10(16) H10(17) H10(18) H10(19) \
	H10(20) H10(21) H10(22) H10(23) H10(24) H10(25)
#define P160 P10(10) P10(11) P10(12) P10(13) P10(14) P10(15) P10(16) P10(17) P10(18) P10(19) \
	P10(20) P10(21) P10(22) P10(23) P10(24) P10(25)
#define hook_common(n, ...) hook_common((n) - 100, __VA_ARGS__)
H160
static const probe_fn hook_table[] = { P160 };

int probe_hook_index(const char *name)
{
	for (int h = 0; h < PROBE_HOOKS; h++)
		if (!strcmp(name, hook_names[h]))
			return h;
	return -1;
}

uintptr_t probe_hook_function(int hook)
{
	return (uintptr_t)hook_table[hook];
}

void probe_hook_set_original(int hook, uintptr_t original)
{
	if (!cu.Init)
		cu_load();
	hooks[hook].original = original;
	__sync_synchronize();
}

long probe_hook_hits(void)
{
	return __atomic_exchange_n((long *)&hits, 0, __ATOMIC_RELAXED);
}

void probe_hook_report(const char *tag)
{
	FILE *out = probe_hook_out();

	fprintf(out, "report %s\n", tag);
	for (int h = 0; h < PROBE_HOOKS; h++)
		if (hooks[h].calls)
			fprintf(out, "  entry %-34s calls %6ld, inside another %ld, errors %ld\n",
				hook_names[h], hooks[h].calls, hooks[h].inner, hooks[h].errors);
	for (int a = 0; a < PROBE_HOOKS; a++)
		for (int b = 0; b < PROBE_HOOKS; b++)
			if (nested[a][b])
				fprintf(out, "  nested %s > %s: %ld\n", hook_names[a],
					hook_names[b], nested[a][b]);
	for (int i = 0; i < 4096; i++)
		if (kernels[i].handle)
			fprintf(out, "  kernel %6ld live %4ld captured %2ld implicit %c %s %s\n",
				kernels[i].live, kernels[i].captured, kernels[i].implicit,
				kernels[i].kind, hook_names[kernels[i].entry], kernels[i].name);
	for (int i = 0; i < 8; i++)
		if (attribute_counts[i])
			fprintf(out, "  Ex launches with %d attributes: %ld\n", i,
				attribute_counts[i]);
	for (int i = 0; i < 64; i++)
		if (attributes[i])
			fprintf(out, "  attribute id %d: %ld\n", i, attributes[i]);
	fprintf(out, "  programmatic serialisation allowed: %ld\n", pdl_on);
	fflush(out);
}

#ifdef PROBE_LIBRARY
static void at_exit(void)
{
	probe_hook_dump("atexit");
	probe_hook_report("at exit");
}

int InitializeInjection(void);
__attribute__((visibility("default"))) int InitializeInjection(void)
{
	if (probe_hook_init())
		return 1;
	fprintf(probe_hook_out(), "InitializeInjection in pid %d\n", getpid());
	probe_hook_dump("inside InitializeInjection");
	if (getenv("PROBE_SWAP"))
		probe_hook_swap(0);
	atexit(at_exit);
	return 1;
}
#endif
