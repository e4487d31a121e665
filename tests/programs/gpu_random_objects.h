/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What gpu_random does to contexts, modules, streams and events: each function is a turn, or part of one. */
#ifndef TESTS_PROGRAMS_GPU_RANDOM_OBJECTS_H
#define TESTS_PROGRAMS_GPU_RANDOM_OBJECTS_H
#include "tests/programs/gpu_random.h"

static unsigned *words;		/* what streams wait for; each is used once */
static unsigned used_words;

/* --- what must be true before a call that waits for the device -------------------------------- */
static void release_all(void)
{
	for (unsigned i = 0; i < used_words; i++)
		__atomic_store_n(&words[i], 1, __ATOMIC_SEQ_CST);
}

/* --- modules and contexts --------------------------------------------------------------------- */
static void load_module(void)
{
	struct module *m = module__free();
	char text[80] = "STANDIN\n";
	CUresult r;

	if (!m)
		return;
	memset(m, 0, sizeof(*m));
	for (int i = 0; i < FUNCTIONS; i++) {
		snprintf(m->name[i], sizeof(m->name[i]), "%s_%c", one_in(3) ? "plain" : "spin",
			 'a' + (char)below(3) + 3 * i);
		strcat(strcat(text, m->name[i]), "\n");
	}
	m->library = one_in(3);
	r = m->library ? cuLibraryLoadData((CUlibrary *)&m->h, text, NULL, NULL, 0, NULL, NULL, 0) :
			 cuModuleLoadData((CUmodule *)&m->h, text);
	if (say(r, "%s", m->library ? "cuLibraryLoadData" : "cuModuleLoadData"))
		return;
	m->id = ++ids[MODULE];
	for (int i = 0; i < FUNCTIONS; i++) {
		CUkernel k = NULL;

		if (!m->library) {
			r = cuModuleGetFunction(&m->f[i], m->h, m->name[i]);
			m->ctx[i] = ctx__now();
		} else if (!(r = cuLibraryGetKernel(&k, m->h, m->name[i]))) {
			m->f[i] = (CUfunction)(void *)k;
			if (one_in(2) && ctx__now() > 0) {
				r = cuKernelGetFunction(&m->f[i], k);
				m->ctx[i] = ctx__now();
			}
		}
		say(r, "function %s of m%d at %d", m->name[i], m->id, at(FUNCTION, m->f[i]));
	}
}

static void unload_module(void)
{
	struct module *m = module__pick();

	if (!m)
		return;
	say(m->library ? cuLibraryUnload(m->h) : cuModuleUnload(m->h), "unload m%d at %d", m->id,
	    at(MODULE, m->h));
	m->id = 0;
}

static void ctx__made(struct ctx *c, CUresult r, const char *how)
{
	if (!r && !c->id) {
		c->id = ++ids[CTX];
		c->refs = 0;
	}
	say(r, "%s c%d at %d", how, c->id, r ? 0 : at(CTX, c->h));
	c->refs += !r;
}

static void ctx__gone(struct ctx *c)
{
	printf("gone %d\n", c->id);
	c->id = 0;
}

static void make_ctx(void)
{
	struct ctx *c = &contexts[DEVICES + below((unsigned)NR(contexts) - DEVICES)];

	if (c->id)
		return;
	ctx__made(c, cuCtxCreate_v2(&c->h, 0, (int)below(DEVICES)), "cuCtxCreate");
	load_module();
	if (one_in(2))
		say(cuCtxPopCurrent_v2(NULL), "cuCtxPopCurrent");
}

static void end_ctx(void)
{
	struct ctx *c = &contexts[below((unsigned)NR(contexts))];
	int device = (int)(c - contexts);

	if (captures_in(c->id) || !c->id)
		return;
	if (device >= DEVICES) {
		if (!say(cuCtxDestroy_v2(c->h), "cuCtxDestroy c%d", c->id))
			ctx__gone(c);
	} else if (one_in(2)) {
		if (!say(cuDevicePrimaryCtxReset_v2(device), "reset c%d", c->id))
			ctx__gone(c);
	} else if (!say(cuDevicePrimaryCtxRelease_v2(device), "release c%d", c->id) && !--c->refs) {
		ctx__gone(c);
	}
}

static void retain(void)
{
	int device = (int)below(DEVICES);
	struct ctx *c = &contexts[device];

	ctx__made(c, cuDevicePrimaryCtxRetain(&c->h, device), "retain");
}

