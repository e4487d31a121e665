/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What the interpreter of call frame instructions keeps, and what becomes of it. */
#ifndef UNWIND_CFI_STATE_H
#define UNWIND_CFI_STATE_H

#include <stdbool.h>
#include "unwind/cfi.h"

#define COLUMN_RA 16	/* x86-64 psABI, figure 3.36 */
#define NO_REG 0xff

/* Where an instruction puts a register; one that was never mentioned is UNSET. */
enum cfi_how {
	UNSET = 0,
	SAME,
	UNDEF,
	OFFSET,
	VAL_OFFSET,
	REGISTER,
	EXPRESSION,
	VAL_EXPRESSION,
};

struct cfi_place {
	uint8_t how;		/* enum cfi_how */
	uint32_t len;		/* of code */
	int64_t off;		/* OFFSET, VAL_OFFSET; REGISTER: its number */
	const uint8_t *code;	/* EXPRESSION, VAL_EXPRESSION */
};

/* Columns that rules depend on; others are parsed and forgotten. */
enum { RA, RBP, RSP, RBX, NR_PLACES };

struct cfi_state {
	struct cfi_place cfa;	/* OFFSET: from register cfa_reg */
	uint8_t cfa_reg;
	struct cfi_place reg[NR_PLACES];
};

/* The rule of a state; what can't be expressed is counted. `signal`: the CIE says signal frame. */
struct unwind_rule cfi_state__rule(const struct cfi_state *s, bool signal,
				   struct cfi_stats *stats);

#endif
