// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * A child is followed instruction by instruction through the places that are hard to unwind. At
 * each one its registers and stack are copied and unwound twice: by ours and by libdw's own
 * unwinder over the same copy. Both must give the same frames, and they must reach the root.
 *
 * The children are built here, several ways; what a machine has no compiler or linker for is left
 * out and said so. GPUCOLLECT_TEST_FULL=1 follows each for longer.
 */
#include <dwarf.h>
#include <elfutils/libdwfl.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>
#include <linux/types.h>

#include "tests/unit/program_maker.h"
#include "tests/unit/unit.h"
#include "unwind/file.h"
#include "unwind/rows.h"
#include "unwind/stack.h"

#define BELOW 65536		/* bytes below rsp that are copied, for alternate stacks */
#define MAX_COPY (2u << 20)
#define MAX_MAPS 256
#define MAX_FRAMES 4096

struct target {
	pid_t pid, tid;		/* tid: the one that is stopped */
	struct mapping maps[MAX_MAPS];
	size_t nr_maps;
	char paths[MAX_MAPS][256];	/* by file id - 1 */
	struct unwind_file *files[MAX_MAPS];
	unsigned int nr_files;
	struct unwind_store *store;
	Dwfl *dwfl;

	__u64 regs[17];		/* DWARF numbers; 16 is rip */
	uint64_t start;		/* of the copy */
	size_t len;
	char *copy;

	__u64 words[GPUCOLLECT_MAX_FRAMES];
	size_t nr_words;
	uint64_t pcs[MAX_FRAMES];	/* of libdw's frames, as looked up */
	size_t nr_pcs;

	__u64 tail[GPUCOLLECT_MAX_FRAMES];	/* callers of the frame at the first mark */
	size_t nr_tail;

	unsigned int steps, guessed, blind, differ, ends[NR_END];
};

/* --- the child ---------------------------------------------------------------------------- */

static void target__spawn(struct target *t, char *const argv[])
{
	int status;

	t->pid = fork();
	ck_assert_int_ge(t->pid, 0);
	if (!t->pid) {
		ptrace(PTRACE_TRACEME, 0, NULL, NULL);
		execv(argv[0], argv);
		_exit(127);
	}
	t->tid = t->pid;
	ck_assert_int_eq(waitpid(t->pid, &status, 0), t->pid);
	ck_assert(WIFSTOPPED(status));
	ptrace(PTRACE_SETOPTIONS, t->pid, NULL, PTRACE_O_EXITKILL | PTRACE_O_TRACECLONE);
}

/*
 * Lets the child run, or step, until its next stop of interest: SIGTRAP. Other signals are its own
 * and are passed on. Returns false when it has ended.
 */
static bool target__resume(struct target *t, int how)
{
	int status, sig = 0;

	for (;;) {
		ck_assert_int_eq(ptrace(how, t->tid, NULL, (void *)(long)sig), 0);
		sig = 0;
		t->tid = waitpid(-1, &status, __WALL);
		ck_assert_int_gt(t->tid, 0);
		if (!WIFSTOPPED(status)) {
			if (t->tid == t->pid)
				return false;
			how = PTRACE_CONT;	/* a thread ended: on with the others */
			t->tid = t->pid;
			continue;
		}
		if (WSTOPSIG(status) != SIGTRAP) {
			sig = WSTOPSIG(status) == SIGSTOP ? 0 : WSTOPSIG(status);
			continue;
		}
		if (status >> 16 == 0)
			return true;
		/* A new thread: both are to run; the new one reports a stop of its own. */
		how = PTRACE_CONT;
	}
}

static bool target__at_mark(struct target *t)
{
	struct user_regs_struct r;
	uint8_t byte = 0;
	struct iovec to = { &byte, 1 }, from;

	ptrace(PTRACE_GETREGS, t->tid, NULL, &r);
	from = (struct iovec){ (void *)(r.rip - 1), 1 };
	return process_vm_readv(t->pid, &to, 1, &from, 1, 0) == 1 && byte == 0xcc;
}

