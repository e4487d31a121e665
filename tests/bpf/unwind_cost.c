// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The cost of native unwinding, for each frame, warm: probes on a function that is called from two
 * depths, whose difference leaves out all that does not depend on depth. Beside it, in the same
 * rounds and on the same stack, what the kernel's own walk by frame pointers takes. This file is
 * built with frame pointers and with unwind tables, so that both can follow it.
 *
 *	unwind_cost [ROUNDS]	prints rows: what, measured, first budget, goal; 77: refused here
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include "tests/bpf/warm.h"
#include "tests/unwind_cost.skel.h"

#define NOINLINE __attribute__((noinline, noclone))
#define SHALLOW 10
#define DEEP 70
#define HITS 2000
#define MAX_ROUNDS 99

enum { WALK, FRAME_POINTERS, NOTHING, NR_PROGRAMS };

struct cost {
	struct unwind_cost_bpf *skel;
	struct warm warm;
	double ns[NR_PROGRAMS][2][MAX_ROUNDS];	/* of a hit, by program and depth */
	unsigned int frames[NR_PROGRAMS][2];
};

static volatile int sink;

/* Where the probe sits. */
NOINLINE static void cost_site(void)
{
	sink++;
	__asm__ volatile("" : : : "memory");
}

NOINLINE static void descend(int depth)
{
	volatile char room[48];

	room[depth % 48] = 1;
	if (depth > 1)
		descend(depth - 1);
	else
		for (int i = 0; i < HITS; i++)
			cost_site();
	sink += room[0];
}

static int load(struct cost *c)
{
	int err;

	libbpf_set_print(NULL);
	c->skel = unwind_cost_bpf__open();
	if (!c->skel)
		return -errno;
	err = unwind_cost_bpf__load(c->skel);
	return err ? err : warm__init(&c->warm, c->skel->obj);
}

static int run_time(const struct bpf_program *prog, uint64_t *ns, uint64_t *hits)
{
	struct bpf_prog_info info = {};
	__u32 len = sizeof(info);

	if (bpf_obj_get_info_by_fd(bpf_program__fd(prog), &info, &len))
		return -errno;
	*ns = info.run_time_ns;
	*hits = info.run_cnt;
	return 0;
}

static int measure(struct cost *c, int which, int deep, double *ns_a_hit)
{
	const struct bpf_program *progs[NR_PROGRAMS] = {
		c->skel->progs.cost_walk, c->skel->progs.cost_frame_pointers,
		c->skel->progs.cost_nothing,
	};
	const struct bpf_program *prog = progs[which];
	LIBBPF_OPTS(bpf_uprobe_opts, opts, .func_name = "cost_site");
	struct bpf_link *link = bpf_program__attach_uprobe_opts(prog, getpid(), "/proc/self/exe", 0,
								&opts);
	uint64_t ns, hits, ns_before, hits_before;
	int err;

	if (!link)
		return -errno;
	descend(deep ? DEEP : SHALLOW);		/* warm */
	err = run_time(prog, &ns_before, &hits_before);
	descend(deep ? DEEP : SHALLOW);
	err = err ? err : run_time(prog, &ns, &hits);
	bpf_link__destroy(link);
	if (err)
		return err;
	if (hits - hits_before != HITS)
		return -EBADMSG;
	*ns_a_hit = (double)(ns - ns_before) / HITS;
	c->frames[which][deep] = which == WALK ? c->skel->bss->walked : c->skel->bss->followed;
	return 0;
}

static int report(struct cost *c, int rounds)
{
	double frame[NR_PROGRAMS], deep[NR_PROGRAMS];
	int i;

	for (i = 0; i < NR_PROGRAMS; i++) {
		deep[i] = warm__median(c->ns[i][1], (size_t)rounds);
		frame[i] = (deep[i] - warm__median(c->ns[i][0], (size_t)rounds)) / (DEEP - SHALLOW);
	}
	/* Neither may have been short. */
	for (i = WALK; i <= FRAME_POINTERS; i++) {
		if (c->frames[i][1] - c->frames[i][0] == DEEP - SHALLOW)
			continue;
		fprintf(stderr, "%u and %u frames were seen from the two depths by %s\n",
			c->frames[i][0], c->frames[i][1], i == WALK ? "the walk" : "the kernel");
		return 1;
	}
	warm__row("native unwinding, warm: ns a frame", frame[WALK], "40", "28");
	warm__row("the kernel's walk by frame pointers: ns a frame", frame[FRAME_POINTERS], "-", "-");
	warm__row("native unwinding / frame pointers, a frame", frame[WALK] / frame[FRAME_POINTERS], "-",
		  "-");
	warm__row("native unwinding, 70 frames and the rest of it: ns", deep[WALK] - deep[NOTHING], "-", "-");
	return 0;
}

int main(int argc, char **argv)
{
	static struct cost c;
	int rounds = argc > 1 ? atoi(argv[1]) : 5, err, i, deep, which, stats;

	if (rounds < 1 || rounds > MAX_ROUNDS)
		return 64;
	stats = bpf_enable_stats(BPF_STATS_RUN_TIME);
	err = stats < 0 ? -errno : load(&c);
	if (err) {
		printf("skipped: BPF programs are refused here: %s\n", strerror(-err));
		return 77;
	}
	/* Rows for all code of this process: what is measured is warm. */
	err = warm__process(&c.warm, getpid()) ? 0 : -errno;
	for (i = 0; i < rounds && !err; i++)
		for (deep = 0; deep < 2 && !err; deep++)
			for (which = 0; which < NR_PROGRAMS && !err; which++)
				err = measure(&c, which, deep, &c.ns[which][deep][i]);
	if (err)
		fprintf(stderr, "measuring: %s\n", strerror(-err));
	else
		err = report(&c, rounds);
	warm__free(&c.warm);
	unwind_cost_bpf__destroy(c.skel);
	close(stats);
	return err != 0;
}
