// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "loader/tracer/frame.h"

#include <cpuid.h>
#include <errno.h>
#include <stdbool.h>
#include <string.h>

#define RED_ZONE 128
#define LEGACY_BYTES 512	/* FXSAVE */
#define HEADER_BYTES 64
#define SOFTWARE_BYTES 464	/* where FXSAVE leaves room for the kernel's words */
#define MAGIC1 0x46505853u
#define MAGIC2 0x46505845u
#define FEATURE_PKRU (1ull << 9)

#define UC_FP_XSTATE 1u
#define UC_SIGCONTEXT_SS 2u
#define UC_STRICT_RESTORE_SS 4u
/* No mode that sigaltstack(2) knows: the kernel leaves the thread's alternate stack as it is. */
#define SS_LEAVE_ALONE 4

/* The kernel's errors for "begin this system call again" (include/linux/errno.h). */
#define ERESTARTSYS 512
#define ERESTARTNOINTR 513
#define ERESTARTNOHAND 514
#define ERESTART_RESTARTBLOCK 516

struct sigcontext_words {
	uint64_t r8, r9, r10, r11, r12, r13, r14, r15;
	uint64_t di, si, bp, bx, dx, ax, cx, sp, ip, flags;
	uint16_t cs, gs, fs, ss;
	uint64_t err, trapno, oldmask, cr2;
	uint64_t fpstate;
	uint64_t reserved[8];
};

struct ucontext_words {
	uint64_t flags;
	uint64_t link;
	uint64_t stack_sp;
	uint32_t stack_flags, stack_pad;
	uint64_t stack_size;
	struct sigcontext_words mcontext;
	uint64_t sigmask;
};

_Static_assert(sizeof(struct sigcontext_words) == 256, "as the kernel's");
_Static_assert(sizeof(struct ucontext_words) == 304, "as the kernel's");

struct software_words {
	uint32_t magic1;
	uint32_t extended_size;
	uint64_t xfeatures;
	uint32_t xstate_size;
	uint32_t padding[7];
};

_Static_assert(SOFTWARE_BYTES + sizeof(struct software_words) == LEGACY_BYTES, "as the kernel's");

bool frame__home(const struct user_regs_struct *stopped, struct user_regs_struct *home)
{
	int64_t result = (int64_t)stopped->rax;

	*home = *stopped;
	home->orig_rax = ~0ull;
	/* In no system call; or it was over, and rax is its result. */
	if ((int64_t)stopped->orig_rax < 0 ||
	    (result != -ERESTARTSYS && result != -ERESTARTNOINTR && result != -ERESTARTNOHAND &&
	     result != -ERESTART_RESTARTBLOCK))
		return false;
	home->rax = stopped->orig_rax;
	home->rip -= 2;
	return result == -ERESTART_RESTARTBLOCK;
}

/* The state components that the kernel has switched on. 0: no XSAVE. */
static uint64_t enabled_features(void)
{
	uint32_t eax, ebx, ecx, edx;

	if (!__get_cpuid(1, &eax, &ebx, &ecx, &edx) || !(ecx & bit_OSXSAVE))
		return 0;
	__asm__ volatile("xgetbv" : "=a"(eax), "=d"(edx) : "c"(0));
	return (uint64_t)edx << 32 | eax;
}

/*
 * Which components a thread's frame holds, by XSTATE_BV of its state, and how long that is. Dynamic
 * ones (AMX) only where they are in use: the kernel takes no frame longer than the thread's state.
 */
static uint64_t frame_features(uint64_t in_use, size_t *size)
{
	uint64_t enabled = enabled_features(), features = enabled & 3;
	uint32_t bytes, offset, flags, edx;

	*size = LEGACY_BYTES + HEADER_BYTES;
	for (unsigned int i = 2; i < 63; i++) {
		if (!(enabled >> i & 1) ||
		    !__get_cpuid_count(0xd, i, &bytes, &offset, &flags, &edx) || !bytes)
			continue;
		if (flags & 4 && !(in_use >> i & 1))	/* dynamic: has XFD */
			continue;
		features |= 1ull << i;
		if (offset + bytes > *size)
			*size = offset + bytes;
	}
	return features;
}

