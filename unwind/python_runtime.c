// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "unwind/python_runtime.h"
#include "unwind/elf_symbols.h"
#include "unwind/elf_view.h"
#include "unwind/python_versions.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define OLDEST 8
#define NEWEST 14
#define FINAL 0xc0		/* release level of a candidate: what precedes it may be laid out otherwise */
#define NAMES_LIMIT (16u << 20)	/* of a program's .symtab: more is no program that embeds Python */
#define OWN_NAMES_LIMIT (32u << 20)	/* the same of a file that has the section for the runtime */
#define DATA_LIMIT (8u << 20)
#define CODE_BYTES 512		/* of Py_GetVersion, at most */
#define TEXT_BYTES 16

struct finder {
	struct elf_view *view;
	struct elf_symbols *symbols;
	struct python_runtime *out;
	char **why;
	/* Looks a name up where the runtime was found: in the dynamic symbols or in all of them. */
	bool is_static;
	bool section;		/* it has one for the runtime */
	unsigned int major, minor, micro, level;	/* major 0: not known */
	bool debug;					/* offsets were told */
};

static int refuse(struct finder *f, const char *format, ...) __attribute__((format(printf, 2, 3)));

static int refuse(struct finder *f, const char *format, ...)
{
	va_list args;

	if (!f->why)
		return -ENOTSUP;
	va_start(args, format);
	if (vasprintf(f->why, format, args) < 0)
		*f->why = NULL;
	va_end(args);
	return -ENOTSUP;
}

static int symbol(struct finder *f, const char *name, struct elf_symbol *out)
{
	return f->is_static ? elf_symbols__static(f->symbols, name, OWN_NAMES_LIMIT, out)
			    : elf_symbols__dynamic(f->symbols, name, out);
}

static int read_vaddr(struct finder *f, uint64_t vaddr, void *buf, size_t len)
{
	uint64_t offset, left;

	if (!elf_view__offset(f->view, vaddr, &offset, &left) || left < len)
		return -ENOENT;
	return elf_view__read(f->view, offset, buf, len);
}

/* --- version ------------------------------------------------------------------------------ */

static void version__set(struct finder *f, uint64_t hex)
{
	f->major = (unsigned int)(hex >> 24 & 0xff);
	f->minor = (unsigned int)(hex >> 16 & 0xff);
	f->micro = (unsigned int)(hex >> 8 & 0xff);
	f->level = (unsigned int)(hex & 0xff);
}

/* "3.8.18", "3.11.0rc2+": a version and nothing else. */
static bool version__parse(struct finder *f, const char *text)
{
	unsigned int major, minor, micro;
	int end = 0;

	if (sscanf(text, "%1u.%2u.%3u%n", &major, &minor, &micro, &end) != 3 ||
	    text[0] < '2' || text[0] > '3')
		return false;
	if (text[end] && text[end] != '+' && !strchr("abr", text[end]))
		return false;
	f->major = major;
	f->minor = minor;
	f->micro = micro;
	f->level = text[end] == 'a' ? 0xa0 : text[end] == 'b' ? 0xb0 : FINAL;
	return true;
}

/*
 * Py_GetVersion puts the version's text together with others: the text that its code refers to, relative
 * to the instruction's end or by its address.
 */
static int version__by_code(struct finder *f)
{
	struct elf_symbol function;
	uint8_t code[CODE_BYTES];
	size_t len = sizeof(code);
	char text[TEXT_BYTES];

	if (symbol(f, "Py_GetVersion", &function))
		return -ENOENT;
	if (function.size && function.size < len)
		len = function.size;
	while (len >= 8 && read_vaddr(f, function.vaddr, code, len))
		len /= 2;
	for (size_t i = 0; i + 4 <= len && len >= 8; i++) {
		uint64_t places[2];
		int32_t value;

		memcpy(&value, code + i, sizeof(value));
		places[0] = function.vaddr + i + 4 + (uint64_t)(int64_t)value;
		places[1] = (uint32_t)value;
		for (int n = 0; n < 2; n++)
			if (!read_vaddr(f, places[n], text, sizeof(text)) &&
			    memchr(text, 0, sizeof(text)) && version__parse(f, text))
				return 0;
	}
	return -ENOENT;
}

