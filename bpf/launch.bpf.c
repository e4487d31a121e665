// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Launches: a probe on the timing library's sites (gpu_timing/channel.h), or, in processes without
 * the library, on the entry points of the driver. Arguments: notes of the CUDA driver API's
 * prototypes and the x86-64 calling convention, cuda.h 13.0.
 */
#include "bpf/send.bpf.h"
#include "gpu_timing/channel.h"

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, SCRATCH_LEVELS);
	__type(key, __u32);
	__type(value, struct scratch);
} launch_scratch SEC(".maps");

/* The user stack of a launch, then the launch itself: always both or a counted loss. */
static ALWAYS_INLINE void launch__send(struct rec_launch *launch, struct task_struct *task,
				       const struct proc *proc, struct pt_regs *regs)
{
	struct scratch *s = scratch__get(&launch_scratch);
	bool raw = false;

	if (s) {
		s->tgid = launch->tgid;
		if (walk(s, task, proc, regs, false, false))
			raw = RAW_SEND(s, launch, launch);
		else
			launch->user = stack__send(s);
	}
	if (!raw && bpf_ringbuf_output(&ring, launch, sizeof(*launch), ring__lazy()))
		count(launch->flags & LAUNCH_COPY ? LOST_COPY :
		      launch->flags & LAUNCH_WAIT ? LOST_WAIT : LOST_LAUNCH);
	if (s)
		scratch__put(s);
}

static ALWAYS_INLINE bool launch__init(struct rec_launch *launch, struct task_struct *task,
				       const struct proc **proc)
{
	__u32 tgid = task__tgid(task);

	*proc = bpf_map_lookup_elem(&procs, &tgid);
	if (!proc__wanted(*proc, tgid))
		return false;
	head__init(&launch->head, REC_LAUNCH, sizeof(*launch));
	launch->tgid = tgid;
	launch->tid = task__tid(task);
	return true;
}

static ALWAYS_INLINE void library__hello(struct task_struct *task, __s32 fd)
{
	struct rec_library *rec = bpf_ringbuf_reserve(&ring, sizeof(*rec), 0);

	if (!rec) {
		count(LOST_PROCESS);
		return;
	}
	head__init(&rec->head, REC_LIBRARY, sizeof(*rec));
	rec->tgid = task__tgid(task);
	rec->fd = fd;
	bpf_ringbuf_submit(rec, BPF_RB_FORCE_WAKEUP);
}

/* The arguments that the library's site has; false: it only says hello. */
static ALWAYS_INLINE bool site__args(struct rec_launch *launch, struct task_struct *task,
				     const struct pt_regs *ctx)
{
	struct channel_launch args = { .weight = 1 };

	if (!PT_REGS_PARM1(ctx)) {
		library__hello(task, (__s32)PT_REGS_PARM2(ctx));
		return false;
	}
	count(SEEN_LAUNCH);
	launch->id = PT_REGS_PARM1(ctx);
	if (bpf_probe_read_user(&args, sizeof(args), (void *)PT_REGS_PARM2(ctx)))
		count(LOST_ARGS);
	launch->function = args.function;
	launch->stream = args.stream;
	__builtin_memcpy(launch->grid, args.grid, sizeof(launch->grid));
	__builtin_memcpy(launch->block, args.block, sizeof(launch->block));
	launch->shared_bytes = args.shared_bytes;
	launch->entry = args.entry;
	launch->flags = args.flags;
	launch->weight = args.weight;
	launch->stratum = args.stratum;
	return true;
}

/* --- without the library: arguments at the driver's entries -------------------------------- */

/* Arguments from the seventh on lie above the return address. */
static ALWAYS_INLINE long stack_arg(const struct pt_regs *ctx, int n, void *to, __u32 size)
{
	return bpf_probe_read_user(to, size, (void *)(PT_REGS_SP(ctx) + 8 + n * 8));
}

static ALWAYS_INLINE long args__kernel(struct rec_launch *l, const struct pt_regs *ctx)
{
	struct {
		__u32 block_z, pad;
		__u32 shared, pad2;
		__u64 stream;
	} rest = {};
	long err = stack_arg(ctx, 0, &rest, sizeof(rest));

	l->function = PT_REGS_PARM1(ctx);
	l->grid[0] = (__u32)PT_REGS_PARM2(ctx);
	l->grid[1] = (__u32)PT_REGS_PARM3(ctx);
	l->grid[2] = (__u32)PT_REGS_PARM4(ctx);
	l->block[0] = (__u32)PT_REGS_PARM5(ctx);
	l->block[1] = (__u32)ctx->r9;
	l->block[2] = rest.block_z;
	l->shared_bytes = rest.shared;
	l->stream = rest.stream;
	return err;
}

/* CUlaunchConfig: grid, block, shared bytes, stream, attributes, their number. */
struct launch_config {
	__u32 grid[3];
	__u32 block[3];
	__u32 shared;
	__u32 pad;
	__u64 stream;
	__u64 attrs;
	__u32 nr_attrs;
	__u32 pad2;
};

#define ATTR_BYTES 72		/* CUlaunchAttribute: id, padding, value of 64 bytes */
#define ATTR_PDL 6		/* CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION */
#define ATTR_MAX 16

