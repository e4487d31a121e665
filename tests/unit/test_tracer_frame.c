// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The frame is believed by one thing only, the kernel's sigreturn: so that is what it is given. A
 * thread leaves for a place where all it has is a pattern, and says there what it finds.
 */
#include <cpuid.h>
#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>

#include "loader/tracer/frame.h"
#include "tests/unit/unit.h"

#define STACK_SIZE (256u << 10)
#define XSTATE_SIZE 16384u

/* rax, rbx, rcx, rdx, rsi, rdi, rbp, rsp, r8 to r15, flags. */
struct found {
	uint64_t gpr[16];
	uint64_t flags;
};

/* Of these the assembly below knows the names. */
extern struct found frame_found;
extern uint8_t frame_found_xstate[XSTATE_SIZE];
extern uint64_t frame_kept_sp;
struct found frame_found;
uint8_t frame_found_xstate[XSTATE_SIZE] __attribute__((aligned(64)));
uint64_t frame_kept_sp;

static uint8_t xstate[XSTATE_SIZE] __attribute__((aligned(64)));

/* Leaves by rt_sigreturn with rsp = ucontext; comes back from `frame_arrived`. */
void frame_leave(uint64_t ucontext);
void frame_arrived(void);
__asm__(
	"	.text\n"
	"	.globl frame_leave, frame_arrived\n"
	"frame_leave:\n"
	"	push %rbx\n	push %rbp\n	push %r12\n	push %r13\n	push %r14\n	push %r15\n"
	"	mov %rsp, frame_kept_sp(%rip)\n"
	"	mov %rdi, %rsp\n"
	"	mov $15, %eax\n"
	"	syscall\n"
	"	ud2\n"
	"frame_arrived:\n"
	"	mov %rax, frame_found(%rip)\n"
	"	mov %rbx, frame_found+8(%rip)\n"
	"	mov %rcx, frame_found+16(%rip)\n"
	"	mov %rdx, frame_found+24(%rip)\n"
	"	mov %rsi, frame_found+32(%rip)\n"
	"	mov %rdi, frame_found+40(%rip)\n"
	"	mov %rbp, frame_found+48(%rip)\n"
	"	mov %rsp, frame_found+56(%rip)\n"
	"	mov %r8, frame_found+64(%rip)\n"
	"	mov %r9, frame_found+72(%rip)\n"
	"	mov %r10, frame_found+80(%rip)\n"
	"	mov %r11, frame_found+88(%rip)\n"
	"	mov %r12, frame_found+96(%rip)\n"
	"	mov %r13, frame_found+104(%rip)\n"
	"	mov %r14, frame_found+112(%rip)\n"
	"	mov %r15, frame_found+120(%rip)\n"
	"	pushfq\n"
	"	pop frame_found+128(%rip)\n"
	"	mov $-1, %eax\n"
	"	mov $-1, %edx\n"
	"	xsave64 frame_found_xstate(%rip)\n"
	"	cld\n"
	"	fninit\n"
	"	mov frame_kept_sp(%rip), %rsp\n"
	"	pop %r15\n	pop %r14\n	pop %r13\n	pop %r12\n	pop %rbp\n	pop %rbx\n"
	"	ret\n");

static bool has_xsave(void)
{
	uint32_t a, b, c, d;

	return __get_cpuid(1, &a, &b, &c, &d) && (c & bit_OSXSAVE);
}

static uint64_t enabled(void)
{
	uint32_t a, d;

	__asm__ volatile("xgetbv" : "=a"(a), "=d"(d) : "c"(0));
	return (uint64_t)d << 32 | a;
}

static size_t whole_size(void)
{
	uint32_t a, b, c, d;

	return __get_cpuid_count(0xd, 0, &a, &b, &c, &d) ? b : 0;
}

