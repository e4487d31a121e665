/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * One step of native unwinding: apply a rule to the registers of a frame and get those of its
 * caller. This is the only unwinder there is: the BPF programs include it with UNWIND_READ()
 * reading the live stack, user space with one that reads a copy of it.
 *
 * Register numbers are DWARF's for x86-64 (System V psABI, figure 3.36): 0 rax, 1 rdx, 2 rcx,
 * 3 rbx, 4 rsi, 5 rdi, 6 rbp, 7 rsp, 8-15 r8-r15; 16 is the return address, kept as `pc`.
 *
 * Before including, define the fixed-width types (vmlinux.h or <linux/types.h>) and, for the
 * functions (without it only the types are declared),
 *	UNWIND_READ(ctx, dst, size, addr)	0, or negative if the bytes can't be read
 * Reads may go below the stack pointer of the frame at hand, down to that of the first frame of
 * the walk: rbx is fetched late from where a frame that was left long ago saved it.
 */
#ifndef GPUCOLLECT_UNWIND_STEP_H
#define GPUCOLLECT_UNWIND_STEP_H

#ifndef __VMLINUX_H__
#include <linux/types.h>
#endif

#define UNWIND_RBX 3
#define UNWIND_RBP 6
#define UNWIND_RSP 7
#define UNWIND_NR_REGS 16
/* Bytes of the signal frame that hold r8..r15, rdi, rsi, rbp, rbx, rdx, rax, rcx, rsp, rip:
 * struct sigcontext_64 of the kernel's uapi, constant since x86-64 exists.
 */
#define UNWIND_SIGCONTEXT_WORDS 17

/* How the canonical frame address is found. */
enum unwind_cfa {
	UNWIND_CFA_NONE = 0,	/* no unwind information covers this pc */
	UNWIND_CFA_STOP = 1,	/* the return address is undefined: outermost frame */
	UNWIND_CFA_REG = 2,	/* reg + off */
	UNWIND_CFA_DEREF = 3,	/* *(reg + off) + add */
	UNWIND_CFA_PLT = 4,	/* rsp + off + ((pc & 15) >= add ? 8 : 0) */
	UNWIND_CFA_SIGNAL = 5,	/* all registers are in a sigcontext at reg + off */
	UNWIND_CFA_UNKNOWN = 6,	/* there is a rule, but none that this struct can express */
};

/* Where the caller's value of a register is. */
enum unwind_save {
	UNWIND_SAVE_SAME = 0,	/* unchanged; for rsp: the CFA */
	UNWIND_SAVE_UNDEF = 1,	/* lost */
	UNWIND_SAVE_CFA = 2,	/* *(CFA + off) */
	UNWIND_SAVE_REG = 3,	/* in register reg */
	UNWIND_SAVE_DEREF = 4,	/* *(reg + off) */
};

/*
 * 32 bytes; all zero is "no unwind information". Equal rules are equal bytes (they are interned).
 * rbx is followed because frames in the middle of a stack have a CFA relative to it: the lazy
 * binding and TLS trampolines of glibc (sysdeps/x86_64/dl-trampoline.h, dl-tlsdesc-dynamic.h).
 */
struct unwind_rule {
	__u8 cfa;		/* enum unwind_cfa */
	__u8 cfa_reg;
	__u8 ra;		/* enum unwind_save, never SAME; UNDEF is written as CFA_STOP */
	__u8 ra_reg;
	__u8 rbp;		/* enum unwind_save */
	__u8 rbp_reg;
	__u8 rsp;		/* SAME or REG */
	__u8 rsp_reg;
	__s32 cfa_off;
	__s32 cfa_add;
	__s32 ra_off;
	__s32 rbp_off;
	__s32 rbx_off;
	__u8 rbx;		/* enum unwind_save, never REG */
	__u8 rbx_reg;
	__u16 unused;
};

/* A row: from this byte of its 4 KiB page of the file on, this rule holds. */
struct unwind_row {
	__u16 pc;		/* offset in the page */
	__u16 rule;		/* index into the rules */
};

/*
 * Registers of one frame. `pc` is exact for the frame a sample hit and for one interrupted by a
 * signal, else a return address (look up pc - 1). `full` is set where all 16 registers are known.
 */
struct unwind_regs {
	__u64 r[UNWIND_NR_REGS];
	__u64 pc;
	__u32 full;		/* bool: all of r[] holds; else rsp and rbp, and rbx by rbx_at */
	__u32 lost_rbp;		/* bool: rbp is not known any more */
	__u64 rbx_at;		/* meaningful if not full: where rbx was saved last, or one of */
};
#define UNWIND_RBX_LIVE 0ull	/* not saved since: r[3] holds it */
#define UNWIND_RBX_LOST (~0ull)

