// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Functions: what a launch needs of a handle, questions about it, and the old way of parameters. */
#include "sim.h"
#include <string.h>

CUresult func__look(CUfunction f, CUcontext c, struct launchable *l)
{
	unsigned magic = f ? f->magic : 0;

	if (magic == M_FUNC) {
		if (f->ctx != c || f->generation != c->generation)
			return CU_INVALID_HANDLE;
		*l = (struct launchable){ f->name, f->spin, f, NULL };
		return CU_OK;
	}
	if (magic == M_KERNEL) {	/* allowed in place of a function, fits every context */
		CUkernel k = (CUkernel)(void *)f;

		*l = (struct launchable){ k->name, k->spin, NULL, k };
		return CU_OK;
	}
	return CU_INVALID_HANDLE;
}

bool func__is(const CUkernelNodeParams *p, const char *name)
{
	struct launchable l;

	if (func__look(p->func ? p->func : (CUfunction)(void *)p->kern, p->func ? p->func->ctx : NULL, &l))
		return false;
	return !strcmp(l.name ? l.name : "", name ? name : "");
}

/* A list of tags and values: 1 is followed by a buffer of parameters, 2 by its size, 0 ends it. */
static void *first_of_extra(void **extra)
{
	for (; extra && *extra; extra += 2)
		if (extra[0] == (void *)1)
			return extra[1];
	return NULL;
}

int64_t func__length(const struct launchable *l, void **params, void **extra)
{
	void *first = params ? params[0] : first_of_extra(extra);
	uint64_t ns;

	if (!l->spin || !first)
		return dev.kernel_ns;
	memcpy(&ns, first, sizeof(ns));
	ns &= INT64_MAX / 2;
	return (int64_t)ns + (l->spin == SPIN_AND_TELL ? SIM_AROUND : 0);
}

/* The second parameter is the address of five words: begin and end, the same in cycles (of 1 ns), a step. */
void func__tell(const struct launchable *l, void **params, int64_t start, int64_t end)
{
	int64_t *told;

	if (l->spin != SPIN_AND_TELL || !params || !params[1])
		return;
	memcpy(&told, params[1], sizeof(told));
	told[0] = told[2] = start + SIM_AROUND / 2;
	told[1] = told[3] = end - SIM_AROUND / 2;
	told[4] = 1;
}

static CUresult check(CUfunction f)
{
	return f && f->magic == M_FUNC ? CU_OK : CU_INVALID_HANDLE;
}

API(cuFuncGetName, const char **name, CUfunction f)
{
	CUresult r = check(f);

	ENTER();
	if (f && f->magic == M_KERNEL)
		sim__log("Cannot pass CUkernel handle to this API");
	if (!r)
		*name = f->name;
	RET(r);
}

API(cuFuncGetModule, CUmodule *m, CUfunction f)
{
	CUresult r = check(f);

	ENTER();
	if (!r)
		*m = f->module;
	RET(r);
}

CUresult sizes__attribute(const struct sizes *s, int attribute, int *value)
{
	enum { SHARED_SIZE_BYTES = 1, NUM_REGS = 4 };

	switch (attribute) {
	case SHARED_SIZE_BYTES:
		*value = s->shared;
		return CU_OK;
	case NUM_REGS:
		*value = s->registers;
		return CU_OK;
	default:
		*value = 1024;
		return CU_OK;
	}
}

API(cuFuncGetAttribute, int *v, int attribute, CUfunction f)
{
	CUresult r = check(f);

	ENTER();
	if (!r)
		r = sizes__attribute(&f->sizes, attribute, v);
	RET(r);
}

API(cuFuncSetAttribute, CUfunction f, int attribute, int value)
{
	(void)attribute, (void)value;
	ENTER();
	RET(check(f));
}

/* --- before cuLaunchKernel: shape and parameters are kept in the function --------------------- */
API(cuFuncSetBlockShape, CUfunction f, int x, int y, int z)
{
	CUresult r = check(f);

	ENTER();
	if (!r && (x < 1 || y < 1 || z < 1))
		r = CU_INVALID_VALUE;
	if (r)
		RET(r);
	f->block[0] = (unsigned)x;
	f->block[1] = (unsigned)y;
	f->block[2] = (unsigned)z;
	RET(CU_OK);
}

API(cuFuncSetSharedSize, CUfunction f, unsigned bytes)
{
	CUresult r = check(f);

	ENTER();
	if (!r)
		f->shared = bytes;
	RET(r);
}

API(cuParamSetSize, CUfunction f, unsigned bytes)
{
	(void)bytes;
	ENTER();
	RET(check(f));
}

static CUresult param_set(CUfunction f, int offset, const void *value, size_t n)
{
	CUresult r = check(f);

	if (!r && offset < 0)
		r = CU_INVALID_VALUE;
	if (!r && (size_t)offset + n <= sizeof(f->param))
		memcpy((char *)&f->param + offset, value, n);
	return r;
}

API(cuParamSeti, CUfunction f, int offset, unsigned value)
{
	ENTER();
	RET(param_set(f, offset, &value, sizeof(value)));
}

API(cuParamSetv, CUfunction f, int offset, void *value, unsigned n)
{
	ENTER();
	RET(value ? param_set(f, offset, value, n) : CU_INVALID_VALUE);
}
