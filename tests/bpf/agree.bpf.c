// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The sampling program of a test: of every sample of a target it sends the words that the walk
 * found and, whatever they are, a copy of registers and stack as they were for that walk.
 */
#include "bpf/send.bpf.h"

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, SCRATCH_LEVELS);
	__type(key, __u32);
	__type(value, struct scratch);
} agree_scratch SEC(".maps");

SEC("perf_event")
int agree_sample(struct bpf_perf_event_data *ctx)
{
	struct task_struct *task = bpf_get_current_task_btf();
	__u32 tgid = task__tgid(task);
	const struct proc *proc = bpf_map_lookup_elem(&procs, &tgid);
	const struct pt_regs *regs = (void *)bpf_task_pt_regs(task);
	struct rec_sample sample = {};
	bool user, in_syscall, in_trap;
	struct scratch *s;

	if (!proc__wanted(proc, tgid))
		return 0;
	s = scratch__get(&agree_scratch);
	if (!s)
		return 0;
	s->tgid = tgid;
	head__init(&sample.head, REC_SAMPLE, sizeof(sample));
	sample.tgid = tgid;
	sample.tid = task__tid(task);
	user = (*(volatile __u64 *)&ctx->regs.cs & 3) != 0;
	in_syscall = !user && (long)regs->orig_ax >= 0 && behind_syscall(regs->ip);
	in_trap = !user && (long)regs->orig_ax < 0 && behind_breakpoint(task, regs);
	if (!walk(s, task, proc, regs, in_syscall, in_trap))
		sample.user = stack__send(s);
	/* From the first frame on again, for the copy. */
	walk__start(s, task, regs, in_syscall, in_trap);
	RAW_SEND(s, &sample, sample);
	scratch__put(s);
	return 0;
}
