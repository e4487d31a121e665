// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "loader/tracer/safety.h"

#include <errno.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "loader/tracer/exports.h"
#include "loader/tracer/libc.h"
#include "loader/tracer/libc_calls.h"
#include "loader/tracer/space.h"
#include "symbols/file.h"
#include "unwind/rows.h"
#include "unwind/stack.h"

#define RED_ZONE 128
#define STACK_GAP (1u << 20)	/* the kernel keeps this free below a stack that grows */
#define MAX_RULES 16384
#define MAX_ROWS (1u << 18)
#define MAX_PAGES (1u << 14)
#define MAX_PLAIN 128
#define USER_CS 0x33		/* 64-bit code */

struct safety {
	const struct space *space;
	const struct libc *libc;
	struct unwind_store *store;
	struct unwind_rule *rules;
	struct unwind_row *rows;
	struct symbol_file *libc_symbols;
	struct symbol_file *program_symbols;
	uint32_t plain[MAX_PLAIN];	/* files that are known to export no allocator */
	unsigned int nr_plain;
	__u64 words[GPUCOLLECT_MAX_FRAMES];
};

struct safety *safety__new(const struct space *space, const struct libc *libc)
{
	struct safety *s = calloc(1, sizeof(*s));
	struct unwind_store_config config = {
		.max_rules = MAX_RULES, .max_rows = MAX_ROWS, .max_pages = MAX_PAGES,
	};

	if (!s)
		return NULL;
	s->space = space;
	s->libc = libc;
	s->rules = config.rules = calloc(MAX_RULES, sizeof(*s->rules));
	s->rows = config.rows = calloc(MAX_ROWS, sizeof(*s->rows));
	s->libc_symbols = symbol_file__open(files__fd(space->files, libc->file));
	if (s->rules && s->rows && s->libc_symbols && !unwind_store__new(&s->store, &config))
		return s;
	safety__free(s);
	return NULL;
}

void safety__free(struct safety *s)
{
	if (!s)
		return;
	unwind_store__free(s->store);
	free(s->rules);
	free(s->rows);
	symbol_file__free(s->libc_symbols);
	symbol_file__free(s->program_symbols);
	free(s);
}

static int __attribute__((format(printf, 2, 3))) refuse(char *why, const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	vsnprintf(why, SAFETY_WHY, fmt, args);
	va_end(args);
	return -EAGAIN;
}

/* --- the stack ---------------------------------------------------------------------------- */

/* How far down the first thread's stack may grow. */
static uint64_t main_stack_bottom(const struct space *space, const struct space_area *area)
{
	const struct space_area *below = space__below(space, area);
	uint64_t bottom = below ? below->end + STACK_GAP : 0;
	struct rlimit limit;

	if (prlimit(space->pid, RLIMIT_STACK, NULL, &limit) || limit.rlim_cur == RLIM_INFINITY ||
	    limit.rlim_cur > area->end)
		return bottom;
	return area->end - limit.rlim_cur > bottom ? area->end - limit.rlim_cur : bottom;
}

int safety__stack(const struct space *space, struct safety_look *look, char why[SAFETY_WHY])
{
	uint64_t sp = look->regs.rsp, bottom;
	const struct space_area *area = space__area(space, sp);

	if (look->regs.cs != USER_CS)
		return refuse(why, "it runs 32-bit code");
	if (!area)
		return -ENOENT;
	if (area->main_stack) {
		bottom = main_stack_bottom(space, area);
	} else {
		/* The C library puts a thread's own data above its stack; fibers have none there. */
		if (look->regs.fs_base <= sp || look->regs.fs_base >= area->end)
			return refuse(why, "its stack is not the thread's own");
		bottom = area->start;
	}
	if (sp < bottom || sp - bottom < SAFETY_ROOM)
		return refuse(why, "its stack has less than %u KiB left", SAFETY_ROOM >> 10);
	look->start = sp - RED_ZONE < area->start ? area->start : sp - RED_ZONE;
	look->len = area->end - look->start < SAFETY_MAX_STACK ?
		    (size_t)(area->end - look->start) : SAFETY_MAX_STACK;
	return 0;
}

/* --- the frames --------------------------------------------------------------------------- */

static struct unwind_file *file_of(void *ctx, uint32_t id)
{
	struct safety *s = ctx;

	return files__unwind(s->space->files, id);
}

static size_t walk(struct safety *s, const struct safety_look *look)
{
	const struct user_regs_struct *r = &look->regs;
	const __u64 regs[UNWIND_NR_REGS] = {
		r->rax, r->rdx, r->rcx, r->rbx, r->rsi, r->rdi, r->rbp, r->rsp,
		r->r8, r->r9, r->r10, r->r11, r->r12, r->r13, r->r14, r->r15,
	};
	const struct unwind_stack_input in = {
		.regs = regs,
		.pc = r->rip,
		.in_syscall = (int64_t)r->orig_rax >= 0,
		.start = look->start,
		.stack = look->stack,
		.len = look->len,
		.mappings = s->space->code,
		.nr_mappings = s->space->nr_code,
		.file = file_of,
		.ctx = s,
	};

	return unwind_stack__walk(s->store, &in, s->words, GPUCOLLECT_MAX_FRAMES);
}

