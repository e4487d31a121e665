// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "loader/calibrate/bench.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "loader/base/clock.h"

#define NON_BLOCKING 1u		/* CU_STREAM_NON_BLOCKING */
#define OUT_OF_MEMORY 2		/* CUDA_ERROR_OUT_OF_MEMORY */
#define ROOM (64u << 20)
#define LITTLE_ROOM (1u << 20)
#define WARM_ROUNDS 100u
#define WARM_NS 1000000u
/* A timer of larger steps doesn't tell a few us: there the clock of the multiprocessor does. */
#define FINE_STEP_NS 100u

static int did(struct bench *b, CUresult r, const char *what)
{
	if (!r)
		return 0;
	b->error = r;
	b->failed = what;
	return -EIO;
}

#define DO(call, name, ...) did(b, b->driver->call(__VA_ARGS__), name)

void bench__why(const struct bench *b, char *why)
{
	snprintf(why, CALIBRATE_DRIVER_WHY, "the driver refused %s: %s (%d)", b->failed ? b->failed : "it",
		 calibrate_driver__error(b->driver, b->error), (int)b->error);
}

/* --- work ------------------------------------------------------------------------------------- */

static CUresult launch(struct bench *b, uint64_t ns, unsigned int slot)
{
	uint64_t at = b->told_at + slot * sizeof(struct calibrate_told);
	void *params[] = { &ns, &at };

	return b->driver->launch(b->spin, 1, 1, 1, 1, 1, 1, 0, b->stream, params, NULL);
}

static CUresult put_one(struct bench *b, const struct bench_work *w)
{
	const struct calibrate_driver *d = b->driver;

	switch (w->work) {
	case CALIBRATION_HTOD:
		return d->htod(b->memory[0], b->host, w->size, b->stream);
	case CALIBRATION_DTOH:
		return d->dtoh(b->host, b->memory[0], w->size, b->stream);
	case CALIBRATION_DTOD:
		return d->dtod(b->memory[1], b->memory[0], w->size, b->stream);
	case CALIBRATION_SET:
		return d->set(b->memory[0], 0, w->size, b->stream);
	default:
		return launch(b, w->size, w->slot);
	}
}

int bench__put(struct bench *b, const struct bench_work *w)
{
	CUresult r = CUDA_SUCCESS;
	unsigned int i;

	for (i = 0; !r && i < w->times; i++)
		r = put_one(b, w);
	return did(b, r, w->work == CALIBRATION_KERNEL ? "cuLaunchKernel" : "a copy");
}

int bench__fill(struct bench *b, uint64_t ns)
{
	return did(b, launch(b, ns, BENCH_NO_SLOT), "cuLaunchKernel");
}

int bench__is_pending(struct bench *b, CUevent event, bool *pending)
{
	CUresult r;
	float ms;

	r = b->driver->elapsed(&ms, event, event);
	*pending = r == CUDA_ERROR_NOT_READY;
	return *pending ? 0 : did(b, r, "cuEventElapsedTime");
}

/* The calls of the library around a launch, in its order. */
int bench__bracket(struct bench *b, struct bench_bracket *bracket, const struct bench_work *w)
{
	CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
	uint64_t begun;
	bool pending = false;
	int err;

	err = DO(is_capturing, "cuStreamIsCapturing", b->stream, &status);
	if (!err)
		err = DO(event_record, "cuEventRecord", bracket->begin, b->stream);
	begun = clock__now_ns();
	if (!err)
		err = bench__put(b, w);
	bracket->gap_ns = clock__now_ns() - begun;
	if (!err)
		err = DO(event_record, "cuEventRecord", bracket->end, b->stream);
	if (!err)
		err = bench__is_pending(b, bracket->begin, &pending);
	bracket->idle = !pending;
	return err;
}

int bench__sync(struct bench *b)
{
	return DO(stream_sync, "cuStreamSynchronize", b->stream);
}

