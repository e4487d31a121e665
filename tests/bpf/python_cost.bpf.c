// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* What a walk of a Python stack costs, and the same walk without its Python frames. */
#include "bpf/send.bpf.h"
#include "tests/bpf/python_cost.h"

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, SCRATCH_LEVELS);
	__type(key, __u32);
	__type(value, struct scratch);
} cost_scratch SEC(".maps");

__u32 hits;
__u32 python_words, native_words;	/* of the last walk with Python; native 0: it met code without rows */
__u32 took[NR_COSTS][COST_HITS];	/* ns */

SEC("uprobe")
int cost_python(struct pt_regs *ctx)
{
	struct task_struct *task = bpf_get_current_task_btf();
	__u32 tgid = task__tgid(task), hit = hits++, which = hit % NR_COSTS;
	const struct proc *known = bpf_map_lookup_elem(&procs, &tgid);
	struct scratch *s = scratch__get(&cost_scratch);
	struct proc proc;
	__u64 start;
	bool missing;

	if (!s)
		return 0;
	if (known) {
		proc = *known;
		if (which == COST_NATIVE)
			proc.python = 0;
		s->tgid = tgid;
		start = bpf_ktime_get_ns();
		missing = walk(s, task, &proc, ctx, false, false);
		took[which & (NR_COSTS - 1)][hit / NR_COSTS & (COST_HITS - 1)] = bpf_ktime_get_ns() - start;
		if (which == COST_PYTHON) {
			python_words = s->python.end;
			native_words = missing ? 0 : s->nr - s->python.end;
		}
	}
	scratch__put(s);
	return 0;
}
