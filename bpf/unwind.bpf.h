/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Unwinding the user stack of the current task into frame words. */
#ifndef GPUCOLLECT_UNWIND_BPF_H
#define GPUCOLLECT_UNWIND_BPF_H

#include "bpf/python.bpf.h"

#define PAGE_STEPS 13		/* halvings of GPUCOLLECT_MAX_PAGE_ROWS rows, and one to end */
#define MAPPING_STEPS 13	/* of GPUCOLLECT_MAX_PROC_MAPPINGS */
#define MAX_STACK_BYTES (8ull << 20)
#define MAX_STEPS (2 * GPUCOLLECT_MAX_FRAMES)	/* frames of trampolines leave no word */
/*
 * Compilers don't say that a register was popped: at a `ret` its slot is below rsp, where the
 * System V psABI (3.2.2) keeps 128 bytes from being overwritten.
 */
#define RED_ZONE 128

/* --- where the stack is ------------------------------------------------------------------- */

static long stack__vma(struct task_struct *task, struct vm_area_struct *vma, struct scratch **s)
{
	const __u64 device = 0x4000 | 0x400;	/* VM_IO, VM_PFNMAP: constant since 2.4 */
	struct thread_stack st = {};
	__u32 tid = bpf_get_current_pid_tgid();

	if (vma->vm_flags & device)
		return 0;
	st.mm = (*s)->mm;
	st.start = vma->vm_start;
	st.end = vma->vm_end;
	(*s)->mem.lo = st.start;
	(*s)->mem.hi = st.end;
	bpf_map_update_elem(&thread_stacks, &tid, &st, BPF_ANY);
	return 0;
}

/*
 * Sets the readable range from the stack pointer upwards. The main thread's stack reaches to the
 * environment; other stacks are found by their mapping, which needs mmap_lock: when somebody
 * holds it for writing, the range known from before, or the thread control block, which C
 * libraries put at the top of the stack, bounds it instead.
 */
static ALWAYS_INLINE void stack__find(struct scratch *s, struct task_struct *task, __u64 sp)
{
	__u32 tid = bpf_get_current_pid_tgid();
	__u64 top = s->env_end, mm = s->mm;
	struct thread_stack *st;

	s->mem.lo = 0;
	s->mem.hi = 0;
	s->mem.page = NO_PAGE;
	if (sp < top && top - sp < MAX_STACK_BYTES) {
		s->mem.lo = sp - RED_ZONE;
		s->mem.hi = top;
		return;
	}
	st = bpf_map_lookup_elem(&thread_stacks, &tid);
	if (st && st->mm == mm && sp >= st->start && sp < st->end) {
		s->mem.lo = sp - st->start < RED_ZONE ? st->start : sp - RED_ZONE;
		s->mem.hi = st->end;
		return;
	}
	if (bpf_find_vma(task, sp, stack__vma, &s, 0) == 0) {
		if (sp - s->mem.lo > RED_ZONE)
			s->mem.lo = sp - RED_ZONE;
		return;
	}
	top = task->thread.fsbase;
	if (sp < top && top - sp < MAX_STACK_BYTES) {
		s->mem.lo = sp - RED_ZONE;
		s->mem.hi = top;
	}
}

/* --- where code is ------------------------------------------------------------------------ */

/* Puts the executable mapping that holds pc into s->map. */
static ALWAYS_INLINE bool mapping__find(struct scratch *s, __u64 pc)
{
	__u32 lo = 0, hi = s->nr_maps, i;

	if (pc >= s->map.start && pc < s->map.end)
		return true;
	for (i = 0; i < MAPPING_STEPS && lo < hi; i++) {
		__u32 mid = (lo + hi) / 2, key = s->first + mid;
		struct mapping *m = bpf_map_lookup_elem(&mappings, &key);

		if (!m)
			return false;
		if (pc < m->start) {
			hi = mid;
		} else if (pc >= m->end) {
			lo = mid + 1;
		} else {
			s->map = *m;
			return true;
		}
	}
	return false;
}

static ALWAYS_INLINE bool slot__take_unknown(__u32 index)
{
	struct proc_slot *slot = bpf_map_lookup_elem(&slots, &index);

	return slot && slot->unknown_budget > 0 &&
	       __sync_fetch_and_add(&slot->unknown_budget, -1) > 0;
}

