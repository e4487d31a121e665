// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "symbols/cache.h"

#include <errno.h>
#include <inttypes.h>
#include <linux/types.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bpf/gpucollect.h"
#include "loader/base/array.h"
#include "loader/base/clock.h"
#include "loader/base/log.h"
#include "loader/base/table.h"
#include "symbols/demangle.h"
#include "symbols/kernel.h"
#include "symbols/modules.h"
#include "symbols/names.h"

#define KERNEL_MODULE "kernel"
#define REREAD_NS 1000000000ull
#define MAX_REREAD_NS (64 * REREAD_NS)

struct symbols {
	struct name_set *names;
	struct modules *modules;
	struct table *by_word;		/* word -> index in known */
	struct table *readable;		/* interned mangled name -> interned readable one */
	struct resolved *known;
	size_t nr_known, size_known;
	struct resolved_inline **inlines;	/* all that the known ones point to */
	size_t nr_inlines, size_inlines;
	char *kernel_path;
	struct kernel_symbols *kernel;
	uint64_t kernel_read;		/* when; 0: not yet */
	uint64_t reread_ns;		/* how long after that at the earliest again */
	int kernel_error;
};

static const char unknown[] = "[unknown]";

static const char *const end_marks[NR_END] = {
	[END_TRUNCATED] = "[truncated]",
	[END_NO_INFO] = "[no unwind info]",
	[END_NO_RULE] = "[unsupported unwind info]",
	[END_UNREADABLE] = "[unreadable stack]",
	[END_NO_PROGRESS] = "[stack loop]",
	[END_NOT_CODE] = "[return address outside code]",
	[END_ANON] = "[anonymous code without frame pointer]",
	[END_NO_STACK] = "[no stack]",
	[END_KERNEL_THREAD] = "[kernel thread]",
};

struct symbols *symbols__new(void)
{
	struct symbols *s = calloc(1, sizeof(*s));

	if (!s)
		return NULL;
	s->names = name_set__new();
	s->modules = s->names ? modules__new(s->names) : NULL;
	s->by_word = table__new();
	s->readable = table__new();
	s->kernel_path = strdup("/proc/kallsyms");
	if (!s->modules || !s->by_word || !s->readable || !s->kernel_path) {
		symbols__free(s);
		return NULL;
	}
	return s;
}

void symbols__free(struct symbols *s)
{
	if (!s)
		return;
	modules__free(s->modules);
	free(s->known);
	for (size_t i = 0; i < s->nr_inlines; i++)
		free(s->inlines[i]);
	free(s->inlines);
	free(s->kernel_path);
	kernel_symbols__free(s->kernel);
	table__free(s->by_word);
	table__free(s->readable);
	name_set__free(s->names);
	free(s);
}

static const char *intern(struct symbols *s, const char *text)
{
	return name_set__intern(s->names, text, strlen(text));
}

/* --- files ---------------------------------------------------------------------------------- */

int symbols__add_file(struct symbols *s, uint32_t file, int fd, const char *path)
{
	return modules__add_file(s->modules, file, fd, path);
}

int symbols__add_image(struct symbols *s, uint32_t file, const void *image, size_t size,
		       const char *path)
{
	return modules__add_image(s->modules, file, image, size, path);
}

int symbols__set_place(struct symbols *s, uint32_t file, int root, const char *path)
{
	return modules__set_place(s->modules, file, root, path);
}

int symbols__use_lines(struct symbols *s, bool (*pulse)(void *ctx), void *ctx)
{
	return modules__use_lines(s->modules, pulse, ctx);
}

void symbols__set_fetch(struct symbols *s, int (*fetch)(void *ctx, const struct build_id *id),
			void *ctx)
{
	modules__set_fetch(s->modules, fetch, ctx);
}

bool symbols__next_missing(const struct symbols *s, size_t *pos, const char **name,
			   const char **why)
{
	return modules__next_missing(s->modules, pos, name, why);
}

size_t symbols__nr_opened(const struct symbols *s)
{
	return modules__nr_opened(s->modules);
}

/* --- names ---------------------------------------------------------------------------------- */

