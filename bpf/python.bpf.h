/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The Python frames of the current task: its list is read before the native stack is walked, as
 * words at the start of the stack's. Each run of them tells an address that lies in the stack frame
 * of the interpreter's C call that it belongs to; the native walk then finds which one that is.
 * Everything is checked as if a target had made it up: what does not fit is not shown.
 */
#ifndef GPUCOLLECT_PYTHON_BPF_H
#define GPUCOLLECT_PYTHON_BPF_H

#include "bpf/python_link.bpf.h"
#include "bpf/python_memo.bpf.h"

#define SEARCH_STEPS 1024	/* thread states of all interpreters */

/* The thread's own state, whether it holds the lock or not: what PyGILState_GetThisThreadState returns. */
static ALWAYS_INLINE __u64 python__state(struct scratch *s, const struct python_layout *l, __u64 thread)
{
	__u64 state = python__pointer(thread + l->tsd_at);

	if (l->tsd_then != PYTHON_TSD_DIRECT && state)
		state = python__pointer(state + l->tsd_then);
	s->python.state = NO_STATE;
	if (!state || state__read(s, l, state) || state__u64(s, l->thread_id) != thread)
		return 0;
	return state;
}

/* --- frames ------------------------------------------------------------------------------- */

/* After the last frame of a run. 1: the list is over. */
static ALWAYS_INLINE long python__run_ends(struct scratch *s, const struct python_layout *l, __u64 back)
{
	if (!list__is_linked(s, l, back))
		return list__give_up(s, l) ? 1 : list__cut(s, l);
	run__end(s, l->style == PYTHON_SHIMS ? s->python.next : s->python.cframe);
	if (l->style != PYTHON_SHIMS)
		s->python.cframe = cframe__u64(s, s->python.cframe, l->cframe_previous);
	s->python.next = back;
	if (!back)
		return 1;
	run__begin(s);
	return 0;
}

/* Frames that exist, but that Python does not show either: they have not begun. */
static ALWAYS_INLINE bool python__is_incomplete(const struct python_layout *l, const __u64 *frame,
						const struct known_code *code)
{
	if (l->code_traceable == PYTHON_ABSENT ||
	    python__u8(frame, l->frame_owner, PYTHON_FRAME_BYTES) == l->owner_generator)
		return false;
	return python__u64(frame, l->frame_position, PYTHON_FRAME_BYTES) <
	       code->address + l->code_start + 2ull * code->traceable;
}

static ALWAYS_INLINE void python__add(struct scratch *s, const struct python_layout *l,
				      const __u64 *frame)
{
	__u64 code = python__u64(frame, l->frame_code, PYTHON_FRAME_BYTES) & ~(__u64)l->code_tag, word;
	const struct known_code *c;

	if (memo__take(s, l, frame))
		return;
	c = code__read(s, l, code);
	if (!c) {
		word__add(s, FRAME_MAKE_ADDRESS(FRAME_PYTHON, 0));
		word__add(s, (__u64)FRAME_PYTHON_AT << 60);
		return;
	}
	if (!c->address)
		return;		/* None, for one, in a frame that belongs to C */
	if (python__is_incomplete(l, frame, c))
		return;
	word = (__u64)FRAME_PYTHON_AT << 60 | (__u64)python__offset(l, frame, code) << 32 | c->check;
	words__add_python(s, memo__first_word(l, frame), word);
	if (c->stays)
		memo__put(s, l, frame, word);
}

/*
 * A shim lies on the stack, whose pages the native walk needs as well. False: the frame is none, or lies
 * elsewhere.
 */
static ALWAYS_INLINE bool shim__read(struct scratch *s, const struct python_layout *l, __u64 *back)
{
	__u64 frame = s->python.next, owner;

	return l->style == PYTHON_SHIMS &&
	       !unwind_read_word(&s->mem, &owner, frame + (l->frame_owner & ~7u)) &&
	       (__u8)(owner >> (l->frame_owner & 7) * 8) >= l->owner_shim &&
	       !unwind_read_word(&s->mem, back, frame + l->frame_back);
}

