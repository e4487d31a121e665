// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Contexts. One that is destroyed or reset leaves its address to the next; generations differ. */
#include "sim.h"
#include <string.h>

/* Wide enough for a guest that asks only now and then. */
#define CRASH_WINDOW_NS 30000000

static struct slab slab = SLAB(struct CUctx_st);
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static CUcontext primary[SIM_MAX_DEVICES];
static unsigned ids;

static void ctx__start(CUcontext c, int device)
{
	if (!c->lock_ready)
		pthread_mutex_init(&c->lock, NULL);
	c->lock_ready = true;
	c->device = device;
	c->primary = 0;
	c->refs = 0;
	c->id = ++ids;
	c->blocking_end = SIM_NONE;
	c->any_end = SIM_NONE;
	c->ending = false;
	c->asking = 0;
	c->held = 0;
	c->legacy = stream__new(c, STREAM_LEGACY, 0);
	store(&c->magic, M_CTX);
}

/* Everything made in it is dead from here on. */
static void ctx__end(CUcontext c)
{
	CUstream legacy = c->legacy;

	if (dev.crash) {
		int64_t until = now_ns() + CRASH_WINDOW_NS;

		store(&c->ending, true);
		while (now_ns() < until) {
			if (load(&c->asking))
				dev__stale();
			sim__nap();
		}
	}
	c->generation++;
	store(&c->magic, M_DEAD);
	stream__free(legacy);
}

CUresult ctx__current(struct thread *t, CUcontext *c)
{
	*c = t->depth ? t->stack[t->depth - 1] : NULL;
	if (!*c)
		return CU_INVALID_CONTEXT;
	return (*c)->magic == M_CTX ? CU_OK : CU_CONTEXT_IS_DESTROYED;
}

API(cuDevicePrimaryCtxRetain, CUcontext *out, CUdevice d)
{
	CUcontext c;

	ENTER();
	if (d < 0 || d >= dev.count)
		RET(CU_INVALID_DEVICE);
	pthread_mutex_lock(&lock);
	c = primary[d];
	if (!c)
		c = primary[d] = slab__get(&slab);
	if (c->magic != M_CTX) {
		ctx__start(c, d);
		c->primary = 1;
	}
	c->refs++;
	*out = c;
	pthread_mutex_unlock(&lock);
	RET(CU_OK);
}

static CUresult primary_drop(CUdevice d, bool all)
{
	CUcontext c;
	CUresult r = CU_OK;

	if (d < 0 || d >= dev.count)
		return CU_INVALID_DEVICE;
	pthread_mutex_lock(&lock);
	c = primary[d];
	if (!c || c->magic != M_CTX)
		r = all ? CU_OK : CU_INVALID_CONTEXT;
	else if (all || --c->refs == 0)
		ctx__end(c);
	pthread_mutex_unlock(&lock);
	return r;
}

API(cuDevicePrimaryCtxRelease, CUdevice d) { ENTER(); RET(primary_drop(d, false)); }
API(cuDevicePrimaryCtxRelease_v2, CUdevice d) { ENTER(); RET(primary_drop(d, false)); }
API(cuDevicePrimaryCtxReset, CUdevice d) { ENTER(); RET(primary_drop(d, true)); }
API(cuDevicePrimaryCtxReset_v2, CUdevice d) { ENTER(); RET(primary_drop(d, true)); }

API(cuDevicePrimaryCtxSetFlags_v2, CUdevice d, unsigned flags)
{
	(void)flags;
	ENTER();
	RET(d < 0 || d >= dev.count ? CU_INVALID_DEVICE : CU_OK);
}

API(cuDevicePrimaryCtxGetState, CUdevice d, unsigned *flags, int *active)
{
	ENTER();
	if (d < 0 || d >= dev.count)
		RET(CU_INVALID_DEVICE);
	*flags = 0;
	*active = primary[d] && primary[d]->magic == M_CTX;
	RET(CU_OK);
}

static CUresult ctx_create(CUcontext *out, CUdevice d)
{
	struct thread *t = thread__self();
	CUcontext c;

	if (d < 0 || d >= dev.count)
		return CU_INVALID_DEVICE;
	if (t->depth >= SIM_MAX_STACK)
		return CU_INVALID_CONTEXT;
	pthread_mutex_lock(&lock);
	c = slab__get(&slab);
	ctx__start(c, d);
	pthread_mutex_unlock(&lock);
	t->stack[t->depth++] = c;
	*out = c;
	return CU_OK;
}

API(cuCtxCreate_v2, CUcontext *c, unsigned flags, CUdevice d)
{
	(void)flags;
	ENTER();
	RET(ctx_create(c, d));
}

