// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "unwind/python_threads.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#define MAX_INTERPRETERS 256
#define MAX_WALKED 4096		/* states of one interpreter */
#define MAX_FRAMES 64		/* of one thread that are looked at */
#define MAX_CHECKED 8		/* threads whose frames are */
#define INTERPRETER_BYTES 512	/* of an interpreter in which its threads are looked for */
#define TRIES 6
#define BETWEEN_NS 200000
#define MAX_READS 100000	/* in all tries: memory may be made to lead anywhere, and for ever */
#define TYPE_READY (1ull << 12)	/* Py_TPFLAGS_READY */

/* Memory that is read for so long and no longer. */
struct counted {
	const struct python_memory *m;
	unsigned int left;
};

struct learner {
	const struct python_runtime *r;
	const struct python_offsets *o;
	uint64_t runtime;
	const struct python_memory *m;
	char **why;
	struct python_thread threads[PYTHON_MAX_THREADS];
	size_t nr;
	uint32_t threads_at;		/* in an interpreter */
	uint64_t type_code, type_str;	/* as seen; 0: not yet */
	unsigned int good, bad;		/* threads whose frames are what they should be, and not */
};

/* A list that is being followed. */
struct trail {
	uint64_t mark;		/* an element that was met */
	unsigned int nr;
};

static int refuse(struct learner *l, const char *format, ...) __attribute__((format(printf, 2, 3)));

static int refuse(struct learner *l, const char *format, ...)
{
	va_list args;

	if (!l->why)
		return -ENOTSUP;
	va_start(args, format);
	if (vasprintf(l->why, format, args) < 0)
		*l->why = NULL;
	va_end(args);
	return -ENOTSUP;
}

static int read_word(const struct learner *l, uint64_t addr, uint64_t *word)
{
	return l->m->read(l->m->ctx, addr, word, sizeof(*word));
}

static int counted__read(void *ctx, uint64_t addr, void *buf, size_t len)
{
	struct counted *c = ctx;

	if (!c->left)
		return -ESRCH;	/* ends all that reads */
	c->left--;
	return c->m->read(c->m->ctx, addr, buf, len);
}

/* --- threads ------------------------------------------------------------------------------ */

/* Brent's way: the mark moves on after 1, 2, 4, … elements, so that one of a circle is met again. */
static bool trail__returns(struct trail *t, uint64_t at)
{
	if (t->nr && at == t->mark)
		return true;
	if (!(t->nr & (t->nr - 1)))
		t->mark = at;
	t->nr++;
	return false;
}

/* Of one interpreter: all that fit. -ENOENT: not its thread; -ELOOP: the list doesn't end. */
static int learner__threads(struct learner *l, uint64_t interpreter)
{
	uint64_t state, owner, pointer;
	struct trail trail = { 0 };
	int err = read_word(l, interpreter + l->threads_at, &state);

	while (!err && state) {
		if (trail.nr == MAX_WALKED || trail__returns(&trail, state))
			return -ELOOP;
		err = read_word(l, state + l->o->thread_interpreter, &owner);
		if (!err)
			err = read_word(l, state + l->o->layout.thread_id, &pointer);
		if (err)
			break;
		if (owner != interpreter)
			return -ENOENT;
		if (pointer && l->nr < PYTHON_MAX_THREADS)
			l->threads[l->nr++] = (struct python_thread){ state, pointer };
		if (l->nr == PYTHON_MAX_THREADS)
			break;
		err = read_word(l, state + l->o->thread_next, &state);
	}
	return err;
}

/*
 * Where builds of one version differ, and don't tell: the first word of an interpreter that leads to a
 * state of its own.
 */
