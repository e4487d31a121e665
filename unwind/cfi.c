// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "unwind/cfi.h"
#include "unwind/cfi_state.h"
#include "unwind/cursor.h"
#include "unwind/fde.h"

#define MAX_DEPTH 16
/* Results of an instruction besides 0 and the caller's negative errno. */
#define CFI_DONE 1		/* past the range asked for */
#define CFI_FAILED 2		/* run->odd says why */

struct run {
	const struct fde *fde;
	const struct cie *cie;
	struct cfi_stats *stats;
	cfi_fn fn;
	void *ctx;
	uint64_t lo, hi;	/* wanted */
	uint64_t loc;
	struct cfi_state now, initial;
	enum cfi_odd odd;
	unsigned int depth;
	struct cfi_state saved[MAX_DEPTH];
};

static int run__emit(struct run *run, uint64_t end, const struct unwind_rule *rule)
{
	uint64_t from = run->loc > run->lo ? run->loc : run->lo;
	uint64_t to = end < run->hi ? end : run->hi;
	int err;

	if (to > run->fde->end)
		to = run->fde->end;
	run->loc = end;
	if (from < to) {
		struct unwind_rule made;

		if (!rule) {
			made = cfi_state__rule(&run->now, run->cie->signal, run->stats);
			rule = &made;
		}
		run->stats->rows++;
		err = run->fn(run->ctx, from, to, rule);
		if (err)
			return err;
	}
	return end >= run->hi || end >= run->fde->end ? CFI_DONE : 0;
}

static int run__advance(struct run *run, uint64_t delta)
{
	uint64_t bytes, to;

	if (__builtin_mul_overflow(delta, run->cie->code_align, &bytes) ||
	    __builtin_add_overflow(run->loc, bytes, &to))
		to = UINT64_MAX;
	return bytes ? run__emit(run, to, NULL) : 0;
}

static struct cfi_place *run__place(struct run *run, uint64_t column)
{
	switch (column) {
	case COLUMN_RA: return &run->now.reg[RA];
	case UNWIND_RBP: return &run->now.reg[RBP];
	case UNWIND_RSP: return &run->now.reg[RSP];
	case UNWIND_RBX: return &run->now.reg[RBX];
	}
	return NULL;
}

static void run__set(struct run *run, uint64_t column, enum cfi_how how, int64_t off)
{
	struct cfi_place *p = run__place(run, column);

	if (p)
		*p = (struct cfi_place){ .how = (uint8_t)how, .off = off };
}

static int64_t factored(const struct run *run, int64_t n)
{
	return (int64_t)((uint64_t)n * (uint64_t)run->cie->data_align);
}

static struct cfi_place block__place(struct cursor *c, enum cfi_how how)
{
	struct cfi_place p = { .how = (uint8_t)how };
	uint64_t len = cursor__uleb(c);

	p.code = c->at;
	cursor__skip(c, len);
	p.len = (uint32_t)(c->at - p.code);
	return p;
}

static void run__def_cfa(struct run *run, uint64_t reg, int64_t off)
{
	run->now.cfa = (struct cfi_place){ .how = OFFSET, .off = off };
	run->now.cfa_reg = reg < UNWIND_NR_REGS ? (uint8_t)reg : NO_REG;
}

static int run__fail(struct run *run, enum cfi_odd why)
{
	run->odd = why;
	return CFI_FAILED;
}

/* Changes one half of the CFA's register and offset, which must be what it consists of. */
static int run__half_cfa(struct run *run, bool is_reg, uint64_t reg, int64_t off)
{
	if (run->now.cfa.how != OFFSET)
		return run__fail(run, CFI_ODD_OPCODE);
	if (is_reg)
		run__def_cfa(run, reg, run->now.cfa.off);
	else
		run->now.cfa.off = off;
	return 0;
}

static int run__restore(struct run *run, uint64_t column)
{
	struct cfi_place *p = run__place(run, column);

	if (p)
		*p = run->initial.reg[p - run->now.reg];
	return 0;
}

static int run__remember(struct run *run)
{
	if (run->depth == MAX_DEPTH)
		return run__fail(run, CFI_ODD_DEPTH);
	run->saved[run->depth++] = run->now;
	return 0;
}

static int run__recall(struct run *run)
{
	if (!run->depth)
		return run__fail(run, CFI_ODD_OPCODE);
	run->now = run->saved[--run->depth];
	return 0;
}

static int run__set_loc(struct run *run, struct cursor *c)
{
	uint64_t to = cursor__pointer(c, run->cie->fde_encoding, 0);

	if (c->bad || to < run->loc)
		return run__fail(run, CFI_ODD_OPCODE);
	return to > run->loc ? run__emit(run, to, NULL) : 0;
}

