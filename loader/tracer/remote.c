// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "loader/tracer/remote.h"

#include <elf.h>
#include <errno.h>
#include <signal.h>
#include <sys/ptrace.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "loader/base/clock.h"
#include "loader/base/fault.h"
#include "loader/base/proc.h"
#include "loader/tracer/interrupted.h"
#include "loader/tracer/libc.h"
#include "loader/tracer/space.h"

#define STOP_NS 20000000ull	/* a thread that doesn't stop by then sleeps where it can't */
#define SHORT_NS 1000000ull	/* steps take some µs */
#define SHORT_NAP_NS 10000
#define NAP_NS 50000
#define LONG_NAP_NS 1000000
#define FLAG_TRAP 0x100ull
#define FLAG_DIRECTION 0x400ull
#define FLAG_ALIGNMENT 0x40000ull	/* traps what is not aligned: the C library counts on it not to */
#define KERNEL_SIGSET 8

#define SIGNAL_BIT(nr) (1ull << ((nr) - 1))
/*
 * Those that the thread's own instructions cause, and the one by which the C library makes all
 * threads change their ids at once (it never blocks that itself: who waits for it holds locks).
 */
#define SETXID 33
#define NOT_BLOCKED (SIGNAL_BIT(SIGSEGV) | SIGNAL_BIT(SIGBUS) | SIGNAL_BIT(SIGILL) | \
		     SIGNAL_BIT(SIGFPE) | SIGNAL_BIT(SIGTRAP) | SIGNAL_BIT(SIGSYS) | \
		     SIGNAL_BIT(SETXID))

enum stop_kind { STOP_SYSCALL, STOP_SIGNAL, STOP_TRAP, STOP_GROUP };

void remote__init(struct remote *r, pid_t pid, const struct libc *libc)
{
	*r = (struct remote){ .pid = pid, .libc = libc };
}

/* Never without leaving the processor: it may be the one that the thread needs. */
static void nap(uint64_t waited)
{
	const struct timespec t = {
		.tv_nsec = waited < SHORT_NS ? SHORT_NAP_NS : waited < STOP_NS ? NAP_NS : LONG_NAP_NS,
	};

	nanosleep(&t, NULL);
}

static int gone(struct remote *r)
{
	r->held = r->away = false;
	return -ESRCH;
}

/* The next stop: 0, -ETIMEDOUT, -ESRCH. */
static int wait_stop(struct remote *r, uint64_t deadline, enum stop_kind *kind)
{
	uint64_t begin = clock__now_ns(), now;
	int status;

	for (;;) {
		pid_t pid = waitpid(r->tid, &status, __WALL | __WNOTHREAD | WNOHANG);

		if (pid == r->tid)
			break;
		if (pid < 0 && errno != EINTR)
			return gone(r);
		now = clock__now_ns();
		if (now >= deadline)
			return -ETIMEDOUT;
		nap(now - begin);
	}
	if (!WIFSTOPPED(status))
		return gone(r);
	if (status >> 16 == PTRACE_EVENT_STOP)
		*kind = WSTOPSIG(status) == SIGTRAP ? STOP_TRAP : STOP_GROUP;
	else
		*kind = WSTOPSIG(status) == (SIGTRAP | 0x80) ? STOP_SYSCALL : STOP_SIGNAL;
	r->stopped = true;
	r->trapped = *kind == STOP_TRAP || *kind == STOP_GROUP;
	r->signal = *kind == STOP_SIGNAL ? WSTOPSIG(status) : 0;
	return 0;
}

static int resume(struct remote *r, int how)
{
	int signal = r->signal;

	r->stopped = r->trapped = false;
	r->signal = 0;
	return ptrace(how, r->tid, NULL, (void *)(intptr_t)signal) ? gone(r) : 0;
}

/* Whether it waits for a processor: it will stop as soon as it gets one. */
static bool is_runnable(const struct remote *r)
{
	struct proc_stat stat;

	return !proc__stat(r->pid, r->tid, &stat) && stat.state == 'R';
}

/* Asks it to stop, and waits until it has. As wait_stop. */
static int trap(struct remote *r, enum stop_kind *kind)
{
	uint64_t begin = clock__now_ns();
	int err = 0;

	while (!err && !r->trapped) {
		/* Again each time: any other stop takes the request back. */
		if (ptrace(PTRACE_INTERRUPT, r->tid, NULL, NULL))
			return gone(r);
		if (r->stopped)
			err = resume(r, PTRACE_CONT);
		while (!err) {
			err = wait_stop(r, clock__now_ns() + STOP_NS, kind);
			if (err != -ETIMEDOUT || !is_runnable(r) ||
			    clock__now_ns() - begin > REMOTE_STEP_NS)
				break;
			err = 0;
		}
	}
	return err;
}

