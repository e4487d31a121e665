/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What gpu_random keeps: its source of chance, the objects that it made, and how it prints them. An
 * object has a number, by order of making, since addresses differ between runs; of what no guest
 * makes it also prints which of the addresses it got (`at`), so that those that come again show.
 */
#ifndef TESTS_PROGRAMS_GPU_RANDOM_H
#define TESTS_PROGRAMS_GPU_RANDOM_H
#include <stdarg.h>
#include "tests/programs/gpu_app.h"

#define NR(array) (sizeof(array) / sizeof((array)[0]))
#define FUNCTIONS 3
#define DEVICES 2
#define WORDS 4096
/* An entry with its form for the thread's own default stream. */
#define CALL(own, name, ...) ((own) ? name##_ptsz(__VA_ARGS__) : name(__VA_ARGS__))

struct ctx {			/* the first of them are the devices' own */
	CUcontext h;
	int id;			/* 0: none here */
	int refs;
};

struct stream {
	CUstream h;
	int id, ctx;
	int capturer;		/* the thread that began a capture in it, or 0 */
};

struct event {
	CUevent h;
	int id, ctx;
};

struct module {
	void *h;
	int id;
	bool library;
	int ctx[FUNCTIONS];	/* of each function; 0: a kernel, which fits all */
	CUfunction f[FUNCTIONS];
	char name[FUNCTIONS][16];
};

struct graph {
	CUgraph g;
	CUgraphExec x;
	int id, nodes;
};

static struct ctx contexts[5];
static struct stream streams[12];
static struct event events[10];
static struct module modules[6];
static struct graph graphs[6];
enum { CTX, STREAM, EVENT, MODULE, GRAPH, FUNCTION, KINDS };
static int ids[KINDS];		/* the last number of each kind */
static uint64_t chance_state;
static int me;			/* the thread whose turn it is */

static inline uint64_t chance(void)
{
	uint64_t x = chance_state += 0x9e3779b97f4a7c15ull;

	x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9ull;
	x = (x ^ x >> 27) * 0x94d049bb133111ebull;
	return x ^ x >> 31;
}

static inline unsigned below(unsigned n)
{
	return (unsigned)(chance() >> 32) % n;
}

static inline bool one_in(unsigned n)
{
	return !below(n);
}

/* The number of an address among those of its kind, by order of appearance. */
static inline int at(int kind, const void *p)
{
	static struct { int kind, number; const void *p; } seen[4096];
	static int n, of_kind[KINDS];

	for (int i = 0; i < n; i++)
		if (seen[i].kind == kind && seen[i].p == p)
			return seen[i].number;
	if (n == (int)NR(seen))
		exit(10);
	seen[n].kind = kind;
	seen[n].p = p;
	seen[n].number = ++of_kind[kind];
	return seen[n++].number;
}

static inline __attribute__((format(printf, 2, 3)))
CUresult say(CUresult r, const char *format, ...)
{
	va_list args;

	printf("t%d ", me);
	va_start(args, format);
	vprintf(format, args);
	va_end(args);
	printf(" = %d\n", r);
	return r;
}

/* Of a call whose answer depends on how far the device is. */
static inline CUresult done_or_not(CUresult r)
{
	return r == CU_NOT_READY ? CU_OK : r;
}

static inline bool ctx__lives(int id)
{
	for (size_t i = 0; i < NR(contexts); i++)
		if (id && contexts[i].id == id)
			return true;
	return false;
}

/* In that context, or, if it is 0, in any. */
static inline bool captures_in(int ctx)
{
	for (size_t i = 0; i < NR(streams); i++)
		if (streams[i].id && streams[i].capturer && (!ctx || streams[i].ctx == ctx))
			return true;
	return false;
}

/* The current context's number; 0: none, -1: one that is gone. */
static inline int ctx__now(void)
{
	CUcontext h = NULL;

	MUST(cuCtxGetCurrent(&h));
	for (size_t i = 0; h && i < NR(contexts); i++)
		if (contexts[i].id && contexts[i].h == h)
			return contexts[i].id;
	return h ? -1 : 0;
}

/* One that is there, seldom one of a context that is gone; NULL: the first try met none. */
#define PICK(type, lives)								\
	static inline struct type *type##__pick(void)					\
	{										\
		for (int i = 0; i < 40; i++) {						\
			struct type *p = &type##s[below(NR(type##s))];			\
											\
			if (p->id && ((lives) || i > 38 || one_in(30)))			\
				return p;						\
		}									\
		return NULL;								\
	}
PICK(stream, ctx__lives(p->ctx))
PICK(event, ctx__lives(p->ctx))
PICK(module, true)
PICK(graph, true)

#define FREE(type, lives)								\
	static inline struct type *type##__free(void)					\
	{										\
		for (size_t i = 0; i < NR(type##s); i++)				\
			if (!type##s[i].id || !(lives(type##s[i])))			\
				return &type##s[i];					\
		return NULL;								\
	}
#define IN_CONTEXT(o) ctx__lives((o).ctx)
#define ALWAYS(o) true
FREE(stream, IN_CONTEXT)
FREE(event, IN_CONTEXT)
FREE(module, ALWAYS)
FREE(graph, ALWAYS)

/* A stream as a call gets it. */
struct where {
	CUstream h;
	struct stream *s;	/* NULL: a default stream */
	bool own;		/* by the _ptsz form of an entry */
	char text[12];
};

static inline struct where where__of(struct stream *s, bool own)
{
	struct where w = { .s = s, .h = s ? s->h : NULL, .own = own };

	snprintf(w.text, sizeof(w.text), s ? "s%d" : "null", s ? s->id : 0);
	return w;
}

static inline struct where where__pick(bool own)
{
	struct where w = where__of(one_in(5) ? NULL : stream__pick(), own);

	if (w.s || !one_in(2))
		return w;
	w.h = one_in(2) ? CU_STREAM_LEGACY_HANDLE : CU_STREAM_PER_THREAD;
	snprintf(w.text, sizeof(w.text), w.h == CU_STREAM_PER_THREAD ? "own" : "legacy");
	return w;
}

/* What it is, whatever it is called: s5, or a default stream of a context, or of a thread, too. */
static inline const char *where__key(const struct where *w, int *ctx)
{
	static char text[32];
	bool own = w->h == CU_STREAM_PER_THREAD || (!w->h && w->own);

	*ctx = w->s ? w->s->ctx : ctx__now();
	if (w->s)
		snprintf(text, sizeof(text), "s%d", w->s->id);
	else if (own)
		snprintf(text, sizeof(text), "own%d.%d", *ctx, me);
	else
		snprintf(text, sizeof(text), "legacy%d", *ctx);
	return text;
}

#endif