static int version__by_soname(struct finder *f)
{
	char name[64];
	unsigned int minor;

	elf_symbols__soname(f->symbols, name, sizeof(name));
	if (sscanf(name, "libpython3.%2u", &minor) != 1)
		return -ENOENT;
	f->major = 3;
	f->minor = minor;
	f->micro = 0;
	f->level = FINAL;
	return 0;
}

static int version__find(struct finder *f)
{
	struct elf_symbol version;
	uint64_t hex;

	if (!symbol(f, "Py_Version", &version) && !read_vaddr(f, version.vaddr, &hex, sizeof(hex))) {
		version__set(f, hex);
		return 0;
	}
	return version__by_code(f) ? version__by_soname(f) : 0;
}

/* --- the runtime -------------------------------------------------------------------------- */

/* What it says of itself, from 3.13 on. 0, -ENOENT: it says nothing; -ENOTSUP. */
static int debug__read(struct finder *f)
{
	uint8_t bytes[PYTHON_DEBUG_BYTES];
	uint64_t version;
	int err = read_vaddr(f, f->out->runtime, bytes, sizeof(bytes));

	if (err)
		return -ENOENT;
	err = python_offsets__from_debug(bytes, sizeof(bytes), &f->out->offsets);
	if (err == -ENOENT)
		return err;
	memcpy(&version, bytes + 8, sizeof(version));
	if (f->major && version >> 16 != (f->major << 8 | f->minor))
		return refuse(f, "two versions in one interpreter");
	version__set(f, version);
	f->debug = !err;
	return 0;
}

/* In a program whose data is stripped of everything else: by what it says of itself. */
static int runtime__by_cookie(struct finder *f, struct elf_symbol *out)
{
	struct elf_symbol segment;
	const uint8_t *hit;
	uint8_t *data;
	int err = -ENOENT;

	for (unsigned int n = 0; !elf_symbols__writable(f->symbols, n, &segment) && err == -ENOENT; n++) {
		if (segment.size > DATA_LIMIT || segment.size < PYTHON_DEBUG_BYTES)
			continue;
		data = malloc(segment.size);
		if (!data)
			return -ENOMEM;
		hit = NULL;
		if (!read_vaddr(f, segment.vaddr, data, segment.size))
			hit = memmem(data, segment.size, PYTHON_DEBUG_COOKIE, 8);
		if (hit) {
			*out = (struct elf_symbol){ segment.vaddr + (uint64_t)(hit - data), 0 };
			err = 0;
		}
		free(data);
	}
	return err;
}

static int runtime__find(struct finder *f, struct elf_symbol *out)
{
	int err = elf_symbols__dynamic(f->symbols, "_PyRuntime", out);

	if (err != -ENOENT)
		return err;
	f->section = !elf_symbols__section(f->symbols, ".PyRuntime", out);
	if (!f->section && !elf_symbols__program(f->symbols))
		return -ENOENT;
	f->is_static = true;
	err = elf_symbols__static(f->symbols, "_PyRuntime",
				  f->section ? OWN_NAMES_LIMIT : NAMES_LIMIT, out);
	if (err != -ENOENT)
		return err;
	if (f->section)
		return elf_symbols__section(f->symbols, ".PyRuntime", out);
	return runtime__by_cookie(f, out);
}

/* What came before there was a _PyRuntime. */
static int old__find(struct finder *f)
{
	struct elf_symbol symbol_found;

	f->is_static = false;
	if (symbol(f, "_PyThreadState_Current", &symbol_found) ||
	    symbol(f, "PyEval_EvalFrameEx", &symbol_found))
		return -ENOENT;
	if (version__find(f))
		return refuse(f, "CPython before 3.7 is not supported");
	return refuse(f, "CPython %u.%u is not supported", f->major, f->minor);
}

/* What merely has the names is too small, or lacks what any interpreter has. */
static bool runtime__plausible(const struct finder *f, const struct elf_symbol *runtime)
{
	const struct python_offsets *o = &f->out->offsets;

	if (!f->out->type_code && !f->debug)
		return false;
	if (!runtime->size)
		return true;
	/* From 3.11 on the first interpreter is a part of it, and the offset of the key moves. */
	if (o->minor >= 11)
		return runtime->size >= 65536;
	return runtime->size >= o->runtime_key + 8u;
}