static bool learner__find_threads(struct learner *l, uint64_t interpreter)
{
	uint64_t words[INTERPRETER_BYTES / 8], owner;

	if (l->o->minor >= 13 || l->m->read(l->m->ctx, interpreter, words, sizeof(words)))
		return false;
	for (uint32_t i = 0; i < INTERPRETER_BYTES / 8; i++) {
		if (!words[i] || words[i] % 8 ||
		    read_word(l, words[i] + l->o->thread_interpreter, &owner) || owner != interpreter)
			continue;
		l->threads_at = i * 8;
		return true;
	}
	return false;
}

/* The first interpreter is the last of the list, and its threads are looked at first. */
static int learner__interpreters(struct learner *l)
{
	uint64_t list[MAX_INTERPRETERS], at;
	struct trail trail = { 0 };
	unsigned int nr = 0;
	int err = read_word(l, l->runtime + l->o->runtime_interpreters, &at);

	if (err)
		return err;
	while (at && nr < MAX_INTERPRETERS) {
		if (trail__returns(&trail, at))
			return -ELOOP;
		list[nr++] = at;
		if (read_word(l, at + l->o->interpreter_next, &at))
			return -ENOENT;
	}
	if (!nr)
		return -EAGAIN;
	err = learner__threads(l, list[nr - 1]);
	if (err != -ESRCH && !l->nr && learner__find_threads(l, list[nr - 1]))
		err = learner__threads(l, list[nr - 1]);
	while (!err && --nr)
		err = learner__threads(l, list[nr - 1]);
	if (err)
		return err == -ESRCH || err == -ELOOP ? err : -ENOENT;
	return l->nr ? 0 : -EAGAIN;
}

/* --- frames ------------------------------------------------------------------------------- */

/* Whether the type at `type` has this name; the answer is kept in `known`. */
static bool type_is(const struct learner *l, uint64_t type, const char *name, uint64_t *known)
{
	size_t len = strlen(name) + 1;
	uint64_t text;
	char buf[8];

	if (*known)
		return type == *known;
	if (!type || type % 8 || read_word(l, type + l->o->type_name, &text) ||
	    l->m->read(l->m->ctx, text, buf, len) || memcmp(buf, name, len))
		return false;
	*known = type;
	return true;
}

static bool is_str(struct learner *l, uint64_t object)
{
	uint64_t type;

	return object && object % 8 == 0 && !read_word(l, object + l->o->object_type, &type) &&
	       type_is(l, type, "str", &l->type_str);
}

static bool is_code(struct learner *l, uint64_t object)
{
	const struct python_layout *p = &l->o->layout;
	__u64 words[PYTHON_CODE_BYTES / 8] = { 0 };

	return object && object % 8 == 0 && !l->m->read(l->m->ctx, object, words, p->code_bytes) &&
	       type_is(l, python__u64(words, p->code_type, PYTHON_CODE_BYTES), "code", &l->type_code) &&
	       is_str(l, python__u64(words, p->code_name, PYTHON_CODE_BYTES)) &&
	       is_str(l, python__u64(words, p->code_filename, PYTHON_CODE_BYTES));
}

static int learner__top(const struct learner *l, uint64_t state, uint64_t *frame)
{
	const struct python_layout *p = &l->o->layout;
	uint64_t cframe;
	int err;

	if (p->top != PYTHON_ABSENT)
		return read_word(l, state + p->top, frame);
	err = read_word(l, state + p->cframe, &cframe);
	return err ? err : read_word(l, cframe + p->cframe_top, frame);
}

/* The innermost frames of a thread: > 0 they are frames, 0 there are none, < 0 they aren't. */
static int learner__frames(struct learner *l, uint64_t state)
{
	const struct python_layout *p = &l->o->layout;
	__u64 words[PYTHON_FRAME_BYTES / 8] = { 0 };
	uint64_t frame;
	int seen = 0;

	if (learner__top(l, state, &frame))
		return -1;
	for (unsigned int i = 0; frame && i < MAX_FRAMES; i++) {
		uint64_t code;

		if (frame % 8 || l->m->read(l->m->ctx, frame, words, p->frame_bytes))
			return -1;
		code = python__u64(words, p->frame_code, PYTHON_FRAME_BYTES) & ~(uint64_t)p->code_tag;
		if (p->frame_owner == PYTHON_ABSENT ||
		    python__u8(words, p->frame_owner, PYTHON_FRAME_BYTES) < p->owner_shim) {
			if (!is_code(l, code))
				return -1;
			seen++;
		}
		frame = python__u64(words, p->frame_back, PYTHON_FRAME_BYTES);
	}
	return seen;
}

