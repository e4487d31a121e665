/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Runs of Python frames, each of one C call of the interpreter, and whether the innermost call is linked
 * yet. In 3.11 and 3.12 a call puts its CFrame into the list before it has filled it: what is found
 * there is left over from another call, and may look like frames.
 */
#ifndef GPUCOLLECT_PYTHON_LINK_BPF_H
#define GPUCOLLECT_PYTHON_LINK_BPF_H

#include "bpf/python_read.bpf.h"

#define NEXT_RUN_SHIFT 48	/* in FRAME_RUN_AT, above the marker: index of the next run's first word */
#define NEXT_RUN_BITS 12
#define STATE_BYTES 1024	/* PyThreadState, in which the outermost CFrame lies, is not much larger */
#define CALL_BYTES 1024		/* locals of one C call of the interpreter are no further apart */
#define SEARCH_WORDS 8192	/* of the stack, for the CFrame of the call before */
#define SEARCHES 4		/* of what may be one, till one is */
#define PYTHON_STEPS 2048	/* frames, those included that are none of Python's */
#define LINK_STEPS 1024		/* CFrames that lead to the outermost one */

/* --- runs --------------------------------------------------------------------------------- */

static ALWAYS_INLINE bool state__has(const struct scratch *s, __u64 address)
{
	return address - s->python.state < STATE_BYTES;
}

static ALWAYS_INLINE void run__begin(struct scratch *s)
{
	s->python.run = s->nr;
	word__add(s, (__u64)FRAME_RUN_AT << 60);
}

/*
 * The run at hand is whole: its frames belong to the call in whose stack frame `marker` lies. Where
 * that is in the thread's state, the call has ended but for the frame's being taken out of the list.
 */
static ALWAYS_INLINE void run__end(struct scratch *s, __u64 marker)
{
	if (state__has(s, marker))
		word__put(s, s->python.run, FRAME_MAKE_ADDRESS(FRAME_RUN, FRAME_NOWHERE));
	else
		word__put(s, s->python.run, (__u64)FRAME_RUN_AT << 60 |
			  (__u64)s->nr << NEXT_RUN_SHIFT | FRAME_MARKER(marker));
	s->python.marks = hash__add(s->python.marks, marker);
}

/* The next run to be placed. */
static ALWAYS_INLINE void run__look_for(struct scratch *s, struct python_list *list, __u32 run)
{
	__u64 word = run < list->end ? word__get(s, run) : 0;

	list->run = run;
	list->marker = FRAME_KIND(word) == FRAME_RUN_AT ? FRAME_MARKER(word) : 0;
}

static ALWAYS_INLINE void run__place_of(struct scratch *s, struct python_list *list, __u64 low, __u64 high)
{
	__u64 word, before;

	if (!list->marker || list->marker < low || list->marker >= high)
		return;
	word = FRAME_MAKE_ADDRESS(FRAME_RUN, s->nr - 1 - s->python.end);
	s->hash = hash__add(s->hash, word ^ list->run);
	before = word__get(s, list->run);
	word__put(s, list->run, word);
	run__look_for(s, list, before >> NEXT_RUN_SHIFT & ((1u << NEXT_RUN_BITS) - 1));
}

/* The native frame of the last word reaches from `low` to `high` on the stack. */
static ALWAYS_INLINE void run__place(struct scratch *s, __u64 low, __u64 high)
{
	__u32 i;

#pragma unroll
	for (i = 0; i < PYTHON_STATES; i++)
		if (i < s->python.nr_lists)
			run__place_of(s, &s->python.list[i], low, high);
}

/* --- calls -------------------------------------------------------------------------------- */

/* Whether what seems to be the innermost call's may be left over: it was not yet found to be linked. */
static ALWAYS_INLINE bool list__is_open(const struct scratch *s, const struct python_layout *l)
{
	return !s->python.again && s->python.run == s->python.start && l->cframe != PYTHON_ABSENT &&
	       l->top == PYTHON_ABSENT;
}

/*
 * Whether a frame is one that runs: a thread's own are taken from a chunk of memory like a stack's. The last
 * one given back is current until its caller is; others may lie in chunks before this one.
 */