static void let_go(struct remote *r)
{
	uint64_t held = clock__now_ns() - r->since;

	ptrace(PTRACE_DETACH, r->tid, NULL, (void *)(intptr_t)r->signal);
	r->held = r->away = false;
	r->holds++;
	if (held > r->longest)
		r->longest = held;
}

/* --- stopping ----------------------------------------------------------------------------- */

/*
 * A thread that was running a moment ago may just have entered a call that our stop ends with
 * EINTR. It begins it again, as if the stop had come just before.
 */
static int mend_interrupted(struct remote *r)
{
	struct user_regs_struct *regs = &r->regs;

	if (!interrupted__begins_again(r))
		return 0;
	regs->rax = regs->orig_rax;
	regs->rip -= 2;
	regs->orig_rax = ~0ull;
	return ptrace(PTRACE_SETREGS, r->tid, NULL, regs) ? gone(r) : 0;
}

static int seize(struct remote *r, pid_t tid)
{
	r->tid = tid;
	if (!ptrace(PTRACE_SEIZE, tid, NULL, (void *)PTRACE_O_TRACESYSGOOD))
		return 0;
	/* EPERM also says that it is traced, or ending. */
	return errno == EPERM ? -EPERM : -ESRCH;
}

int remote__stop(struct remote *r, pid_t tid)
{
	struct user_regs_struct home;
	enum stop_kind kind;
	int err = seize(r, tid);

	if (err)
		return err;
	r->since = clock__now_ns();
	r->held = true;
	r->away = r->stopped = r->trapped = false;
	r->signal = 0;
	FAULT_POINT("trace-seized");
	err = trap(r, &kind);
	if (err == -ETIMEDOUT) {
		r->held = false;
		return -EINPROGRESS;
	}
	if (err)
		return err;
	FAULT_POINT("trace-stopped");
	if (kind == STOP_GROUP) {
		let_go(r);
		return -EAGAIN;
	}
	if (ptrace(PTRACE_GETREGS, tid, NULL, &r->regs))
		return gone(r);
	r->timed = frame__home(&r->regs, &home);
	if (r->timed)
		interrupted__note_timed(r);
	return mend_interrupted(r);
}

void remote__release(struct remote *r)
{
	if (r->held)
		let_go(r);
}

/* --- the way home ------------------------------------------------------------------------- */

int remote__prepare(struct remote *r)
{
	struct iovec iov = { r->xstate, sizeof(r->xstate) };
	struct frame_input in = {
		.xstate = r->xstate,
		.restore_rt = r->libc->restore_rt,
		.getpid = r->libc->getpid,
	};
	int err;

	if (interrupted__is_elsewhere(r))
		return -EBUSY;
	if (r->timed && !r->call.nr)
		return -EAGAIN;
	frame__home(&r->regs, &in.regs);
	if (r->timed)
		in.regs.rax = r->call.nr;
	if (ptrace(PTRACE_GETREGSET, r->tid, (void *)NT_X86_XSTATE, &iov) ||
	    ptrace(PTRACE_GETSIGMASK, r->tid, (void *)KERNEL_SIGSET, &r->mask))
		return errno == ESRCH ? gone(r) : -EOPNOTSUPP;
	if (interrupted__blocks_signals(r))
		return -EAGAIN;
	r->xstate_len = iov.iov_len;
	in.xstate_len = iov.iov_len;
	in.mask = r->mask;
	err = frame__build(&r->frame, &in);
	if (err)
		return err;
	frame__complete_xstate(r->xstate, r->xstate_len);
	err = space__poke(r->pid, r->frame.at, r->frame.bytes, r->frame.len);
	FAULT_POINT("trace-prepared");
	return err;
}