/* This thread's state, then patterns in all of the x87, SSE, AVX and AVX-512 registers. */
static void fill_xstate(void)
{
	static const unsigned int vectors[] = { 2, 5, 6, 7 };
	uint64_t present = 3, all = enabled();
	const uint32_t mxcsr = 0x1f80 | 0x6000;	/* rounds towards zero */
	const uint16_t control = 0x0c7f;
	uint32_t size, offset, c, d;

	memset(xstate, 0, sizeof(xstate));
	__asm__ volatile("xsave64 %0" : "+m"(xstate) : "a"(-1), "d"(-1));
	memcpy(xstate, &control, sizeof(control));
	xstate[4] = 0xff;				/* all x87 registers are in use */
	memcpy(xstate + 24, &mxcsr, sizeof(mxcsr));
	for (int i = 0; i < 8; i++)
		memset(xstate + 32 + 16 * i, 0x10 + i, 10);
	for (int i = 0; i < 16; i++)
		memset(xstate + 160 + 16 * i, 0x20 + i, 16);
	for (size_t v = 0; v < sizeof(vectors) / sizeof(vectors[0]); v++) {
		if (!(all >> vectors[v] & 1))
			continue;
		ck_assert(__get_cpuid_count(0xd, vectors[v], &size, &offset, &c, &d));
		for (uint32_t i = 0; i < size; i++)
			xstate[offset + i] = (uint8_t)(0x31 * vectors[v] + i / 16);
		present |= 1ull << vectors[v];
	}
	present |= all & 1 << 9;	/* protection keys: as they are */
	memcpy(xstate + 512, &present, sizeof(present));
}

/* The components that a program can see, without the kernel's words in the legacy part. */
static void check_xstate(void)
{
	uint32_t size, offset, c, d;
	uint64_t all = enabled(), before, after;

	ck_assert_mem_eq(frame_found_xstate, xstate, 6);
	ck_assert_mem_eq(frame_found_xstate + 24, xstate + 24, 4);
	ck_assert_mem_eq(frame_found_xstate + 32, xstate + 32, 128 + 256);
	memcpy(&before, xstate + 512, sizeof(before));
	memcpy(&after, frame_found_xstate + 512, sizeof(after));
	ck_assert_uint_eq(before & ~(1ull << 9), after & ~(1ull << 9));
	for (unsigned int i = 2; i < 19; i++) {
		if (!(all >> i & 1) || !__get_cpuid_count(0xd, i, &size, &offset, &c, &d) ||
		    !(before >> i & 1))
			continue;
		ck_assert_mem_eq(frame_found_xstate + offset, xstate + offset, size);
	}
}

static struct frame_input make_input(uint8_t *stack)
{
	struct frame_input in = {
		.xstate = xstate, .xstate_len = whole_size(),
		.restore_rt = 0x1111, .getpid = 0x4444,
	};
	uint64_t *regs = (uint64_t *)&in.regs;

	for (size_t i = 0; i < sizeof(in.regs) / sizeof(*regs); i++)
		regs[i] = 0x0101010101010101ull * (i + 1);
	in.regs.rip = (uint64_t)(uintptr_t)frame_arrived;
	in.regs.rsp = (uint64_t)(uintptr_t)stack + STACK_SIZE - 0x1238;
	in.regs.eflags = 0x2 | 0x1 | 0x4 | 0x10 | 0x40 | 0x80 | 0x200 | 0x400 | 0x800;
	__asm__("mov %%cs, %0" : "=r"(in.regs.cs));
	__asm__("mov %%ss, %0" : "=r"(in.regs.ss));
	return in;
}

static uint8_t *make_stack(void)
{
	uint8_t *stack = mmap(NULL, STACK_SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
			      -1, 0);

	ck_assert_ptr_ne(stack, MAP_FAILED);
	memset(stack, 0xee, STACK_SIZE);
	return stack;
}

/* What lies below an address of the stack is the frame's, above it nothing is touched. */
static void check_stack(const uint8_t *stack, uint64_t sp)
{
	size_t from = (size_t)(sp - 128 - (uint64_t)(uintptr_t)stack);

	/* pushfq at the other side took the word below. */
	for (size_t i = from; i < STACK_SIZE; i++)
		if (i < from + 120 || i >= from + 128)
			ck_assert_uint_eq(stack[i], 0xee);
}

