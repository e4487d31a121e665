/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The BPF side: loading it, its maps, and attaching its programs. */
#ifndef LOADER_PROBES_H
#define LOADER_PROBES_H

#include <linux/types.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "bpf/gpucollect.h"
#include "bpf/python_frames.h"
#include "bpf/unwind_step.h"

struct probes;

struct probes_config {
	bool all;		/* every process is a target */
	bool cpu;		/* CPU samples are wanted */
	bool launches;		/* launches are wanted */
	bool library;		/* by the timing library, where it can */
	bool one_process;	/* probes are to be limited to processes, not files */
	int cgroup_fd;		/* processes in it and below are targets; -1: none */
};

struct probes_maps {
	int procs_fd;
	int pages_fd;
	struct unwind_row *rows;	/* GPUCOLLECT_MAX_ROWS */
	struct unwind_rule *rules;	/* GPUCOLLECT_MAX_RULES */
	struct mapping *mappings;	/* GPUCOLLECT_MAX_MAPPINGS */
	struct proc_slot *slots;	/* GPUCOLLECT_MAX_PROCS */
	struct python_layout *pythons;	/* GPUCOLLECT_MAX_PYTHONS */
	struct python_freed *freed;	/* GPUCOLLECT_MAX_FREED */
};

/*
 * Loads everything and attaches the programs that follow processes. 0 or a negative errno; *why
 * is then a sentence for the user with cause, value and mend (malloc'd; NULL: no memory). -EPERM and
 * -EOPNOTSUPP: a privilege or a feature of the kernel is missing.
 */
int probes__new(const struct probes_config *config, struct probes **out, char **why);
/* No program runs any more; maps and counters stay. */
void probes__detach(struct probes *p);
void probes__free(struct probes *p);	/* detaches, too; NULL is fine */

const struct probes_maps *probes__maps(const struct probes *p);

/* Rows or rules are about to be overwritten: what the programs remember of them is void. */
void probes__forget_rows(struct probes *p);

/* Descriptor of the program for CPU samples, for PERF_EVENT_IOC_SET_BPF. */
int probes__sample_program(const struct probes *p);
/* The same of the one that counts code objects that are freed; -1: not wanted, or not on this kernel. */
int probes__frees_program(const struct probes *p);

/*
 * Probes at offsets of a file, named by a path that this process can open; attached until
 * probes__drop or probes__detach. 0, or a negative errno, and then none is attached. Sites of the timing
 * library: in every process that maps the file. Launch entries of a driver, with their enum launch_entry
 * as cookies: in process `pid`, or with -1 in every process. `out` may be NULL.
 */
struct probe;
int probes__attach_sites(struct probes *p, const char *path, const uint64_t *offsets, size_t nr,
			 struct probe **out);
bool probes__per_process(const struct probes *p);	/* false: `pid` makes no difference */
int probes__attach_launches(struct probes *p, const char *path, const uint64_t *offsets,
			    const uint64_t *entries, size_t nr, pid_t pid, struct probe **out);
/* Detaches what one such call attached; in the background. */
void probes__drop(struct probes *p, struct probe *probe);

/* The ring: fn for each record, which lies in the ring until it returns. */
typedef int (*probes_record)(void *ctx, void *record, size_t size);
int probes__set_reader(struct probes *p, probes_record fn, void *ctx);
int probes__ring_fd(const struct probes *p);	/* readable: records are there */
/* Reads what is there now; number of records or a negative errno. */
int probes__read(struct probes *p);

/* Sums over all CPUs. */
void probes__counters(const struct probes *p, uint64_t counters[NR_COUNTERS]);
/* CPU time the programs took, ns; 0 where the kernel doesn't count it. Memory of the maps, bytes. */
uint64_t probes__run_time(const struct probes *p);
uint64_t probes__memory(const struct probes *p);

#endif