static ALWAYS_INLINE bool frame__is_alive(const struct scratch *s, const struct python_layout *l,
					  __u64 address, const __u64 *frame)
{
	__u64 from, to;		/* what is free of the chunk */

	if (l->thread_chunk == PYTHON_ABSENT || python__u8(frame, l->frame_owner, PYTHON_FRAME_BYTES))
		return true;
	from = state__u64(s, l->thread_chunk + 8);
	to = state__u64(s, l->thread_chunk + 16);
	return address <= from || address >= to;
}

/* `frame` NULL: there is none. The list's first frame, and whether it has code. */
static ALWAYS_INLINE bool list__is_left_over(struct scratch *s, const struct python_layout *l,
					     const __u64 *frame)
{
	const struct known_code *c;
	__u64 code;

	if (!list__is_open(s, l))
		return false;
	if (!frame)
		return s->python.cframe && !state__has(s, s->python.cframe);
	if (l->style == PYTHON_SHIMS &&
	    python__u8(frame, l->frame_owner, PYTHON_FRAME_BYTES) >= l->owner_shim)
		return false;
	if (s->nr == s->python.start + 1 && !frame__is_alive(s, l, s->python.next, frame))
		return true;
	code = python__u64(frame, l->frame_code, PYTHON_FRAME_BYTES);
	c = code__read(s, l, code);	/* which the walk needs next */
	return !code || (s->python.type && (!c || !c->address));
}

/* One step along the CFrames from s->python.link on: do they lead to the outermost? */
static long cframe__follow(__u64 i, struct scratch **ctx)
{
	struct scratch *s = *ctx;
	const struct python_layout *l = python__layout(s->python.layout);
	__u64 at = s->python.link, next;

	if (!l || state__has(s, at))
		return 1;
	next = python__pointer(at + l->cframe_previous);
	if (!state__has(s, next) && (next <= at || next - at > STACK_BYTES || next & 7))
		next = 0;
	s->python.link = next;
	return !next;
}

/*
 * Whether a frame is one that has called C: of a call that is over the shim is left, which is none of
 * Python's.
 */
static ALWAYS_INLINE bool frame__has_called(const struct scratch *s, const struct python_layout *l,
					    __u64 frame)
{
	__u8 owner = 0;

	if (!frame || frame & 7 || (s->python.type && s->python.type !=
	    python__pointer(python__pointer(frame + l->frame_code) + l->code_type)))
		return false;
	return l->style != PYTHON_SHIMS ||
	       (!bpf_probe_read_user(&owner, sizeof(owner), (void *)(frame + l->frame_owner)) &&
		owner < l->owner_shim);
}

/* One step along the frames of a call, from s->python.link on, to the last of its run. */
static long cframe__follow_run(__u64 i, struct scratch **ctx)
{
	struct scratch *s = *ctx;
	const struct python_layout *l = python__layout(s->python.layout);
	__u8 ends = 0;

	if (!l || !s->python.link ||
	    bpf_probe_read_user(&ends, sizeof(ends), (void *)(s->python.link +
				(l->style == PYTHON_SHIMS ? l->frame_owner : l->frame_entry)))) {
		s->python.link = 0;
		return 1;
	}
	if (l->style == PYTHON_SHIMS ? ends >= l->owner_shim : ends)
		return 1;
	s->python.link = python__pointer(s->python.link + l->frame_back);
	return 0;
}

/*
 * Whether a CFrame is one of a call that has called another: its run ends in the call itself, or where the
 * call before it is; and the list of CFrames from there on ends where it should.
 */
static __noinline long cframe__is_sound(struct scratch *s, __u64 cframe)
{
	const struct python_layout *l = python__layout(s->python.layout);
	__u64 frame;

	if (!l || cframe <= s->python.cframe || cframe - s->python.cframe > STACK_BYTES || cframe & 7)
		return 0;
	frame = python__pointer(cframe + l->cframe_top);
	if (!frame__has_called(s, l, frame))
		return 0;
	s->python.link = frame;
	bpf_loop(PYTHON_STEPS, cframe__follow_run, &s, 0);
	if (l->style == PYTHON_SHIMS ? s->python.link - cframe + CALL_BYTES >= 2 * CALL_BYTES :
	    python__pointer(s->python.link + l->frame_back) !=
	    python__pointer(python__pointer(cframe + l->cframe_previous) + l->cframe_top))
		return 0;
	s->python.link = cframe;
	bpf_loop(LINK_STEPS, cframe__follow, &s, 0);
	return s->python.link && state__has(s, s->python.link);
}

