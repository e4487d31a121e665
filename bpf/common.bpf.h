/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What every BPF object includes: types, maps, counters, process look-up. */
#ifndef GPUCOLLECT_COMMON_BPF_H
#define GPUCOLLECT_COMMON_BPF_H

#include "vmlinux.h"
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>

#include "bpf/gpucollect.h"

#define ALWAYS_INLINE inline __attribute__((always_inline))

/* Stack memory that may be read: ordinary, no device. */
struct readable {
	__u64 lo, hi;
};

static ALWAYS_INLINE long unwind_read(void *ctx, void *dst, __u32 size, __u64 addr)
{
	const struct readable *mem = ctx;

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

static ALWAYS_INLINE void head__init(struct rec_head *head, __u16 type, __u32 size)
{
	head->size = size;
	head->type = type;
	head->cpu = bpf_get_smp_processor_id();
	head->time = bpf_ktime_get_ns();
}

/*
 * A pid as the collector sees it: in a PID namespace of its own, numbers of the initial one
 * mean nothing to it. 0: the task isn't visible from there.
 */
static ALWAYS_INLINE __u32 pid__seen(struct task_struct *task, struct pid *pid, __u32 global)
{
	__u32 level, i;

	if (!settings.pidns_inum)
		return global;
	level = BPF_CORE_READ(pid, level);
	for (i = 1; i < 8 && i <= level; i++) {
		struct upid upid;

		if (bpf_core_read(&upid, sizeof(upid), &pid->numbers[i]))
			return 0;
		if (BPF_CORE_READ(upid.ns, ns.inum) == settings.pidns_inum)
			return upid.nr;
	}
	return 0;
}

static ALWAYS_INLINE __u32 task__tgid(struct task_struct *task)
{
	return pid__seen(task, task->group_leader->thread_pid,
			 task->tgid);
}

static ALWAYS_INLINE __u32 task__tid(struct task_struct *task)
{
	return pid__seen(task, task->thread_pid, task->pid);
}

static ALWAYS_INLINE bool proc__wanted(const struct proc *proc, __u32 tgid)
{
	if (!tgid || tgid == settings.self)
		return false;
	return settings.all || (proc && (proc->flags & PROC_TARGET));
}

#endif