/* One frame of the list. */
static long python__frame(__u64 i, struct scratch **ctx)
{
	struct scratch *s = *ctx;
	struct python_layout *l = python__layout(s->python.layout);
	const __u64 *frame;
	__u64 back;

	if (!l)
		return 1;
	memos__take(s, l);
	if (s->nr > GPUCOLLECT_MAX_PYTHON_WORDS - FRAME_WORDS) {
		s->python.full = 1;
		return 1;
	}
	if (shim__read(s, l, &back))
		return python__run_ends(s, l, back);
	if (frame__read(s, l->frame_bytes, l->style))
		return list__give_up(s, l) ? 1 : list__cut(s, l);
	frame = frame__words(s);
	back = python__u64(frame, l->frame_back, PYTHON_FRAME_BYTES);
	if (list__is_left_over(s, l, frame))
		return list__give_up(s, l);
	if (l->style == PYTHON_SHIMS &&
	    python__u8(frame, l->frame_owner, PYTHON_FRAME_BYTES) >= l->owner_shim)
		return python__run_ends(s, l, back);
	frame__goes_on(s);
	python__add(s, l, frame);
	if (python__ends_run(l, frame))
		return python__run_ends(s, l, back);
	s->python.next = back;
	if (s->python.next || l->style == PYTHON_FRAME_OBJECTS)
		return !s->python.next;
	/* The outermost frame ends a run. */
	return list__give_up(s, l) ? 1 : list__cut(s, l);
}

/*
 * Where a call has put its CFrame into the list, but not yet its frame, or has taken out only one of
 * them, frames and CFrames do not go together one by one: user space shifts them. What is left of one at the
 * end of the other tells; where there are more frames than words, the run behind the last one has its call.
 */
static ALWAYS_INLINE void python__even_out(struct scratch *s, const struct python_layout *l)
{
	bool calls = s->python.cframe && !state__has(s, s->python.cframe);

	if (l->style != PYTHON_CFRAMES || calls == (s->python.next != 0))
		return;
	if (calls != s->python.full) {
		run__begin(s);
		run__end(s, s->python.cframe);
	}
	if (calls)
		word__add(s, (__u64)FRAME_RUN_MORE << 60);
}

/* The words of the frames from s->python.next on. */
static ALWAYS_INLINE void list__read(struct scratch *s, const struct python_layout *l)
{
	if (l->style != PYTHON_FRAME_OBJECTS)
		run__begin(s);
	else if (!s->nr)
		word__add(s, (__u64)FRAME_RUN_EACH << 60);
	bpf_loop(PYTHON_STEPS, python__frame, &s, 0);
}

/*
 * The words of one state's frames, if it has any. Not static: the verifier looks at it once, not at each
 * of its calls.
 */
__weak __noinline long python__list(struct scratch *s, __u64 state)
{
	const struct python_layout *l;
	struct python_list *list;
	__u32 index;

	if (!s)
		return 0;
	l = python__layout(s->python.layout);
	index = s->python.nr_lists;
	if (!l || !state || index >= PYTHON_STATES || state__read(s, l, state))
		return 0;
	s->python.again = 0;
	s->python.full = 0;
	s->python.start = s->nr;
	s->python.start_hash = s->hash;
	s->python.cframe = l->cframe == PYTHON_ABSENT ? 0 : state__u64(s, l->cframe);
	s->python.next = l->top != PYTHON_ABSENT ? state__u64(s, l->top) :
			 cframe__u64(s, s->python.cframe, l->cframe_top);
	s->python.run = s->nr;
	if (s->python.next)
		list__read(s, l);
	else if (!list__is_left_over(s, l, NULL))
		return 0;
	else
		s->python.again = 1;
	if (s->python.again) {
		list__start_again(s);
		if (list__find(s, l))
			list__read(s, l);
		else
			list__cut(s, l);
	}
	if (s->python.full)
		list__leave_off(s, l);
	python__even_out(s, l);
	list = &s->python.list[index & (PYTHON_STATES - 1)];
	list->end = s->nr;
	list->marker = 0;
	if (l->style != PYTHON_FRAME_OBJECTS)
		run__look_for(s, list, s->python.start);
	s->python.nr_lists = index + 1;
	return 0;
}

/* A loop, for the verifier would follow each call. */
static long python__list_at(__u64 i, struct scratch **ctx)
{
	struct scratch *s = *ctx;

	python__list(s, s->python.list[i & (PYTHON_STATES - 1)].state);
	return 0;
}

/* One step through all states of all interpreters: those of this thread are kept. */
static long python__search(__u64 i, struct scratch **ctx)
{
	struct scratch *s = *ctx;
	const struct python_layout *l = python__layout(s->python.layout);
	__u64 state = s->python.next;
	__u32 at;

	if (!l)
		return 1;
	if (!state) {
		s->python.interpreter = python__pointer(s->python.interpreter + l->interpreter_next);
		if (!s->python.interpreter)
			return 1;
		s->python.next = python__pointer(s->python.interpreter + l->interpreter_threads);
		return 0;
	}
	s->python.next = python__pointer(state + l->thread_next);
	if (state == s->python.own || python__pointer(state + l->thread_id) != s->python.thread)
		return 0;
	at = s->python.run;
	if (at >= PYTHON_STATES - 1)
		return 1;
	s->python.list[at & (PYTHON_STATES - 1)].state = state;
	s->python.run = at + 1;
	return 0;
}

