// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "unwind/cfi_state.h"
#include "unwind/expr.h"

/* Byte offsets in struct sigcontext_64 (arch/x86/include/uapi/asm/sigcontext.h). */
#define SIGCONTEXT_RBP 80
#define SIGCONTEXT_RSP 120
#define SIGCONTEXT_RIP 128
#define UCONTEXT_MCONTEXT 40

static void odd(struct cfi_stats *stats, enum cfi_odd why)
{
	stats->odd[why]++;
}

static bool fits(int64_t v)
{
	return v == (int32_t)v;
}

static bool rule__cfa(struct unwind_rule *rule, const struct cfi_state *s, struct cfi_stats *stats)
{
	struct expr e = { EXPR_REG, s->cfa_reg, 0, s->cfa.off };

	if (s->cfa.how == EXPRESSION)
		e = expr__of_cfa(s->cfa.code, s->cfa.len);
	else if (s->cfa.how != OFFSET || s->cfa_reg >= UNWIND_NR_REGS)
		e.kind = EXPR_OTHER;
	if (!fits(e.off) || !fits(e.add)) {
		odd(stats, CFI_ODD_RANGE);
		return false;
	}
	rule->cfa_reg = e.reg;
	rule->cfa_off = (int32_t)e.off;
	rule->cfa_add = (int32_t)e.add;
	switch (e.kind) {
	case EXPR_REG:
		rule->cfa = UNWIND_CFA_REG;
		rule->cfa_off = (int32_t)e.add;
		rule->cfa_add = 0;
		return true;
	case EXPR_DEREF:
		rule->cfa = UNWIND_CFA_DEREF;
		return true;
	case EXPR_PLT:
		rule->cfa = UNWIND_CFA_PLT;
		return true;
	default:
		odd(stats, CFI_ODD_CFA_EXPRESSION);
		return false;
	}
}

/* How to save where `p` says; false: can't be expressed. SAME stands for unset, too. */
static bool place__save(const struct cfi_place *p, uint8_t self, uint8_t *how, uint8_t *reg,
			int32_t *off)
{
	struct expr e;

	*how = UNWIND_SAVE_SAME;
	switch (p->how) {
	case UNSET:
	case SAME:
		return true;
	case UNDEF:
		*how = UNWIND_SAVE_UNDEF;
		return true;
	case OFFSET:
		*how = UNWIND_SAVE_CFA;
		*off = (int32_t)p->off;
		return fits(p->off);
	case REGISTER:
		if (p->off == self)
			return true;
		*how = UNWIND_SAVE_REG;
		*reg = (uint8_t)p->off;
		return p->off >= 0 && p->off < UNWIND_NR_REGS;
	case EXPRESSION:
		e = expr__of_register(p->code, p->len);
		*how = e.kind == EXPR_CFA ? UNWIND_SAVE_CFA : UNWIND_SAVE_DEREF;
		*reg = e.reg;
		*off = (int32_t)e.add;
		return fits(e.add) && (e.kind == EXPR_CFA || e.kind == EXPR_REG);
	case VAL_EXPRESSION:
		e = expr__of_register(p->code, p->len);
		*how = e.reg == self ? UNWIND_SAVE_SAME : UNWIND_SAVE_REG;
		*reg = e.reg == self ? 0 : e.reg;
		return e.kind == EXPR_REG && !e.add;
	}
	return false;
}

static bool rule__ra(struct unwind_rule *rule, const struct cfi_state *s, struct cfi_stats *stats)
{
	const struct cfi_place *p = &s->reg[RA];

	if (p->how != UNSET && p->how != SAME &&
	    place__save(p, COLUMN_RA, &rule->ra, &rule->ra_reg, &rule->ra_off) &&
	    rule->ra >= UNWIND_SAVE_CFA)
		return true;
	odd(stats, CFI_ODD_RA);
	return false;
}

/* Unset means the CFA, by the psABI; a value equal to it may be spelled in two more ways. */
static bool rule__rsp(struct unwind_rule *rule, const struct cfi_state *s, struct cfi_stats *stats)
{
	const struct cfi_place *p = &s->reg[RSP];
	int32_t off = 0;

	if (p->how == UNSET || (p->how == VAL_OFFSET && p->off == 0))
		return true;
	if ((p->how == REGISTER || p->how == VAL_EXPRESSION) &&
	    place__save(p, NO_REG, &rule->rsp, &rule->rsp_reg, &off))
		return true;
	odd(stats, CFI_ODD_RSP);
	return false;
}