static const char *readable(struct symbols *s, const char *interned)
{
	uint64_t key = (uintptr_t)interned, value;
	const char *text;
	char *demangled;

	if (table__get(s->readable, key, &value))
		return (const char *)(uintptr_t)value;
	if (interned[0] != '_')
		return interned;
	demangled = demangle(interned);
	text = demangled ? intern(s, demangled) : interned;
	free(demangled);
	if (text)
		table__set(s->readable, key, (uintptr_t)text);
	return text ?: interned;
}

const char *symbols__readable(struct symbols *s, const char *mangled)
{
	const char *name = mangled && mangled[0] ? intern(s, mangled) : NULL;

	return name ? readable(s, name) : unknown;
}

/* A name that is put together; "[unknown]" without memory. */
__attribute__((format(printf, 2, 3)))
static const char *intern_text(struct symbols *s, const char *fmt, ...)
{
	const char *name;
	char *text;
	va_list args;
	int n;

	va_start(args, fmt);
	n = vasprintf(&text, fmt, args);
	va_end(args);
	if (n < 0)
		return unknown;
	name = name_set__intern(s->names, text, (size_t)n);
	free(text);
	return name ?: unknown;
}

/* --- words ---------------------------------------------------------------------------------- */

static void add_inlines(struct symbols *s, const struct lines_frame *frames, size_t nr,
			struct resolved *r)
{
	struct resolved_inline *list = calloc(nr, sizeof(*list));

	if (!list || array__reserve((void **)&s->inlines, &s->size_inlines, s->nr_inlines,
				    sizeof(*s->inlines))) {
		free(list);
		return;
	}
	for (size_t i = 0; i < nr; i++) {
		const char *name = frames[i].name && frames[i].name[0] ? intern(s, frames[i].name) : NULL;

		list[i] = (struct resolved_inline){
			.name = name ? readable(s, name) : unknown,
			.symbol = name,
			.file = frames[i].file ? intern(s, frames[i].file) : NULL,
			.line = frames[i].line,
		};
	}
	s->inlines[s->nr_inlines++] = list;
	r->inlines = list;
	r->nr_inlines = (uint32_t)nr;
}

static void resolve_lines(struct symbols *s, struct lines *lines, struct resolved *r)
{
	const struct lines_frame *frames;
	size_t nr = lines__find(lines, r->address, &frames);

	if (!nr)
		return;
	r->file = frames[0].file ? intern(s, frames[0].file) : NULL;
	r->line = frames[0].line;
	if (nr > 1)
		add_inlines(s, frames + 1, nr - 1, r);
}

static void resolve_file(struct symbols *s, uint64_t word, struct resolved *r)
{
	const struct module *m = modules__find(s->modules, FRAME_FILE_ID(word));
	uint64_t offset = FRAME_OFFSET(word);
	struct symbol symbol;

	r->kind = RESOLVED_UNNAMED;
	r->name = unknown;
	r->address = offset;
	if (!m)
		return;
	r->module = m->name;
	if (m->file && symbol_file__address(m->file, offset, &r->address) && m->lines)
		resolve_lines(s, m->lines, r);
	if (m->file && !symbol_file__find(m->file, offset, &symbol))
		r->symbol = intern(s, symbol.name);
	if (r->symbol) {
		r->kind = RESOLVED_NATIVE;
		r->name = readable(s, r->symbol);
	} else {
		r->name = intern_text(s, "%s+0x%" PRIx64, m->name, r->address);
	}
}

/* false: it was read not long ago. Code that never gets a name must not make us read on and on. */
static bool read_kernel(struct symbols *s)
{
	struct kernel_symbols *kernel;
	uint64_t now = clock__now_ns();

	if (s->kernel_error)
		return true;
	if (s->kernel && now - s->kernel_read < s->reread_ns)
		return false;
	s->reread_ns = s->kernel ? s->reread_ns * 2 : REREAD_NS;
	if (s->reread_ns > MAX_REREAD_NS)
		s->reread_ns = MAX_REREAD_NS;
	s->kernel_read = now;
	s->kernel_error = kernel_symbols__read(s->kernel_path, &kernel);
	if (s->kernel_error)
		return true;
	kernel_symbols__free(s->kernel);
	s->kernel = kernel;
	return true;
}