/* Begins something: from here on it comes home by itself. */
static int begin(struct remote *r, struct user_regs_struct *regs)
{
	uint64_t mask = r->mask | ~NOT_BLOCKED;
	bool first = !r->away;

	regs->orig_rax = ~0ull;
	regs->eflags = r->regs.eflags & ~(FLAG_TRAP | FLAG_DIRECTION | FLAG_ALIGNMENT);
	r->away = true;
	if (ptrace(PTRACE_SETREGS, r->tid, NULL, regs))
		return gone(r);
	FAULT_POINT("trace-sent");
	/* The frame has the mask that it comes home with. */
	if (first && ptrace(PTRACE_SETSIGMASK, r->tid, (void *)KERNEL_SIGSET, &mask))
		return gone(r);
	return 0;
}

/* Runs it to its next entry (`op`) into, or exit from, a system call at the library's instruction. */
static int run_to_syscall(struct remote *r, uint64_t deadline, uint8_t op, int64_t *result)
{
	struct __ptrace_syscall_info info;
	enum stop_kind kind;
	int err;

	for (;;) {
		err = resume(r, PTRACE_SYSCALL);
		if (!err)
			err = wait_stop(r, deadline, &kind);
		if (err)
			return err;
		if (kind == STOP_GROUP)
			return -EAGAIN;
		if (kind != STOP_SYSCALL)
			continue;
		if (ptrace(PTRACE_GET_SYSCALL_INFO, r->tid, (void *)sizeof(info), &info) <= 0)
			return gone(r);
		if (info.op != op || info.instruction_pointer != r->libc->syscall + 2 ||
		    info.stack_pointer != r->frame.syscall_sp)
			continue;
		*result = op == PTRACE_SYSCALL_INFO_EXIT ? info.exit.rval : 0;
		return 0;
	}
}

int remote__syscall(struct remote *r, long nr, const uint64_t args[6], int64_t *result)
{
	uint64_t deadline = clock__now_ns() + REMOTE_STEP_NS;
	struct user_regs_struct regs = r->regs;
	int err;

	regs.rip = r->libc->syscall;
	regs.rsp = r->frame.syscall_sp;
	regs.rax = (uint64_t)nr;
	regs.rdi = args[0];
	regs.rsi = args[1];
	regs.rdx = args[2];
	regs.r10 = args[3];
	regs.r8 = args[4];
	regs.r9 = args[5];
	err = begin(r, &regs);
	if (!err)
		err = run_to_syscall(r, deadline, PTRACE_SYSCALL_INFO_ENTRY, result);
	FAULT_POINT("trace-entered");
	if (!err)
		err = run_to_syscall(r, deadline, PTRACE_SYSCALL_INFO_EXIT, result);
	FAULT_POINT("trace-returned");
	return err;
}

/*
 * It is stopped at each system call of the function: where that is one that starts a thread they are
 * half a dozen.
 */
int remote__call(struct remote *r, uint64_t function, uint64_t arg)
{
	uint64_t deadline = clock__now_ns() + REMOTE_STEP_NS;
	struct user_regs_struct regs = r->regs;
	int64_t unused;
	int err;

	regs.rip = function;
	regs.rsp = r->frame.call_sp;
	regs.rdi = arg;
	regs.rax = 0;
	regs.rbp = 0;
	err = begin(r, &regs);
	FAULT_POINT("trace-called");
	if (!err)
		err = run_to_syscall(r, deadline, PTRACE_SYSCALL_INFO_ENTRY, &unused);
	FAULT_POINT("trace-call-returned");
	return err;
}

/* Everything back, the registers last: before that it would find its way by its frame. */
static void put_back(struct remote *r)
{
	struct iovec iov = { r->xstate, r->xstate_len };

	if (ptrace(PTRACE_SETREGSET, r->tid, (void *)NT_X86_XSTATE, &iov) ||
	    ptrace(PTRACE_SETSIGMASK, r->tid, (void *)KERNEL_SIGSET, &r->mask))
		return;
	FAULT_POINT("trace-half-home");
	ptrace(PTRACE_SETREGS, r->tid, NULL, &r->regs);
	FAULT_POINT("trace-home");
}

void remote__home(struct remote *r)
{
	enum stop_kind kind;

	if (!r->held)
		return;
	if (r->away) {
		/* Killed, or asleep where it can't be stopped: the end of this thread lets go of it. */
		if (trap(r, &kind)) {
			r->held = false;
			return;
		}
		put_back(r);
	}
	let_go(r);
}

void remote__leave(struct remote *r)
{
	enum stop_kind kind;

	if (!r->held)
		return;
	if (trap(r, &kind)) {
		r->held = false;
		return;
	}
	FAULT_POINT("trace-left");
	let_go(r);
}
