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

struct sampled;
struct unwind_store;
struct unwind_file;
struct process;

/* fn for each record of the ring, with the size that it has there. */
typedef void (*sampled_record)(void *ctx, const void *record, size_t size);

/*
 * Starts argv under samples. 0, or a negative errno with a message on stderr; -EPERM and
 * -EOPNOTSUPP: BPF programs or perf events are refused here.
 */
int sampled__new(char **argv, unsigned int frequency, sampled_record fn, void *ctx,
		 struct sampled **out);
/* Reads records until the command ends; its status as of wait(2), or a negative errno. */
int sampled__run(struct sampled *t);
void sampled__free(struct sampled *t);

struct unwind_store *sampled__store(struct sampled *t);
/* The command's process as its mappings were read last; NULL before its exec. */
struct process *sampled__process(struct sampled *t);
struct unwind_file *sampled__file(void *target, uint32_t id);
const char *sampled__path(struct sampled *t, uint32_t id);

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
