// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Our rules against libdw's, over real files: both are applied to the same made-up registers and
 * memory, and must give the same caller. libdw says where a register is by DWARF operations,
 * which are evaluated here, so nothing but the file itself is common to both sides.
 *
 * GPUCOLLECT_TEST_FULL=1 tries every row of every function of larger files as well.
 */
#include <dwarf.h>
#include <elfutils/libdw.h>
#include <errno.h>
#include <fcntl.h>
#include <gelf.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include <linux/types.h>

static int made_up(const void *ctx, void *dst, __u64 size, __u64 addr);
#define UNWIND_READ(ctx, dst, size, addr) made_up(ctx, dst, size, addr)
#include "bpf/unwind_step.h"

#include "tests/unit/unit.h"
#include "unwind/file.h"
#include "unwind/rows.h"

/* Every aligned or unaligned 8 bytes of the address space hold something that looks like one. */
static uint64_t word_at(uint64_t addr)
{
	return 0x7f8000000000 + (addr * 0x9e3779b97f4a7c15ull >> 30) * 8;
}

static int made_up(const void *ctx, void *dst, __u64 size, __u64 addr)
{
	(void)ctx;
	for (__u64 i = 0; i < size; i += 8) {
		uint64_t w = word_at(addr + i);

		memcpy((char *)dst + i, &w, 8);
	}
	return 0;
}

static struct unwind_regs made_up_regs(uint64_t pc)
{
	struct unwind_regs regs = { .pc = pc, .full = 1 };

	for (unsigned int i = 0; i < UNWIND_NR_REGS; i++)
		regs.r[i] = 0x7f1000000000 + 0x1000000 * i + (pc * 40 & 0xffff8);
	regs.r[UNWIND_RSP] = 0x7f0000000000;
	return regs;
}

/* --- the reference: libdw's rules, evaluated ----------------------------------------------- */

enum found { SAME, LOST, VALUE };

struct machine {
	uint64_t stack[16];
	unsigned int nr;
	const struct unwind_regs *regs;
	uint64_t cfa;
	bool is_value;	/* the result is the value itself, not where it is */
};

static uint64_t machine__reg(const struct machine *m, uint64_t reg)
{
	ck_assert_uint_le(reg, 16);
	return reg == 16 ? m->regs->pc : m->regs->r[reg];
}

static void machine__push(struct machine *m, uint64_t v)
{
	ck_assert_uint_lt(m->nr, 16);
	m->stack[m->nr++] = v;
}

static uint64_t machine__pop(struct machine *m)
{
	ck_assert_uint_gt(m->nr, 0);
	return m->stack[--m->nr];
}

static void machine__binary(struct machine *m, uint8_t atom)
{
	uint64_t b = machine__pop(m), a = machine__pop(m);

	switch (atom) {
	case DW_OP_plus: machine__push(m, a + b); break;
	case DW_OP_minus: machine__push(m, a - b); break;
	case DW_OP_mul: machine__push(m, a * b); break;
	case DW_OP_and: machine__push(m, a & b); break;
	case DW_OP_or: machine__push(m, a | b); break;
	case DW_OP_shl: machine__push(m, a << b); break;
	case DW_OP_shr: machine__push(m, a >> b); break;
	case DW_OP_ge: machine__push(m, (int64_t)a >= (int64_t)b); break;
	case DW_OP_gt: machine__push(m, (int64_t)a > (int64_t)b); break;
	case DW_OP_le: machine__push(m, (int64_t)a <= (int64_t)b); break;
	case DW_OP_lt: machine__push(m, (int64_t)a < (int64_t)b); break;
	case DW_OP_eq: machine__push(m, a == b); break;
	case DW_OP_ne: machine__push(m, a != b); break;
	default: ck_abort_msg("operation 0x%x", atom);
	}
}

