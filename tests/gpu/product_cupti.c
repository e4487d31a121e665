// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The independent reference: CUPTI's kernel records by name, with the sum of their durations. A
 * library for CUDA_INJECTION64_PATH; PRODUCT_CUPTI names libcupti, PRODUCT_OUT the file that
 * gets, at the end, one line for each kernel: records, of them in graphs, ns, ns in graphs, name. With
 * PRODUCT_COPIES also for each kind of copy, by gpucollect's names, and their bytes behind it; a record of
 * several copies of a batch counts as so many. With PRODUCT_BUSY a line "(busy)" with the ns in which any
 * kernel ran, on whatever device. A program may have only a window
 * counted: product_cupti_begin and _end, each with the device idle.
 */
#include <cupti.h>
#include <dlfcn.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_NAMES 4096
#define MAX_SPANS 4000000

static __typeof__(&cuptiActivityEnable) activity_enable;
static __typeof__(&cuptiActivityRegisterCallbacks) register_callbacks;
static __typeof__(&cuptiActivityGetNextRecord) next_record;
static __typeof__(&cuptiActivityFlushAll) flush_all;

static struct kernel {
	char *name;
	unsigned long records, in_graphs;
	uint64_t ns, ns_in_graphs, bytes;
} kernel[MAX_NAMES];
static struct span {
	uint64_t start, end;
} *span;		/* NULL: not asked for */
static size_t nr_spans;
static unsigned long dropped;
static bool over;		/* the window: nothing counts any more */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static struct kernel *find(const char *name)
{
	uint32_t hash = 5381;
	unsigned int i;

	for (const char *c = name; *c; c++)
		hash = hash * 33 + (unsigned char)*c;
	for (i = 0; i < MAX_NAMES; i++) {
		struct kernel *k = &kernel[(hash + i) % MAX_NAMES];

		if (!k->name)
			k->name = strdup(name);
		if (k->name && !strcmp(k->name, name))
			return k;
	}
	return NULL;
}

static void CUPTIAPI give_buffer(uint8_t **buffer, size_t *size, size_t *max_records)
{
	*size = 4 << 20;
	*max_records = 0;
	if (posix_memalign((void **)buffer, 64, *size))
		*size = 0;
}

struct seen {
	uint64_t ns, bytes, copies;
	bool in_graph;
};

static const char *copy_name(uint8_t kind)
{
	switch (kind) {
	case CUPTI_ACTIVITY_MEMCPY_KIND_HTOD: return "memcpy HtoD";
	case CUPTI_ACTIVITY_MEMCPY_KIND_DTOH: return "memcpy DtoH";
	case CUPTI_ACTIVITY_MEMCPY_KIND_DTOD: return "memcpy DtoD";
	case CUPTI_ACTIVITY_MEMCPY_KIND_PTOP: return "memcpy PtoP";
	case CUPTI_ACTIVITY_MEMCPY_KIND_HTOH: return "memcpy HtoH";
	case CUPTI_ACTIVITY_MEMCPY_KIND_HTOA: return "memcpy HtoA";
	case CUPTI_ACTIVITY_MEMCPY_KIND_ATOH: return "memcpy AtoH";
	case CUPTI_ACTIVITY_MEMCPY_KIND_ATOD: return "memcpy AtoD";
	case CUPTI_ACTIVITY_MEMCPY_KIND_DTOA: return "memcpy DtoA";
	case CUPTI_ACTIVITY_MEMCPY_KIND_ATOA: return "memcpy AtoA";
	default: return "memcpy";
	}
}

/* What a record is of; NULL: nothing that is counted. */
static const char *read_record(const CUpti_Activity *record, struct seen *seen)
{
	const CUpti_ActivityKernel10 *kernel = (const void *)record;
	const CUpti_ActivityMemcpyPtoP4 *peer = (const void *)record;
	const CUpti_ActivityMemcpy6 *copy = (const void *)record;
	const CUpti_ActivityMemset4 *set = (const void *)record;

	seen->copies = 1;
	switch (record->kind) {
	case CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL:
		seen->ns = kernel->end - kernel->start;
		seen->in_graph = kernel->graphId != 0;
		if (span && nr_spans < MAX_SPANS)
			span[nr_spans++] = (struct span){ kernel->start, kernel->end };
		return kernel->name ? kernel->name : "(no name)";
	case CUPTI_ACTIVITY_KIND_MEMCPY:
		seen->ns = copy->end - copy->start;
		seen->in_graph = copy->graphId != 0;
		seen->bytes = copy->bytes;
		seen->copies = copy->copyCount ? copy->copyCount : 1;
		return copy_name(copy->copyKind);
	case CUPTI_ACTIVITY_KIND_MEMCPY2:
		seen->ns = peer->end - peer->start;
		seen->in_graph = peer->graphId != 0;
		seen->bytes = peer->bytes;
		return "memcpy PtoP";
	case CUPTI_ACTIVITY_KIND_MEMSET:
		seen->ns = set->end - set->start;
		seen->in_graph = set->graphId != 0;
		seen->bytes = set->bytes;
		return "memset";
	default:
		return NULL;
	}
}