START_TEST(everything_comes_home)
{
	static struct frame f;
	static uint8_t other[1 << 16];
	uint8_t *stack = make_stack();
	stack_t alternate = { .ss_sp = other, .ss_size = sizeof(other) }, after;
	struct frame_input in;
	sigset_t mask;

	if (!has_xsave())
		return;
	fill_xstate();
	in = make_input(stack);
	in.mask = 1ull << (SIGUSR2 - 1) | 1ull << (SIGWINCH - 1);
	ck_assert_int_eq(sigaltstack(&alternate, NULL), 0);
	ck_assert_int_eq(frame__build(&f, &in), 0);
	ck_assert_uint_le(f.at + f.len, in.regs.rsp - 128);
	ck_assert_uint_ge(f.at, (uint64_t)(uintptr_t)stack);
	memcpy((void *)(uintptr_t)f.at, f.bytes, f.len);
	frame_leave(f.ucontext);

	ck_assert_uint_eq(frame_found.gpr[0], in.regs.rax);
	ck_assert_uint_eq(frame_found.gpr[1], in.regs.rbx);
	ck_assert_uint_eq(frame_found.gpr[2], in.regs.rcx);
	ck_assert_uint_eq(frame_found.gpr[3], in.regs.rdx);
	ck_assert_uint_eq(frame_found.gpr[4], in.regs.rsi);
	ck_assert_uint_eq(frame_found.gpr[5], in.regs.rdi);
	ck_assert_uint_eq(frame_found.gpr[6], in.regs.rbp);
	ck_assert_uint_eq(frame_found.gpr[7], in.regs.rsp);
	ck_assert_uint_eq(frame_found.gpr[8], in.regs.r8);
	ck_assert_uint_eq(frame_found.gpr[9], in.regs.r9);
	ck_assert_uint_eq(frame_found.gpr[10], in.regs.r10);
	ck_assert_uint_eq(frame_found.gpr[11], in.regs.r11);
	ck_assert_uint_eq(frame_found.gpr[12], in.regs.r12);
	ck_assert_uint_eq(frame_found.gpr[13], in.regs.r13);
	ck_assert_uint_eq(frame_found.gpr[14], in.regs.r14);
	ck_assert_uint_eq(frame_found.gpr[15], in.regs.r15);
	ck_assert_uint_eq(frame_found.flags, in.regs.eflags);
	check_xstate();
	check_stack(stack, in.regs.rsp);
	ck_assert_int_eq(sigprocmask(SIG_BLOCK, NULL, &mask), 0);
	for (int s = 1; s < 32; s++)
		ck_assert_int_eq(sigismember(&mask, s), s == SIGUSR2 || s == SIGWINCH);
	ck_assert_int_eq(sigaltstack(NULL, &after), 0);
	ck_assert_ptr_eq(after.ss_sp, other);
	ck_assert_uint_eq(after.ss_size, sizeof(other));
	ck_assert_int_eq(after.ss_flags, 0);
}
END_TEST

/* A thread in its initial state: nothing is marked as present. */
START_TEST(initial_state)
{
	static struct frame f;
	uint8_t *stack = make_stack();
	struct frame_input in;
	uint64_t present = 0;
	uint32_t keys, keys_now, a, b, c, d;

	if (!has_xsave())
		return;
	fill_xstate();
	in = make_input(stack);
	memcpy(xstate + 512, &present, sizeof(present));
	ck_assert_int_eq(frame__build(&f, &in), 0);
	memcpy((void *)(uintptr_t)f.at, f.bytes, f.len);
	frame_leave(f.ucontext);
	for (int i = 0; i < 256; i++)
		ck_assert_uint_eq(frame_found_xstate[160 + i], 0);
	ck_assert_uint_eq(frame_found.gpr[7], in.regs.rsp);
	/* The protection keys are no such thing: 0 would open every page. */
	if (!(enabled() >> 9 & 1) || !__get_cpuid_count(0xd, 9, &a, &b, &c, &d))
		return;
	memcpy(&keys, xstate + b, sizeof(keys));
	__asm__ volatile("rdpkru" : "=a"(keys_now), "=d"(d) : "c"(0));
	ck_assert_uint_eq(keys_now, keys);
	ck_assert_uint_ne(keys_now, 0);
}
END_TEST