static const char *module_of(const struct safety *s, uint32_t file)
{
	const char *path = files__path(s->space->files, file), *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

/* The name of a function; NULL: it has none. Valid until the next call with the same file. */
static const char *name_in(struct symbol_file *symbols, __u64 word)
{
	struct symbol symbol;

	return symbols && !symbol_file__find(symbols, FRAME_OFFSET(word), &symbol) ? symbol.name :
									      NULL;
}

/*
 * The code that a signal handler returns to, of whatever library: mov $15, %rax or %eax; syscall.
 * A caller's word is the byte before.
 */
static bool is_signal_return(const struct safety *s, __u64 word)
{
	static const uint8_t wide[] = { 0x48, 0xc7, 0xc0, 0x0f, 0, 0, 0, 0x0f, 0x05 };
	static const uint8_t narrow[] = { 0xb8, 0x0f, 0, 0, 0, 0x0f, 0x05 };
	uint8_t code[sizeof(wide)];
	int fd = files__fd(s->space->files, FRAME_FILE_ID(word));

	if (fd < 0 ||
	    pread(fd, code, sizeof(code), (off_t)FRAME_OFFSET(word) + 1) != sizeof(code))
		return false;
	return !memcmp(code, wide, sizeof(wide)) || !memcmp(code, narrow, sizeof(narrow));
}

/* Whether the dynamic loader would get its memory from this file. */
static bool exports_allocator(struct safety *s, uint32_t file)
{
	uint64_t address;
	struct exports e;
	bool found;

	for (unsigned int i = 0; i < s->nr_plain; i++)
		if (s->plain[i] == file)
			return false;
	if (exports__open(&e, files__fd(s->space->files, file)))
		return false;
	found = !exports__find(&e, "malloc", &address) || !exports__find(&e, "free", &address) ||
		!exports__find(&e, "realloc", &address);
	exports__close(&e);
	if (!found && s->nr_plain < MAX_PLAIN)
		s->plain[s->nr_plain++] = file;
	return found;
}

/*
 * A program that brings its own allocator and is no library: its functions are told by their names.
 * One without a name could be any, since allocators leave by jumps.
 */
static int judge_program(struct safety *s, __u64 word, char *why)
{
	const char *name;

	if (!s->program_symbols)
		s->program_symbols = symbol_file__open(files__fd(s->space->files,
								 FRAME_FILE_ID(word)));
	name = name_in(s->program_symbols, word);
	if (!name)
		return refuse(why, "it is in a nameless function of a program with its own malloc");
	if (libc_calls__allocates(name))
		return refuse(why, "it is in %s", name);
	return 0;
}

static bool is_libc(const struct safety *s, __u64 word)
{
	return FRAME_FILE_ID(word) == s->libc->file;
}

/*
 * Frames [at, *next) of the C library that have no name, since it is stripped: inside of the named
 * one that called them, or between a thread's start and its function.
 */
static int judge_nameless(struct safety *s, size_t at, size_t nr, size_t *next, char *why)
{
	const char *name = NULL;
	size_t i = at;

	while (i < nr && is_libc(s, s->words[i]) && !(name = name_in(s->libc_symbols, s->words[i])))
		i++;
	*next = i;
	if (i == nr && at > 0 && i - at <= 2)	/* start_thread, clone3 */
		return 0;
	if (name && libc_calls__is_start(name) && i - at == 1)
		return 0;
	if (name && !libc_calls__is_start(name) && libc_calls__harmless(name))
		return 0;
	if (name)
		return refuse(why, "it is inside %s", name);
	return refuse(why, "it is in a nameless function of the C library");
}

/* Frames from `at` on, of the C library. */
static int judge_libc(struct safety *s, size_t at, size_t nr, size_t *next, char *why)
{
	const char *name = name_in(s->libc_symbols, s->words[at]);

	if (!name)
		return judge_nameless(s, at, nr, next, why);
	*next = at + 1;
	if (libc_calls__harmless(name))
		return 0;
	return refuse(why, "it is in %s", name);
}

static int judge_frame(struct safety *s, size_t at, size_t nr, size_t *next, char *why)
{
	__u64 word = s->words[at];
	uint32_t file = FRAME_FILE_ID(word);

	*next = at + 1;
	if (FRAME_KIND(word) != FRAME_FILE)
		return refuse(why, "it is in code without unwind information");
	if (file == s->space->loader)
		return refuse(why, "it is in the dynamic loader");
	if (is_signal_return(s, word))
		return refuse(why, "it is in a signal handler");
	if (is_libc(s, word))
		return judge_libc(s, at, nr, next, why);
	if (!exports_allocator(s, file))
		return 0;
	if (file == s->space->program)
		return judge_program(s, word, why);
	return refuse(why, "it is in the allocator of %s", module_of(s, file));
}

int safety__judge(struct safety *s, const struct safety_look *look, char why[SAFETY_WHY])
{
	size_t nr = walk(s, look), i = 0;
	int err = 0;

	nr--;	/* how it ended */
	if (FRAME_KIND(s->words[nr]) != FRAME_END || FRAME_END_WHY(s->words[nr]) != END_ROOT)
		return refuse(why, "its stack can't be followed to the thread's start");
	while (i < nr && !err)
		err = judge_frame(s, i, nr, &i, why);
	return err;
}