static void CUPTIAPI take_buffer(CUcontext ctx, uint32_t stream, uint8_t *buffer, size_t size,
				 size_t valid)
{
	CUpti_Activity *record = NULL;

	(void)ctx;
	(void)stream;
	(void)size;
	pthread_mutex_lock(&lock);
	while (next_record(buffer, valid, &record) == CUPTI_SUCCESS) {
		struct seen seen = { 0 };
		const char *name = over ? NULL : read_record(record, &seen);
		struct kernel *k = name ? find(name) : NULL;

		if (!name)
			continue;
		if (!k) {
			dropped++;
			continue;
		}
		k->records += seen.copies;
		k->ns += seen.ns;
		k->bytes += seen.bytes;
		if (seen.in_graph) {
			k->in_graphs++;
			k->ns_in_graphs += seen.ns;
		}
	}
	pthread_mutex_unlock(&lock);
	free(buffer);
}

/* --- the window ------------------------------------------------------------------------------ */

void product_cupti_begin(void);
__attribute__((visibility("default"))) void product_cupti_begin(void)
{
	flush_all(1);
	pthread_mutex_lock(&lock);
	for (int i = 0; i < MAX_NAMES; i++)
		kernel[i].records = kernel[i].in_graphs = kernel[i].ns = kernel[i].ns_in_graphs =
			kernel[i].bytes = 0;
	pthread_mutex_unlock(&lock);
}

void product_cupti_end(void);
__attribute__((visibility("default"))) void product_cupti_end(void)
{
	flush_all(1);
	pthread_mutex_lock(&lock);
	over = true;
	pthread_mutex_unlock(&lock);
}

static int by_start(const void *left, const void *right)
{
	const struct span *a = left, *b = right;

	return (a->start > b->start) - (a->start < b->start);
}

static void print_busy(FILE *out)
{
	uint64_t ns = 0, until = 0;

	qsort(span, nr_spans, sizeof(*span), by_start);
	for (size_t i = 0; i < nr_spans; i++) {
		if (span[i].end <= until)
			continue;
		ns += span[i].end - (span[i].start > until ? span[i].start : until);
		until = span[i].end;
	}
	fprintf(out, "%zu\t0\t%llu\t0\t(busy)\t0\n", nr_spans, (unsigned long long)ns);
}

static void at_exit(void)
{
	const char *path = getenv("PRODUCT_OUT");
	FILE *out;
	int i;

	flush_all(1);
	out = fopen(path ? path : "/dev/stderr", "we");
	if (!out)
		return;
	for (i = 0; i < MAX_NAMES; i++)
		if (kernel[i].name && kernel[i].records)
			fprintf(out, "%lu\t%lu\t%llu\t%llu\t%s\t%llu\n", kernel[i].records,
				kernel[i].in_graphs, (unsigned long long)kernel[i].ns,
				(unsigned long long)kernel[i].ns_in_graphs, kernel[i].name,
				(unsigned long long)kernel[i].bytes);
	if (dropped)
		fprintf(out, "%lu\t0\t0\t0\t(dropped)\t0\n", dropped);
	if (span)
		print_busy(out);
	fclose(out);
}

int InitializeInjection(void);
__attribute__((visibility("default"))) int InitializeInjection(void)
{
	const char *path = getenv("PRODUCT_CUPTI");
	void *lib = dlopen(path && *path ? path : "libcupti.so.13", RTLD_NOW | RTLD_GLOBAL);

	if (getenv("PRODUCT_BUSY"))
		span = malloc(MAX_SPANS * sizeof(*span));
	if (lib) {
		*(void **)&activity_enable = dlsym(lib, "cuptiActivityEnable");
		*(void **)&register_callbacks = dlsym(lib, "cuptiActivityRegisterCallbacks");
		*(void **)&next_record = dlsym(lib, "cuptiActivityGetNextRecord");
		*(void **)&flush_all = dlsym(lib, "cuptiActivityFlushAll");
	}
	if (!lib || !activity_enable || !register_callbacks || !next_record || !flush_all ||
	    register_callbacks(give_buffer, take_buffer) ||
	    activity_enable(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL) ||
	    (getenv("PRODUCT_COPIES") && (activity_enable(CUPTI_ACTIVITY_KIND_MEMCPY) ||
					  activity_enable(CUPTI_ACTIVITY_KIND_MEMCPY2) ||
					  activity_enable(CUPTI_ACTIVITY_KIND_MEMSET))))
		fprintf(stderr, "product_cupti: CUPTI could not be set up\n");
	else
		atexit(at_exit);
	return 1;
}