static ALWAYS_INLINE long args__ex(struct rec_launch *l, const struct pt_regs *ctx)
{
	struct launch_config c = {};
	__u32 i, attr[3];
	long err = bpf_probe_read_user(&c, sizeof(c), (void *)PT_REGS_PARM1(ctx));

	l->function = PT_REGS_PARM2(ctx);
	__builtin_memcpy(l->grid, c.grid, sizeof(l->grid));
	__builtin_memcpy(l->block, c.block, sizeof(l->block));
	l->shared_bytes = c.shared;
	l->stream = c.stream;
	for (i = 0; i < ATTR_MAX && i < c.nr_attrs; i++) {
		if (bpf_probe_read_user(attr, sizeof(attr), (void *)(c.attrs + i * ATTR_BYTES)))
			break;
		if (attr[0] == ATTR_PDL && attr[2])
			l->flags |= LAUNCH_PDL;
	}
	return err;
}

/* One element of the list of a multi-device launch: CUDA_LAUNCH_PARAMS, 56 bytes. */
struct launch_params {
	__u64 function;
	__u32 grid[3];
	__u32 block[3];
	__u32 shared;
	__u32 pad;
	__u64 stream;
	__u64 params;
};

static ALWAYS_INLINE long args__multi(struct rec_launch *l, __u64 list, __u32 i)
{
	struct launch_params p = {};
	long err = bpf_probe_read_user(&p, sizeof(p), (void *)(list + i * sizeof(p)));

	l->function = p.function;
	__builtin_memcpy(l->grid, p.grid, sizeof(l->grid));
	__builtin_memcpy(l->block, p.block, sizeof(l->block));
	l->shared_bytes = p.shared;
	l->stream = p.stream;
	return err;
}

static ALWAYS_INLINE long launch__args(struct rec_launch *l, const struct pt_regs *ctx)
{
	switch (l->entry) {
	case ENTRY_LAUNCH_KERNEL:
	case ENTRY_LAUNCH_KERNEL_PTSZ:
	case ENTRY_COOPERATIVE:
	case ENTRY_COOPERATIVE_PTSZ:
		return args__kernel(l, ctx);
	case ENTRY_LAUNCH_KERNEL_EX:
	case ENTRY_LAUNCH_KERNEL_EX_PTSZ:
		return args__ex(l, ctx);
	case ENTRY_COOPERATIVE_MULTI:
		return args__multi(l, PT_REGS_PARM1(ctx), 0);
	case ENTRY_GRAPH_LAUNCH:
	case ENTRY_GRAPH_LAUNCH_PTSZ:
		l->function = PT_REGS_PARM1(ctx);
		l->stream = PT_REGS_PARM2(ctx);
		l->flags |= LAUNCH_GRAPH;
		return 0;
	case ENTRY_LAUNCH_GRID_ASYNC:
		l->stream = PT_REGS_PARM4(ctx);	/* and the grid, as the next */
	case ENTRY_LAUNCH_GRID:
		l->grid[0] = (__u32)PT_REGS_PARM2(ctx);
		l->grid[1] = (__u32)PT_REGS_PARM3(ctx);
	default:
		l->function = PT_REGS_PARM1(ctx);
		l->flags |= LAUNCH_NO_BLOCK;
		return 0;
	}
}

/* False: the launch is told of by the library. */
static ALWAYS_INLINE bool entry__args(struct rec_launch *launch, const struct proc *proc,
				      const struct pt_regs *ctx)
{
	/* A probe sits in the file and fires in processes that have the library, too. */
	if (settings.library && !(proc && proc->flags & PROC_PROBED))
		return false;
	if (launch->entry == ENTRY_COOPERATIVE || launch->entry == ENTRY_COOPERATIVE_PTSZ ||
	    launch->entry == ENTRY_COOPERATIVE_MULTI)
		launch->flags |= LAUNCH_COOPERATIVE;
	if (launch->entry == ENTRY_LAUNCH_KERNEL_PTSZ || launch->entry == ENTRY_COOPERATIVE_PTSZ ||
	    launch->entry == ENTRY_LAUNCH_KERNEL_EX_PTSZ || launch->entry == ENTRY_GRAPH_LAUNCH_PTSZ)
		launch->flags |= LAUNCH_PTSZ;
	count(SEEN_LAUNCH);
	if (launch__args(launch, ctx))
		count(LOST_ARGS);
	return true;
}

/* One call on several devices is a launch on each of them, all from one stack: it is taken once. */
static ALWAYS_INLINE void launch__others(struct rec_launch *launch, const struct pt_regs *ctx)
{
	__u32 nr = (__u32)PT_REGS_PARM2(ctx), i;

	for (i = 1; i < 64 && i < nr; i++) {
		count(SEEN_LAUNCH);
		if (args__multi(launch, PT_REGS_PARM1(ctx), i))
			count(LOST_ARGS);
		if (bpf_ringbuf_output(&ring, launch, sizeof(*launch), ring__lazy()))
			count(LOST_LAUNCH);
	}
}

/* The cookie is the driver's entry, 0 the library's site: one program, which is checked once. */
static ALWAYS_INLINE int probe(struct pt_regs *ctx)
{
	struct task_struct *task = bpf_get_current_task_btf();
	__u64 cookie = bpf_get_attach_cookie(ctx);
	struct rec_launch launch = {};
	const struct proc *proc;

	if (!launch__init(&launch, task, &proc))
		return 0;
	launch.entry = (__u16)cookie;
	if (!(cookie ? entry__args(&launch, proc, ctx) : site__args(&launch, task, ctx)))
		return 0;
	launch__send(&launch, task, proc, ctx);
	if (cookie == ENTRY_COOPERATIVE_MULTI)
		launch__others(&launch, ctx);
	return 0;
}

SEC("uprobe")
int gpucollect_probe(struct pt_regs *ctx)
{
	return probe(ctx);
}

/* For links to one place each, where there are others for several: see probes__choose_programs. */
SEC("uprobe")
int gpucollect_probe_each(struct pt_regs *ctx)
{
	return probe(ctx);
}
