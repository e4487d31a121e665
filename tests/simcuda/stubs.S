/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The exported entries. The instructions are those of the vendor's driver 580.159.04 up to the
 * return, as is the size: a word (here simcuda_gone) is compared with a magic value, which the
 * exit handler puts there; arguments on the stack are pushed again; the work is called through
 * an 8-byte slot; a result other than 0, 3, 4, 600 goes to the error log. Three forms, chosen when
 * this file is assembled:
 *
 *   default         driver 580
 *   SIM_STUBS_OLD   older drivers: no frame, the slot is jumped to
 *   SIM_STUBS_ODD   neither: the slot's value is loaded first; nobody should touch these
 *
 * The slots are in plain data as the driver's; with SIM_SLOTS_RELRO in a section that is read-only
 * after relocation. The magic word is in memory that no file backs, as the driver's.
 */
#define COUNT_ARGS(...) COUNT_ARGS_(__VA_ARGS__, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0)
#define COUNT_ARGS_(a, b, c, d, e, f, g, h, i, j, k, l, n, ...) n
#define CU_LAUNCH_ARGS CUfunction, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, \
	unsigned, CUstream

#define MAGIC 0x321cba00

	.section .bss.simcuda_gone, "aw", @nobits
	.balign 4096
	.globl	simcuda_gone
	.hidden	simcuda_gone
	.type	simcuda_gone, @object
	.size	simcuda_gone, 4
simcuda_gone:
	.zero	4

	.macro	SLOT name
#ifdef SIM_SLOTS_RELRO
	.section .data.rel.ro.slots, "aw", @progbits
#else
	.section .data.slots, "aw", @progbits
#endif
	.balign	8
.Lslot_\name:
	.quad	sim_\name
	.hidden	sim_\name
	.section .rodata.names, "aMS", @progbits, 1
.Lname_\name:
	.string	"\name"
	.text
	.endm

	/* Stack arguments; a 32-bit one is loaded first, since its upper half is not defined. */
	.macro	PUSH_ARGS words
	.if	\words == 5
	mov	0x18(%rbp), %eax
	sub	$8, %rsp
	push	0x30(%rbp)
	push	0x28(%rbp)
	push	0x20(%rbp)
	push	%rax
	mov	0x10(%rbp), %eax
	push	%rax
	.elseif	\words == 4
	mov	0x18(%rbp), %eax
	push	0x28(%rbp)
	push	0x20(%rbp)
	push	%rax
	mov	0x10(%rbp), %eax
	push	%rax
	.elseif	\words == 3
	sub	$8, %rsp
	push	0x20(%rbp)
	push	0x18(%rbp)
	push	0x10(%rbp)
	.elseif	\words == 2
	push	0x18(%rbp)
	push	0x10(%rbp)
	.elseif	\words > 0
	.error	"a stub with that many stack arguments is not written"
	.endif
	.endm

	/* A bool-sized or short value in the second or third register is widened. */
	.macro	WIDEN name
	.irp	narrow, cuMemsetD8_v2, cuMemsetD8_v2_ptds, cuMemsetD8Async, cuMemsetD8Async_ptsz
	.ifc	\name, \narrow
	movzbl	%sil, %esi
	.endif
	.endr
	.irp	narrow, cuMemsetD16_v2, cuMemsetD16_v2_ptds, cuMemsetD16Async, cuMemsetD16Async_ptsz
	.ifc	\name, \narrow
	movzwl	%si, %esi
	.endif
	.endr
	.irp	narrow, cuMemsetD2D8_v2, cuMemsetD2D8_v2_ptds, cuMemsetD2D8Async, cuMemsetD2D8Async_ptsz
	.ifc	\name, \narrow
	movzbl	%dl, %edx
	.endif
	.endr
	.irp	narrow, cuMemsetD2D16_v2, cuMemsetD2D16_v2_ptds, cuMemsetD2D16Async, cuMemsetD2D16Async_ptsz
	.ifc	\name, \narrow
	movzwl	%dx, %edx
	.endif
	.endr
	.endm

	.macro	STUB_580 name, words, size, near
	push	%rbp
	.cfi_def_cfa_offset 16
	.cfi_offset 6, -16
	mov	%rsp, %rbp
	.cfi_def_cfa_register 6
	push	%r12
	.cfi_offset 12, -24
	sub	$8, %rsp
	cmpl	$MAGIC, simcuda_gone(%rip)
	.if	\near
	.byte	0x0f, 0x84		/* je, always with a 32-bit distance */
	.long	.Lgone_\name - . - 4
	.else
	.byte	0x74
	.byte	.Lgone_\name - . - 1
	.endif
	WIDEN	\name
	PUSH_ARGS \words
	call	*.Lslot_\name(%rip)
	mov	%eax, %r12d
	test	%eax, %eax
	je	1f
	cmp	$600, %eax
	je	1f
	lea	-3(%rax), %eax
	cmp	$1, %eax
	ja	2f
1:	mov	%r12d, %eax
	mov	-8(%rbp), %r12
	.cfi_remember_state
	leave
	.cfi_restore 6
	.cfi_restore 12
	.cfi_def_cfa 7, 8
	ret
	nop
2:	.cfi_restore_state
	lea	.Lname_\name(%rip), %rdi
	mov	%r12d, %esi
	call	simcuda_log_result
	jmp	1b
	.skip	\size - 15 - (. - \name), 0x90
.Lgone_\name:
	mov	$4, %r12d
	mov	%r12d, %eax
	mov	-8(%rbp), %r12
	leave
	.cfi_restore 6
	.cfi_restore 12
	.cfi_def_cfa 7, 8
	ret
	.endm

	.macro	STUB_OLD name
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

	.macro	STUB_ARGS name, args
	.if	\args > 10
	STUB_580 \name, 5, 175, 1
	.elseif	\args > 8
	STUB_580 \name, (\args - 6), 159, 0
	.elseif	\args > 6
	STUB_580 \name, 2, 159, 0
	.elseif	\args == 6
	STUB_580 \name, 0, 143, 0
	.else
	STUB_580 \name, 0, 191, 1
	.endif
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
	STUB_OLD \name
#else
	STUB_ARGS \name, \args
#endif
	.cfi_endproc
	.size	\name, . - \name
	.endm

	.hidden	simcuda_log_result
	.text
#define ENTRY(symbol, base, since, ...) STUB symbol, COUNT_ARGS(__VA_ARGS__)
#include "entries.def"

	/* Two exported names of the driver have no slot: they say "not supported". */
	.macro	REFUSAL name
	.balign	16
	.globl	\name
	.type	\name, @function
\name:	.cfi_startproc
	mov	$801, %eax
	ret
	.cfi_endproc
	.size	\name, . - \name
	.endm
	REFUSAL	cuMemGetAttribute
	REFUSAL	cuMemGetAttribute_v2

	.section .note.GNU-stack, "", @progbits