API(cuCtxCreate_v3, CUcontext *c, void *affinity, int n, unsigned flags, CUdevice d)
{
	(void)affinity, (void)n, (void)flags;
	ENTER();
	RET(ctx_create(c, d));
}

API(cuCtxCreate_v4, CUcontext *c, void *params, unsigned flags, CUdevice d)
{
	(void)params, (void)flags;
	ENTER();
	RET(ctx_create(c, d));
}

static CUresult ctx_destroy(CUcontext c)
{
	struct thread *t = thread__self();

	if (!c || c->magic != M_CTX || c->primary)
		return CU_INVALID_CONTEXT;
	trace__flush(t);
	sim__sleep_until(load(&c->any_end));
	pthread_mutex_lock(&lock);
	ctx__end(c);
	if (t->depth && t->stack[t->depth - 1] == c)
		t->depth--;
	slab__put(&slab, c);
	pthread_mutex_unlock(&lock);
	return CU_OK;
}

API(cuCtxDestroy, CUcontext c) { ENTER(); RET(ctx_destroy(c)); }
API(cuCtxDestroy_v2, CUcontext c) { ENTER(); RET(ctx_destroy(c)); }

API(cuCtxSetCurrent, CUcontext c)
{
	struct thread *t = thread__self();

	ENTER();
	if (c && c->magic != M_CTX)
		RET(CU_INVALID_CONTEXT);
	if (!t->depth)
		t->depth = 1;
	t->stack[t->depth - 1] = c;
	RET(CU_OK);
}

API(cuCtxGetCurrent, CUcontext *c)
{
	struct thread *t = thread__self();

	ENTER();
	if (!c)
		RET(CU_INVALID_VALUE);
	*c = t->depth ? t->stack[t->depth - 1] : NULL;
	RET(CU_OK);
}

API(cuCtxPushCurrent_v2, CUcontext c)
{
	struct thread *t = thread__self();

	ENTER();
	if (!c || c->magic != M_CTX || t->depth >= SIM_MAX_STACK)
		RET(CU_INVALID_CONTEXT);
	t->stack[t->depth++] = c;
	RET(CU_OK);
}

API(cuCtxPopCurrent_v2, CUcontext *c)
{
	struct thread *t = thread__self();

	ENTER();
	if (!t->depth)
		RET(CU_INVALID_CONTEXT);
	t->depth--;
	if (c)
		*c = t->stack[t->depth];
	RET(CU_OK);
}

API(cuCtxGetDevice, CUdevice *d)
{
	CUcontext c;
	CUresult r;

	ENTER();
	r = ctx__current(thread__self(), &c);
	if (r)
		RET(r);
	*d = c->device;
	RET(CU_OK);
}

API(cuCtxGetFlags, unsigned *flags)
{
	CUcontext c;
	CUresult r;

	ENTER();
	r = ctx__current(thread__self(), &c);
	if (!r)
		*flags = 0;
	RET(r);
}

API(cuCtxGetId, CUcontext c, unsigned long long *id)
{
	CUresult r = CU_OK;

	ENTER();
	if (!c)
		r = ctx__current(thread__self(), &c);
	else if (c->magic != M_CTX)
		r = CU_CONTEXT_IS_DESTROYED;
	if (!r)
		*id = c->id;
	RET(r);
}

API(cuCtxGetApiVersion, CUcontext c, unsigned *version)
{
	(void)c;
	ENTER();
	*version = 3020;
	RET(CU_OK);
}

API(cuCtxGetStreamPriorityRange, int *least, int *greatest)
{
	ENTER();
	if (least)
		*least = 0;
	if (greatest)
		*greatest = -5;
	RET(CU_OK);
}

static CUresult synchronize(struct thread *t, CUcontext c)
{
	CUresult r = capture__ctx_waits(c);

	if (r)
		return r;
	trace__flush(t);
	ctx__wait_done(c);
	return dev__sticky_error();
}

API(cuCtxSynchronize, void)
{
	struct thread *t = thread__self();
	CUcontext c;
	CUresult r;

	ENTER();
	r = ctx__current(t, &c);
	if (!r)
		r = synchronize(t, c);
	RET(r);
}

/* NULL is the current one. */
API(cuCtxSynchronize_v2, CUcontext c)
{
	struct thread *t = thread__self();
	CUresult r = CU_OK;

	ENTER();
	if (!c)
		r = ctx__current(t, &c);
	else if (c->magic != M_CTX)
		r = CU_INVALID_CONTEXT;
	if (!r)
		r = synchronize(t, c);
	RET(r);
}