static void set_ctx(void)
{
	struct ctx *c = &contexts[below((unsigned)NR(contexts))];

	if (c->id && one_in(4))
		say(cuCtxPushCurrent_v2(c->h), "cuCtxPushCurrent c%d", c->id);
	else if (c->id || one_in(10))
		say(cuCtxSetCurrent(c->id ? c->h : NULL), "cuCtxSetCurrent c%d", c->id);
	else if (one_in(3))
		say(cuCtxPopCurrent_v2(NULL), "cuCtxPopCurrent");
}

static void set_ctx_of(int id)
{
	for (size_t i = 0; i < NR(contexts); i++)
		if (id > 0 && contexts[i].id == id)
			say(cuCtxSetCurrent(contexts[i].h), "cuCtxSetCurrent c%d", id);
}

/* --- streams and events ----------------------------------------------------------------------- */
static struct stream *new_stream(unsigned flags)
{
	struct stream *s = stream__free();
	int priority = -(int)below(3);
	CUresult r;

	if (!s)
		return NULL;
	*s = (struct stream){ .ctx = ctx__now() };
	r = one_in(2) ? cuStreamCreate(&s->h, flags) : cuStreamCreateWithPriority(&s->h, flags, priority);
	if (!r)
		s->id = ++ids[STREAM];
	say(r, "stream s%d %u %d", s->id, flags, priority);
	return r ? NULL : s;
}

static void make_stream(void)
{
	new_stream(one_in(30) ? 64 : below(2));
}

static void end_stream(void)
{
	struct stream *s = stream__pick();

	if (!s || s->capturer)
		return;
	say(cuStreamDestroy_v2(s->h), "cuStreamDestroy s%d", s->id);
	s->id = 0;
}

static void make_event(void)
{
	struct event *e = event__free();
	unsigned flags = one_in(30) ? 64 : below(4);
	CUresult r;

	if (!e)
		return;
	*e = (struct event){ .ctx = ctx__now() };
	r = cuEventCreate(&e->h, flags);
	if (!r)
		e->id = ++ids[EVENT];
	say(r, "event e%d %u", e->id, flags);
}

static void end_event(void)
{
	struct event *e = event__pick();

	if (!e)
		return;
	say(cuEventDestroy_v2(e->h), "cuEventDestroy e%d", e->id);
	e->id = 0;
}

static void record(void)
{
	struct where w = where__pick(one_in(3));
	struct event *e = event__pick();
	unsigned flags = one_in(10);

	if (!e)
		return;
	if (one_in(2))
		say(CALL(w.own, cuEventRecord, e->h, w.h), "cuEventRecord e%d %s %d", e->id, w.text, w.own);
	else
		say(CALL(w.own, cuEventRecordWithFlags, e->h, w.h, flags), "record e%d %s %d %u", e->id,
		    w.text, w.own, flags);
}

static void wait_event(void)
{
	struct where w = where__pick(one_in(3));
	struct event *e = event__pick();
	unsigned flags = one_in(10);

	if (e)
		say(CALL(w.own, cuStreamWaitEvent, w.h, e->h, flags), "cuStreamWaitEvent %s %d e%d", w.text,
		    w.own, e->id);
}

static void ask(void)
{
	struct where w = where__pick(one_in(3));
	struct event *e = event__pick(), *f = event__pick();
	float ms;

	if (e && one_in(2))
		say(done_or_not(cuEventQuery(e->h)), "cuEventQuery e%d", e->id);
	else if (e && f && one_in(2))
		say(done_or_not(cuEventElapsedTime_v2(&ms, e->h, f->h)), "elapsed e%d e%d", e->id, f->id);
	else
		say(done_or_not(CALL(w.own, cuStreamQuery, w.h)), "cuStreamQuery %s %d", w.text, w.own);
}

static void synchronize(void)
{
	struct where w = where__pick(one_in(3));
	struct event *e = event__pick();

	release_all();
	if (one_in(4))
		say(cuCtxSynchronize(), "cuCtxSynchronize c%d", ctx__now());
	else if (e && one_in(3))
		say(cuEventSynchronize(e->h), "cuEventSynchronize e%d", e->id);
	else
		say(CALL(w.own, cuStreamSynchronize, w.h), "cuStreamSynchronize %s %d", w.text, w.own);
}

#endif