/* The rule for an offset in a file; false: its page has no rows yet. */
static ALWAYS_INLINE bool rule__find(__u32 file, __u64 offset, __u32 *rule)
{
	struct page_key key = { .file = file, .page = offset >> GPUCOLLECT_PAGE_SHIFT };
	__u32 low = offset & ((1u << GPUCOLLECT_PAGE_SHIFT) - 1), lo, hi, i;
	struct page_rows *page = bpf_map_lookup_elem(&pages, &key);

	if (!page)
		return false;
	*rule = 0;
	lo = page->first;
	hi = page->first + page->nr;	/* rows[lo].pc <= low always: the first row has pc 0 */
	for (i = 0; i < PAGE_STEPS && lo < hi; i++) {
		__u32 mid = (lo + hi) / 2, at = mid / 2;
		struct unwind_row *pair = (void *)bpf_map_lookup_elem(&rows, &at);
		struct unwind_row row;

		if (!pair)
			return false;
		row = pair[mid & 1];
		if (row.pc <= low) {
			*rule = row.rule;
			lo = mid + 1;
		} else {
			hi = mid;
		}
	}
	return true;
}

/* --- the walk ----------------------------------------------------------------------------- */

/* Where a pc leads: into a file with a rule, or nowhere yet. */
struct place {
	__u64 word;		/* FRAME_FILE or FRAME_ANON */
	__u32 rule;		/* of FRAME_FILE */
	__u32 trampoline;	/* bool: in the kernel's own code, at `word`: no frame of anybody's */
};

/*
 * Looks a pc up: first among those that were looked up before in this state of mappings and rows,
 * then in both. 0, or UNWIND_*: NO_ROW: in no known mapping; UNREADABLE: its page has no rows yet.
 */
static ALWAYS_INLINE int place__find(struct scratch *s, __u64 pc, struct place *place)
{
	__u64 key = pc ^ s->tag, offset;
	__u32 index = (key * 0x9e3779b97f4a7c15ull) >> (64 - KNOWN_PCS_SHIFT);
	struct known_pc *known = bpf_map_lookup_elem(&known_pcs, &index);

	if (!known)
		return UNWIND_NO_ROW;
	if (known->key == key) {
		/* Read once: what was checked is what is used. */
		place->word = *(volatile __u64 *)&known->word;
		place->rule = *(volatile __u32 *)&known->rule;
		if (known->check == entry__check(key, place->word, place->rule))
			return 0;
	}
	if (!mapping__find(s, pc))
		return UNWIND_NO_ROW;
	if (s->map.kind == MAPPING_TRAMPOLINE) {
		place->word = pc - s->map.start;
		place->trampoline = 1;
		return 0;
	}
	if (s->map.kind != MAPPING_FILE) {
		place->word = FRAME_MAKE_ADDRESS(FRAME_ANON, pc);
		place->rule = 0;
		return 0;
	}
	offset = pc - s->map.start + s->map.offset;
	if (!rule__find(s->map.file, offset, &place->rule))
		return UNWIND_UNREADABLE;
	place->word = FRAME_MAKE_FILE(FRAME_FILE, s->map.file, offset);
	known->key = key;
	known->word = place->word;
	known->rule = place->rule;
	known->check = entry__check(key, place->word, place->rule);
	return 0;
}

static ALWAYS_INLINE __u32 end__reason(int result)
{
	switch (result) {
	case UNWIND_END: return END_ROOT;
	case UNWIND_NO_RULE: return END_NO_RULE;
	case UNWIND_UNREADABLE: return END_UNREADABLE;
	case UNWIND_NO_PROGRESS: return END_NO_PROGRESS;
	default: return END_NO_INFO;
	}
}

static ALWAYS_INLINE long walk__end(struct scratch *s, __u32 why, __u32 file)
{
	word__add(s, FRAME_MAKE_END(why, file));
	return 1;
}

/* No place: mapped a moment ago perhaps. Let user space look, but not for ever. */
static ALWAYS_INLINE long walk__no_place(struct scratch *s, int result)
{
	if (result == UNWIND_NO_ROW && !slot__take_unknown(s->slot))
		return walk__end(s, END_NOT_CODE, 0);
	s->missing = 1;
	return 1;
}

