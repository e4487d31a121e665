/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The parts of tests/bpf/agree.c: a target that is sampled, and libdw's own unwinder over a copy. */
#ifndef TESTS_BPF_AGREE_H
#define TESTS_BPF_AGREE_H

#include <linux/types.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "bpf/gpucollect.h"

/* --- agree_target.c: everything up to the records ------------------------------------------- */

struct target;
struct unwind_store;
struct unwind_file;
struct process;

/* fn for each record of the ring, with the size that it has there. */
typedef void (*target_record)(void *ctx, const void *record, size_t size);

/*
 * Starts argv under samples. 0, or a negative errno with a message on stderr; -EPERM and
 * -EOPNOTSUPP: BPF programs or perf events are refused here.
 */
int target__new(char **argv, unsigned int frequency, target_record fn, void *ctx,
		struct target **out);
/* Reads records until the command ends; its status as of wait(2), or a negative errno. */
int target__run(struct target *t);
void target__free(struct target *t);

struct unwind_store *target__store(struct target *t);
/* The command's process as its mappings were read last; NULL before its exec. */
struct process *target__process(struct target *t);
struct unwind_file *target__file(void *target, uint32_t id);
const char *target__path(struct target *t, uint32_t id);

/* --- agree_libdw.c -------------------------------------------------------------------------- */

struct reference;

struct reference *reference__new(pid_t pid);	/* NULL: libdw can't read the process */
void reference__free(struct reference *r);

/* The command's mappings changed. 0 or -1. */
int reference__refresh(struct reference *r);

struct frames {
	uint64_t pc[4096];	/* as looked up: of callers the byte before the return address */
	size_t nr;
	const char *why;	/* why libdw went no further; NULL: the outermost frame */
};

/* Unwinds the copy of a raw record; frames of it that a stack of ours can hold. */
void reference__unwind(struct reference *r, const struct rec_raw *raw, struct frames *out);

#endif
