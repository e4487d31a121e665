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
#include <sys/mman.h>
#include <unistd.h>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include "loader/processes.h"
#include "tests/unwind_cost.skel.h"
#include "unwind/rows.h"

#define NOINLINE __attribute__((noinline, noclone))
#define SHALLOW 10
#define DEEP 70
#define HITS 2000
#define MAX_ROUNDS 99

enum { WALK, FRAME_POINTERS, NOTHING, NR_PROGRAMS };

struct cost {
	struct unwind_cost_bpf *skel;
	struct processes_maps maps;
	struct unwind_row *rows;
	struct unwind_rule *rules;
	struct files *files;
	struct processes *processes;
	struct unwind_store *store;
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

static int no_log(enum libbpf_print_level level, const char *fmt, va_list ap)
{
	(void)level, (void)fmt, (void)ap;
	return 0;
}

static void *map_array(const struct bpf_map *map, size_t bytes)
{
	void *at = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, bpf_map__fd(map), 0);

	return at == MAP_FAILED ? NULL : at;
}

static int load(struct cost *c)
{
	int err;

	libbpf_set_print(no_log);
	c->skel = unwind_cost_bpf__open();
	if (!c->skel)
		return -errno;
	err = unwind_cost_bpf__load(c->skel);
	if (err)
		return err;
	c->rows = map_array(c->skel->maps.rows, sizeof(*c->rows) * GPUCOLLECT_MAX_ROWS);
	c->rules = map_array(c->skel->maps.rules, sizeof(*c->rules) * GPUCOLLECT_MAX_RULES);
	c->maps.procs_fd = bpf_map__fd(c->skel->maps.procs);
	c->maps.slots = map_array(c->skel->maps.slots,
				  sizeof(*c->maps.slots) * GPUCOLLECT_MAX_PROCS);
	c->maps.mappings = map_array(c->skel->maps.mappings,
				     sizeof(*c->maps.mappings) * GPUCOLLECT_MAX_MAPPINGS);
	return c->rows && c->rules && c->maps.slots && c->maps.mappings ? 0 : -ENOMEM;
}

static int publish_page(void *ctx, const struct page_key *key, const struct page_rows *rows)
{
	struct cost *c = ctx;

	return bpf_map_update_elem(bpf_map__fd(c->skel->maps.pages), key, rows, BPF_ANY);
}

/* Rows for all code of this process: what is measured is warm. */
static int compile(struct cost *c)
{
	struct unwind_store_config config = {
		.rules = c->rules,
		.rows = c->rows,
		.max_rules = GPUCOLLECT_MAX_RULES - 1,
		.max_rows = GPUCOLLECT_MAX_ROWS,
		.max_pages = GPUCOLLECT_MAX_PAGES,
		.publish = publish_page,
		.ctx = c,
	};
	struct page_rows rows;
	struct process *p;
	uint32_t i;
	int err;

	c->files = files__new();
	c->processes = c->files ? processes__new(&c->maps, c->files) : NULL;
	p = c->processes ? processes__get(c->processes, getpid(), true) : NULL;
	if (!p)
		return -ENOMEM;
	err = unwind_store__new(&c->store, &config);
	for (i = 0; i < p->nr_mappings && !err; i++) {
		const struct mapping *m = &p->mappings[i];
		__u64 at;

		for (at = m->offset; m->kind == MAPPING_FILE && at < m->offset + m->end - m->start &&
		     !err; at += 4096)
			err = unwind_store__page(c->store, m->file, files__unwind(c->files, m->file),
						 at >> GPUCOLLECT_PAGE_SHIFT, &rows);
	}
	return err;
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

static int compare(const void *a, const void *b)
{
	const double *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

static double median(double *values, int nr)
{
	qsort(values, (size_t)nr, sizeof(*values), compare);
	return values[nr / 2];
}

static void row(const char *what, double value, const char *first, const char *goal)
{
	printf("%-64s %12.1f %10s %10s\n", what, value, first, goal);
}

static int report(struct cost *c, int rounds)
{
	double frame[NR_PROGRAMS], deep[NR_PROGRAMS];
	int i;

	for (i = 0; i < NR_PROGRAMS; i++) {
		deep[i] = median(c->ns[i][1], rounds);
		frame[i] = (deep[i] - median(c->ns[i][0], rounds)) / (DEEP - SHALLOW);
	}
	/* Neither may have been short. */
	for (i = WALK; i <= FRAME_POINTERS; i++) {
		if (c->frames[i][1] - c->frames[i][0] == DEEP - SHALLOW)
			continue;
		fprintf(stderr, "%u and %u frames were seen from the two depths by %s\n",
			c->frames[i][0], c->frames[i][1], i == WALK ? "the walk" : "the kernel");
		return 1;
	}
	row("native unwinding, warm: ns a frame", frame[WALK], "40", "28");
	row("the kernel's walk by frame pointers: ns a frame", frame[FRAME_POINTERS], "-", "-");
	row("native unwinding / frame pointers, a frame", frame[WALK] / frame[FRAME_POINTERS], "-", "-");
	row("native unwinding, 70 frames and the rest of it: ns", deep[WALK] - deep[NOTHING], "-", "-");
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
	err = compile(&c);
	for (i = 0; i < rounds && !err; i++)
		for (deep = 0; deep < 2 && !err; deep++)
			for (which = 0; which < NR_PROGRAMS && !err; which++)
				err = measure(&c, which, deep, &c.ns[which][deep][i]);
	if (err)
		fprintf(stderr, "measuring: %s\n", strerror(-err));
	else
		err = report(&c, rounds);
	unwind_store__free(c.store);
	processes__free(c.processes);
	files__free(c.files);
	unwind_cost_bpf__destroy(c.skel);
	close(stats);
	return err != 0;
}