static unsigned int target__file(struct target *t, const struct mapping *map, const char *path)
{
	int fd;

	for (unsigned int i = 0; i < t->nr_files; i++)
		if (!strcmp(t->paths[i], path))
			return i + 1;
	ck_assert_uint_lt(t->nr_files, MAX_MAPS);
	snprintf(t->paths[t->nr_files], sizeof(t->paths[0]), "%s", path);
	if (!strcmp(path, "[vdso]")) {
		size_t size = map->end - map->start;
		char *image = malloc(size);
		struct iovec to = { image, size }, from = { (void *)map->start, size };

		ck_assert_int_eq(process_vm_readv(t->pid, &to, 1, &from, 1, 0), (ssize_t)size);
		ck_assert_int_eq(unwind_file__open_memory(&t->files[t->nr_files], image, size), 0);
		free(image);
		return ++t->nr_files;
	}
	fd = open(path, O_RDONLY | O_CLOEXEC);
	ck_assert_msg(fd >= 0, "%s", path);
	ck_assert_int_eq(unwind_file__open(&t->files[t->nr_files], fd), 0);
	return ++t->nr_files;
}

static FILE *target__maps(const struct target *t)
{
	char name[64];
	FILE *f;

	snprintf(name, sizeof(name), "/proc/%d/maps", t->pid);
	f = fopen(name, "re");
	ck_assert_ptr_nonnull(f);
	return f;
}

static void target__read_maps(struct target *t)
{
	char line[512];
	FILE *f = target__maps(t);

	t->nr_maps = 0;
	while (fgets(line, sizeof(line), f)) {
		struct mapping *map = &t->maps[t->nr_maps];
		unsigned long start, end, offset;
		char prot[8], path[256] = "";

		ck_assert_int_ge(sscanf(line, "%lx-%lx %7s %lx %*s %*s %255s", &start, &end, prot,
					&offset, path), 4);
		if (prot[2] != 'x' || !strcmp(path, "[vsyscall]"))
			continue;
		ck_assert_uint_lt(t->nr_maps, MAX_MAPS - 1);
		*map = (struct mapping){ .start = start, .end = end, .offset = offset };
		if (path[0] == '/' || !strcmp(path, "[vdso]"))
			map->file = target__file(t, map, path);
		else
			map->kind = MAPPING_ANON;
		t->nr_maps++;
	}
	fclose(f);
}

/* --- the copy ----------------------------------------------------------------------------- */

static void target__stack_range(struct target *t, uint64_t sp, uint64_t *lo, uint64_t *hi)
{
	char line[512];
	FILE *f = target__maps(t);

	*lo = 0;
	*hi = 0;
	while (fgets(line, sizeof(line), f)) {
		unsigned long start, end;

		if (sscanf(line, "%lx-%lx", &start, &end) == 2 && sp < end && !*hi) {
			*lo = start;	/* perhaps above sp: not touched yet */
			*hi = end;
		}
	}
	fclose(f);
}

static void target__snapshot(struct target *t, const struct user_regs_struct *r, uint64_t lo,
			     uint64_t hi)
{
	struct iovec to, from;

	memcpy(t->regs, (const __u64[]){ r->rax, r->rdx, r->rcx, r->rbx, r->rsi, r->rdi, r->rbp,
					 r->rsp, r->r8, r->r9, r->r10, r->r11, r->r12, r->r13,
					 r->r14, r->r15, r->rip }, sizeof(t->regs));
	t->start = r->rsp > lo + BELOW ? r->rsp - BELOW : lo;
	t->len = hi - t->start > MAX_COPY ? MAX_COPY : hi - t->start;
	to = (struct iovec){ t->copy, t->len };
	from = (struct iovec){ (void *)t->start, t->len };
	ck_assert_int_eq(process_vm_readv(t->pid, &to, 1, &from, 1, 0), (ssize_t)t->len);
}

/* --- unwinding, twice ---------------------------------------------------------------------- */

static struct unwind_file *file_of(void *ctx, uint32_t id)
{
	struct target *t = ctx;

	return id && id <= t->nr_files ? t->files[id - 1] : NULL;
}