/*
 * The version that the next code object will have: while it stays, each that is in use is the one that was
 * read. Where interpreters count for themselves with the time, by 2 ms: one that is ended and begun again
 * counts anew, which takes longer.
 */
#define STAMP_SHIFT 21
static ALWAYS_INLINE __u64 python__stamp(const struct python_layout *l, __u64 runtime, __u64 interpreter)
{
	bool own = l->versions_of == PYTHON_VERSIONS_INTERPRETER;
	__u64 of = own ? interpreter : runtime;
	__u32 next = 0;

	if (!l->versions_of || bpf_probe_read_user(&next, sizeof(next), (void *)(of + (__s64)l->versions_at)))
		return 0;
	if (!next)
		return 0;
	return own ? bpf_ktime_get_ns() >> STAMP_SHIFT << 32 | next : next;
}

/*
 * The number of code objects that were freed, of all interpreters: before 3.12. The kernel calls the
 * probe for as long as the first thread has the memory that it runs in.
 */
static ALWAYS_INLINE __u64 frees__stamp(const struct scratch *s, struct task_struct *task,
					const struct proc *proc)
{
	__u32 index = proc->python_freed, at = proc->slot;
	const volatile struct python_freed *f;
	const volatile struct proc_slot *slot;
	__u64 in_force;

	if (!index || at == PROC_NO_SLOT)
		return 0;
	f = bpf_map_lookup_elem(&python_freed, &index);
	slot = bpf_map_lookup_elem(&slots, &at);
	if (!f || !slot)
		return 0;
	in_force = f->in_force;
	if (!in_force || f->tgid != s->tgid || f->execs != slot->map_seq ||
	    (__u64)BPF_CORE_READ(task, group_leader, mm) != s->mm)
		return 0;
	return in_force + f->nr;
}

/*
 * Where there are several interpreters, the thread may run in more than the one that it is known to run in
 * (up to 3.11 the first that it ever ran in, then the last): called by another, or calling it.
 */
static __noinline long python__others(struct scratch *s, __u64 runtime)
{
	const struct python_layout *l = python__layout(s->python.layout);
	__u64 interpreters[2];		/* the newest, and the main one, which is the oldest: 3.8 to 3.14 */

	if (!l || !runtime)
		return 0;
	if (bpf_probe_read_user(interpreters, sizeof(interpreters),
				(void *)(runtime + l->runtime_interpreters)) || !interpreters[0])
		return 0;
	s->python.interpreter = interpreters[0];
	if (interpreters[0] == interpreters[1]) {
		s->python.stamp = python__stamp(l, runtime, interpreters[0]);
		return 0;
	}
	s->python.next = python__pointer(s->python.interpreter + l->interpreter_threads);
	bpf_loop(SEARCH_STEPS, python__search, &s, 0);
	if (s->python.interpreter)
		count(LOST_STATES);	/* it has not come to the end */
	return 0;
}

/* The words of the current task's Python frames, if it has any. */
static __noinline void python__walk(struct scratch *s, struct task_struct *task,
				    const struct proc *proc)
{
	const struct python_layout *l = python__layout(proc ? proc->python : 0);
	__u32 nr;

	if (!l || !l->style)
		return;
	s->python.layout = proc->python;
	s->python.image = (__u64)s->tgid << 32 | (__u32)task->self_exec_id;
	s->python.type = proc->python_code;
	s->python.marks = 0;
	frames__start(s);
	s->python.thread = task->thread.fsbase;
	s->python.own = python__state(s, l, s->python.thread);
	if (!s->python.own)
		return;
	s->python.run = 0;
	s->python.stamp = 0;
	python__others(s, proc->python_runtime);
	if (!s->python.stamp)
		s->python.stamp = frees__stamp(s, task, proc);
	memos__start(s);
	nr = s->python.run & (PYTHON_STATES - 1);
	s->python.list[nr].state = s->python.own;
	bpf_loop(nr + 1, python__list_at, &s, 0);
	s->anon |= s->nr != 0;
	s->python.end = s->nr;
}

#endif
