/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The probe sites (the contract is in channel.h). In assembly because a probe on a five-byte nop
 * becomes a call on some kernels, which overwrites the 8 bytes below rsp: a leaf that a compiler
 * gave a red zone would be corrupted. Nothing else lies within 16 bytes of a site, so that no
 * other instruction shares what a probe rewrites.
 */
	.text

	.macro site name, code:vararg
	.balign 64
	.fill 16, 1, 0xcc
	.globl \name
	.hidden \name
	.type \name, @function
	.balign 16
\name:
	.cfi_startproc
	.byte \code
	ret
	.cfi_endproc
	.size \name, . - \name
	.balign 16, 0xcc
	.fill 16, 1, 0xcc
	.endm

	site gpucollect_site_nop1, 0x90
	site gpucollect_site_nop5, 0x0f, 0x1f, 0x44, 0x00, 0x00

	.section .note.GNU-stack, "", @progbits