static void target__unwind(struct target *t)
{
	const struct unwind_stack_input in = {
		.regs = t->regs, .pc = t->regs[16], .start = t->start, .stack = t->copy,
		.len = t->len, .mappings = t->maps, .nr_mappings = t->nr_maps,
		.file = file_of, .ctx = t,
	};

	t->nr_words = unwind_stack__walk(t->store, &in, t->words, GPUCOLLECT_MAX_FRAMES);
}

static pid_t next_thread(Dwfl *dwfl, void *arg, void **thread)
{
	struct target *t = arg;

	(void)dwfl;
	if (*thread)
		return 0;
	*thread = t;
	return t->pid;
}

static bool memory_read(Dwfl *dwfl, Dwarf_Addr addr, Dwarf_Word *result, void *arg)
{
	struct target *t = arg;
	uint64_t at = addr - t->start;

	(void)dwfl;
	if (addr < t->start || at > t->len || t->len - at < 8)
		return false;
	memcpy(result, t->copy + at, 8);
	return true;
}

static bool set_registers(Dwfl_Thread *thread, void *arg)
{
	struct target *t = arg;
	Dwarf_Word regs[17];

	for (int i = 0; i < 17; i++)
		regs[i] = t->regs[i];
	return dwfl_thread_state_registers(thread, 0, 17, regs);
}

static int add_frame(Dwfl_Frame *state, void *arg)
{
	struct target *t = arg;
	Dwarf_Addr pc;
	bool exact;

	if (!dwfl_frame_pc(state, &pc, &exact) || t->nr_pcs == MAX_FRAMES)
		return DWARF_CB_ABORT;
	t->pcs[t->nr_pcs++] = exact ? pc : pc - 1;
	return DWARF_CB_OK;
}

static int first_thread(Dwfl_Thread *thread, void *arg)
{
	dwfl_thread_getframes(thread, add_frame, arg);
	return DWARF_CB_ABORT;
}

static void target__reference(struct target *t)
{
	t->nr_pcs = 0;
	dwfl_getthreads(t->dwfl, first_thread, t);
}

static void target__start_libdw(struct target *t)
{
	static const Dwfl_Callbacks callbacks = {
		.find_elf = dwfl_linux_proc_find_elf,
		.find_debuginfo = dwfl_standard_find_debuginfo,
	};
	static const Dwfl_Thread_Callbacks threads = {
		.next_thread = next_thread,
		.memory_read = memory_read,
		.set_initial_registers = set_registers,
	};

	setenv("DEBUGINFOD_URLS", "", 1);
	t->dwfl = dwfl_begin(&callbacks);
	ck_assert_ptr_nonnull(t->dwfl);
	ck_assert_int_eq(dwfl_linux_proc_report(t->dwfl, t->pid), 0);
	ck_assert_int_eq(dwfl_report_end(t->dwfl, NULL, NULL), 0);
	ck_assert_msg(dwfl_attach_state(t->dwfl, NULL, t->pid, &threads, t), "%s",
		      dwfl_errmsg(-1));
}

/* --- comparison --------------------------------------------------------------------------- */

static uint64_t target__word(const struct target *t, uint64_t pc)
{
	for (size_t i = 0; i < t->nr_maps; i++) {
		const struct mapping *m = &t->maps[i];

		if (pc >= m->start && pc < m->end)
			return m->kind == MAPPING_ANON ? FRAME_MAKE_ADDRESS(FRAME_ANON, pc) :
			       FRAME_MAKE_FILE(FRAME_FILE, m->file, pc - m->start + m->offset);
	}
	return 0;
}

static void target__print(const struct target *t)
{
	size_t n = t->nr_words - 1 > t->nr_pcs ? t->nr_words - 1 : t->nr_pcs;

	for (size_t i = 0; i < n && i < 40; i++) {
		uint64_t w = i < t->nr_words - 1 ? t->words[i] : 0;
		uint64_t x = i < t->nr_pcs ? target__word(t, t->pcs[i]) : 0;

		fprintf(stderr, "  %2zu %016" PRIx64 " %016" PRIx64 " %s %s+0x%llx\n", i, w, x,
			w == x ? " " : "!", FRAME_FILE_ID(w) ? t->paths[FRAME_FILE_ID(w) - 1] : "?",
			(unsigned long long)FRAME_OFFSET(w));
	}
	fprintf(stderr, "  end: %u\n", FRAME_END_WHY(t->words[t->nr_words - 1]));
}