enum unwind_result {
	UNWIND_OK = 0,
	UNWIND_END = 1,		/* the frame was the outermost one */
	UNWIND_NO_ROW = 2,	/* CFA_NONE */
	UNWIND_NO_RULE = 3,	/* CFA_UNKNOWN, or a register that isn't known here */
	UNWIND_UNREADABLE = 4,	/* memory could not be read */
	UNWIND_NO_PROGRESS = 5,	/* the stack pointer did not grow */
};

#endif

#if defined(UNWIND_READ) && !defined(GPUCOLLECT_UNWIND_STEP_FUNCTIONS)
#define GPUCOLLECT_UNWIND_STEP_FUNCTIONS

static inline __attribute__((always_inline)) int
unwind__reg(const struct unwind_regs *regs, __u8 reg, __u64 *val)
{
	if (reg == UNWIND_RBP ? regs->lost_rbp : (reg != UNWIND_RSP && !regs->full))
		return UNWIND_NO_RULE;
	*val = regs->r[reg & (UNWIND_NR_REGS - 1)];
	return UNWIND_OK;
}

/* A signal frame holds every register of the interrupted code, so its pc is exact again. */
static inline __attribute__((always_inline)) int
unwind__sigreturn(const struct unwind_rule *rule, struct unwind_regs *regs, void *ctx)
{
	__u64 w[UNWIND_SIGCONTEXT_WORDS], base;
	int i;

	if (unwind__reg(regs, rule->cfa_reg, &base))
		return UNWIND_NO_RULE;
	if (UNWIND_READ(ctx, w, sizeof(w), base + (__s64)rule->cfa_off))
		return UNWIND_UNREADABLE;
	for (i = 0; i < 8; i++)
		regs->r[8 + i] = w[i];
	regs->r[5] = w[8];
	regs->r[4] = w[9];
	regs->r[6] = w[10];
	regs->r[3] = w[11];
	regs->r[1] = w[12];
	regs->r[0] = w[13];
	regs->r[2] = w[14];
	regs->r[7] = w[15];
	regs->pc = w[16];
	regs->full = 1;
	regs->lost_rbp = 0;
	return UNWIND_OK;
}

static inline __attribute__((always_inline)) int
unwind__cfa(const struct unwind_rule *rule, const struct unwind_regs *regs, void *ctx, __u64 *cfa)
{
	__u64 base;

	if (rule->cfa_reg == UNWIND_RBX && !regs->full) {
		if (regs->rbx_at == UNWIND_RBX_LOST)
			return UNWIND_NO_RULE;
		base = regs->r[UNWIND_RBX];
		if (regs->rbx_at != UNWIND_RBX_LIVE &&
		    UNWIND_READ(ctx, &base, sizeof(base), regs->rbx_at))
			return UNWIND_UNREADABLE;
	} else if (unwind__reg(regs, rule->cfa_reg, &base)) {
		return UNWIND_NO_RULE;
	}
	base += (__s64)rule->cfa_off;
	if (rule->cfa == UNWIND_CFA_DEREF) {
		if (UNWIND_READ(ctx, cfa, sizeof(*cfa), base))
			return UNWIND_UNREADABLE;
		*cfa += (__s64)rule->cfa_add;
		return UNWIND_OK;
	}
	if (rule->cfa == UNWIND_CFA_PLT && (regs->pc & 15) >= (__u64)rule->cfa_add)
		base += 8;
	*cfa = base;
	return UNWIND_OK;
}

static inline __attribute__((always_inline)) int
unwind__saved(__u8 how, __u8 reg, __s32 off, __u64 cfa, const struct unwind_regs *regs, void *ctx,
	      __u64 *val)
{
	__u64 at;

	if (how == UNWIND_SAVE_REG)
		return unwind__reg(regs, reg, val);
	if (how == UNWIND_SAVE_DEREF) {
		if (unwind__reg(regs, reg, &at))
			return UNWIND_NO_RULE;
	} else {
		at = cfa;
	}
	if (UNWIND_READ(ctx, val, sizeof(*val), at + (__s64)off))
		return UNWIND_UNREADABLE;
	return UNWIND_OK;
}

