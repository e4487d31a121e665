// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Who writes the slots, and when? probe_slots ORDER:
 *   none         no swap, no CUPTI: only the program's own life
 *   swap         swap before the first context, no CUPTI (also under debuggers)
 *   swap-cupti   swap, then CUPTI comes and goes
 *   cupti-swap   CUPTI comes, then swap, then CUPTI goes
 *   cupti        CUPTI alone
 *   storm        four threads launch while the slots are swapped and restored 500 times
 */
#include "probe_hook.h"
#include "probe_cupti.h"
#include "probe_common.h"

static CUfunction empty;
static CUstream stream;

static void launch_ten(const char *tag, int swapped)
{
	long calls = probe_cupti_callbacks();
	int bad = 0;

	probe_hook_hits();
	for (int i = 0; i < 10; i++)
		bad += cu.LaunchKernel(empty, 1, 1, 1, 32, 1, 1, 0, stream, NULL, NULL) != 0;
	bad += cu.StreamSynchronize(stream) != 0;
	printf("  %s: 10 launches, %d errors, hooks saw %ld%s, CUPTI callbacks %ld\n", tag, bad,
	       probe_hook_hits(), swapped ? "" : " (none expected)",
	       probe_cupti_callbacks() - calls);
	probe_hook_dump(tag);
}

static void cupti_comes(int swapped)
{
	uint64_t start = now_ns();
	int rc = probe_cupti_load();

	printf("  cupti load %d\n", rc);
	if (rc)
		exit(1);
	probe_hook_dump("libcupti loaded");
	rc = probe_cupti_subscribe();
	printf("  cuptiSubscribe %d\n", rc);
	probe_hook_dump("subscribed");
	launch_ten("subscribed, launched", swapped);
	rc = probe_cupti_enable_driver_domain();
	printf("  driver domain on %d\n", rc);
	probe_hook_dump("driver domain on");
	launch_ten("driver domain on, launched", swapped);
	rc = probe_cupti_kernels(1);
	printf("  kernel activity on %d, all that took %lu ms\n", rc,
	       (now_ns() - start) / 1000000);
	probe_hook_dump("kernel activity on");
	launch_ten("kernel activity on, launched", swapped);
}

static void cupti_goes(int swapped)
{
	int rc = probe_cupti_kernels(0);

	printf("  kernel activity off %d, flush %d, records %ld\n", rc, probe_cupti_flush(),
	       probe_cupti_records());
	probe_hook_dump("kernel activity off");
	rc = probe_cupti_unsubscribe();
	printf("  unsubscribe %d\n", rc);
	probe_hook_dump("unsubscribed");
	launch_ten("unsubscribed, launched", swapped);
	rc = probe_cupti_finalize();
	printf("  finalize %d\n", rc);
	probe_hook_dump("finalized");
	launch_ten("finalized, launched", swapped);
}

static _Atomic int storm_over;
static _Atomic long storm_launches, storm_errors;
static CUcontext storm_ctx;

static void *storm_thread(void *arg)
{
	CUstream s;

	(void)arg;
	cu.CtxSetCurrent(storm_ctx);
	MUST(cu.StreamCreate(&s, CU_STREAM_NON_BLOCKING));
	for (int i = 1; !storm_over; i++) {
		storm_errors += cu.LaunchKernel(empty, 1, 1, 1, 32, 1, 1, 0, s, NULL, NULL) != 0;
		storm_launches++;
		if (i % 200 == 0)
			storm_errors += cu.StreamSynchronize(s) != 0;
	}
	return NULL;
}

static void storm(CUcontext ctx)
{
	pthread_t t[4];
	long n = 0;

	storm_ctx = ctx;
	probe_hook_hits();
	for (int i = 0; i < 4; i++)
		pthread_create(&t[i], NULL, storm_thread, NULL);
	probe_hook_quiet(1);
	for (int i = 0; i < 500; i++) {
		n += probe_hook_swap(0);
		sleep_us(200);
		n -= probe_hook_unswap();
		sleep_us(200);
	}
	probe_hook_quiet(0);
	storm_over = 1;
	for (int i = 0; i < 4; i++)
		pthread_join(t[i], NULL);
	printf("  storm: %ld launches, %ld errors, hooks saw %ld, swaps less restores %ld\n",
	       storm_launches, storm_errors, probe_hook_hits(), n);
	probe_hook_dump("after the storm");
}

int main(int argc, char **argv)
{
	const char *order = argc > 1 ? argv[1] : "none";
	int swap = strstr(order, "swap") != NULL, cupti = strstr(order, "cupti") != NULL;
	int cupti_first = !strncmp(order, "cupti", 5), swapped = 0;
	CUcontext first, second;
	CUmodule module;
	CUdevice dev;

	setvbuf(stdout, NULL, _IOLBF, 0);
	printf("order %s\n", order);
	cu_load();
	if (probe_hook_init())
		return 77;
	probe_hook_dump("before cuInit");
	MUST(cu.Init(0));
	probe_hook_dump("after cuInit");
	MUST(cu.DeviceGet(&dev, 0));
	if (swap && !cupti_first) {
		probe_hook_swap(0);
		swapped = 1;
		probe_hook_dump("swapped");
	}
	MUST(cu.PrimaryRetain(&first, dev));
	probe_hook_dump("primary context retained");
	MUST(cu.CtxSetCurrent(first));
	MUST(cu.ModuleLoad(&module, probe_cubin()));
	probe_hook_dump("module loaded");
	MUST(cu.ModuleGetFunction(&empty, module, "k_empty"));
	MUST(cu.StreamCreate(&stream, CU_STREAM_NON_BLOCKING));
	launch_ten("first launches", swapped);
	MUST(cu.CtxCreate(&second, 0, dev));
	probe_hook_dump("second context made");
	MUST(cu.CtxDestroy(second));
	MUST(cu.CtxSetCurrent(first));
	probe_hook_dump("second context destroyed");
	if (!strcmp(order, "storm"))
		storm(first);
	if (cupti)
		cupti_comes(swapped);
	if (swap && cupti_first) {
		probe_hook_swap(0);
		swapped = 1;
		launch_ten("swapped after CUPTI", swapped);
	}
	if (cupti)
		cupti_goes(swapped);
	if (swapped) {
		probe_hook_unswap();
		launch_ten("unswapped", 0);
		probe_hook_swap(0);
		launch_ten("swapped again", 1);
	}
	MUST(cu.ModuleUnload(module));
	MUST(cu.PrimaryReset(dev));
	probe_hook_dump("primary context reset");
	if (cupti)
		probe_cupti_report();
	if (swap)
		probe_hook_report(order);
	return 0;
}