static void machine__op(struct machine *m, const Dwarf_Op *op)
{
	uint8_t atom = op->atom;

	if (atom >= DW_OP_lit0 && atom <= DW_OP_lit31)
		machine__push(m, atom - DW_OP_lit0);
	else if (atom >= DW_OP_breg0 && atom <= DW_OP_breg31)
		machine__push(m, machine__reg(m, atom - DW_OP_breg0) + op->number);
	else if (atom >= DW_OP_reg0 && atom <= DW_OP_reg31)
		machine__push(m, machine__reg(m, atom - DW_OP_reg0)), m->is_value = true;
	else if (atom == DW_OP_regx)
		machine__push(m, machine__reg(m, op->number)), m->is_value = true;
	else if (atom == DW_OP_bregx)
		machine__push(m, machine__reg(m, op->number) + op->number2);
	else if (atom == DW_OP_call_frame_cfa)
		machine__push(m, m->cfa);
	else if (atom == DW_OP_plus_uconst)
		m->stack[m->nr - 1] += op->number;
	else if (atom == DW_OP_deref)
		machine__push(m, word_at(machine__pop(m)));
	else if (atom == DW_OP_stack_value)
		m->is_value = true;
	else if (atom >= DW_OP_const1u && atom <= DW_OP_consts)
		machine__push(m, op->number);
	else if (atom != DW_OP_nop)
		machine__binary(m, atom);
}

static uint64_t evaluate(struct machine *m, const Dwarf_Op *ops, size_t nops)
{
	m->nr = 0;
	m->is_value = false;
	for (size_t i = 0; i < nops; i++)
		machine__op(m, &ops[i]);
	return machine__pop(m);
}

static enum found dw_register(Dwarf_Frame *frame, struct machine *m, int reg, uint64_t *v)
{
	Dwarf_Op mem[3], *ops;
	size_t nops;
	uint64_t at;

	ck_assert_int_eq(dwarf_frame_register(frame, reg, mem, &ops, &nops), 0);
	if (!nops)
		return ops ? LOST : SAME;
	at = evaluate(m, ops, nops);
	*v = m->is_value ? at : word_at(at);
	return VALUE;
}

/* --- comparison --------------------------------------------------------------------------- */

struct subject {
	const char *path;
	struct unwind_file *file;
	struct unwind_store *store;
	Dwarf_CFI *cfi;
	Elf *elf;
	uint64_t segment[8][3];		/* vaddr, offset, size */
	unsigned int nr_segments;
	uint64_t entry;
	uint64_t covered, uncovered, unknown, differ;
};

static uint64_t subject__offset(const struct subject *s, uint64_t pc)
{
	for (unsigned int i = 0; i < s->nr_segments; i++)
		if (pc - s->segment[i][0] < s->segment[i][2])
			return pc - s->segment[i][0] + s->segment[i][1];
	return UINT64_MAX;
}

static void report(struct subject *s, uint64_t pc, const char *what, const struct unwind_rule *r)
{
	if (s->differ++ < 10)
		fprintf(stderr, "%s: pc 0x%" PRIx64 ": %s; rule cfa %u r%u%+d%+d ra %u %+d "
			"rbp %u %+d rbx %u %+d\n", s->path, pc, what, r->cfa, r->cfa_reg, r->cfa_off,
			r->cfa_add, r->ra, r->ra_off, r->rbp, r->rbp_off, r->rbx, r->rbx_off);
}

static void compare_rbx(struct subject *s, uint64_t pc, const struct unwind_rule *rule,
			const struct unwind_regs *after, enum found how, uint64_t value)
{
	uint64_t got = after->r[UNWIND_RBX];

	if (rule->cfa != UNWIND_CFA_SIGNAL && after->rbx_at == UNWIND_RBX_LOST) {
		if (how == SAME || rule->rbx != UNWIND_SAVE_UNDEF)
			report(s, pc, "rbx lost", rule);
		return;
	}
	if (rule->cfa != UNWIND_CFA_SIGNAL && after->rbx_at != UNWIND_RBX_LIVE)
		got = word_at(after->rbx_at);
	/* libdw 0.188 takes rax, not rbx, for preserved by default: "lost" says nothing there. */
	if (how != LOST && got != value)
		report(s, pc, "rbx", rule);
}