/* Compilers recurse thousands of frames deep: rare enough for user space, at a sample's pace. */
static ALWAYS_INLINE long walk__full(struct scratch *s)
{
	if (!s->deep)
		return walk__end(s, END_TRUNCATED, 0);
	s->missing = 1;
	return 1;
}

static ALWAYS_INLINE long walk__trampoline(struct scratch *s, __u64 offset)
{
	struct unwind_rule rule;
	int result;

	unwind__trampoline(offset, &rule);
	result = unwind__step(&rule, &s->regs, &s->mem);
	if (result)
		return walk__end(s, end__reason(result), 0);
	s->lookup_less = 1;
	s->later = 1;
	return 0;
}

/*
 * Code made at run time has no unwind information. perf's trampolines of Python (-X perf, 3.12 and later) are
 * `sub $8, %rsp; call *%rcx; add $8, %rsp; ret`: what they return to tells where the caller is.
 */
#define TRAMPOLINE_CODE 0xc308c48348ull		/* add $8, %rsp; ret */
#define TRAMPOLINE_BYTES 5
static ALWAYS_INLINE bool walk__perf_trampoline(struct scratch *s)
{
	__u64 code = 0, sp = s->regs.r[UNWIND_RSP], caller;

	if (!s->lookup_less || bpf_probe_read_user(&code, TRAMPOLINE_BYTES, (void *)s->regs.pc) ||
	    code != TRAMPOLINE_CODE || unwind_read(&s->mem, &caller, sizeof(caller), sp + 8))
		return false;
	s->regs.pc = caller;
	s->regs.r[UNWIND_RSP] = sp + 16;
	return true;
}

/* One frame: its word, then the registers of its caller. */
static long walk__frame(__u64 i, struct scratch **ctx)
{
	struct scratch *s = *ctx;
	__u64 pc = s->regs.pc - s->lookup_less, low = s->regs.r[UNWIND_RSP];
	struct unwind_rule *rule = NULL;
	struct place place = {};
	int result;
	__u32 file;
	bool anon, signal;

	if (s->regs.pc == 0)
		return walk__end(s, END_ROOT, 0);
	if (s->nr - s->python.end >= GPUCOLLECT_MAX_FRAMES - 1)
		return walk__full(s);
	result = place__find(s, pc, &place);
	if (result)
		return walk__no_place(s, result);
	if (place.trampoline)
		return walk__trampoline(s, place.word);
	anon = FRAME_KIND(place.word) == FRAME_ANON;
	file = anon ? 0 : FRAME_FILE_ID(place.word);
	s->anon |= anon;
	/* FRAME_…_GUESS is the next kind. */
	word__add(s, place.word + ((__u64)s->guess << 60));
	rule = bpf_map_lookup_elem(&rules, &place.rule);
	if (!rule)
		return walk__end(s, END_NO_RULE, file);
	signal = rule->cfa == UNWIND_CFA_SIGNAL;
	result = unwind__step(rule, &s->regs, &s->mem);
	s->guess = 0;
	if (result == UNWIND_NO_ROW && anon && walk__perf_trampoline(s))
		result = UNWIND_OK;
	if (result == UNWIND_NO_ROW) {
		if (unwind__guess(&s->regs, &s->mem) || !mapping__find(s, s->regs.pc - 1))
			return walk__end(s, anon ? END_ANON : END_NO_INFO, file);
		s->guess = 1;
		result = UNWIND_OK;
	}
	if (result)
		return walk__end(s, end__reason(result), result == UNWIND_NO_RULE ? file : 0);
	s->lookup_less = !signal;
	s->later = 1;
	if (!signal)
		run__place(s, low, s->regs.r[UNWIND_RSP]);
	if (signal && (s->regs.r[UNWIND_RSP] < s->mem.lo || s->regs.r[UNWIND_RSP] >= s->mem.hi))
		stack__find(s, bpf_get_current_task_btf(), s->regs.r[UNWIND_RSP]);
	return 0;
}