int bench__elapsed(struct bench *b, const struct bench_bracket *bracket, double *ns)
{
	float ms = 0;
	int err = DO(elapsed, "cuEventElapsedTime", &ms, bracket->begin, bracket->end);

	*ns = (double)ms * 1e6;
	return err;
}

int bench__read_told(struct bench *b)
{
	return DO(dtoh_sync, "cuMemcpyDtoH_v2", b->told, b->told_at, sizeof(b->told));
}

double bench__own_ns(const struct bench *b, unsigned int slot)
{
	const struct calibrate_told *t = &b->told[slot];

	if (b->step_ns > FINE_STEP_NS && b->ns_per_cycle > 0)
		return (double)(t->end_cycles - t->begin_cycles) * b->ns_per_cycle;
	return (double)(t->end - t->begin);
}

/* --- opened and closed ------------------------------------------------------------------------ */

/* A device that others have filled has little room left: then large copies are not measured. */
static int make_memory(struct bench *b)
{
	size_t room = ROOM;
	int err, i;

	do {
		b->room = room;
		err = DO(mem_alloc, "cuMemAlloc_v2", &b->memory[0], room);
		if (!err)
			err = DO(mem_alloc, "cuMemAlloc_v2", &b->memory[1], room);
		if (!err)
			err = DO(host_alloc, "cuMemHostAlloc", &b->host, room, 0);
		room = LITTLE_ROOM;
	} while (err && (int)b->error == OUT_OF_MEMORY && b->room != LITTLE_ROOM);
	/* All pages are there from now on. */
	for (i = 0; !err && i < 2; i++)
		err = DO(set, "cuMemsetD8Async", b->memory[i], 0, b->room, b->stream);
	if (!err)
		memset(b->host, 0, b->room);
	return err;
}

static int make_brackets(struct bench *b)
{
	int err = 0, i;

	for (i = 0; !err && i < BENCH_BRACKETS; i++) {
		err = DO(event_create, "cuEventCreate", &b->bracket[i].begin, CU_EVENT_DEFAULT);
		if (!err)
			err = DO(event_create, "cuEventCreate", &b->bracket[i].end, CU_EVENT_DEFAULT);
	}
	return err;
}

/* Clocks have come up after this; the kernel's code, and the device's memory, are where they belong. */
static int warm_up(struct bench *b)
{
	const struct calibrate_told *t = &b->told[BENCH_NO_SLOT];
	unsigned int i;
	int err = 0;

	for (i = 0; !err && i < WARM_ROUNDS; i++)
		err = bench__fill(b, WARM_NS);
	if (!err)
		err = bench__sync(b);
	if (!err)
		err = bench__read_told(b);
	if (err)
		return err;
	b->step_ns = t->step;
	if (t->end > t->begin && t->end_cycles > t->begin_cycles)
		b->ns_per_cycle = (double)(t->end - t->begin) / (double)(t->end_cycles - t->begin_cycles);
	return 0;
}

int bench__open(struct bench *b, const struct calibrate_driver *driver, CUdevice device)
{
	CUmodule module = NULL;
	CUcontext ctx = NULL;
	int err;

	b->driver = driver;
	b->device = device;
	err = DO(retain, "cuDevicePrimaryCtxRetain", &ctx, device);
	b->retained = !err;
	if (!err)
		err = DO(set_current, "cuCtxSetCurrent", ctx);
	if (!err)
		err = DO(load_module, "cuModuleLoadData", &module, calibrate_kernel__ptx);
	if (!err)
		err = DO(get_function, "cuModuleGetFunction", &b->spin, module, CALIBRATE_KERNEL);
	if (!err)
		err = DO(stream_create, "cuStreamCreate", &b->stream, NON_BLOCKING);
	if (!err)
		err = DO(mem_alloc, "cuMemAlloc_v2", &b->told_at, sizeof(b->told));
	if (!err)
		err = make_memory(b);
	if (!err)
		err = make_brackets(b);
	return err ? err : warm_up(b);
}

/* All that was made in it goes with the context: it is this process's alone. */
void bench__close(struct bench *b)
{
	if (b->retained)
		b->driver->release(b->device);
	b->retained = false;
}