/* One word of the stack: what might be the CFrame of a call further out. */
static long cframe__search(__u64 i, struct scratch **ctx)
{
	struct scratch *s = *ctx;
	const struct python_layout *l = python__layout(s->python.layout);
	__u64 at = s->python.found + 8, previous = 0, frame = 0;

	if (!l || at >= s->mem.hi)
		return 1;
	s->python.found = at;
	if (unwind_read(&s->mem, &previous, sizeof(previous), at + l->cframe_previous))
		return 1;
	if (!state__has(s, previous) && (previous <= at || previous - at > STACK_BYTES || previous & 7))
		return 0;
	if (unwind_read(&s->mem, &frame, sizeof(frame), at + l->cframe_top))
		return 1;
	return frame__has_called(s, l, frame);
}

/*
 * The call before the one that may not be linked yet; then its CFrame may not say where that is either, and
 * it is looked for on the stack. 0: there is none.
 */
static __noinline __u64 list__find_call(struct scratch *s)
{
	const struct python_layout *l = python__layout(s->python.layout);
	__u64 call;
	__u32 i;

	if (!l)
		return 0;
	call = python__pointer(s->python.cframe + l->cframe_previous);
	s->python.found = s->python.cframe;
	for (i = 0; i < SEARCHES && !cframe__is_sound(s, call); i++) {
		bpf_loop(SEARCH_WORDS, cframe__search, &s, 0);
		call = s->python.found;
	}
	return i == SEARCHES ? 0 : call;
}

/* Whether a frame's run ends in the innermost call, and that one is linked to the one before, if any. */
static __noinline long frame__is_of_call(struct scratch *s, __u64 frame, __u64 before)
{
	const struct python_layout *l = python__layout(s->python.layout);

	if (!l || !frame__has_called(s, l, frame))
		return 0;
	s->python.link = frame;
	bpf_loop(PYTHON_STEPS, cframe__follow_run, &s, 0);
	if (!s->python.link || s->python.link - s->python.cframe + CALL_BYTES >= 2 * CALL_BYTES)
		return 0;
	return python__pointer(s->python.link + l->frame_back) ==
	       (before ? python__pointer(before + l->cframe_top) : 0);
}

/*
 * 3.12 takes a generator that yields out of the list before it makes its caller the current frame. The caller
 * is in some register then.
 */
__weak __noinline long list__find_frame(struct scratch *s, __u64 before)
{
	const struct python_layout *l;
	__u64 said;
	__u32 i;

	if (!s)
		return 0;
	l = python__layout(s->python.layout);
	if (!l || l->style != PYTHON_SHIMS || !s->regs.full)
		return 0;
	said = python__pointer(s->python.cframe + l->cframe_previous);
	if (before ? said != before : !state__has(s, said))
		return 0;
	for (i = 0; i < UNWIND_NR_REGS; i++) {
		__u64 frame = s->regs.r[i & (UNWIND_NR_REGS - 1)];

		if (!frame__is_of_call(s, frame, before))
			continue;
		s->python.next = frame;
		return 1;
	}
	return 0;
}

/* Where to begin again: with the innermost call, or with the one before it. False: it isn't known. */
static ALWAYS_INLINE bool list__find(struct scratch *s, const struct python_layout *l)
{
	__u64 before = list__find_call(s);

	if (list__find_frame(s, before))
		return true;
	if (!before)
		return false;
	s->python.cframe = before;
	s->python.next = python__pointer(before + l->cframe_top);
	return s->python.next != 0;
}

/* What was read of a list doesn't count. */
static ALWAYS_INLINE void list__start_again(struct scratch *s)
{
	s->nr = s->python.start;
	s->hash = s->python.start_hash;
	frames__start(s);
}