static void learner__check_frames(struct learner *l)
{
	l->good = l->bad = 0;
	for (size_t i = 0; i < l->nr && l->good + l->bad < MAX_CHECKED; i++) {
		int seen = learner__frames(l, l->threads[i].state);

		l->good += seen > 0;
		l->bad += seen < 0;
	}
}

/* --- all of it ---------------------------------------------------------------------------- */

/*
 * The type as frames have it; else as the file has it, if it is in use: a program that isn't position
 * independent may have a copy of its own, which is then the one.
 */
static uint64_t learner__type_code(struct learner *l)
{
	uint64_t type = l->runtime - l->r->runtime + l->r->type_code, flags;
	/* tp_flags, in all versions: 18 words behind tp_name */
	uint64_t at = type + l->o->type_name + 18 * 8;

	if (l->type_code)
		return l->type_code;
	if (!l->r->type_code || read_word(l, at, &flags) || !(flags & TYPE_READY) ||
	    !type_is(l, type, "code", &l->type_code))
		return 0;
	return type;
}

/* -ENOENT, -ELOOP: something isn't as it should be. */
static int learner__try(struct learner *l, struct python_layout *out)
{
	struct python_layout layout = l->o->layout;
	int err;

	l->nr = 0;
	l->threads_at = l->o->interpreter_threads;
	l->good = l->bad = 0;
	l->type_code = l->type_str = 0;
	err = learner__interpreters(l);
	if (err)
		return err;
	learner__check_frames(l);
	err = python_tsd__find(l->r, l->runtime, l->m, l->threads, l->nr, &layout);
	if (err)
		return err;
	if (l->bad && !l->good)
		return -ENOENT;
	layout.type_code = learner__type_code(l);
	layout.interpreter_threads = (uint16_t)l->threads_at;
	*out = layout;
	return 0;
}

int python_threads__learn(const struct python_runtime *r, uint64_t runtime_address,
			  const struct python_memory *m, struct python_layout *out, char **why)
{
	struct counted counted = { .m = m, .left = MAX_READS };
	const struct python_memory memory = { .read = counted__read, .ctx = &counted };
	struct learner l = { .r = r, .o = &r->offsets, .runtime = runtime_address, .m = &memory,
			     .why = why };
	const struct timespec between = { .tv_nsec = BETWEEN_NS };
	int err = -EAGAIN;

	if (why)
		*why = NULL;
	for (int i = 0; i < TRIES; i++) {
		err = learner__try(&l, out);
		if (!counted.left || err == -ELOOP)
			break;
		if (err != -ENOENT && err != -EFAULT)
			return err;
		nanosleep(&between, NULL);
	}
	if (err == -EFAULT)
		return -EAGAIN;	/* not all of it is mapped yet */
	if (err == -ELOOP)
		return refuse(&l, "the list of threads or interpreters of CPython 3.%u.%u has no end",
			      r->minor, r->micro);
	if (!l.nr)
		return refuse(&l, "the threads of CPython 3.%u.%u aren't where they should be",
			      r->minor, r->micro);
	if (l.bad && !l.good)
		return refuse(&l, "the frames of CPython 3.%u.%u aren't where they should be",
			      r->minor, r->micro);
	if (l.good)
		return refuse(&l, "the threads of CPython 3.%u.%u don't lead to their state",
			      r->minor, r->micro);
	return -EAGAIN;		/* no thread has run Python yet */
}