static int runtime__describe(struct finder *f, const struct elf_symbol *runtime)
{
	struct python_runtime *r = f->out;
	struct elf_symbol found;
	int err;

	r->runtime = runtime->vaddr;
	r->runtime_size = runtime->size;
	if (!symbol(f, "PyCode_Type", &found))
		r->type_code = found.vaddr;
	version__find(f);
	err = debug__read(f);
	if (err && err != -ENOENT)
		return err;
	if (!f->major)
		return r->type_code || f->section ?
		       refuse(f, "CPython of a version that can't be told") : -ENOENT;
	if (f->major != 3 || f->minor < OLDEST || f->minor > NEWEST)
		return refuse(f, "CPython %u.%u is not supported", f->major, f->minor);
	if (f->level < FINAL)
		return refuse(f, "CPython 3.%u before its release is not supported", f->minor);
	/* Its threads run copies of the bytecode, each its own. */
	if (f->debug && f->minor >= 14 && r->offsets.free_threaded)
		return refuse(f, "CPython 3.%u without the GIL is not supported", f->minor);
	r->minor = f->minor;
	r->micro = f->micro;
	if (!f->debug && (f->minor >= 13 || python_offsets__of(f->minor, false, &r->offsets)))
		return refuse(f, "CPython 3.%u.%u with a layout that is not known", f->minor, f->micro);
	return runtime__plausible(f, runtime) ? 0 : -ENOENT;
}

/* Without it code objects are read each time. Without the GIL two threads may give out one version. */
static int versions__describe(struct finder *f)
{
	struct python_runtime *r = f->out;
	struct python_layout *l = &r->offsets.layout;
	struct python_versions versions;
	int64_t at;
	int err;

	if (l->code_version == PYTHON_ABSENT || r->offsets.free_threaded)
		return 0;
	err = python_versions__find(f->view, l->code_version, &versions);
	if (err)
		return err == -ENOENT || err == -ERANGE ? 0 : err;
	at = (int64_t)(versions.of_interpreter ? versions.at : versions.at - r->runtime);
	if (at < INT32_MIN || at > INT32_MAX)
		return 0;
	l->versions_of = versions.of_interpreter ? PYTHON_VERSIONS_INTERPRETER : PYTHON_VERSIONS_RUNTIME;
	l->versions_at = (int32_t)at;
	return 0;
}

static int eval__describe(struct finder *f, int fd)
{
	struct python_runtime *r = f->out;
	struct elf_symbol function;
	int err;

	err = symbol(f, "_PyEval_EvalFrameDefault", &function);
	if (!err)
		err = python_eval__find(fd, function.vaddr, r->eval, &r->nr_eval);
	if (err != -ENOENT && err != -EINVAL)
		return err;
	/* Later versions tell by addresses where their frames belong; there it only shows what is missing. */
	r->nr_eval = 0;
	return r->offsets.layout.style == PYTHON_FRAME_OBJECTS ?
	       refuse(f, "the interpreter's function can't be found") : 0;
}

int python_runtime__find(int fd, struct python_runtime *out, char **why)
{
	struct finder f = { .out = out, .why = why };
	struct elf_symbol runtime;
	int err;

	memset(out, 0, sizeof(*out));
	if (why)
		*why = NULL;
	err = elf_view__open(&f.view, fd);
	if (err)
		return err == -ENOTSUP || err == -EINVAL ? -ENOENT : err;
	err = elf_symbols__new(&f.symbols, f.view);
	if (!err)
		err = runtime__find(&f, &runtime);
	if (!err)
		err = runtime__describe(&f, &runtime);
	else if (err == -ENOENT)
		err = old__find(&f);
	if (!err)
		err = eval__describe(&f, fd);
	if (!err)
		err = versions__describe(&f);
	elf_symbols__free(f.symbols);
	elf_view__free(f.view);
	if (err == -ERANGE)
		err = -ENOENT;		/* cut off: what is said to be there isn't */
	return err;
}