/* The CFrame of the run at hand; 0: it isn't known. 3.12 has shims for the runs further out. */
static ALWAYS_INLINE __u64 run__cframe(const struct scratch *s, const struct python_layout *l)
{
	return l->cframe == PYTHON_ABSENT || (l->style == PYTHON_SHIMS && s->python.run != s->python.start) ?
	       0 : s->python.cframe;
}

/* There are frames that aren't known: a mark says so. */
static ALWAYS_INLINE long list__cut(struct scratch *s, const struct python_layout *l)
{
	__u64 marker = s->nr > s->python.run + 1 ? run__cframe(s, l) : 0;

	if (s->nr == s->python.start)
		run__begin(s);
	if (l->style != PYTHON_FRAME_OBJECTS)
		run__end(s, marker);
	word__add(s, (__u64)FRAME_RUN_CUT << 60);
	return 1;
}

/*
 * One step along the frames that there are no words for: with their calls in 3.10, and only to the end of the
 * run from 3.12 on.
 */
static long list__pass(__u64 i, struct scratch **ctx)
{
	struct scratch *s = *ctx;
	const struct python_layout *l = python__layout(s->python.layout);

	if (!l)
		return 1;
	if (l->style == PYTHON_SHIMS) {
		if (frame__read(s, l->frame_bytes, l->style)) {
			s->python.next = 0;
			return 1;
		}
		if (python__u8(frame__words(s), l->frame_owner, PYTHON_FRAME_BYTES) >= l->owner_shim)
			return 1;
		frame__goes_on(s);
		s->python.next = python__u64(frame__words(s), l->frame_back, PYTHON_FRAME_BYTES);
		return !s->python.next;
	}
	s->python.next = python__pointer(s->python.next + l->frame_back);
	if (l->style == PYTHON_FRAME_OBJECTS)
		return !s->python.next;
	s->python.cframe = python__pointer(s->python.cframe + l->cframe_previous);
	return !s->python.next || !s->python.cframe || state__has(s, s->python.cframe);
}

/*
 * There are more frames than words for them. Where that takes it, the others are counted, or followed to the
 * end of the run, so that those that are there can be placed.
 */
static ALWAYS_INLINE void list__leave_off(struct scratch *s, const struct python_layout *l)
{
	bool is_empty = s->nr == s->python.run + 1;
	__u64 marker = run__cframe(s, l), left = 0;
	long passed = PYTHON_STEPS;

	if (l->style <= PYTHON_CFRAMES || (!marker && !is_empty))
		passed = bpf_loop(PYTHON_STEPS, list__pass, &s, 0);
	if (passed < PYTHON_STEPS && l->style == PYTHON_FRAME_OBJECTS)
		left = passed;
	else if (passed < PYTHON_STEPS && l->style == PYTHON_SHIMS)
		marker = s->python.next;
	if (l->style != PYTHON_FRAME_OBJECTS)
		run__end(s, marker);
	word__add(s, FRAME_MAKE_ADDRESS(FRAME_RUN_CUT, left));
}

/* What was read is left over; whoever reads begins again. False: it isn't. */
static ALWAYS_INLINE bool list__give_up(struct scratch *s, const struct python_layout *l)
{
	if (!list__is_open(s, l))
		return false;
	s->python.again = 1;
	return true;
}

/* Whether the run that ends here is the one of the CFrame that is said to be the innermost. */
static ALWAYS_INLINE bool list__is_linked(struct scratch *s, const struct python_layout *l, __u64 back)
{
	__u64 previous;

	if (!list__is_open(s, l))
		return true;
	/* Of a call that is over, whose place on the stack this one has taken, the shim alone is left. */
	if (s->nr == s->python.start + 1)
		return false;
	/* Both are locals of one call. */
	if (l->style == PYTHON_SHIMS &&
	    s->python.next - s->python.cframe + CALL_BYTES >= 2 * CALL_BYTES)
		return false;
	previous = cframe__u64(s, s->python.cframe, l->cframe_previous);
	return cframe__u64(s, previous, l->cframe_top) == back;
}

#endif