static ALWAYS_INLINE void regs__load(struct unwind_regs *to, const struct pt_regs *regs)
{
	to->r[0] = regs->ax;
	to->r[1] = regs->dx;
	to->r[2] = regs->cx;
	to->r[3] = regs->bx;
	to->r[4] = regs->si;
	to->r[5] = regs->di;
	to->r[6] = regs->bp;
	to->r[7] = regs->sp;
	to->r[8] = regs->r8;
	to->r[9] = regs->r9;
	to->r[10] = regs->r10;
	to->r[11] = regs->r11;
	to->r[12] = regs->r12;
	to->r[13] = regs->r13;
	to->r[14] = regs->r14;
	to->r[15] = regs->r15;
	to->pc = regs->ip;
	to->full = 1;
	to->lost_rbp = 0;
}

/*
 * A probe's breakpoint is being handled and pc is still behind it: what it stands for was not executed
 * yet, so that the rule of the byte itself holds. Soon the kernel sets pc to the probe, which shows as
 * the breakpoint, or as the call that it may become; what lies before that may be padding of 0xcc.
 * At last the instruction has been emulated and pc is behind it rightly: a push %rbp has left its mark.
 * A thread that never met a probe, and faults at the start of a function, has such padding there, too.
 */
static ALWAYS_INLINE bool behind_breakpoint(struct task_struct *task, const struct pt_regs *regs)
{
	__u8 code[2] = {};
	__u64 top = 0;

	if (!bpf_core_field_exists(task->utask) || !BPF_CORE_READ(task, utask))
		return false;
	if (bpf_probe_read_user(code, sizeof(code), (void *)(regs->ip - 1)) || code[0] != 0xcc ||
	    code[1] == 0xcc || code[1] == 0xe8)
		return false;
	return bpf_probe_read_user(&top, sizeof(top), (void *)regs->sp) || top != regs->bp;
}

/*
 * pc is behind a syscall instruction. Not so while an optimised uprobe is handled: that is a system
 * call of the kernel's trampoline, with pc set to the probe's address.
 */
static ALWAYS_INLINE bool behind_syscall(__u64 pc)
{
	__u16 code = 0;

	return !bpf_probe_read_user(&code, sizeof(code), (void *)(pc - 2)) && code == 0x050f;
}

/* At the first frame, with nothing found yet. */
static __noinline void walk__start(struct scratch *s, struct task_struct *task,
				   const struct pt_regs *regs, bool in_syscall, bool in_trap)
{
	struct mm_struct *mm = task->mm;

	s->mm = (__u64)mm;
	s->env_end = mm->env_end;
	s->map.start = 0;
	s->map.end = 0;
	words__start(s);
	s->missing = 0;
	s->guess = 0;
	s->later = 0;
	s->generation = 0;
	s->lookup_less = in_syscall;
	regs__load(&s->regs, regs);
	s->regs.pc -= in_trap;
	stack__find(s, task, s->regs.r[UNWIND_RSP]);
}

/*
 * The user stack of the current task. Returns true if it must be unwound in user space: a
 * process whose mappings are not known (any more), or code without rows.
 */
static ALWAYS_INLINE bool walk(struct scratch *s, struct task_struct *task, const struct proc *proc,
			       const struct pt_regs *regs, bool in_syscall, bool in_trap)
{
	struct proc_slot *slot = NULL;
	__u64 range;
	__u32 seq;

	walk__start(s, task, regs, in_syscall, in_trap);
	python__walk(s, task, proc);
	if (proc && proc->slot != PROC_NO_SLOT) {
		__u32 index = proc->slot;

		slot = bpf_map_lookup_elem(&slots, &index);
	}
	if (!slot || *(volatile __u32 *)&slot->map_seq != *(volatile __u32 *)&slot->read_seq)
		return true;
	s->slot = proc->slot;
	seq = *(volatile __u32 *)&slot->mappings_seq;
	s->tag = hash__mix((__u64)seq << 32 | proc->slot) ^
		 hash__mix(*(volatile __u32 *)&rows_epoch + 1ull);
	s->generation = slot->generation;
	range = *(volatile __u64 *)&slot->mappings;
	s->first = range >> 32;
	s->nr_maps = (__u32)range;
	bpf_loop(MAX_STEPS, walk__frame, &s, 0);
	if (*(volatile __u32 *)&slot->mappings_seq == seq)
		return s->missing;
	/* The list was replaced, and its place may be another's by now: user space begins again. */
	walk__start(s, task, regs, in_syscall, in_trap);
	python__walk(s, task, proc);
	return true;
}

#endif