/*
 * Without a row for a frame libdw takes the frame pointer, right or wrong, and doesn't say so.
 * And libdw 0.188 takes rbx for lost where no rule mentions it (its table of preserved registers
 * has rax instead), so that it gets stuck at a CFA relative to rbx.
 */
static bool target__is_blind(struct target *t, uint64_t pc)
{
	Dwfl_Module *mod = dwfl_addrmodule(t->dwfl, pc);
	Dwarf_Frame *frame;
	Dwarf_Addr bias;
	Dwarf_CFI *cfi = mod ? dwfl_module_eh_cfi(mod, &bias) : NULL;
	Dwarf_Op *ops;
	size_t nops;
	bool rbx;

	if (!cfi || dwarf_cfi_addrframe(cfi, pc - bias, &frame))
		return true;
	rbx = !dwarf_frame_cfa(frame, &ops, &nops) && nops == 1 && ops[0].atom == DW_OP_bregx &&
	      ops[0].number == 3;
	free(frame);
	return rbx;
}

/* What libdw calls exact is our return address at the first byte of a signal trampoline. */
static bool target__is_frame(const struct target *t, size_t i, uint64_t pc)
{
	struct unwind_rule rule = { 0 };
	uint64_t word = target__word(t, pc), before = target__word(t, pc - 1);
	unsigned int file = FRAME_FILE_ID(before);

	if (t->words[i] == word)
		return true;
	return i && t->words[i] == before && file &&
	       !unwind_store__rule(t->store, file, t->files[file - 1], FRAME_OFFSET(before),
				   &rule) && rule.cfa == UNWIND_CFA_SIGNAL;
}

/*
 * The function with the marks stays on the stack between them, so every stack must end with its
 * callers. At the first mark they are compared with libdw's.
 */
static bool target__has_tail(struct target *t)
{
	if (!t->steps) {
		t->nr_tail = t->nr_words - 2;
		memcpy(t->tail, t->words + 1, t->nr_tail * sizeof(t->tail[0]));
		return t->nr_tail > 1;
	}
	return t->nr_words > t->nr_tail + 1 &&
	       !memcmp(t->words + t->nr_words - 1 - t->nr_tail, t->tail,
		       t->nr_tail * sizeof(t->tail[0]));
}

/* Frames must agree as far as neither side guessed; and there must be no less than libdw's. */
static void target__compare(struct target *t)
{
	size_t nr = t->nr_words - 1, i;
	unsigned int why = FRAME_END_WHY(t->words[nr]);
	bool guessed = false, blind = false, same = true;

	for (i = 0; i < nr; i++)
		guessed |= FRAME_KIND(t->words[i]) != FRAME_FILE;
	for (i = 0; i < t->nr_pcs && same && !blind && (i < nr || why != END_TRUNCATED); i++) {
		same = i < nr && target__is_frame(t, i, t->pcs[i]);
		blind = target__is_blind(t, t->pcs[i]);
	}
	if (!blind && same && why == END_ROOT)
		same = nr == t->nr_pcs;
	if (why == END_ROOT)
		same = same && target__has_tail(t);
	t->steps++;
	t->ends[why]++;
	t->guessed += guessed;
	t->blind += blind;
	if (!same && t->differ++ < 3)
		target__print(t);
}

/* --- a run -------------------------------------------------------------------------------- */

static void target__open(struct target *t, char *const argv[])
{
	static struct unwind_rule rules[60000];
	static struct unwind_row rows[1 << 20];
	const struct unwind_store_config config = {
		.rules = rules, .rows = rows, .max_rules = 60000, .max_rows = 1 << 20,
		.max_pages = 1 << 16,
	};

	memset(t, 0, sizeof(*t));
	t->copy = malloc(MAX_COPY);
	ck_assert_ptr_nonnull(t->copy);
	ck_assert_int_eq(unwind_store__new(&t->store, &config), 0);
	target__spawn(t, argv);
}

