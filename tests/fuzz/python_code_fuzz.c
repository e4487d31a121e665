// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * libFuzzer target: the first byte says what the rest is. A multiple of 4: a table of lines, behind its
 * kind, its first line and an offset. Else the memory of a process with a code object that is whole, and
 * what is written over it: at once, or while it is being read.
 */
#include <errno.h>
#include <limits.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "loader/base/text.h"
#include "unwind/python_code.h"
#include "unwind/python_lines.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define BASE 0x10000ull
#define SPACE 0x10000u		/* bytes; they are there again and again, */
#define END (BASE + (8u << 20))	/* up to here */
#define TYPE 0x12345678ull
#define CODE (BASE + 0x100)
#define NAME (BASE + 0x400)
#define QUALNAME (BASE + 0x800)
#define FILE_NAME (BASE + 0xc00)
#define TABLE (BASE + 0x1000)
#define MAX_READS 40		/* three heads, each with three texts in two parts; four objects in four */

struct patch {
	uint8_t when;		/* before this read; 0: before any */
	uint8_t width;
	uint16_t at;
	uint32_t value;
};

struct process {
	struct python_offsets offsets;
	const uint8_t *patches;
	size_t nr;
	unsigned int reads;
	uint8_t space[SPACE];
};

static struct process process;

static void process__patch(struct process *p)
{
	struct patch patch;
	uint64_t value;

	for (size_t i = 0; i < p->nr; i++) {
		memcpy(&patch, p->patches + i * sizeof(patch), sizeof(patch));
		value = patch.value;
		/* Objects are there for the first few KiB. */
		if (patch.when == p->reads)
			memcpy(p->space + patch.at % 0x2000, &value, 1u << (patch.width & 3));
	}
}

static int process__read(void *ctx, uint64_t addr, void *buf, size_t len)
{
	struct process *p = ctx;
	uint8_t *to = buf;

	if (++p->reads > MAX_READS)
		abort();
	process__patch(p);
	if (addr < BASE || addr > END || len > END - addr)
		return -EFAULT;
	while (len) {
		size_t at = (addr - BASE) % SPACE, n = len < SPACE - at ? len : SPACE - at;

		memcpy(to, p->space + at, n);
		addr += n;
		to += n;
		len -= n;
	}
	return 0;
}

static void put(struct process *p, uint64_t addr, uint64_t value, size_t len)
{
	memcpy(p->space + (addr - BASE), &value, len);
}

static void put_str(struct process *p, uint64_t addr, unsigned int kind, bool ascii, const char *s)
{
	const struct python_offsets *o = &p->offsets;
	uint64_t data = addr + (ascii ? o->str_ascii : o->str_compact);

	put(p, addr + o->str_length, strlen(s), 8);
	put(p, addr + o->str_state, (kind | 1u << 3 | (unsigned int)ascii << 4) << o->str_kind_shift, 4);
	for (; *s; s++, data += kind)
		put(p, data, (uint8_t)*s, kind);
}

static void process__fill(struct process *p, unsigned int kinds)
{
	const struct python_layout *l = &p->offsets.layout;
	static const unsigned int widths[] = { 1, 1, 2, 4 };

	memset(p->space, 0, sizeof(p->space));
	put(p, CODE, p->offsets.free_threaded ? 0 : 2, 8);
	put(p, CODE + l->code_type, TYPE, 8);
	if (p->offsets.free_threaded)
		put(p, CODE + 12, 2, 4);
	put(p, CODE + l->code_name, NAME, 8);
	put(p, CODE + l->code_filename, FILE_NAME, 8);
	put(p, CODE + l->code_table, TABLE, 8);
	put(p, CODE + l->code_first_line, 7, 4);
	if (p->offsets.code_qualname)
		put(p, CODE + p->offsets.code_qualname, QUALNAME, 8);
	put_str(p, NAME, widths[kinds & 3], !(kinds & 3), "name");
	put_str(p, QUALNAME, widths[kinds & 3], !(kinds & 3), "name");
	put_str(p, FILE_NAME, widths[kinds >> 2 & 3], !(kinds >> 2 & 3), "/file.py");
	put(p, TABLE + p->offsets.bytes_size, 200, 8);
	for (unsigned int i = 0; i < 100; i++)
		put(p, TABLE + p->offsets.bytes_data + 2 * i, 0x01d8, 2);
}

static void check_text(const char *s)
{
	size_t len = strlen(s), n;

	if (len > 4 * PYTHON_CODE_TEXT + 3)
		abort();
	for (; len; s += n, len -= n) {
		n = text__utf8(s, len);
		if (!n)
			abort();
	}
}

static void check_code(const struct process *p, const struct python_code *c)
{
	check_text(c->name);
	if (c->file)
		check_text(c->file);
	if (c->table_len > PYTHON_CODE_TABLE || python_code__memory(c) < c->table_len)
		abort();
	for (uint32_t i = 0; i < 16; i++)
		if (python_code__line(c, &p->offsets, i << i) > INT_MAX)
			abort();
	if (!p->nr && (strcmp(c->name, "name") || strcmp(c->file, "/file.py") || !c->table))
		abort();
}

/* data: version, kinds of its strings, patches. */
static void read_code(const uint8_t *data, size_t size)
{
	struct process *p = &process;
	const struct python_memory m = { .read = process__read, .ctx = p };
	__u64 words[PYTHON_CODE_BYTES / 8] = { 0 };
	struct python_code *c;
	uint32_t check;
	int err;

	if (python_offsets__of(8 + data[0] % 7, data[0] % 7 >= 5 && data[0] & 64, &p->offsets))
		abort();
	p->offsets.layout.type_code = TYPE;
	process__fill(p, data[1]);
	p->patches = data + 2;
	p->nr = (size - 2) / sizeof(struct patch);
	p->reads = 0;
	process__patch(p);
	memcpy(words, p->space + (CODE - BASE), p->offsets.layout.code_bytes);
	check = python_code__check(&p->offsets, &m, words);
	p->reads = 0;
	err = python_code__read(&p->offsets, &m, CODE, check, &c);
	if (err > 0 || !err != !!c || (err && !p->nr))
		abort();
	if (c)
		check_code(p, c);
	python_code__free(c);
}

static void read_lines(const uint8_t *data, size_t size)
{
	uint32_t first, offset;

	memcpy(&first, data + 1, sizeof(first));
	memcpy(&offset, data + 5, sizeof(offset));
	/* within a table, mostly; else one that means something else, too */
	offset = offset >> PYTHON_OFFSET_BITS ? offset & PYTHON_OFFSET_NONE : offset % 4096;
	if (python_lines__at((enum python_lines_kind)(data[0] % 3), data + 9, size - 9, first,
			     offset) > INT_MAX)
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (size < 10)
		return 0;
	if (data[0] % 4)
		read_code(data + 1, size - 1);
	else
		read_lines(data + 1, size - 1);
	return 0;
}
