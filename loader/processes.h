/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The processes that are watched: their names and executable mappings. The BPF side is told.
 */
#ifndef LOADER_PROCESSES_H
#define LOADER_PROCESSES_H

#include <linux/types.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "bpf/gpucollect.h"
#include "loader/files.h"
#include "loader/slots.h"

struct change;
struct processes;
struct recent;

/* How the BPF side reads Python frames (struct proc has the same). */
struct process_python {
	uint32_t layout;	/* index into its map; 0: there is no Python, or not yet */
	uint64_t code;		/* address of PyCode_Type, or 0 */
	uint64_t runtime;	/* of _PyRuntime */
};

struct process {
	pid_t tgid;
	uint32_t index;		/* its own for ever: exec and a reused pid make a new process */
	uint32_t slot;
	uint32_t parent;	/* index of the process that it was forked from, or its own */
	struct process_python python;
	uint32_t freed;		/* struct proc.python_freed: this process's own, never its parent's */
	uint32_t nr_mappings;
	struct mapping *mappings;	/* sorted by start: as the BPF side has them */
	struct change *changes;	/* of them since they were read; changed.h */
	uint32_t nr_changes;
	uint64_t changed_at;	/* the last of them; CLOCK_MONOTONIC ns */
	uint32_t execs;		/* that the BPF side had seen before the mappings were read */
	uint64_t read_at;	/* CLOCK_MONOTONIC ns of the last reading; 0: never */
	uint64_t read_took;	/* CPU time, ns */
	uint64_t outdated_at;	/* since when another image is known to be there; 0: isn't */
	char comm[GPUCOLLECT_COMM_LEN];
	uint32_t rank;		/* rank.h; of one that was asked, or whose parent was */
	bool rank_asked;
	bool target;
	bool exited;
	bool ours;		/* our own child before it executes the command: not reported */
	bool probed;		/* its launches are counted at the driver, not by the library */
	bool published;		/* the BPF side has these mappings */
	bool kept;		/* something refers to it: it stays when it has ended */
	bool listed;		/* the BPF side knows the process */
	bool missed;		/* at the last look for those that have ended */
	bool doubtful;		/* may have mappings that nobody told of */
	bool frees_asked;	/* whether its freed code objects are to be counted was decided, or will be */
	uint8_t fruitless;	/* looks for unknown code that found nothing new; PROCESSES_FRUITLESS: many */
	uint8_t limits;		/* bit set of enum processes_limit */
};

#define PROCESSES_FRUITLESS 16

/* What processes can have too much of. Counted once for each process. */
enum processes_limit {
	LIMIT_PROCESSES = 0,	/* more than GPUCOLLECT_MAX_PROCS: all its stacks come as copies */
	LIMIT_MAPPINGS = 1,	/* of all processes: the same */
	LIMIT_OWN_MAPPINGS = 2,	/* more than GPUCOLLECT_MAX_PROC_MAPPINGS: code in the rest is unknown */
	NR_PROCESSES_LIMITS,
};

struct processes *processes__new(const struct processes_maps *maps, struct files *files);
void processes__free(struct processes *ps);

/*
 * The process; made known to the BPF side, and its mappings read, if it wasn't yet. NULL: out of
 * memory or of slots. A process that is gone already is kept with what was learnt of it.
 */
struct process *processes__get(struct processes *ps, pid_t tgid, bool target);
/* NULL if it isn't known. */
struct process *processes__find(struct processes *ps, pid_t tgid);

/* Reads name and mappings again and publishes them. 0 or negative errno. */
int processes__refresh(struct processes *ps, struct process *p);
/*
 * What is left where they can't be read: the process is gone, or executes another program than at `time`.
 * 0 or negative errno.
 */
int processes__remember(struct processes *ps, struct process *p, const struct recent *recent,
			uint64_t time);
/* True if the mappings were never read, or if there was an exec since. */
bool processes__stale(const struct processes *ps, const struct process *p);
/*
 * There was unknown code in a stack, and reading the mappings again would not, or did not, tell what it
 * is. If that happens often the BPF side sends fewer such stacks.
 */
void processes__fruitless(struct processes *ps, struct process *p);
/* Its launches are to be counted at the driver's entries though others have the library. */
void processes__probe(struct processes *ps, struct process *p);
/* How its Python frames are to be read. */
void processes__set_python(struct processes *ps, struct process *p, const struct process_python *python);
/* Which element counts its code objects that are freed; 0: none. */
void processes__set_freed(struct processes *ps, struct process *p, uint32_t freed);
/* Its rank, once: when it loads the driver or launches, since that may be shortly before its end. */
void processes__ask_rank(struct process *p);
/* Processes that hit a limit. */
uint64_t processes__limited(const struct processes *ps, enum processes_limit limit);

/* Records of the ring. A forked child inherits name and mappings until it is read itself. */
void processes__forked(struct processes *ps, pid_t parent, pid_t child, const char *comm);
/* `target`: where it was not known before. */
void processes__execed(struct processes *ps, pid_t tgid, const char *comm, bool target);
void processes__exited(struct processes *ps, pid_t tgid);

/*
 * Some change of mappings was not told: those of every process are to be read again before they are used.
 */
void processes__doubt(struct processes *ps);
/* The same of one process. */
void processes__doubt_of(struct processes *ps, struct process *p);

/* Number of targets that have not exited. */
unsigned int processes__alive(const struct processes *ps);
/*
 * By index, 0 up to the count; pointers stay valid as long as `ps`, but those of processes that have ended
 * and were not kept: one that has `exited` stands for all of them.
 */
uint32_t processes__count(const struct processes *ps);
struct process *processes__at(const struct processes *ps, uint32_t index);
/*
 * Forgives few fruitless looks, forgets those that ended without a record saying so, though their number
 * may be in use again; to be called every second or so.
 */
void processes__sweep(struct processes *ps);

#endif
