/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * DWARF expressions as they occur in call frame information, reduced to what a rule can hold.
 * DWARF 5 section 2.5.
 */
#ifndef UNWIND_EXPR_H
#define UNWIND_EXPR_H

#include <stddef.h>
#include <stdint.h>

enum expr_kind {
	EXPR_OTHER = 0,	/* none of the below */
	EXPR_CONST,	/* add */
	EXPR_REG,	/* reg + add */
	EXPR_CFA,	/* CFA + add */
	EXPR_DEREF,	/* *(reg + off) + add */
	EXPR_PLT,	/* reg + off + ((pc & 15) >= add ? 8 : 0) */
};

struct expr {
	enum expr_kind kind;
	uint8_t reg;	/* 0-15 */
	int64_t off;
	int64_t add;
};

/* An expression without initial stack (of a CFA). */
struct expr expr__of_cfa(const uint8_t *code, size_t len);
/* An expression that starts with the CFA on its stack (of a register). */
struct expr expr__of_register(const uint8_t *code, size_t len);

#endif
