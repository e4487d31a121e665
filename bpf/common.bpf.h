/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What every BPF object includes: types, maps, counters, process look-up. */
#ifndef GPUCOLLECT_COMMON_BPF_H
#define GPUCOLLECT_COMMON_BPF_H

#include "vmlinux.h"
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>

#include "bpf/gpucollect.h"
#include "bpf/python_frames.h"

#define ALWAYS_INLINE inline __attribute__((always_inline))

/*
 * Stack memory that may be read: ordinary, no device. A page is read at once: that costs hardly more than a
 * word, and the next frames are there. The page behind may never have been touched; to find that out takes
 * most of a us. A page belongs to one mapping: what lies in it beside lo and hi is of the same kind.
 */
#define READ_PAGE 4096ull
#define NO_PAGE 1ull
struct readable {
	__u64 lo, hi;
	__u64 page;		/* address of the one in block, or NO_PAGE */
	__u64 block[READ_PAGE / 8];
};

static __noinline long readable__fill(struct readable *mem, __u64 page)
{
	mem->page = NO_PAGE;
	if (bpf_probe_read_user(mem->block, READ_PAGE, (void *)page))
		return -1;
	mem->page = page;
	return 0;
}

static ALWAYS_INLINE long unwind_read_word(struct readable *mem, __u64 *dst, __u64 addr)
{
	__u64 page = addr & ~(READ_PAGE - 1);

	if (addr < mem->lo || addr + 8 > mem->hi || addr + 8 < addr)
		return -1;
	if (addr & 7)
		return bpf_probe_read_user(dst, 8, (void *)addr);
	if (mem->page != page && readable__fill(mem, page))
		return -1;
	*dst = mem->block[addr / 8 & (READ_PAGE / 8 - 1)];
	return 0;
}

static ALWAYS_INLINE long unwind_read(void *ctx, void *dst, __u32 size, __u64 addr)
{
	struct readable *mem = ctx;

	if (size == 8)
		return unwind_read_word(mem, dst, addr);
	if (addr < mem->lo || addr + size > mem->hi || addr + size < addr)
		return -1;
	return bpf_probe_read_user(dst, size, (void *)addr);
}
#define UNWIND_READ(ctx, dst, size, addr) unwind_read(ctx, dst, size, addr)
#include "bpf/unwind_step.h"
#include "bpf/maps.bpf.h"

static ALWAYS_INLINE void count(__u32 which)
{
	__u64 *n = bpf_map_lookup_elem(&counters, &which);

	if (n)
		__sync_fetch_and_add(n, 1);	/* programs interrupt each other on one CPU */
}

/*
 * For records that can wait for the collector's next tick: it is woken only when they pile up,
 * since a wake-up costs the target more than the record.
 */
#define RING_WAKE (256u << 10)
static ALWAYS_INLINE __u64 ring__lazy(void)
{
	return bpf_ringbuf_query(&ring, BPF_RB_AVAIL_DATA) >= RING_WAKE ? BPF_RB_FORCE_WAKEUP :
	       BPF_RB_NO_WAKEUP;
}

static ALWAYS_INLINE void head__init(struct rec_head *head, __u16 type, __u32 size)
{
	head->size = size;
	head->type = type;
	head->cpu = bpf_get_smp_processor_id();
	head->time = bpf_ktime_get_ns();
}

#define MAX_PIDNS_LEVEL 32	/* of the kernel, since 3.8 */

/*
 * A pid as the collector sees it: in a PID namespace of its own, numbers of the initial one
 * mean nothing to it. 0: the task isn't visible from there.
 */
static ALWAYS_INLINE __u32 pid__seen(struct pid *pid)
{
	__u32 level = BPF_CORE_READ(pid, level), i;

	for (i = 1; i <= MAX_PIDNS_LEVEL && i <= level; i++) {
		struct upid upid;

		if (bpf_core_read(&upid, sizeof(upid), &pid->numbers[i]))
			return 0;
		if (BPF_CORE_READ(upid.ns, ns.inum) == settings.pidns_inum)
			return upid.nr;
	}
	return 0;
}

/* Each direct load of a pointer costs the verifier a search through all of the kernel's types. */
static ALWAYS_INLINE __u32 task__tgid(struct task_struct *task)
{
	if (!settings.pidns_inum)
		return task->tgid;
	return pid__seen(BPF_CORE_READ(task, group_leader, thread_pid));
}

static ALWAYS_INLINE __u32 task__tid(struct task_struct *task)
{
	return settings.pidns_inum ? pid__seen(BPF_CORE_READ(task, thread_pid)) : task->pid;
}

/* Of the process that runs here. */
static ALWAYS_INLINE bool proc__wanted(const struct proc *proc, __u32 tgid)
{
	if (!tgid || tgid == settings.self)
		return false;
	if (settings.all || (proc && (proc->flags & PROC_TARGET)))
		return true;
	return settings.cgroup && bpf_current_task_under_cgroup(&cgroups, 0) == 1;
}

#endif
