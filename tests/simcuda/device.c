// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Start, end, fork, injected faults, and what is asked about devices. */
#include "sim.h"
#include <dlfcn.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define GONE_MAGIC 0x321cba00
#define MAX_FAULTS 32

struct sim_device dev = { .count = 1, .kernel_ns = 2000 };

static struct fault {
	char entry[64];
	long nth;
	bool ever_after;
	int code;
	long seen;
} faults[MAX_FAULTS];
static int nr_faults;

static pthread_mutex_t init_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t record_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t launched = PTHREAD_COND_INITIALIZER;
static int last_launcher;
static long records;

void sim__sleep_until(int64_t when)
{
	struct timespec ts = { when / 1000000000, when % 1000000000 };

	if (when == SIM_NONE || when <= now_ns())
		return;
	while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &ts, NULL) == EINTR)
		;
}

void sim__nap(void)
{
	struct timespec ts = { 0, 20000 };

	nanosleep(&ts, NULL);
}

/* "entry:nth:code" or "entry:nth+:code" (from the nth on), separated by commas. */
static void faults__read(const char *text)
{
	while (text && *text && nr_faults < MAX_FAULTS) {
		struct fault *f = &faults[nr_faults];
		size_t len = strcspn(text, ":,");
		char *end;

		if (!len || len >= sizeof(f->entry) || text[len] != ':')
			goto bad;
		memcpy(f->entry, text, len);
		f->nth = strtol(text + len + 1, &end, 10);
		f->ever_after = *end == '+';
		end += f->ever_after;
		if (*end != ':')
			goto bad;
		f->code = (int)strtol(end + 1, &end, 10);
		if (*end && *end != ',')
			goto bad;
		nr_faults++;
		text = *end ? end + 1 : end;
	}
	dev.faults = nr_faults > 0;
	return;
bad:
	fprintf(stderr, "simcuda: STANDIN_FAULT is ENTRY:NTH[+]:CODE[,...], not \"%s\"\n", text);
	_exit(125);
}

CUresult dev__fault(const char *entry)
{
	for (int i = 0; i < nr_faults; i++) {
		struct fault *f = &faults[i];
		long seen;

		if (strcmp(f->entry, entry))
			continue;
		seen = __atomic_add_fetch(&f->seen, 1, __ATOMIC_RELAXED);
		if (seen == f->nth || (f->ever_after && seen > f->nth))
			return f->code;
	}
	return CU_OK;
}

CUresult dev__not_ready(const char *entry)
{
	switch (load(&dev.state)) {
	case SIM_READY:
		return dev__fault(entry);
	case SIM_GONE:
		return CU_DEINITIALIZED;
	default:
		return CU_NOT_INITIALIZED;
	}
}

void dev__stale(void)
{
	if (dev.crash)
		raise(SIGSEGV);
}

CUresult dev__sticky_error(void)
{
	if (likely(!dev.query_error) || load(&dev.launches) < dev.query_error_from)
		return CU_OK;
	return dev.query_error;
}

/* Only called when somebody needs the sum over all threads at once. */
void dev__count_launch(void)
{
	pthread_mutex_lock(&record_lock);
	__atomic_add_fetch(&dev.launches, 1, __ATOMIC_RELEASE);
	last_launcher = thread__self()->tid;
	pthread_cond_broadcast(&launched);
	pthread_mutex_unlock(&record_lock);
}

/* STANDIN_RECORD_BLOCKS: this record returns when another thread has launched something. */
void dev__block_record(void)
{
	struct timespec until;
	int me = thread__self()->tid, rc = 0;
	long before;

	pthread_mutex_lock(&record_lock);
	if (++records == dev.record_blocks) {
		before = dev.launches;
		clock_gettime(CLOCK_REALTIME, &until);
		until.tv_sec += 5;
		while ((dev.launches == before || last_launcher == me) && rc != ETIMEDOUT)
			rc = pthread_cond_timedwait(&launched, &record_lock, &until);
		fputs(rc == ETIMEDOUT
		      ? "stand-in: record blocked for 5 s, no other thread got through\n"
		      : "stand-in: record released by another thread\n", stderr);
	}
	pthread_mutex_unlock(&record_lock);
}

static void at_exit(void)
{
	store(&simcuda_gone, GONE_MAGIC);
	store(&dev.state, SIM_GONE);
	trace__finish();
}

static void in_child(void)
{
	/* a child that forked before the first cuInit may use the device */
	if (dev.state == SIM_READY)
		dev.state = SIM_FORKED;
	dev.pid = (int)getpid();
	pthread_mutex_init(&init_lock, NULL);
	thread__forget_all();
}

static long env_long(const char *name, long otherwise)
{
	const char *v = getenv(name);

	return v && *v ? strtol(v, NULL, 10) : otherwise;
}