void frame__complete_xstate(void *xstate, size_t len)
{
	uint64_t present;

	if (len < LEGACY_BYTES + HEADER_BYTES || !(enabled_features() & FEATURE_PKRU))
		return;
	memcpy(&present, (char *)xstate + LEGACY_BYTES, sizeof(present));
	present |= FEATURE_PKRU;
	memcpy((char *)xstate + LEGACY_BYTES, &present, sizeof(present));
}

/* Bytes of the XSAVE area in the frame, without the final word; 0: it can't be built. */
static size_t xstate_size(const struct frame_input *in, uint64_t *features)
{
	uint64_t present, compaction;
	size_t size;

	if (in->xstate_len < LEGACY_BYTES + HEADER_BYTES)
		return 0;
	memcpy(&present, (const char *)in->xstate + LEGACY_BYTES, sizeof(present));
	memcpy(&compaction, (const char *)in->xstate + LEGACY_BYTES + 8, sizeof(compaction));
	*features = frame_features(present, &size);
	if (!*features || compaction || size > in->xstate_len || size > FRAME_MAX_XSTATE)
		return 0;
	return size;
}

static void build_xstate(uint8_t *to, const void *xstate, size_t size, uint64_t features)
{
	const uint32_t magic2 = MAGIC2;
	const struct software_words words = {
		.magic1 = MAGIC1,
		.extended_size = (uint32_t)(size + sizeof(magic2)),
		.xfeatures = features,
		.xstate_size = (uint32_t)size,
	};
	uint64_t present;

	memcpy(to, xstate, size);
	frame__complete_xstate(to, size);
	memcpy(&present, to + LEGACY_BYTES, sizeof(present));
	present &= features;
	memcpy(to + LEGACY_BYTES, &present, sizeof(present));
	memcpy(to + SOFTWARE_BYTES, &words, sizeof(words));
	memcpy(to + size, &magic2, sizeof(magic2));
}

static void build_home(struct ucontext_words *uc, const struct frame_input *in, uint64_t fpstate)
{
	const struct user_regs_struct *r = &in->regs;

	*uc = (struct ucontext_words){
		.flags = UC_FP_XSTATE | UC_SIGCONTEXT_SS | UC_STRICT_RESTORE_SS,
		.stack_flags = SS_LEAVE_ALONE,
		.mcontext = {
			.r8 = r->r8, .r9 = r->r9, .r10 = r->r10, .r11 = r->r11,
			.r12 = r->r12, .r13 = r->r13, .r14 = r->r14, .r15 = r->r15,
			.di = r->rdi, .si = r->rsi, .bp = r->rbp, .bx = r->rbx,
			.dx = r->rdx, .ax = r->rax, .cx = r->rcx, .sp = r->rsp,
			.ip = r->rip, .flags = r->eflags,
			.cs = (uint16_t)r->cs, .ss = (uint16_t)r->ss,
			.fpstate = fpstate,
		},
		.sigmask = in->mask,
	};
}

int frame__build(struct frame *f, const struct frame_input *in)
{
	struct ucontext_words home;
	uint64_t features, fpstate, top = in->regs.rsp - RED_ZONE;
	size_t size = xstate_size(in, &features);

	if (!size)
		return -EOPNOTSUPP;
	fpstate = (top - size - sizeof(uint32_t)) & ~63ull;
	f->room = (fpstate - FRAME_ROOM) & ~63ull;
	/* A function is entered with the return address at 8 below a multiple of 16. */
	f->call_sp = ((f->room - sizeof(home) - 8 - 8) & ~15ull) - 8;
	f->syscall_sp = f->call_sp + 8;
	f->ucontext = f->syscall_sp + 8;
	f->at = f->call_sp;
	f->len = (size_t)(fpstate + size + sizeof(uint32_t) - f->at);
	memset(f->bytes, 0, f->len);
	build_home(&home, in, fpstate);
	memcpy(f->bytes, &in->getpid, sizeof(in->getpid));
	memcpy(f->bytes + (f->syscall_sp - f->at), &in->restore_rt, sizeof(in->restore_rt));
	memcpy(f->bytes + (f->ucontext - f->at), &home, sizeof(home));
	build_xstate(f->bytes + (fpstate - f->at), in->xstate, size, features);
	return 0;
}
