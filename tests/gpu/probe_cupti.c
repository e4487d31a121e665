// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Counts CUPTI's kernel, memset and memcpy records by name. As a library for
 * CUDA_INJECTION64_PATH it is the twin of probe_hook.so.
 */
#include "probe_cupti.h"

#include <cupti.h>
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static __typeof__(&cuptiSubscribe) subscribe;
static __typeof__(&cuptiUnsubscribe) unsubscribe;
static __typeof__(&cuptiEnableDomain) enable_domain;
static __typeof__(&cuptiActivityEnable) activity_enable;
static __typeof__(&cuptiActivityDisable) activity_disable;
static __typeof__(&cuptiActivityRegisterCallbacks) register_callbacks;
static __typeof__(&cuptiActivityGetNextRecord) next_record;
static __typeof__(&cuptiActivityFlushAll) flush_all;
static __typeof__(&cuptiFinalize) finalize;

static CUpti_SubscriberHandle subscriber;
static _Atomic long callbacks, records, memsets, memcpys;

static struct {
	char name[512];
	long n, in_graph;
	unsigned int ns[512];	/* the first durations */
} names[2048];
static int n_names;

int probe_cupti_load(void)
{
	const char *path = getenv("PROBE_CUPTI");
	void *lib = dlopen(path && *path ? path : "libcupti.so.13", RTLD_NOW | RTLD_GLOBAL);

	if (!lib) {
		fprintf(stderr, "%s\n", dlerror());
		return -1;
	}
	*(void **)&subscribe = dlsym(lib, "cuptiSubscribe");
	*(void **)&unsubscribe = dlsym(lib, "cuptiUnsubscribe");
	*(void **)&enable_domain = dlsym(lib, "cuptiEnableDomain");
	*(void **)&activity_enable = dlsym(lib, "cuptiActivityEnable");
	*(void **)&activity_disable = dlsym(lib, "cuptiActivityDisable");
	*(void **)&register_callbacks = dlsym(lib, "cuptiActivityRegisterCallbacks");
	*(void **)&next_record = dlsym(lib, "cuptiActivityGetNextRecord");
	*(void **)&flush_all = dlsym(lib, "cuptiActivityFlushAll");
	*(void **)&finalize = dlsym(lib, "cuptiFinalize");
	return finalize && flush_all && next_record && register_callbacks ? 0 : -1;
}

static void CUPTIAPI on_call(void *data, CUpti_CallbackDomain domain, CUpti_CallbackId id,
			     const void *info)
{
	(void)data;
	(void)domain;
	(void)id;
	(void)info;
	callbacks++;
}

int probe_cupti_subscribe(void)
{
	return subscribe(&subscriber, on_call, NULL);
}

int probe_cupti_enable_driver_domain(void)
{
	return enable_domain(1, subscriber, CUPTI_CB_DOMAIN_DRIVER_API);
}

int probe_cupti_unsubscribe(void)
{
	return unsubscribe(subscriber);
}

static void CUPTIAPI give_buffer(uint8_t **buffer, size_t *size, size_t *max_records)
{
	*size = 4 << 20;
	*max_records = 0;
	if (posix_memalign((void **)buffer, 64, *size))
		*size = 0;
}

static void count_name(const char *name, int in_graph, uint64_t ns)
{
	int i;

	if (!name)
		name = "(no name)";
	for (i = 0; i < n_names && strncmp(names[i].name, name, sizeof(names[i].name) - 1); i++)
		;
	if (i == 2048)
		return;
	if (i == n_names)
		snprintf(names[n_names++].name, sizeof(names[0].name), "%s", name);
	if (names[i].n < 512)
		names[i].ns[names[i].n] = (unsigned int)ns;
	names[i].n++;
	names[i].in_graph += in_graph;
}

static void CUPTIAPI take_buffer(CUcontext ctx, uint32_t stream, uint8_t *buffer, size_t size,
				 size_t valid)
{
	CUpti_Activity *record = NULL;

	(void)ctx;
	(void)stream;
	(void)size;
	while (next_record(buffer, valid, &record) == CUPTI_SUCCESS) {
		if (record->kind == CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL ||
		    record->kind == CUPTI_ACTIVITY_KIND_KERNEL) {
			const CUpti_ActivityKernel10 *k = (const void *)record;

			records++;
			count_name(k->name, k->graphId != 0, k->end - k->start);
		} else if (record->kind == CUPTI_ACTIVITY_KIND_MEMSET) {
			memsets++;
		} else if (record->kind == CUPTI_ACTIVITY_KIND_MEMCPY) {
			memcpys++;
		}
	}
	free(buffer);
}

int probe_cupti_kernels(int on)
{
	static const CUpti_ActivityKind kinds[] = { CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL,
		CUPTI_ACTIVITY_KIND_MEMSET, CUPTI_ACTIVITY_KIND_MEMCPY };
	int rc = on ? (int)register_callbacks(give_buffer, take_buffer) : 0;

	for (int i = 0; i < 3 && !rc; i++)
		rc = on ? activity_enable(kinds[i]) : activity_disable(kinds[i]);
	return rc;
}

int probe_cupti_flush(void)
{
	return flush_all(1);
}

int probe_cupti_finalize(void)
{
	return finalize();
}

long probe_cupti_callbacks(void)
{
	return callbacks;
}

long probe_cupti_records(void)
{
	return records;
}

static int by_value(const void *a, const void *b)
{
	unsigned int x = *(const unsigned int *)a, y = *(const unsigned int *)b;

	return (x > y) - (x < y);
}

void probe_cupti_report(void)
{
	const char *want = getenv("PROBE_OUT");
	FILE *out = want ? fopen(want, "ae") : stdout;

	if (!out)
		return;
	fprintf(out, "cupti kernels %ld, memsets %ld, memcpys %ld, callbacks %ld\n", records,
		memsets, memcpys, callbacks);
	for (int i = 0; i < n_names; i++) {
		size_t n = names[i].n < 512 ? (size_t)names[i].n : 512;

		qsort(names[i].ns, n, sizeof(names[i].ns[0]), by_value);
		fprintf(out, "  cupti %6ld (%5ld in graphs, median %u ns) %s\n", names[i].n,
			names[i].in_graph, names[i].ns[n / 2], names[i].name);
	}
	if (want)
		fclose(out);
	else
		fflush(out);
}

#ifdef PROBE_LIBRARY
static void at_exit(void)
{
	probe_cupti_flush();
	probe_cupti_report();
}

int InitializeInjection(void);
__attribute__((visibility("default"))) int InitializeInjection(void)
{
	if (probe_cupti_load() || probe_cupti_kernels(1))
		fprintf(stderr, "CUPTI could not be set up\n");
	else
		atexit(at_exit);
	return 1;
}
#endif