/* false: not to be remembered, the symbols may be there in a second. */
static bool resolve_kernel(struct symbols *s, uint64_t word, struct resolved *r)
{
	struct kernel_symbol symbol;
	bool known = true;
	int err = -ENOENT;

	r->address = FRAME_KERNEL_ADDRESS(word);
	r->module = intern(s, KERNEL_MODULE);
	if (s->kernel)
		err = kernel_symbols__find(s->kernel, r->address, &symbol);
	if (err) {
		known = read_kernel(s);
		if (s->kernel)
			err = kernel_symbols__find(s->kernel, r->address, &symbol);
		if (!err)
			s->reread_ns = REREAD_NS;
	}
	if (!err)
		r->symbol = intern(s, symbol.name);
	if (!r->symbol) {
		r->kind = RESOLVED_UNNAMED;
		r->name = s->kernel ? intern_text(s, KERNEL_MODULE "+0x%" PRIx64, r->address) :
				      "[kernel]";
		return known;
	}
	r->kind = RESOLVED_KERNEL;
	r->name = readable(s, r->symbol);
	if (symbol.module)
		r->module = intern(s, symbol.module);
	return true;
}

/* false: no frame. */
static bool resolve_end(struct symbols *s, uint64_t word, struct resolved *r)
{
	uint32_t why = FRAME_END_WHY(word);
	const struct module *m;

	if (why == END_ROOT)
		return false;
	r->kind = RESOLVED_MARK;
	r->name = why < NR_END ? end_marks[why] : unknown;
	if (why != END_NO_INFO && why != END_NO_RULE)
		return true;
	m = modules__find(s->modules, FRAME_END_FILE(word));
	if (m) {
		r->module = m->name;
		r->name = intern_text(s, "%.*s: %s]", (int)strlen(r->name) - 1, r->name, m->name);
	}
	return true;
}

/* Failing to remember costs time only. */
static void remember(struct symbols *s, uint64_t word, const struct resolved *r)
{
	struct resolved *known;
	size_t size;

	if (s->nr_known == s->size_known) {
		size = s->size_known ? s->size_known * 2 : 256;
		known = realloc(s->known, size * sizeof(*known));
		if (!known)
			return;
		s->known = known;
		s->size_known = size;
	}
	s->known[s->nr_known] = *r;
	if (!table__set(s->by_word, word, s->nr_known))
		s->nr_known++;
}

bool symbols__resolve(struct symbols *s, uint64_t word, struct resolved *out)
{
	struct resolved r = { .name = unknown, .kind = RESOLVED_UNNAMED };
	bool keep = true;
	uint64_t index;

	if (table__get(s->by_word, word, &index)) {
		*out = s->known[index];
		return true;
	}
	switch (FRAME_KIND(word)) {
	case FRAME_FILE_GUESS:
	case FRAME_FILE:
		resolve_file(s, word, &r);
		r.guess = FRAME_KIND(word) == FRAME_FILE_GUESS;
		keep = r.module;	/* a file may be added later */
		break;
	case FRAME_ANON_GUESS:
	case FRAME_ANON:
		/* the same address is other code in another process: not worth remembering */
		r.name = "[anonymous code]";
		r.address = FRAME_ADDRESS(word);
		r.guess = FRAME_KIND(word) == FRAME_ANON_GUESS;
		keep = false;
		break;
	case FRAME_KERNEL:
		keep = resolve_kernel(s, word, &r);
		break;
	case FRAME_END:
		if (!resolve_end(s, word, &r))
			return false;
		keep = false;
		break;
	default:
		keep = false;
		break;
	}
	if (keep)
		remember(s, word, &r);
	*out = r;
	return true;
}

/* --- the kernel ----------------------------------------------------------------------------- */

int symbols__set_kernel_path(struct symbols *s, const char *path)
{
	char *copy = strdup(path);

	if (!copy)
		return -ENOMEM;
	free(s->kernel_path);
	s->kernel_path = copy;
	kernel_symbols__free(s->kernel);
	s->kernel = NULL;
	s->kernel_error = 0;
	return 0;
}

int symbols__kernel_error(const struct symbols *s)
{
	return s->kernel_error;
}