/* A register that is only wanted further out: if its rule can't be expressed it is lost. */
static void rule__kept(uint8_t *how, uint8_t *reg, int32_t *off, const struct cfi_place *p,
		       uint8_t self, enum cfi_odd why, struct cfi_stats *stats)
{
	if (place__save(p, self, how, reg, off))
		return;
	odd(stats, why);
	*how = UNWIND_SAVE_UNDEF;
	*reg = 0;
	*off = 0;
}

/* The address where a register is saved, if it is a register and an offset. */
static bool place__address(const struct cfi_state *s, const struct cfi_place *p, uint8_t *reg,
			   int64_t *off)
{
	struct expr e;

	if (p->how == EXPRESSION) {
		e = expr__of_register(p->code, p->len);
		*reg = e.reg;
		*off = e.add;
		return e.kind == EXPR_REG;
	}
	if (p->how != OFFSET || s->cfa.how != OFFSET)
		return false;
	*reg = s->cfa_reg;
	return !__builtin_add_overflow(s->cfa.off, p->off, off);
}

/* Where the interrupted code's rsp was saved: CFA = *(there), or a rule of its own. */
static bool state__saved_rsp(const struct cfi_state *s, uint8_t *reg, int64_t *off)
{
	const struct cfi_place *p = &s->reg[RSP];
	struct expr e = { EXPR_OTHER, 0, 0, 0 };

	if (place__address(s, p, reg, off))
		return true;
	if (p->how == UNSET && s->cfa.how == EXPRESSION)
		e = expr__of_cfa(s->cfa.code, s->cfa.len);
	else if (p->how == VAL_EXPRESSION)
		e = expr__of_register(p->code, p->len);
	*reg = e.reg;
	*off = e.off;
	return e.kind == EXPR_DEREF && !e.add;
}

/* rbp, rsp and rip at the distances of a sigcontext: then the rest of one is there, too. */
static bool state__is_signal(const struct cfi_state *s, struct unwind_rule *rule)
{
	uint8_t ra_reg, rbp_reg, rsp_reg;
	int64_t ra, rbp, rsp, base;

	if (!place__address(s, &s->reg[RA], &ra_reg, &ra) || !fits(ra) ||
	    !place__address(s, &s->reg[RBP], &rbp_reg, &rbp) || !fits(rbp) ||
	    !state__saved_rsp(s, &rsp_reg, &rsp) || !fits(rsp))
		return false;
	base = ra - SIGCONTEXT_RIP;
	if (ra_reg != rbp_reg || ra_reg != rsp_reg || ra_reg >= UNWIND_NR_REGS ||
	    rbp != base + SIGCONTEXT_RBP || rsp != base + SIGCONTEXT_RSP || !fits(base))
		return false;
	*rule = (struct unwind_rule){ .cfa = UNWIND_CFA_SIGNAL, .cfa_reg = ra_reg,
				      .cfa_off = (int32_t)base };
	return true;
}

struct unwind_rule cfi_state__rule(const struct cfi_state *s, bool signal, struct cfi_stats *stats)
{
	struct unwind_rule rule = { 0 };

	if (s->reg[RA].how == UNDEF) {
		rule.cfa = UNWIND_CFA_STOP;
		return rule;
	}
	if ((s->cfa.how == EXPRESSION || s->reg[RSP].how != UNSET) && state__is_signal(s, &rule))
		return rule;
	if (signal)
		odd(stats, CFI_ODD_SIGNAL);
	if (!rule__cfa(&rule, s, stats) || !rule__ra(&rule, s, stats) ||
	    !rule__rsp(&rule, s, stats))
		return (struct unwind_rule){ .cfa = UNWIND_CFA_UNKNOWN };
	rule__kept(&rule.rbp, &rule.rbp_reg, &rule.rbp_off, &s->reg[RBP], UNWIND_RBP,
		   CFI_ODD_RBP, stats);
	rule__kept(&rule.rbx, &rule.rbx_reg, &rule.rbx_off, &s->reg[RBX], UNWIND_RBX,
		   CFI_ODD_RBX, stats);
	if (rule.rbx == UNWIND_SAVE_REG) {	/* nothing that needs it follows such a frame */
		rule.rbx = UNWIND_SAVE_UNDEF;
		rule.rbx_reg = 0;
	}
	return rule;
}

struct unwind_rule cfi__sigreturn_rule(void)
{
	return (struct unwind_rule){ .cfa = UNWIND_CFA_SIGNAL, .cfa_reg = UNWIND_RSP,
				     .cfa_off = UCONTEXT_MCONTEXT };
}
