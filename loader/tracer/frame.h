/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What brings a borrowed thread home without anybody's help: a signal frame on its own stack, which
 * holds all that the thread was. A return into the C library's __restore_rt with the stack pointer
 * at the frame's ucontext makes the kernel put everything back at once. x86-64.
 *
 * Layout (Linux, arch/x86/include/asm/sigframe.h, uapi asm/sigcontext.h, asm/ucontext.h), from the
 * thread's stack pointer down:
 *
 *	128 bytes	the red zone, not touched
 *	XSAVE area	64-aligned, with FP_XSTATE_MAGIC words
 *	room		FRAME_ROOM bytes for what a borrowed call is given, 64-aligned
 *	ucontext	home
 *	__restore_rt	return address		<- rsp of a borrowed system call
 *	getpid		return address		<- rsp of a borrowed call, as at a function's entry
 *
 * A borrowed call thus ends in getpid, at whose system call who waits for its end finds the thread;
 * and if nobody does, it goes home. Nothing on this way sleeps, and until then nothing is a
 * sigreturn: a thread that was in a system call with a time limit can go on with it only as long as
 * the kernel remembers how much is left, which it doesn't after either.
 */
#ifndef TRACER_FRAME_H
#define TRACER_FRAME_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/user.h>

#define FRAME_ROOM 192
#define FRAME_MAX_XSTATE (16u << 10)	/* with AMX tiles it is 11 KiB */

struct frame_input {
	struct user_regs_struct regs;	/* to come home to: frame__home */
	const void *xstate;		/* of PTRACE_GETREGSET, NT_X86_XSTATE */
	size_t xstate_len;
	uint64_t mask;			/* blocked signals */
	uint64_t restore_rt;		/* addresses in the target */
	uint64_t getpid;
};

struct frame {
	uint64_t at;		/* address of the first byte: it ends with the XSAVE area */
	size_t len;
	uint64_t room;		/* addresses */
	uint64_t ucontext;	/* home */
	uint64_t syscall_sp;
	uint64_t call_sp;
	uint8_t bytes[FRAME_MAX_XSTATE + 1024];
};

/*
 * The registers with which a stopped thread goes on as if it had not been stopped: one that the stop
 * took out of a system call, which the kernel would begin again by itself, begins it again. True:
 * it was in a call with a time limit, which begins again with all of it (restart_syscall(2) is for the
 * kernel alone to use): a way home for when the one who traces is no more.
 */
bool frame__home(const struct user_regs_struct *stopped, struct user_regs_struct *home);

/* 0; -EOPNOTSUPP: a processor without XSAVE, or with more state than is provided for. */
int frame__build(struct frame *f, const struct frame_input *in);

/*
 * An area of PTRACE_GETREGSET as PTRACE_SETREGSET has to get it for nothing to change: the kernel
 * gives the protection keys' register its value, but doesn't always mark it as present.
 */
void frame__complete_xstate(void *xstate, size_t len);

#endif
