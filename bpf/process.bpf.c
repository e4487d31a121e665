// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The life of processes: children of targets become targets, exec makes mappings stale. */
#include "bpf/common.bpf.h"

static ALWAYS_INLINE void process__send(__u16 type, __u32 tgid, __u32 parent,
					struct task_struct *task)
{
	struct rec_process *rec = bpf_ringbuf_reserve(&ring, sizeof(*rec), 0);

	if (!rec) {
		count(LOST_PROCESS);
		return;
	}
	head__init(&rec->head, type, sizeof(*rec));
	rec->tgid = tgid;
	rec->parent = parent;
	bpf_probe_read_kernel_str(rec->comm, sizeof(rec->comm), task->comm);
	bpf_ringbuf_submit(rec, ring__lazy());
}

/* From now on this process's mappings are not what the collector read, nor is its Python. */
static ALWAYS_INLINE void process__changed(struct proc *proc)
{
	__u32 index = proc->slot;
	struct proc_slot *slot;

	proc->python = 0;
	if (index == PROC_NO_SLOT)
		return;
	slot = bpf_map_lookup_elem(&slots, &index);
	if (slot)
		__sync_fetch_and_add(&slot->map_seq, 1);
}

SEC("tp_btf/sched_process_fork")
int BPF_PROG(gpucollect_fork, struct task_struct *parent, struct task_struct *child)
{
	__u32 tgid = task__tgid(parent), new_tgid;
	struct proc fresh = { .slot = PROC_NO_SLOT, .flags = PROC_TARGET };
	const struct proc *proc;

	if (BPF_CORE_READ(child, pid) != BPF_CORE_READ(child, tgid))
		return 0;	/* a thread */
	proc = bpf_map_lookup_elem(&procs, &tgid);
	if (!proc__wanted(proc, tgid))
		return 0;
	new_tgid = task__tgid(child);
	if (!new_tgid)
		return 0;
	if (proc) {	/* the parent's, until it executes another program */
		fresh.python = proc->python;
		fresh.python_code = proc->python_code;
		fresh.python_runtime = proc->python_runtime;
	}
	if (bpf_map_update_elem(&procs, &new_tgid, &fresh, BPF_ANY)) {
		count(LOST_PROCS_FULL);
		return 0;
	}
	process__send(REC_FORK, new_tgid, tgid, child);
	return 0;
}

SEC("tp_btf/sched_process_exec")
int BPF_PROG(gpucollect_exec, struct task_struct *task)
{
	__u32 tgid = task__tgid(task);
	struct proc *proc = bpf_map_lookup_elem(&procs, &tgid);
	struct proc fresh = { .slot = PROC_NO_SLOT, .flags = PROC_TARGET };

	if (proc) {
		process__changed(proc);
	} else {
		if (!proc__wanted(proc, tgid))
			return 0;
		if (bpf_map_update_elem(&procs, &tgid, &fresh, BPF_ANY))
			count(LOST_PROCS_FULL);
	}
	process__send(REC_EXEC, tgid, 0, task);
	return 0;
}

SEC("tp_btf/sched_process_exit")
int BPF_PROG(gpucollect_exit, struct task_struct *task)
{
	__u32 tgid;

	if (BPF_CORE_READ(task, signal, live.counter) != 0)
		return 0;	/* other threads live on */
	tgid = task__tgid(task);
	if (!bpf_map_lookup_elem(&procs, &tgid))
		return 0;
	process__send(REC_EXIT, tgid, 0, task);
	bpf_map_delete_elem(&procs, &tgid);
	return 0;
}
