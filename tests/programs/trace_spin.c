// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * A thread whose registers, vector registers, floating point state and red zone hold patterns, and
 * which spins so until SIGUSR1 sets an end to it:
 *
 *	trace_spin	prints "ready PID"; at the end "same" or what is not, then "calls N"
 *
 * errno and the mask of blocked signals are looked at, too.
 */
#include <errno.h>
#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

int trace_lib_calls;

#define NR_GPR 15
#define NR_RED 16
#define RED_PATTERN 0xabcd000000000000ull

/* What is found; the assembly below knows the offsets. */
struct spun {
	uint64_t gpr[NR_GPR];
	uint64_t red[NR_RED];
	uint8_t vector[16][32];
	uint8_t x87[108];
	uint32_t mxcsr;
};
_Static_assert(offsetof(struct spun, vector) == 248 && offsetof(struct spun, x87) == 760 &&
	       offsetof(struct spun, mxcsr) == 868, "the assembly's");

extern struct spun spin_found;
extern uint8_t spin_vectors[16][32];
extern uint32_t spin_mxcsr;
extern volatile int spin_leave;
struct spun spin_found;
uint8_t spin_vectors[16][32];
uint32_t spin_mxcsr = 0x7f80;	/* rounds towards zero */
volatile int spin_leave;

void spin(void);

#define PUSH(reg) "push %" #reg "\n.cfi_adjust_cfa_offset 8\n.cfi_rel_offset %" #reg ", 0\n"
#define POP(reg) "pop %" #reg "\n.cfi_adjust_cfa_offset -8\n.cfi_restore %" #reg "\n"
#define FILL(reg, digit) "movabs $0x" #digit #digit #digit #digit #digit #digit #digit #digit \
	#digit #digit #digit #digit #digit #digit #digit #digit ", %" #reg "\n"
#define KEEP(reg, nr) "mov %" #reg ", spin_found+8*" #nr "(%rip)\n"

__asm__(
	".text\n"
	".globl spin\n"
	".type spin, @function\n"
	"spin:\n"
	".cfi_startproc\n"
	PUSH(rbx) PUSH(rbp) PUSH(r12) PUSH(r13) PUSH(r14) PUSH(r15)
	"lea spin_vectors(%rip), %rax\n"
	".irp n,0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15\n"
	"vmovdqu \\n*32(%rax), %ymm\\n\n"
	".endr\n"
	"fninit\n"
	"fld1\n fldpi\n fldl2e\n fldlg2\n fldln2\n fldz\n fld1\n fldl2t\n"
	"ldmxcsr spin_mxcsr(%rip)\n"
	".irp n,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16\n"
	"movabs $0xabcd000000000000 + \\n, %rax\n"
	"mov %rax, -8*\\n(%rsp)\n"
	".endr\n"
	FILL(rax, 1) FILL(rbx, 2) FILL(rcx, 3) FILL(rdx, 4) FILL(rsi, 5) FILL(rdi, 6)
	FILL(rbp, 7) FILL(r8, 8) FILL(r9, 9) FILL(r10, a) FILL(r11, b) FILL(r12, c)
	FILL(r13, d) FILL(r14, e) FILL(r15, f)
	"1: cmpl $0, spin_leave(%rip)\n"
	"je 1b\n"
	KEEP(rax, 0) KEEP(rbx, 1) KEEP(rcx, 2) KEEP(rdx, 3) KEEP(rsi, 4) KEEP(rdi, 5)
	KEEP(rbp, 6) KEEP(r8, 7) KEEP(r9, 8) KEEP(r10, 9) KEEP(r11, 10) KEEP(r12, 11)
	KEEP(r13, 12) KEEP(r14, 13) KEEP(r15, 14)
	".irp n,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16\n"
	"mov -8*\\n(%rsp), %rax\n"
	"mov %rax, spin_found + 120 + 8 * (\\n - 1)(%rip)\n"
	".endr\n"
	".irp n,0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15\n"
	"vmovdqu %ymm\\n, spin_found + 248 + \\n*32(%rip)\n"
	".endr\n"
	"fnsave spin_found + 760(%rip)\n"
	"stmxcsr spin_found + 868(%rip)\n"
	"ldmxcsr spin_plain(%rip)\n"
	"vzeroupper\n"
	POP(r15) POP(r14) POP(r13) POP(r12) POP(rbp) POP(rbx)
	"ret\n"
	".cfi_endproc\n"
	".size spin, . - spin\n"
	".section .rodata\n"
	"spin_plain: .long 0x1f80\n"
	".text\n");

static void on_leave(int signal)
{
	(void)signal;
	spin_leave = 1;
}

static int differ(const char *what, int nr)
{
	printf("%s %d differs\n", what, nr);
	return 1;
}

/* The x87 registers as they are without anybody's doing. */
static void x87_alone(uint8_t *to)
{
	__asm__ volatile("fninit; fld1; fldpi; fldl2e; fldlg2; fldln2; fldz; fld1; fldl2t; fnsave (%0)"
			 : : "r"(to) : "memory");
}

static int compare(void)
{
	uint8_t x87[108];
	int wrong = 0, i;

	for (i = 0; i < NR_GPR; i++)
		if (spin_found.gpr[i] != 0x1111111111111111ull * (uint64_t)(i + 1))
			wrong += differ("register", i);
	for (i = 0; i < NR_RED; i++)
		if (spin_found.red[i] != RED_PATTERN + (uint64_t)i + 1)
			wrong += differ("red zone", i);
	for (i = 0; i < 16; i++)
		if (memcmp(spin_found.vector[i], spin_vectors[i], 32))
			wrong += differ("vector", i);
	x87_alone(x87);
	/* Control, status, tags; then the registers: what lies between is where they came from. */
	if (memcmp(x87, spin_found.x87, 12) || memcmp(x87 + 28, spin_found.x87 + 28, 80))
		wrong += differ("x87", 0);
	if (spin_found.mxcsr != spin_mxcsr)
		wrong += differ("mxcsr", (int)spin_found.mxcsr);
	return wrong;
}

static uint64_t mask_now(void)
{
	uint64_t mask = 0;

	syscall(SYS_rt_sigprocmask, SIG_BLOCK, NULL, &mask, 8);
	return mask;
}

int main(void)
{
	uint64_t before, after;
	sigset_t set;
	int err, wrong;

	signal(SIGUSR1, on_leave);
	sigemptyset(&set);
	sigaddset(&set, SIGWINCH);
	sigaddset(&set, SIGRTMIN + 3);
	sigprocmask(SIG_BLOCK, &set, NULL);
	for (int i = 0; i < 16; i++)
		memset(spin_vectors[i], 0x40 + i, 32);
	before = mask_now();
	printf("ready %d\n", (int)getpid());
	fflush(stdout);
	errno = 12345;
	spin();
	err = errno;
	after = mask_now();
	wrong = compare();
	if (err != 12345)
		wrong += differ("errno", err);
	if (before != after)
		wrong += differ("mask", 0);
	if (!wrong)
		puts("same");
	printf("calls %d\n", trace_lib_calls);
	return wrong != 0;
}
