/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The exported entries. The instructions are those of a current driver's entries: the word
 * simcuda_gone is compared with a magic value, which the exit handler puts there, and the work
 * is called through an 8-byte slot. Three forms, chosen when this file is assembled:
 *
 *   default         driver 580: rbp frame, the slot is called
 *   SIM_STUBS_OLD   older drivers: no frame, the slot is jumped to
 *   SIM_STUBS_ODD   neither: the slot's value is loaded first; nobody should touch these
 *
 * The slots are in a section that is read-only after relocation, with SIM_SLOTS_RW in plain data.
 */
#define COUNT_ARGS(...) COUNT_ARGS_(__VA_ARGS__, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0)
#define COUNT_ARGS_(a, b, c, d, e, f, g, h, i, j, k, l, n, ...) n
#define CU_LAUNCH_ARGS CUfunction, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, \
	unsigned, CUstream

#define MAGIC 0x321cba00

	.section .data.simcuda_gone, "aw", @progbits
	.balign 4
	.globl	simcuda_gone
	.hidden	simcuda_gone
	.type	simcuda_gone, @object
	.size	simcuda_gone, 4
simcuda_gone:
	.long	0

	.macro	SLOT name
#ifdef SIM_SLOTS_RW
	.section .data.slots, "aw", @progbits
#else
	.section .data.rel.ro.slots, "aw", @progbits
#endif
	.balign	8
.Lslot_\name:
	.quad	sim_\name
	.hidden	sim_\name
	.text
	.endm

	.macro	PUSH_ARG from, to
	.if	\from >= \to
	push	\from * 8 + 8(%rbp)
	PUSH_ARG (\from - 1), \to
	.endif
	.endm

	.macro	STUB_FRAME name, words
	push	%rbp
	.cfi_def_cfa_offset 16
	.cfi_offset 6, -16
	mov	%rsp, %rbp
	.cfi_def_cfa_register 6
	push	%r12
	.cfi_offset 12, -24
	sub	$8, %rsp
	cmpl	$MAGIC, simcuda_gone(%rip)
	je	.Lgone_\name
	.if	\words > 0
	.if	(\words) & 1
	sub	$8, %rsp
	.endif
	PUSH_ARG \words, 1
	.endif
	call	*.Lslot_\name(%rip)
	mov	-8(%rbp), %r12
	.cfi_remember_state
	leave
	.cfi_restore 6
	.cfi_restore 12
	.cfi_def_cfa 7, 8
	ret
.Lgone_\name:
	.cfi_restore_state
	mov	$4, %eax
	mov	-8(%rbp), %r12
	leave
	.cfi_restore 6
	.cfi_restore 12
	.cfi_def_cfa 7, 8
	ret
	.endm

	.macro	STUB_TAIL name
	cmpl	$MAGIC, simcuda_gone(%rip)
	je	.Lgone_\name
	jmp	*.Lslot_\name(%rip)
.Lgone_\name:
	mov	$4, %eax
	ret
	.endm

	.macro	STUB_ODD name
	endbr64
	mov	simcuda_gone(%rip), %eax
	cmp	$MAGIC, %eax
	je	.Lgone_\name
	mov	.Lslot_\name(%rip), %rax
	jmp	*%rax
.Lgone_\name:
	mov	$4, %eax
	ret
	.endm

	.macro	STUB name, args
	SLOT	\name
	.balign	16
	.globl	\name
	.type	\name, @function
	.globl	stub_\name
	.hidden	stub_\name
stub_\name:
\name:
	.cfi_startproc
#if defined(SIM_STUBS_ODD)
	STUB_ODD \name
#elif defined(SIM_STUBS_OLD)
	STUB_TAIL \name
#else
	STUB_FRAME \name, (\args - 6)
#endif
	.cfi_endproc
	.size	\name, . - \name
	.endm

	.text
#define ENTRY(symbol, base, since, ...) STUB symbol, COUNT_ARGS(__VA_ARGS__)
#include "entries.def"

	.section .note.GNU-stack, "", @progbits