/* Where the caller's rbx is; read only if a frame further out asks for it. */
static inline __attribute__((always_inline)) __u64
unwind__rbx(const struct unwind_rule *rule, const struct unwind_regs *regs, __u64 cfa)
{
	__u64 at;

	if (rule->rbx == UNWIND_SAVE_SAME)
		return regs->full ? UNWIND_RBX_LIVE : regs->rbx_at;
	if (rule->rbx == UNWIND_SAVE_CFA)
		return cfa + (__s64)rule->rbx_off;
	if (rule->rbx == UNWIND_SAVE_DEREF && unwind__reg(regs, rule->rbx_reg, &at) == UNWIND_OK)
		return at + (__s64)rule->rbx_off;
	return UNWIND_RBX_LOST;
}

/*
 * Replace `regs` by the caller's. On anything but UNWIND_OK `regs` must not be used further.
 * The stack pointer must grow, except that a leaf (full registers) may return through a
 * register without popping, and that a signal frame may lead to any other stack.
 */
static inline __attribute__((always_inline)) int
unwind__step(const struct unwind_rule *rule, struct unwind_regs *regs, void *ctx)
{
	__u64 cfa = 0, ra = 0, rbp = regs->r[UNWIND_RBP], rsp;
	int err;

	if (rule->cfa == UNWIND_CFA_NONE)
		return UNWIND_NO_ROW;
	if (rule->cfa == UNWIND_CFA_STOP)
		return UNWIND_END;
	if (rule->cfa == UNWIND_CFA_SIGNAL)
		return unwind__sigreturn(rule, regs, ctx);
	if (rule->cfa >= UNWIND_CFA_UNKNOWN)
		return UNWIND_NO_RULE;
	err = unwind__cfa(rule, regs, ctx, &cfa);
	if (err)
		return err;
	err = unwind__saved(rule->ra, rule->ra_reg, rule->ra_off, cfa, regs, ctx, &ra);
	if (err)
		return err;
	if (rule->rbp >= UNWIND_SAVE_CFA) {
		err = unwind__saved(rule->rbp, rule->rbp_reg, rule->rbp_off, cfa, regs, ctx, &rbp);
		if (err)
			return err;
	}
	rsp = cfa;
	if (rule->rsp == UNWIND_SAVE_REG && unwind__reg(regs, rule->rsp_reg, &rsp))
		return UNWIND_NO_RULE;
	if (rsp < regs->r[UNWIND_RSP] ||
	    (rsp == regs->r[UNWIND_RSP] && (!regs->full || ra == regs->pc)))
		return UNWIND_NO_PROGRESS;
	regs->rbx_at = unwind__rbx(rule, regs, cfa);
	if (rule->rbp >= UNWIND_SAVE_CFA)
		regs->lost_rbp = 0;
	else if (rule->rbp == UNWIND_SAVE_UNDEF)
		regs->lost_rbp = 1;
	regs->r[UNWIND_RSP] = rsp;
	regs->r[UNWIND_RBP] = rbp;
	regs->pc = ra;
	regs->full = 0;
	return UNWIND_OK;
}

/*
 * The rule at an offset of the kernel's trampoline for optimised uprobes (Linux 6.18,
 * arch/x86/kernel/uprobes.c): push rcx, r11, rax; mov; syscall; pop rax, r11, rcx; ret. It was
 * called from the probed instruction, which is what its return address is in.
 */
static inline __attribute__((always_inline)) void
unwind__trampoline(__u64 offset, struct unwind_rule *rule)
{
	const struct unwind_rule plain = {
		.cfa = UNWIND_CFA_REG, .cfa_reg = UNWIND_RSP, .ra = UNWIND_SAVE_CFA, .ra_off = -8,
	};

	*rule = plain;
	if (offset < 1 || offset >= 17)
		rule->cfa_off = 8;
	else if (offset < 3 || offset >= 16)
		rule->cfa_off = 16;
	else if (offset < 4 || offset >= 14)
		rule->cfa_off = 24;
	else
		rule->cfa_off = 32;
}

/*
 * The step of last resort where no unwind information exists: the frame pointer. The caller of
 * this function marks the frame found as a guess and checks that the new pc is executable.
 */
static inline __attribute__((always_inline)) int
unwind__guess(struct unwind_regs *regs, void *ctx)
{
	__u64 w[2];

	if (regs->lost_rbp || regs->r[UNWIND_RBP] < regs->r[UNWIND_RSP] ||
	    (regs->r[UNWIND_RBP] & 7))
		return UNWIND_NO_ROW;
	if (UNWIND_READ(ctx, w, sizeof(w), regs->r[UNWIND_RBP]))
		return UNWIND_UNREADABLE;
	regs->r[UNWIND_RSP] = regs->r[UNWIND_RBP] + 16;
	regs->r[UNWIND_RBP] = w[0];
	regs->pc = w[1];
	regs->rbx_at = UNWIND_RBX_LOST;
	regs->full = 0;
	return UNWIND_OK;
}

#endif