static void compare_frame(struct subject *s, uint64_t pc, const struct unwind_rule *rule,
			  Dwarf_Frame *frame)
{
	struct unwind_regs regs = made_up_regs(pc), before = regs;
	struct machine m = { .regs = &before };
	uint64_t ra = 0, rbp = before.r[UNWIND_RBP], rbx = before.r[UNWIND_RBX], rsp;
	enum found ra_how, rbp_how, rbx_how;
	Dwarf_Op *ops;
	size_t nops;
	int result = unwind__step(rule, &regs, NULL);

	ck_assert_int_eq(dwarf_frame_cfa(frame, &ops, &nops), 0);
	if (nops)
		m.cfa = evaluate(&m, ops, nops);
	ra_how = dw_register(frame, &m, 16, &ra);
	if (ra_how != VALUE) {
		if (result != UNWIND_END)
			report(s, pc, "libdw: outermost", rule);
		return;
	}
	if (result != UNWIND_OK) {
		report(s, pc, "no step", rule);
		return;
	}
	rsp = m.cfa;
	dw_register(frame, &m, UNWIND_RSP, &rsp);
	rbp_how = dw_register(frame, &m, UNWIND_RBP, &rbp);
	rbx_how = dw_register(frame, &m, UNWIND_RBX, &rbx);
	if (regs.pc != ra)
		report(s, pc, "return address", rule);
	if (regs.r[UNWIND_RSP] != rsp)
		report(s, pc, "CFA or rsp", rule);
	if (rbp_how == LOST ? !regs.lost_rbp : regs.lost_rbp || regs.r[UNWIND_RBP] != rbp)
		report(s, pc, "rbp", rule);
	compare_rbx(s, pc, rule, &regs, rbx_how, rbx);
}

static struct unwind_rule our_rule(struct subject *s, uint64_t pc)
{
	struct unwind_rule rule;

	ck_assert_int_eq(unwind_store__rule(s->store, 1, s->file, subject__offset(s, pc), &rule), 0);
	return rule;
}

/*
 * Where libdw has no row we must have none, except in the padding behind a function, which shares
 * the function's last rule, and at the entry, which has no caller.
 */
static void compare_uncovered(struct subject *s, uint64_t pc, const struct unwind_rule *rule)
{
	Dwarf_Frame *frame;

	s->uncovered++;
	if (rule->cfa == UNWIND_CFA_NONE ||
	    (rule->cfa == UNWIND_CFA_STOP && pc >= s->entry && pc - s->entry < 64))
		return;
	for (uint64_t back = pc - 1; pc - back <= 15; back--) {
		struct unwind_rule last;

		if (dwarf_cfi_addrframe(s->cfi, back, &frame))
			continue;
		free(frame);
		last = our_rule(s, back);
		if (memcmp(rule, &last, sizeof(last)))
			break;
		return;
	}
	report(s, pc, "libdw has no row", rule);
}

/* Returns the end of the range of addresses for which libdw has the same row. */
static uint64_t compare_pc(struct subject *s, uint64_t pc)
{
	struct unwind_rule rule = our_rule(s, pc);
	uint64_t end = pc + 1;
	Dwarf_Frame *frame;
	Dwarf_Addr from, to;
	bool signal;

	if (dwarf_cfi_addrframe(s->cfi, pc, &frame)) {
		compare_uncovered(s, pc, &rule);
		return end;
	}
	s->covered++;
	if (dwarf_frame_info(frame, &from, &to, &signal) >= 0 && to > pc)
		end = to;
	if (rule.cfa == UNWIND_CFA_UNKNOWN)
		s->unknown++;
	else
		compare_frame(s, pc, &rule, frame);
	free(frame);
	return end;
}

static void subject__open(struct subject *s, const char *path)
{
	static struct unwind_rule rules[60000];
	static struct unwind_row rows[1 << 22];
	const struct unwind_store_config config = {
		.rules = rules, .rows = rows, .max_rules = 60000, .max_rows = 1 << 22,
		.max_pages = 1 << 20,
	};
	GElf_Ehdr eh;
	size_t nr;
	int fd = open(path, O_RDONLY | O_CLOEXEC);

	memset(s, 0, sizeof(*s));
	s->path = path;
	ck_assert_int_ge(fd, 0);
	elf_version(EV_CURRENT);
	s->elf = elf_begin(fd, ELF_C_READ_MMAP, NULL);
	s->cfi = dwarf_getcfi_elf(s->elf);
	ck_assert_ptr_nonnull(s->cfi);
	s->entry = gelf_getehdr(s->elf, &eh)->e_entry;
	ck_assert_int_eq(unwind_file__open(&s->file, fd), 0);
	ck_assert_int_eq(unwind_store__new(&s->store, &config), 0);
	ck_assert_int_eq(elf_getphdrnum(s->elf, &nr), 0);
	for (size_t i = 0; i < nr; i++) {
		GElf_Phdr ph;

		gelf_getphdr(s->elf, (int)i, &ph);
		if (ph.p_type != PT_LOAD || !(ph.p_flags & PF_X) || s->nr_segments == 8)
			continue;
		s->segment[s->nr_segments][0] = ph.p_vaddr;
		s->segment[s->nr_segments][1] = ph.p_offset;
		s->segment[s->nr_segments++][2] = ph.p_filesz;
	}
}