START_TEST(layout)
{
	static struct frame f;
	struct frame_input in = { .restore_rt = 0x1111, .getpid = 0x4444 };
	uint64_t word;

	if (!has_xsave())
		return;
	fill_xstate();
	in.xstate = xstate;
	in.xstate_len = whole_size();
	for (uint64_t sp = 0x7fff00000000; sp < 0x7fff00000080; sp++) {
		in.regs.rsp = sp;
		ck_assert_int_eq(frame__build(&f, &in), 0);
		ck_assert_uint_le(f.len, sizeof(f.bytes));
		ck_assert_uint_le(f.at + f.len, sp - 128);
		/* As at the entry of a function (psABI 3.2.2). */
		ck_assert_uint_eq((f.call_sp + 8) % 16, 0);
		ck_assert_uint_eq(f.call_sp + 8, f.syscall_sp);
		ck_assert_uint_eq(f.syscall_sp + 8, f.ucontext);
		ck_assert_uint_ge(f.room, f.ucontext + 304);
		ck_assert_uint_eq(f.room % 64, 0);
		/* By way of getpid, which makes the kernel forget no system call's time limit. */
		memcpy(&word, f.bytes + (f.call_sp - f.at), sizeof(word));
		ck_assert_uint_eq(word, 0x4444);
		memcpy(&word, f.bytes + (f.syscall_sp - f.at), sizeof(word));
		ck_assert_uint_eq(word, 0x1111);
		/* fpstate, at 224 of the frame's ucontext: 64-aligned for XRSTOR, above the room. */
		memcpy(&word, f.bytes + (f.ucontext - f.at) + 224, sizeof(word));
		ck_assert_uint_eq(word % 64, 0);
		ck_assert_uint_ge(word, f.room + FRAME_ROOM);
	}
}
END_TEST

START_TEST(what_is_no_state)
{
	static struct frame f;
	struct frame_input in = { .xstate = xstate, .xstate_len = 575 };
	uint64_t compacted = 1ull << 63;

	if (!has_xsave())
		return;
	in.regs.rsp = 0x7fff00000000;
	fill_xstate();
	ck_assert_int_eq(frame__build(&f, &in), -EOPNOTSUPP);
	in.xstate_len = whole_size();
	memcpy(xstate + 520, &compacted, sizeof(compacted));
	ck_assert_int_eq(frame__build(&f, &in), -EOPNOTSUPP);
}
END_TEST

static bool home(int64_t orig, int64_t rax, struct user_regs_struct *to)
{
	struct user_regs_struct from = { .rip = 0x1002, .rcx = 7 };

	from.orig_rax = (uint64_t)orig;
	from.rax = (uint64_t)rax;
	return frame__home(&from, to);
}

/* arch/x86/kernel/signal.c, arch_do_signal_or_restart: with no signal to handle. */
START_TEST(system_calls_begin_again)
{
	struct user_regs_struct to;
	static const int again[] = { -512, -513, -514 };
	static const int over[] = { 0, 17, -4, -11, -515, -517, -4095 };

	for (size_t i = 0; i < 3; i++) {
		ck_assert(!home(202, again[i], &to));
		ck_assert_uint_eq(to.rax, 202);
		ck_assert_uint_eq(to.rip, 0x1000);
		ck_assert_uint_eq(to.orig_rax, ~0ull);
		ck_assert_uint_eq(to.rcx, 7);
		/* In user code the same number is just a number. */
		ck_assert(!home(-1, again[i], &to));
		ck_assert_int_eq((int)to.rax, again[i]);
		ck_assert_uint_eq(to.rip, 0x1002);
	}
	/* With a time limit: from the beginning, and the caller is told. */
	ck_assert(home(202, -516, &to));
	ck_assert_uint_eq(to.rax, 202);
	ck_assert_uint_eq(to.rip, 0x1000);
	ck_assert(!home(-1, -516, &to));
	ck_assert_uint_eq(to.rip, 0x1002);
	for (size_t i = 0; i < sizeof(over) / sizeof(over[0]); i++) {
		ck_assert(!home(0, over[i], &to));
		ck_assert_int_eq((int)to.rax, over[i]);
		ck_assert_uint_eq(to.rip, 0x1002);
	}
}
END_TEST

UNIT_MAIN("tracer_frame", everything_comes_home, initial_state, layout, what_is_no_state,
	  system_calls_begin_again)
