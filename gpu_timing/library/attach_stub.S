/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The way into a process that runs (channel.h): loads the library and goes over into it. One page
 * without relocations, alone in its page of the file, so that it can be mapped by itself, anywhere,
 * before anything of the library is there. rdi = struct channel_attach.
 */
#include <asm-generic/errno.h>
#include <linux/errno.h>

/* struct channel_attach and enum channel_attach_stage; attach.c checks that they agree. */
#define CANCELLED	4
#define DLOPEN		8
#define DLSYM		16
#define ERRNO		24
#define DLERROR		32
#define PATH		56
#define STATUS		96
#define STAGE		100
#define ERROR		104
#define ERROR_ROOM	128
#define STAGE_STUB	1
#define STAGE_LOADED	2
#define STAGE_FOUND	3

/* RTLD_NOW | RTLD_NODELETE */
#define LOAD_FLAGS	0x1002

	.section .gpucollect.stub, "ax", @progbits
	.balign 4096
	.globl gpucollect_stub
	.hidden gpucollect_stub
	.type gpucollect_stub, @function
gpucollect_stub:
	.cfi_startproc
	push	%rbx
	.cfi_adjust_cfa_offset 8
	.cfi_rel_offset %rbx, 0
	push	%rbp
	.cfi_adjust_cfa_offset 8
	.cfi_rel_offset %rbp, 0
	push	%r12
	.cfi_adjust_cfa_offset 8
	.cfi_rel_offset %r12, 0
	.cfi_remember_state
	mov	%rdi, %rbx
	movl	$STAGE_STUB, STAGE(%rbx)
	call	*ERRNO(%rbx)
	mov	%rax, %rbp
	mov	(%rbp), %r12d
	cmpl	$0, CANCELLED(%rbx)
	jne	.Lcancelled

	lea	PATH(%rbx), %rdi
	mov	$LOAD_FLAGS, %esi
	call	*DLOPEN(%rbx)
	test	%rax, %rax
	je	.Lnot_loaded
	movl	$STAGE_LOADED, STAGE(%rbx)
	cmpl	$0, CANCELLED(%rbx)
	jne	.Lcancelled

	mov	%rax, %rdi
	lea	.Lname(%rip), %rsi
	call	*DLSYM(%rbx)
	test	%rax, %rax
	je	.Lnot_found
	movl	$STAGE_FOUND, STAGE(%rbx)
	cmpl	$0, CANCELLED(%rbx)
	jne	.Lcancelled

	mov	%r12d, (%rbp)
	mov	%rbx, %rdi
	pop	%r12
	.cfi_adjust_cfa_offset -8
	.cfi_restore %r12
	pop	%rbp
	.cfi_adjust_cfa_offset -8
	.cfi_restore %rbp
	pop	%rbx
	.cfi_adjust_cfa_offset -8
	.cfi_restore %rbx
	jmp	*%rax

	.cfi_restore_state
.Lcancelled:
	movl	$-ECANCELED, STATUS(%rbx)
	jmp	.Lout
.Lnot_loaded:
	movl	$-ELIBACC, STATUS(%rbx)
	jmp	.Lwhy
.Lnot_found:
	movl	$-ENOENT, STATUS(%rbx)
.Lwhy:
	call	*DLERROR(%rbx)
	test	%rax, %rax
	je	.Lout
	xor	%ecx, %ecx
.Lcopy:
	movzbl	(%rax,%rcx), %edx
	test	%edx, %edx
	je	.Lcopied
	mov	%dl, ERROR(%rbx,%rcx)
	inc	%ecx
	cmp	$ERROR_ROOM - 1, %ecx
	jb	.Lcopy
.Lcopied:
	movb	$0, ERROR(%rbx,%rcx)
.Lout:
	mov	%r12d, (%rbp)
	xor	%eax, %eax
	pop	%r12
	.cfi_adjust_cfa_offset -8
	.cfi_restore %r12
	pop	%rbp
	.cfi_adjust_cfa_offset -8
	.cfi_restore %rbp
	pop	%rbx
	.cfi_adjust_cfa_offset -8
	.cfi_restore %rbx
	ret
	.cfi_endproc
.Lname:
	.string	"gpucollect_attach"
	.size	gpucollect_stub, . - gpucollect_stub
	.balign 4096, 0xcc

	.section .note.GNU-stack, "", @progbits