static void subject__close(struct subject *s)
{
	struct unwind_store_stats stats;

	unwind_store__stats(s->store, &stats);
	printf("%s: %" PRIu64 " compared, %" PRIu64 " without row, %" PRIu64 " unknown, %" PRIu64
	       " differ; %u rules, %u rows\n", s->path, s->covered, s->uncovered, s->unknown,
	       s->differ, stats.rules_now, stats.rows_now);
	unwind_store__free(s->store);
	unwind_file__free(s->file);
	dwarf_cfi_end(s->cfi);
	elf_end(s->elf);
}

/* `runs` runs of consecutive rows, spread evenly over the code; 0: all rows. */
static void compare_file(const char *path, unsigned int runs)
{
	struct subject s;
	uint64_t total = 0;

	if (access(path, R_OK)) {
		printf("%s: not here\n", path);
		return;
	}
	subject__open(&s, path);
	for (unsigned int i = 0; i < s.nr_segments; i++)
		total += s.segment[i][2];
	for (unsigned int i = 0; i < s.nr_segments; i++) {
		uint64_t start = s.segment[i][0], end = start + s.segment[i][2];
		uint64_t stride = runs ? total / runs + 1 : 0;

		for (uint64_t at = start; at < end; at += stride) {
			uint64_t pc = at, next;

			for (unsigned int k = 0; (!runs || k < 16) && pc < end; k++, pc = next) {
				next = compare_pc(&s, pc);
				if (next > pc + 1 && next < end)
					compare_pc(&s, next - 1);
			}
			if (!runs)
				break;
		}
	}
	ck_assert_uint_eq(s.differ, 0);
	subject__close(&s);
	ck_assert_uint_gt(s.covered, runs ? 4 * runs : 1000);
	ck_assert_uint_eq(s.unknown, 0);
}

static unsigned int effort(unsigned int runs)
{
#ifdef __SANITIZE_ADDRESS__
	runs /= 4;		/* so much slower that the test's time would not do */
#endif
	return getenv("GPUCOLLECT_TEST_FULL") ? 0 : runs;
}

START_TEST(libc_agrees)
{
	compare_file("/lib/x86_64-linux-gnu/libc.so.6", effort(2000));
}
END_TEST

START_TEST(dynamic_loader_agrees)
{
	compare_file("/lib64/ld-linux-x86-64.so.2", effort(1000));
}
END_TEST

START_TEST(interpreters_agree)
{
	compare_file("/usr/bin/python3.11", effort(1500));
	compare_file("/usr/lib/x86_64-linux-gnu/libpython3.11.so.1.0", effort(1500));
	compare_file("/usr/bin/perl", effort(1000));
}
END_TEST

START_TEST(large_libraries_agree)
{
	compare_file("/usr/lib/x86_64-linux-gnu/libLLVM-14.so.1", effort(2500));
	compare_file("/usr/lib/x86_64-linux-gnu/libclang-cpp.so.14", effort(2500));
	compare_file("/usr/lib/x86_64-linux-gnu/libstdc++.so.6", effort(1000));
	compare_file("/usr/lib/x86_64-linux-gnu/libgcc_s.so.1", effort(500));
}
END_TEST

START_TEST(this_program_agrees)
{
	char path[512];
	ssize_t n = readlink("/proc/self/exe", path, sizeof(path) - 1);

	ck_assert_int_gt(n, 0);
	path[n] = '\0';
	compare_file(path, effort(1500));
}
END_TEST

UNIT_MAIN("cfi_libdw", libc_agrees, dynamic_loader_agrees, interpreters_agree,
	  large_libraries_agree, this_program_agrees)