static void target__close(struct target *t)
{
	kill(t->pid, SIGKILL);
	while (waitpid(-1, NULL, __WALL) > 0)
		;
	if (t->dwfl)
		dwfl_end(t->dwfl);
	for (unsigned int i = 0; i < t->nr_files; i++)
		unwind_file__free(t->files[i]);
	unwind_store__free(t->store);
	free(t->copy);
}

/* From the first mark to the second, at most `steps` instructions. */
static void target__follow(struct target *t, char *const argv[], unsigned int steps)
{
	uint64_t lo = 0, hi = 0;

	target__open(t, argv);
	ck_assert(target__resume(t, PTRACE_CONT));
	ck_assert(target__at_mark(t));
	target__read_maps(t);
	target__start_libdw(t);
	for (unsigned int i = 0; i < steps; i++) {
		struct user_regs_struct r;

		ck_assert_int_eq(ptrace(PTRACE_GETREGS, t->tid, NULL, &r), 0);
		if (r.rsp < lo || r.rsp >= hi)
			target__stack_range(t, r.rsp, &lo, &hi);
		target__snapshot(t, &r, lo, hi);
		target__unwind(t);
		target__reference(t);
		target__compare(t);
		if (!target__resume(t, PTRACE_SINGLESTEP) || target__at_mark(t))
			break;
	}
	printf("%s: %u places, %u to the root, %u with guesses, %u where libdw is blind, "
	       "%u differ\n", argv[1] ? argv[1] : argv[0], t->steps, t->ends[END_ROOT], t->guessed,
	       t->blind, t->differ);
	fflush(stdout);		/* a failing check ends without it */
}

/* --- the programs ------------------------------------------------------------------------- */

static unsigned int effort(void)
{
	return getenv("GPUCOLLECT_TEST_FULL") ? 100000 : 1500;
}

static struct target target;

/* Every stack of the place ends for the reason `why`, none of them after a guess. */
static void follow(const char *program, const char *place, unsigned int why)
{
	char *const argv[] = { (char *)program, (char *)place, NULL };

	target__follow(&target, argv, effort() * (place ? 1 : 8));
	ck_assert_uint_eq(target.differ, 0);
	ck_assert_uint_gt(target.steps, 0);
	ck_assert_uint_eq(target.ends[why], target.steps);
	ck_assert_uint_eq(target.guessed, 0);
	target__close(&target);
}

static void follow_all(const char *how)
{
	static const char *const places[] = {
		"lazy", "realigned", "signal", "alternate", "jump", "vfork", "vdso", "thread",
		"large_frame", "deep",
	};
	char program[512];

	if (!program__build(how, "unwind_places.c", program, sizeof(program)))
		return;
	for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++)
		follow(program, places[i], END_ROOT);
	follow(program, "elsewhere", END_UNREADABLE);
	follow(program, "too_deep", END_TRUNCATED);
	program__remove(program);
}

START_TEST(optimised)
{
	follow_all("cc -O2 -Wl,-z,lazy");
}
END_TEST

START_TEST(optimised_for_size)
{
	follow_all("cc -Os -Wl,-z,now -fcf-protection=full");
}
END_TEST

START_TEST(not_optimised)
{
	follow_all("cc -O0 -Wl,-z,lazy");
}
END_TEST

START_TEST(static_without_header_table)
{
	follow_all("cc -O2 -static");
}
END_TEST

START_TEST(clang_and_lld)
{
	follow_all("clang -O2 -fuse-ld=lld -Wl,-z,lazy");
}
END_TEST

START_TEST(mold)
{
	follow_all("clang -O2 -fuse-ld=mold -Wl,-z,lazy");
}
END_TEST

START_TEST(exceptions)
{
	char program[512];

	if (!program__build("c++ -O2 -Wl,-z,lazy", "unwind_throw.cc", program, sizeof(program)))
		return;
	follow(program, NULL, END_ROOT);
	program__remove(program);
}
END_TEST

UNIT_MAIN("unwind_process", optimised, optimised_for_size, not_optimised,
	  static_without_header_table, clang_and_lld, mold, exceptions)