/* DW_CFA_*, DWARF 5 table 7.29, and GNU's and MIPS's additions. */
static int run__extended(struct run *run, uint8_t op, struct cursor *c)
{
	struct cfi_place *p, block;
	uint64_t n = 0;

	if ((op >= 0x05 && op <= 0x09) || op == 0x0c || op == 0x0d ||
	    (op >= 0x10 && op <= 0x16 && op != 0x13) || op == 0x2f)
		n = cursor__uleb(c);	/* a register comes first */
	switch (op) {
	case 0x00: return 0;						/* nop */
	case 0x01: return run__set_loc(run, c);
	case 0x02: return run__advance(run, cursor__u8(c));		/* advance_loc1 */
	case 0x03: return run__advance(run, cursor__u16(c));
	case 0x04: return run__advance(run, cursor__u32(c));
	case 0x1d: return run__advance(run, cursor__u64(c));		/* MIPS_advance_loc8 */
	case 0x05: run__set(run, n, OFFSET, factored(run, (int64_t)cursor__uleb(c))); return 0;
	case 0x06: return run__restore(run, n);				/* restore_extended */
	case 0x07: run__set(run, n, UNDEF, 0); return 0;
	case 0x08: run__set(run, n, SAME, 0); return 0;
	case 0x09: run__set(run, n, REGISTER, (int64_t)cursor__uleb(c)); return 0;
	case 0x0a: return run__remember(run);
	case 0x0b: return run__recall(run);
	case 0x0c: run__def_cfa(run, n, (int64_t)cursor__uleb(c)); return 0;
	case 0x0d: return run__half_cfa(run, true, n, 0);		/* def_cfa_register */
	case 0x0e: return run__half_cfa(run, false, 0, (int64_t)cursor__uleb(c));
	case 0x0f: run->now.cfa = block__place(c, EXPRESSION); return 0;
	case 0x10:							/* expression */
	case 0x16:							/* val_expression */
		block = block__place(c, op == 0x10 ? EXPRESSION : VAL_EXPRESSION);
		p = run__place(run, n);
		if (p)
			*p = block;
		return 0;
	case 0x11: run__set(run, n, OFFSET, factored(run, cursor__sleb(c))); return 0;
	case 0x12: run__def_cfa(run, n, factored(run, cursor__sleb(c))); return 0;
	case 0x13: return run__half_cfa(run, false, 0, factored(run, cursor__sleb(c)));
	case 0x14: run__set(run, n, VAL_OFFSET, factored(run, (int64_t)cursor__uleb(c))); return 0;
	case 0x15: run__set(run, n, VAL_OFFSET, factored(run, cursor__sleb(c))); return 0;
	case 0x2e: cursor__uleb(c); return 0;				/* GNU_args_size */
	case 0x2f: run__set(run, n, OFFSET, -factored(run, (int64_t)cursor__uleb(c))); return 0;
	}
	return run__fail(run, CFI_ODD_OPCODE);
}

static int run__insns(struct run *run, const uint8_t *insns, size_t len, uint64_t vaddr)
{
	struct cursor c = cursor__init(insns, len, vaddr);
	int err = 0;

	while (!err && c.at < c.end) {
		uint8_t op = cursor__u8(&c), low = op & 0x3f;

		switch (op >> 6) {
		case 1:							/* advance_loc */
			err = run__advance(run, low);
			break;
		case 2:							/* offset */
			run__set(run, low, OFFSET, factored(run, (int64_t)cursor__uleb(&c)));
			break;
		case 3:
			err = run__restore(run, low);
			break;
		default:
			err = run__extended(run, low, &c);
		}
		if (!err && c.bad)
			err = run__fail(run, CFI_ODD_OPCODE);
	}
	return err;
}

static int run__all(struct run *run)
{
	const struct cie *cie = run->cie;
	int err;

	if (cie->broken || cie->ra_reg != COLUMN_RA)
		return run__fail(run, CFI_ODD_CIE);
	run->now.cfa_reg = NO_REG;
	err = run__insns(run, cie->insns, cie->insns_len, cie->insns_vaddr);
	if (err)
		return err;
	if (run->loc != run->fde->start || run->depth)
		return run__fail(run, CFI_ODD_CIE);
	run->initial = run->now;
	err = run__insns(run, run->fde->insns, run->fde->insns_len, run->fde->insns_vaddr);
	return err ? err : run__emit(run, run->fde->end, NULL);
}

int cfi__run(const struct fde *fde, uint64_t lo, uint64_t hi, cfi_fn fn, void *ctx,
	     struct cfi_stats *stats)
{
	const struct unwind_rule unknown = { .cfa = UNWIND_CFA_UNKNOWN };
	struct run run;
	int err;

	memset(&run, 0, offsetof(struct run, saved));
	run.fde = fde;
	run.cie = fde->cie;
	run.stats = stats;
	run.fn = fn;
	run.ctx = ctx;
	run.lo = lo;
	run.hi = hi;
	run.loc = fde->start;
	err = run__all(&run);
	if (err == CFI_FAILED) {
		stats->odd[run.odd]++;
		err = run__emit(&run, fde->end, &unknown);
	}
	return err == CFI_DONE ? 0 : err;
}
