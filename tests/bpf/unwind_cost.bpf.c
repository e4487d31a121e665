// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* What a walk costs: ours, the kernel's by frame pointers, and a program that does nothing. */
#include "bpf/send.bpf.h"

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, SCRATCH_LEVELS);
	__type(key, __u32);
	__type(value, struct scratch);
} cost_scratch SEC(".maps");

__u32 walked;		/* words of the last walk, its end included; 0: it met code without rows */
__u32 followed;		/* addresses that the kernel found */

SEC("uprobe")
int cost_walk(struct pt_regs *ctx)
{
	struct task_struct *task = bpf_get_current_task_btf();
	__u32 tgid = task__tgid(task);
	const struct proc *proc = bpf_map_lookup_elem(&procs, &tgid);
	struct scratch *s = scratch__get(&cost_scratch);

	if (!s)
		return 0;
	s->tgid = tgid;
	walked = walk(s, task, proc, ctx, false, false) ? 0 : s->nr;
	scratch__put(s);
	return 0;
}

SEC("uprobe")
int cost_frame_pointers(struct pt_regs *ctx)
{
	struct scratch *s = scratch__get(&cost_scratch);
	long bytes;

	if (!s)
		return 0;
	bytes = bpf_get_stack(ctx, s->words, 127 * sizeof(__u64), BPF_F_USER_STACK);
	followed = bytes > 0 ? bytes / sizeof(__u64) : 0;
	scratch__put(s);
	return 0;
}

SEC("uprobe")
int cost_nothing(struct pt_regs *ctx)
{
	struct scratch *s = scratch__get(&cost_scratch);

	if (s)
		scratch__put(s);
	return 0;
}
