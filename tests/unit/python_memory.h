/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Code objects, strings and tables in memory that is made up, laid out as in no real version. Outside of
 * its one piece nothing can be read. `meanwhile` is called before each read, for what changes then.
 */
#ifndef TESTS_PYTHON_MEMORY_H
#define TESTS_PYTHON_MEMORY_H

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "unwind/python_offsets.h"

#define FAKE_BASE 0x7f1200000000ull
#define FAKE_SIZE (8u << 20)
#define FAKE_TYPE 0x7f1299990000ull
#define FAKE_LINE 42
#define FAKE_VERSION 77

struct fake {
	uint8_t *bytes;
	size_t used;		/* no more pages can be read... */
	bool exact;		/* ...nor a byte more */
	unsigned int reads;
	size_t asked;		/* bytes, in all reads */
	void (*meanwhile)(struct fake *f);
	unsigned int at_read;	/* for `meanwhile` */
	int error;		/* of every read, if not 0 */
	struct python_offsets offsets;
	struct python_memory memory;
	uint64_t code, name, file, table, qualname;
};

static int fake__read(void *ctx, uint64_t addr, void *buf, size_t len)
{
	struct fake *f = ctx;
	size_t there = f->exact ? f->used : (f->used + 4095) / 4096 * 4096;

	f->reads++;
	f->asked += len;
	if (f->meanwhile)
		f->meanwhile(f);
	if (f->error)
		return f->error;
	if (addr < FAKE_BASE || addr - FAKE_BASE > there || len > there - (addr - FAKE_BASE))
		return -EFAULT;
	memcpy(buf, f->bytes + (addr - FAKE_BASE), len);
	return 0;
}

static inline void *fake__at(struct fake *f, uint64_t addr)
{
	return f->bytes + (addr - FAKE_BASE);
}

static inline void fake__put64(struct fake *f, uint64_t addr, uint64_t v)
{
	memcpy(fake__at(f, addr), &v, sizeof(v));
}

static inline void fake__put32(struct fake *f, uint64_t addr, uint32_t v)
{
	memcpy(fake__at(f, addr), &v, sizeof(v));
}

/* A new object of `len` bytes, aligned as objects are. */
static inline uint64_t fake__new(struct fake *f, size_t len)
{
	uint64_t addr = FAKE_BASE + f->used;

	f->used += (len + 15) / 16 * 16;
	if (f->used > FAKE_SIZE)
		abort();
	return addr;
}

#define FAKE_STATE(kind, compact, ascii) \
	(((kind) | (compact) << 3 | (ascii) << 4) << 5 | 0x1f)	/* with other bits set around */

/* Of n characters of `kind` bytes each. */
static inline uint64_t fake__str(struct fake *f, const void *data, size_t n, unsigned int kind, bool ascii)
{
	const struct python_offsets *o = &f->offsets;
	uint32_t at = ascii ? o->str_ascii : o->str_compact;
	uint64_t s = fake__new(f, at + n * kind);

	fake__put64(f, s, 1);
	fake__put64(f, s + o->str_length, n);
	fake__put32(f, s + o->str_state, FAKE_STATE(kind, 1u, (unsigned int)ascii));
	memcpy(fake__at(f, s + at), data, n * kind);
	return s;
}

static inline uint64_t fake__ascii(struct fake *f, const char *s)
{
	return fake__str(f, s, strlen(s), 1, true);
}

static inline uint64_t fake__bytes(struct fake *f, const void *data, size_t len)
{
	uint64_t b = fake__new(f, f->offsets.bytes_data + len + 1);

	fake__put64(f, b, 1);
	fake__put64(f, b + f->offsets.bytes_size, len);
	memcpy(fake__at(f, b + f->offsets.bytes_data), data, len);
	return b;
}

/* Writes the code object anew, of the strings that are set. */
static inline void fake__write_code(struct fake *f)
{
	const struct python_layout *l = &f->offsets.layout;

	fake__put64(f, f->code, 2);
	fake__put64(f, f->code + l->code_type, FAKE_TYPE);
	fake__put64(f, f->code + l->code_name, f->name);
	fake__put64(f, f->code + l->code_filename, f->file);
	fake__put64(f, f->code + l->code_table, f->table);
	fake__put32(f, f->code + l->code_first_line, FAKE_LINE);
	fake__put32(f, f->code + l->code_flags, 3);
	fake__put32(f, f->code + l->code_version, FAKE_VERSION);
	if (f->offsets.code_qualname)
		fake__put64(f, f->code + f->offsets.code_qualname, f->qualname);
}

static inline void fake__init(struct fake *f)
{
	static const uint8_t lines[] = { 0x80 | 10 << 3, 0, 0, 0x80 | 11 << 3, 0, 0 };

	memset(f, 0, sizeof(*f));
	f->bytes = calloc(1, FAKE_SIZE);
	f->memory = (struct python_memory){ fake__read, f };
	f->offsets = (struct python_offsets){
		.minor = 99, .lines = PYTHON_LINES_311, .code_qualname = 80, .bytes_size = 24,
		.bytes_data = 40, .str_length = 24, .str_state = 36, .str_ascii = 48, .str_compact = 72,
		.str_kind_shift = 5,
		.layout = { .code_bytes = 104, .code_type = 8, .code_name = 40, .code_filename = 48,
			    .code_table = 56, .code_first_line = 64, .code_flags = 68, .code_version = 76,
			    .versions_of = PYTHON_VERSIONS_RUNTIME,
			    .type_code = FAKE_TYPE },
	};
	f->used = 64;
	f->code = fake__new(f, 120);
	f->name = fake__ascii(f, "name");
	f->qualname = fake__ascii(f, "Outer.name");
	f->file = fake__ascii(f, "/dir/file.py");
	f->table = fake__bytes(f, lines, sizeof(lines));
	fake__write_code(f);
}

static inline uint32_t fake__check(struct fake *f)
{
	__u64 words[PYTHON_CODE_BYTES / 8] = { 0 };

	memcpy(words, fake__at(f, f->code), f->offsets.layout.code_bytes);
	return python_code__check(&f->offsets, &f->memory, words);
}

static inline void fake__free(struct fake *f)
{
	free(f->bytes);
}

#endif
