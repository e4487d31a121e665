// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "unwind/expr.h"
#include "unwind/cursor.h"

#define OP_DEREF 0x06
#define OP_CONST1U 0x08
#define OP_CONST1S 0x09
#define OP_CONST2U 0x0a
#define OP_CONST2S 0x0b
#define OP_CONST4U 0x0c
#define OP_CONST4S 0x0d
#define OP_CONSTU 0x10
#define OP_CONSTS 0x11
#define OP_AND 0x1a
#define OP_MINUS 0x1c
#define OP_PLUS 0x22
#define OP_PLUS_UCONST 0x23
#define OP_SHL 0x24
#define OP_GE 0x2a
#define OP_LIT0 0x30
#define OP_BREG0 0x70
#define OP_BREGX 0x92
#define OP_NOP 0x96

#define REG_PC 16
#define MAX_STACK 4
#define MAX_LEN 64	/* bytes; evaluated for every row, so a long one must not cost */

static struct expr expr__add(struct expr a, int64_t v)
{
	a.add = (int64_t)((uint64_t)a.add + (uint64_t)v);
	return a;
}

static struct expr expr__constant(struct cursor *c, uint8_t op)
{
	struct expr e = { .kind = EXPR_CONST };

	switch (op) {
	case OP_CONST1U: e.add = cursor__u8(c); break;
	case OP_CONST1S: e.add = (int8_t)cursor__u8(c); break;
	case OP_CONST2U: e.add = cursor__u16(c); break;
	case OP_CONST2S: e.add = (int16_t)cursor__u16(c); break;
	case OP_CONST4U: e.add = cursor__u32(c); break;
	case OP_CONST4S: e.add = (int32_t)cursor__u32(c); break;
	case OP_CONSTU: e.add = (int64_t)cursor__uleb(c); break;
	case OP_CONSTS: e.add = cursor__sleb(c); break;
	default:
		if (op >= OP_LIT0 && op < OP_LIT0 + 32)
			e.add = op - OP_LIT0;
		else
			e.kind = EXPR_OTHER;
	}
	return e;
}

static struct expr expr__push(struct cursor *c, uint8_t op)
{
	struct expr e = { .kind = EXPR_REG };
	uint64_t reg = op - OP_BREG0;

	if (op != OP_BREGX && (op < OP_BREG0 || op >= OP_BREG0 + 32))
		return expr__constant(c, op);
	if (op == OP_BREGX)
		reg = cursor__uleb(c);
	e.add = cursor__sleb(c);
	e.reg = (uint8_t)reg;
	if (reg >= REG_PC)
		e.kind = EXPR_OTHER;
	return e;
}

/* Sums of one unknown and constants, with at most one memory access: all that compilers emit. */
static struct expr expr__reduce(struct cursor *c, struct expr *stack, unsigned int nr)
{
	const struct expr other = { .kind = EXPR_OTHER };

	if (cursor__left(c) > MAX_LEN)
		return other;
	while (c->at < c->end && !c->bad) {
		uint8_t op = cursor__u8(c);
		struct expr *top = nr ? &stack[nr - 1] : NULL;

		switch (op) {
		case OP_NOP:
			break;
		case OP_DEREF:
			if (!top || top->kind != EXPR_REG)
				return other;
			*top = (struct expr){ EXPR_DEREF, top->reg, top->add, 0 };
			break;
		case OP_PLUS_UCONST:
			if (!top)
				return other;
			*top = expr__add(*top, (int64_t)cursor__uleb(c));
			break;
		case OP_PLUS:
		case OP_MINUS:
			if (nr < 2 || top->kind != EXPR_CONST)
				return other;
			nr--;
			stack[nr - 1] = expr__add(stack[nr - 1], op == OP_PLUS ? top->add :
					(int64_t)-(uint64_t)top->add);
			break;
		default:
			if (nr == MAX_STACK)
				return other;
			stack[nr] = expr__push(c, op);
			if (stack[nr++].kind == EXPR_OTHER)
				return other;
		}
	}
	return nr && !c->bad ? stack[nr - 1] : other;
}

/*
 * What linkers write for lazy PLT slots: base, then 8 more from byte `add` of a slot on:
 * breg(pc) 0; lit15; and; lit K; ge; lit3; shl; plus.
 */
static struct expr expr__plt(struct cursor c)
{
	struct expr e = expr__push(&c, cursor__u8(&c));
	uint8_t op;

	if (e.kind != EXPR_REG || cursor__u8(&c) != OP_BREG0 + REG_PC || cursor__sleb(&c) ||
	    cursor__u8(&c) != OP_LIT0 + 15 || cursor__u8(&c) != OP_AND)
		goto other;
	op = cursor__u8(&c);
	if (op < OP_LIT0 || op > OP_LIT0 + 16 || cursor__u8(&c) != OP_GE ||
	    cursor__u8(&c) != OP_LIT0 + 3 || cursor__u8(&c) != OP_SHL ||
	    cursor__u8(&c) != OP_PLUS || c.at != c.end || c.bad)
		goto other;
	return (struct expr){ EXPR_PLT, e.reg, e.add, op - OP_LIT0 };
other:
	return (struct expr){ .kind = EXPR_OTHER };
}

struct expr expr__of_cfa(const uint8_t *code, size_t len)
{
	struct cursor c = cursor__init(code, len, 0);
	struct expr stack[MAX_STACK], e = expr__plt(c);

	return e.kind == EXPR_PLT ? e : expr__reduce(&c, stack, 0);
}

struct expr expr__of_register(const uint8_t *code, size_t len)
{
	struct cursor c = cursor__init(code, len, 0);
	struct expr stack[MAX_STACK] = { { .kind = EXPR_CFA } };

	return expr__reduce(&c, stack, 1);
}
