/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The way into a process that runs (channel.h): starts a thread that loads the library and goes over
 * into it. One page without relocations, alone in its page of the file, so that it can be mapped by
 * itself, anywhere, before anything of the library is there. rdi = struct channel_stub.
 */
#include <asm-generic/errno.h>
#include <asm/unistd_64.h>
#include <linux/errno.h>

/* struct channel_stub and enum channel_attach_stage; attach.c checks that they agree. */
#define CANCELLED	4
#define STATUS		8
#define STAGE		12
#define ERROR		16
#define ERROR_ROOM	128
#define CREATED		144
#define RELEASED	148
#define PAGES		152
#define PAGES_SIZE	160
#define ATTR_INIT	168
#define ATTR_DETACH	176
#define ATTR_STACK	184
#define CREATE		192
#define ERRNO		200
#define MUNMAP		208
#define DLOPEN		216
#define DLSYM		224
#define DLERROR		232
#define THREAD		240
#define ATTR		248
#define PATH		312
#define STAGE_STUB	1
#define STAGE_LOADED	2
#define STAGE_FOUND	3

/* RTLD_NOW | RTLD_NODELETE */
#define LOAD_FLAGS	0x1002
#define DETACHED	1
#define STACK		0x40000
/* The program's thread-local data alone may be larger than that. */
#define LARGE_STACK	0x400000
#define LOOK_NS		2000000
#define LOOKS		5000

.macro save reg
	push	%\reg
	.cfi_adjust_cfa_offset 8
	.cfi_rel_offset %\reg, 0
.endm
.macro restore reg
	pop	%\reg
	.cfi_adjust_cfa_offset -8
	.cfi_restore %\reg
.endm
.macro room bytes
	sub	$\bytes, %rsp
	.cfi_adjust_cfa_offset \bytes
.endm
.macro no_room bytes
	add	$\bytes, %rsp
	.cfi_adjust_cfa_offset -\bytes
.endm

	.section .gpucollect.stub, "ax", @progbits
	.balign 4096
	.globl gpucollect_stub
	.hidden gpucollect_stub
	.type gpucollect_stub, @function
gpucollect_stub:
	.cfi_startproc
	save	rbx
	save	rbp
	save	r12
	save	r13
	room	8
	mov	%rdi, %rbx
	call	*ERRNO(%rbx)
	mov	%rax, %rbp
	mov	(%rbp), %r12d

	lea	ATTR(%rbx), %rdi
	call	*ATTR_INIT(%rbx)
	lea	ATTR(%rbx), %rdi
	mov	$DETACHED, %esi
	call	*ATTR_DETACH(%rbx)
	mov	$STACK, %r13d
.Lcreate:
	lea	ATTR(%rbx), %rdi
	mov	%r13, %rsi
	call	*ATTR_STACK(%rbx)
	lea	THREAD(%rbx), %rdi
	lea	ATTR(%rbx), %rsi
	lea	.Lthread(%rip), %rdx
	mov	%rbx, %rcx
	call	*CREATE(%rbx)
	cmp	$EINVAL, %eax
	jne	.Lcreated
	cmp	$LARGE_STACK, %r13d
	je	.Lcreated
	mov	$LARGE_STACK, %r13d
	jmp	.Lcreate
.Lcreated:
	neg	%eax
	mov	%eax, CREATED(%rbx)

	mov	%r12d, (%rbp)
	xor	%eax, %eax
	no_room	8
	restore	r13
	restore	r12
	restore	rbp
	restore	rbx
	ret
	.cfi_endproc

/* The thread. Its signals are those that the borrowed one has blocked. */
.Lthread:
	.cfi_startproc
	save	rbx
	save	rbp
	room	24
	mov	%rdi, %rbx
	movl	$STAGE_STUB, STAGE(%rbx)
	cmpl	$0, CANCELLED(%rbx)
	jne	.Lcancelled

	lea	PATH(%rbx), %rdi
	mov	$LOAD_FLAGS, %esi
	call	*DLOPEN(%rbx)
	mov	$-ELIBACC, %ebp
	test	%rax, %rax
	je	.Lfailed
	movl	$STAGE_LOADED, STAGE(%rbx)
	cmpl	$0, CANCELLED(%rbx)
	jne	.Lcancelled

	mov	%rax, %rdi
	lea	.Lname(%rip), %rsi
	call	*DLSYM(%rbx)
	mov	$-ENOENT, %ebp
	test	%rax, %rax
	je	.Lfailed
	movl	$STAGE_FOUND, STAGE(%rbx)
	cmpl	$0, CANCELLED(%rbx)
	jne	.Lcancelled

	mov	%rbx, %rdi
	call	*%rax
	jmp	.Lend

.Lcancelled:
	movl	$-ECANCELED, STATUS(%rbx)
	jmp	.Lend
.Lfailed:
	call	*DLERROR(%rbx)
	test	%rax, %rax
	je	.Lno_text
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
.Lno_text:
	/* Last, since with it all is over for who looks on. */
	mov	%ebp, STATUS(%rbx)

/* The borrowed thread may still be in this page, and the collector read the other. */
.Lend:
	mov	$LOOKS, %ebp
	movq	$0, (%rsp)
	movq	$LOOK_NS, 8(%rsp)
.Llook:
	cmpl	$0, RELEASED(%rbx)
	jne	.Lunmap
	mov	%rsp, %rdi
	xor	%esi, %esi
	mov	$__NR_nanosleep, %eax
	syscall
	dec	%ebp
	jne	.Llook
	.cfi_remember_state
	/* The collector is no more: nobody knows, and so the pages stay. */
	xor	%eax, %eax
	no_room	24
	restore	rbp
	restore	rbx
	ret
	.cfi_restore_state
.Lunmap:
	mov	PAGES(%rbx), %rdi
	mov	PAGES_SIZE(%rbx), %rsi
	mov	MUNMAP(%rbx), %rdx
	no_room	24
	restore	rbp
	restore	rbx
	/* It returns to where the thread was started. */
	jmp	*%rdx
	.cfi_endproc
.Lname:
	.string	"gpucollect_attach"
	.size	gpucollect_stub, . - gpucollect_stub
	.balign 4096, 0xcc

	.section .note.GNU-stack, "", @progbits
