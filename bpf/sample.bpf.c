// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* CPU samples: a software clock event on every CPU fires this program in interrupt context. */
#include "bpf/send.bpf.h"

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, SCRATCH_LEVELS);
	__type(key, __u32);
	__type(value, struct scratch);
} sample_scratch SEC(".maps");

static ALWAYS_INLINE __u64 kernel_stack(struct bpf_perf_event_data *ctx, struct scratch *s)
{
	long bytes = bpf_get_stack(ctx, s->words, GPUCOLLECT_MAX_KERNEL_FRAMES * sizeof(__u64), 0);
	__u32 i, nr;

	if (bytes <= 0)
		return 0;
	nr = bytes / sizeof(__u64);
	words__start(s);
	for (i = 0; i < GPUCOLLECT_MAX_KERNEL_FRAMES && i < nr; i++)
		word__add(s, FRAME_MAKE_ADDRESS(FRAME_KERNEL, s->words[i] - (i != 0)));
	return stack__send(s);
}

SEC("perf_event")
int gpucollect_sample(struct bpf_perf_event_data *ctx)
{
	struct task_struct *task = bpf_get_current_task_btf();
	__u32 tgid = task__tgid(task);
	const struct proc *proc = bpf_map_lookup_elem(&procs, &tgid);
	const struct pt_regs *regs = (void *)bpf_task_pt_regs(task);
	struct rec_sample sample = {};
	struct scratch *s;
	bool user, in_syscall, in_trap, raw = false;

	if (!proc__wanted(proc, tgid))
		return 0;
	count(SEEN_SAMPLE);
	s = scratch__get(&sample_scratch);
	if (!s) {
		count(LOST_SAMPLE);
		return 0;
	}
	s->tgid = tgid;
	s->deep = 1;
	head__init(&sample.head, REC_SAMPLE, sizeof(sample));
	sample.tgid = tgid;
	sample.tid = task__tid(task);
	/* Privilege level; the verifier wants the whole word to be read. */
	user = (*(volatile __u64 *)&ctx->regs.cs & 3) != 0;
	if (!user)
		sample.kernel = kernel_stack(ctx, s);
	in_syscall = !user && (long)regs->orig_ax >= 0 && behind_syscall(regs->ip);
	in_trap = !user && (long)regs->orig_ax < 0 && behind_breakpoint(task, regs);
	if (task->flags & 0x00200000 /* PF_KTHREAD, 2.6.27 to now */) {
		words__start(s);
		word__add(s, FRAME_MAKE_END(END_KERNEL_THREAD, 0));
		sample.user = stack__send(s);
	} else if (walk(s, task, proc, regs, in_syscall, in_trap)) {
		raw = RAW_SEND(s, &sample, sample);
	} else {
		sample.user = stack__send(s);
	}
	if (!raw && bpf_ringbuf_output(&ring, &sample, sizeof(sample), ring__lazy()))
		count(LOST_SAMPLE);
	scratch__put(s);
	return 0;
}