static void config__read(void)
{
	const char *v;
	long a = 0, b = 0, c = 0;

	dev.count = (int)env_long("STANDIN_DEVICES", 1);
	if (dev.count > SIM_MAX_DEVICES)
		dev.count = SIM_MAX_DEVICES;
	dev.kernel_ns = env_long("STANDIN_KERNEL_NS", 2000);
	dev.record_blocks = env_long("STANDIN_RECORD_BLOCKS", 0);
	dev.always_busy = env_long("STANDIN_ALWAYS_BUSY", 0) != 0;
	dev.crash = env_long("STANDIN_CRASH", 0) != 0;
	dev.queue = (unsigned)env_long("STANDIN_QUEUE", 0);
	dev.event_grain = env_long("STANDIN_EVENT_GRAIN", 0);
	v = getenv("STANDIN_QUERY_ERROR");
	if (v && sscanf(v, "%ld:%ld", &a, &b) >= 1) {
		dev.query_error = (int)a;
		dev.query_error_from = b;
	}
	v = getenv("STANDIN_BRACKET_NS");
	a = b = 0;
	if (v && sscanf(v, "%ld:%ld:%ld", &a, &b, &c) >= 2) {
		dev.bracket_busy = dev.copy_busy = a;
		dev.bracket_idle = dev.copy_idle = b;
		dev.bracket_empty = c;
	}
	v = getenv("STANDIN_COPY_BRACKET_NS");
	if (v && sscanf(v, "%ld:%ld", &a, &b) == 2) {
		dev.copy_busy = a;
		dev.copy_idle = b;
	}
	faults__read(getenv("STANDIN_FAULT"));
	dev.count_globally = dev.query_error || dev.record_blocks;
}

/* As the vendor's driver: a file that can't be loaded is passed over in silence. */
static void inject(void)
{
	const char *path = getenv("CUDA_INJECTION64_PATH");
	int (*start)(void);
	void *library;

	if (!path || !*path)
		return;
	library = dlopen(path, RTLD_NOW);
	if (!library)
		return;
	*(void **)&start = dlsym(library, "InitializeInjection");
	if (start)
		start();
}

API(cuInit, unsigned flags)
{
	bool first = false;

	if (flags)
		RET(CU_INVALID_VALUE);
	pthread_mutex_lock(&init_lock);
	if (dev.state == SIM_RAW) {
		first = true;
		dev.pid = (int)getpid();
		config__read();
		trace__open();
		pthread_atfork(NULL, NULL, in_child);
		atexit(at_exit);
		store(&dev.state, SIM_READY);
	}
	pthread_mutex_unlock(&init_lock);
	ENTER();
	if (first)
		inject();
	RET(CU_OK);
}

API(cuDriverGetVersion, int *version)
{
	if (!version)
		RET(CU_INVALID_VALUE);
	*version = 13000;
	RET(CU_OK);
}

API(cuDeviceGetCount, int *n)
{
	ENTER();
	if (!n)
		RET(CU_INVALID_VALUE);
	*n = dev.count;
	RET(CU_OK);
}

API(cuDeviceGet, CUdevice *d, int i)
{
	ENTER();
	if (i < 0 || i >= dev.count)
		RET(CU_INVALID_DEVICE);
	*d = i;
	RET(CU_OK);
}

API(cuDeviceGetName, char *s, int n, CUdevice d)
{
	ENTER();
	if (d < 0 || d >= dev.count)
		RET(CU_INVALID_DEVICE);
	if (getenv("STANDIN_NAME"))
		snprintf(s, (size_t)n, "%s", getenv("STANDIN_NAME"));
	else
		snprintf(s, (size_t)n, "Stand-in %d", d);
	RET(CU_OK);
}

static CUresult device_uuid(void *u, CUdevice d)
{
	if (d < 0 || d >= dev.count)
		return CU_INVALID_DEVICE;
	memset(u, d + 1, 16);
	return CU_OK;
}

API(cuDeviceGetUuid, void *u, CUdevice d) { ENTER(); RET(device_uuid(u, d)); }
API(cuDeviceGetUuid_v2, void *u, CUdevice d) { ENTER(); RET(device_uuid(u, d)); }

API(cuDeviceTotalMem_v2, size_t *n, CUdevice d)
{
	(void)d;
	ENTER();
	*n = (size_t)1 << 34;
	RET(CU_OK);
}

API(cuDeviceGetAttribute, int *v, int attribute, CUdevice d)
{
	enum { COMPUTE_MAJOR = 75, COMPUTE_MINOR = 76 };

	(void)d;
	ENTER();
	*v = attribute == COMPUTE_MAJOR ? 9 : attribute == COMPUTE_MINOR ? 0 : 1;
	RET(CU_OK);
}

API(cuDeviceGetPCIBusId, char *s, int n, CUdevice d)
{
	ENTER();
	snprintf(s, (size_t)n, "0000:%02x:00.0", (unsigned)d + 1);
	RET(CU_OK);
}

API(cuProfilerStart, void) { ENTER(); RET(CU_OK); }
API(cuProfilerStop, void) { ENTER(); RET(CU_OK); }
