/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Runs the call frame instructions of one FDE and gives the rule of each range of its code.
 * DWARF 5 section 6.4.2 and 6.4.3; GNU additions as in LSB Core 10.6.1.
 */
#ifndef UNWIND_CFI_H
#define UNWIND_CFI_H

#include <stdint.h>
#include <linux/types.h>
#include "bpf/unwind_step.h"

struct fde;

/* Why a rule (or a part of it) can't be expressed. Each range met counts once for each cause. */
enum cfi_odd {
	CFI_ODD_CIE = 0,	/* version, augmentation or return column of a kind not known */
	CFI_ODD_OPCODE,		/* malformed or unknown instruction: the rest of the FDE is UNKNOWN */
	CFI_ODD_DEPTH,		/* remember_state nested too deeply */
	CFI_ODD_CFA_EXPRESSION,
	CFI_ODD_RA,		/* no rule, or val_offset, val_expression, other expressions */
	CFI_ODD_RSP,
	CFI_ODD_RBP,		/* rule is usable, rbp is lost */
	CFI_ODD_RBX,		/* rule is usable, rbx is lost */
	CFI_ODD_RANGE,		/* an offset beyond 32 bits */
	CFI_ODD_SIGNAL,		/* said to be a signal frame, but not of a form known: usable */
	NR_CFI_ODD,
};

struct cfi_stats {
	uint64_t rows;			/* ranges handed out */
	uint64_t odd[NR_CFI_ODD];
};

/* A range of addresses [start, end), never empty, and its rule; a negative errno stops the run. */
typedef int (*cfi_fn)(void *ctx, uint64_t start, uint64_t end, const struct unwind_rule *rule);

/*
 * Calls `fn` for the ranges of `fde`, clipped to [lo, hi), in ascending order and without gaps.
 * Cost is bounded by the length of the instructions. Returns 0 or what fn returned.
 */
int cfi__run(const struct fde *fde, uint64_t lo, uint64_t hi, cfi_fn fn, void *ctx,
	     struct cfi_stats *stats);

/*
 * The rule of a signal trampoline that has no unwind information: registers are in the ucontext
 * at rsp (uc_mcontext is at 40 in struct ucontext_64, arch/x86/include/uapi/asm/ucontext.h).
 */
struct unwind_rule cfi__sigreturn_rule(void);

#endif
