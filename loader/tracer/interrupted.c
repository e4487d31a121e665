// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "loader/tracer/interrupted.h"

#include <errno.h>
#include <stdio.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>

#include "loader/tracer/remote.h"
#include "loader/tracer/space.h"

/* Calls that a stop ends with EINTR, having done nothing: they can be begun again. */
static bool can_begin_again(uint64_t nr)
{
	switch (nr) {
	case SYS_epoll_wait:
	case SYS_epoll_pwait:
	case SYS_epoll_pwait2:
	case SYS_semop:
	case SYS_semtimedop:
	case SYS_rt_sigtimedwait:
	case SYS_io_getevents:
	case SYS_io_pgetevents:
	case SYS_io_uring_enter:
	case SYS_read:
	case SYS_readv:
	case SYS_recvfrom:
	case SYS_recvmsg:
	case SYS_accept:
	case SYS_accept4:
	case SYS_connect:
	case SYS_write:
	case SYS_writev:
	case SYS_sendto:
	case SYS_sendmsg:
		return true;
	default:
		return false;
	}
}

/* False: it is gone. */
static bool read_signals(const struct remote *r, uint64_t *pending, uint64_t *blocked)
{
	char path[64], line[256];
	unsigned long long value;
	FILE *f;

	*pending = *blocked = 0;
	snprintf(path, sizeof(path), "/proc/%d/task/%d/status", (int)r->pid, (int)r->tid);
	f = fopen(path, "re");
	if (!f)
		return false;
	while (fgets(line, sizeof(line), f)) {
		if (sscanf(line, "SigPnd: %llx", &value) == 1 ||
		    sscanf(line, "ShdPnd: %llx", &value) == 1)
			*pending |= value;
		else if (sscanf(line, "SigBlk: %llx", &value) == 1)
			*blocked = value;
	}
	fclose(f);
	return true;
}

/* Whether a signal waits for the thread that would have ended its system call anyway. */
static bool has_signal(const struct remote *r)
{
	uint64_t pending, blocked;

	return !read_signals(r, &pending, &blocked) || (pending & ~blocked);
}

bool interrupted__begins_again(const struct remote *r)
{
	const struct user_regs_struct *regs = &r->regs;

	return (int64_t)regs->rax == -EINTR && (int64_t)regs->orig_rax >= 0 &&
	       can_begin_again(regs->orig_rax) && !has_signal(r);
}

bool interrupted__blocks_signals(const struct remote *r)
{
	uint64_t pending, blocked;

	switch (r->regs.orig_rax) {
	case SYS_ppoll:
	case SYS_pselect6:
	case SYS_epoll_pwait:
	case SYS_epoll_pwait2:
	case SYS_io_pgetevents:
	case SYS_rt_sigsuspend:
		return !read_signals(r, &pending, &blocked) || (blocked & ~r->mask);
	default:
		return false;
	}
}

void interrupted__note_timed(struct remote *r)
{
	const struct user_regs_struct *regs = &r->regs;
	struct __attribute__((packed)) {
		uint8_t move;		/* imm32 to eax */
		uint32_t nr;
		uint16_t syscall;
	} code;

	if (regs->orig_rax == SYS_restart_syscall && r->call.tid == r->tid &&
	    r->call.rsp == regs->rsp && r->call.rip == regs->rip)
		return;
	r->call = (struct remote_timed){ r->tid, regs->rsp, regs->rip, regs->orig_rax };
	if (regs->orig_rax != SYS_restart_syscall)
		return;
	r->call.nr = 0;
	if (!space__peek(r->pid, regs->rip - sizeof(code), &code, sizeof(code)) &&
	    code.move == 0xb8 && code.syscall == 0x050f &&
	    (code.nr == SYS_poll || code.nr == SYS_nanosleep || code.nr == SYS_clock_nanosleep ||
	     code.nr == SYS_futex))
		r->call.nr = code.nr;
}

/*
 * Whether it is in a restartable sequence (rseq(2)): the kernel takes a thread out of it whenever
 * it loses its processor, and wouldn't know any more that it should.
 */
static bool is_in_sequence(const struct remote *r)
{
	struct __ptrace_rseq_configuration config = { 0 };
	struct {
		uint32_t version, flags;
		uint64_t start, length, abort;
	} cs;
	uint64_t at;

	if (ptrace(PTRACE_GET_RSEQ_CONFIGURATION, r->tid, sizeof(config), &config) !=
	    sizeof(config) || !config.rseq_abi_pointer)
		return false;
	if (space__peek(r->pid, config.rseq_abi_pointer + 8, &at, sizeof(at)))
		return true;
	if (!at)
		return false;
	return space__peek(r->pid, at, &cs, sizeof(cs)) || r->regs.rip - cs.start < cs.length;
}

/*
 * Whether it was stopped again before it could go on with a system call that has a time limit: it is to
 * execute restart_syscall, which has nothing to go on with after the frame's sigreturn.
 */
static bool is_to_restart(const struct remote *r)
{
	uint16_t code;

	return r->regs.rax == SYS_restart_syscall &&
	       (space__peek(r->pid, r->regs.rip, &code, sizeof(code)) || code == 0x050f);
}

bool interrupted__is_elsewhere(const struct remote *r)
{
	return is_in_sequence(r) || is_to_restart(r);
}
