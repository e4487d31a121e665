// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "unwind/python_code.h"
#include "unwind/python_lines.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

/*
 * An object's head and what follows it are asked for together, since most names and many tables are
 * short; not past the page, which may be the last one that is there.
 */
#define AHEAD 256u
#define PAGE 4096u

/* Of code objects that had an address one after the other, no two have the same. */
struct identity {
	uint32_t check;
	uint64_t qualname;
	bool live;
	bool new;	/* or idle: nobody but its owner refers to it */
};

/* The first bytes of an object: those of its head at least, `len` in all. */
struct start {
	uint64_t addr;
	size_t len;
	uint8_t bytes[AHEAD];
};

static int memory__read(const struct python_memory *m, uint64_t addr, void *buf, size_t len)
{
	if (!addr || addr > UINT64_MAX - len)
		return -EFAULT;
	return m->read(m->ctx, addr, buf, len);
}

static int start__read(struct start *s, const struct python_memory *m, uint64_t addr, size_t head)
{
	size_t in_page = PAGE - addr % PAGE;
	int err;

	if (head > AHEAD)
		return -EINVAL;
	s->addr = addr;
	s->len = in_page < head ? head : in_page < AHEAD ? in_page : AHEAD;
	err = memory__read(m, addr, s->bytes, s->len);
	/* A copy of some memory may end anywhere. */
	if (err && s->len > head) {
		s->len = head;
		err = memory__read(m, addr, s->bytes, s->len);
	}
	return err;
}

static uint64_t start__u64(const struct start *s, uint32_t at)
{
	uint64_t v;

	memcpy(&v, s->bytes + at, sizeof(v));
	return v;
}

/* Bytes [at, at + len) of the object, read anew as far as they are not there yet. */
static int start__body(const struct start *s, const struct python_memory *m, size_t at, uint8_t *buf,
		       size_t len)
{
	size_t have = s->len > at ? s->len - at : 0;

	if (have > len)
		have = len;
	memcpy(buf, s->bytes + (have ? at : 0), have);
	if (have == len)
		return 0;
	if (s->addr > UINT64_MAX - at - have)
		return -EFAULT;
	return memory__read(m, s->addr + at + have, buf + have, len - have);
}

static uint32_t character(const uint8_t *p, unsigned int kind)
{
	uint16_t two;
	uint32_t four;

	switch (kind) {
	case 1:
		return *p;
	case 2:
		memcpy(&two, p, sizeof(two));
		return two;
	default:
		memcpy(&four, p, sizeof(four));
		return four;
	}
}

#define SHOWN_NUL 0x2400u
#define REPLACEMENT 0xfffdu
#define ELLIPSIS 0x2026u

static char *put_utf8(char *to, uint32_t c)
{
	if (!c)
		c = SHOWN_NUL;
	else if ((c >= 0xd800 && c <= 0xdfff) || c > 0x10ffff)
		c = REPLACEMENT;
	if (c < 0x80) {
		*to++ = (char)c;
		return to;
	}
	if (c < 0x800) {
		*to++ = (char)(0xc0 | c >> 6);
	} else {
		if (c < 0x10000) {
			*to++ = (char)(0xe0 | c >> 12);
		} else {
			*to++ = (char)(0xf0 | c >> 18);
			*to++ = (char)(0x80 | (c >> 12 & 0x3f));
		}
		*to++ = (char)(0x80 | (c >> 6 & 0x3f));
	}
	*to++ = (char)(0x80 | (c & 0x3f));
	return to;
}

/* Of n characters of `kind` bytes; NULL: out of memory. */
static char *utf8_of(const uint8_t *p, size_t n, unsigned int kind, bool more)
{
	/* A character of fewer than four bytes makes three at most. */
	char *text = malloc(n * (kind == 4 ? 4 : 3) + 3 + 1), *end = text, *fit;

	if (!text)
		return NULL;
	for (size_t i = 0; i < n; i++)
		end = put_utf8(end, character(p + i * kind, kind));
	if (more)
		end = put_utf8(end, ELLIPSIS);
	*end++ = '\0';
	fit = realloc(text, (size_t)(end - text));
	return fit ? fit : text;
}

/* Where the characters of a str begin, and how wide they are. 0 or -EINVAL. */
static int str__form(const struct python_offsets *o, const struct start *s, uint32_t *data,
		     unsigned int *kind)
{
	uint32_t state;
	bool compact, ascii;

	memcpy(&state, s->bytes + o->str_state, sizeof(state));
	state >>= o->str_kind_shift & 31;
	*kind = state & 7;
	compact = state >> 3 & 1;
	ascii = state >> 4 & 1;
	*data = ascii ? o->str_ascii : o->str_compact;
	if (!compact || (*kind != 1 && *kind != 2 && *kind != 4) || (ascii && *kind != 1))
		return -EINVAL;
	return 0;
}

static int str__read(const struct python_offsets *o, const struct python_memory *m, uint64_t addr,
		     char **text)
{
	size_t head = o->str_length > o->str_state ? o->str_length : o->str_state;
	unsigned int kind;
	uint64_t length;
	struct start s;
	uint8_t *raw;
	uint32_t data;
	size_t n;
	int err;

	err = start__read(&s, m, addr, head + sizeof(uint64_t));
	if (!err)
		err = str__form(o, &s, &data, &kind);
	if (err)
		return err;
	length = start__u64(&s, o->str_length);
	if (length > INT64_MAX)
		return -EINVAL;
	n = length < PYTHON_CODE_TEXT ? length : PYTHON_CODE_TEXT;
	raw = malloc(n * kind + 1);
	if (!raw)
		return -ENOMEM;
	err = start__body(&s, m, data, raw, n * kind);
	if (!err) {
		*text = utf8_of(raw, n, kind, length > n);
		err = *text ? 0 : -ENOMEM;
	}
	free(raw);
	return err;
}

static int table__read(const struct python_offsets *o, const struct python_memory *m, uint64_t addr,
		       struct python_code *c)
{
	uint8_t *table;
	struct start s;
	uint64_t len;
	int err;

	err = start__read(&s, m, addr, o->bytes_size + sizeof(uint64_t));
	if (err)
		return err;
	len = start__u64(&s, o->bytes_size);
	if (len > PYTHON_CODE_TABLE)
		return -E2BIG;
	table = malloc(len + 1);	/* an empty one is one, too */
	if (!table)
		return -ENOMEM;
	err = start__body(&s, m, o->bytes_data, table, len);
	if (err) {
		free(table);
		return err;
	}
	c->table = table;
	c->table_len = len;
	return 0;
}

/* Of an object without the GIL: u32 references of its own thread, s64 of all others, times four. */
#define OWN_REFERENCES 12
#define OTHER_REFERENCES 16

/*
 * A freed object keeps its contents, all but the first word, while its strings are other strings already.
 * That word held the references: it is 0 now, or leads to the next free block, with bits from 32 to 47
 * that no number of references has. (From 48 on 3.14 has flags.)
 */
static bool is_live(const struct python_offsets *o, const __u64 *words)
{
	const struct python_layout *l = &o->layout;
	int64_t others;
	uint32_t own;

	if (l->type_code && python__u64(words, l->code_type, PYTHON_CODE_BYTES) != l->type_code)
		return false;
	if (!o->free_threaded)
		return (uint32_t)words[0] && !(words[0] >> 32 & 0xffff);
	own = python__u32(words, OWN_REFERENCES, PYTHON_CODE_BYTES);
	others = (int64_t)python__u64(words, OTHER_REFERENCES, PYTHON_CODE_BYTES) / 4;
	return own + others > 0;
}

/* What tells a text from another that had its address before; see python_frames.h. */
static uint64_t text__mark(const struct python_memory *m, uint64_t address, uint64_t h, bool is_str,
			   bool newer)
{
	__u64 head[PYTHON_TEXT_WORDS] = { 0 }, tail[PYTHON_TEXT_TAIL / 8] = { 0 }, at;
	uint32_t n;

	if (memory__read(m, address + PYTHON_TEXT, head, sizeof(head)))
		return h;
	if (head[1] == ~0ull) {
		n = python__tail(head, is_str, newer, address, &at);
		if (n && memory__read(m, at, tail, n))
			return h;
	}
	return python__text(h, head, tail);
}

uint32_t python_code__check(const struct python_offsets *o, const struct python_memory *m, const __u64 *words)
{
	const struct python_layout *l = &o->layout;
	uint32_t check = python__check(l, words);
	__u16 name = o->code_qualname ? (__u16)o->code_qualname : l->code_name;
	bool newer = l->code_version != PYTHON_ABSENT;
	uint64_t h = check;

	if (!python__needs_texts(l))
		return check;
	h = text__mark(m, python__u64(words, name, PYTHON_CODE_BYTES), h, true, newer);
	h = text__mark(m, python__u64(words, l->code_filename, PYTHON_CODE_BYTES), h, true, newer);
	h = text__mark(m, python__u64(words, l->code_table, PYTHON_CODE_BYTES), h, false, newer);
	return (uint32_t)(h >> 32);
}

static int head__read(const struct python_offsets *o, const struct python_memory *m, uint64_t code,
		      __u64 *words, struct identity *id)
{
	size_t len = o->layout.code_bytes;
	int err;

	if (len > PYTHON_CODE_BYTES)
		return -EINVAL;
	memset(words, 0, PYTHON_CODE_BYTES);
	err = memory__read(m, code, words, len);
	if (err)
		return err;
	id->live = is_live(o, words);
	id->new = !o->free_threaded && (uint32_t)words[0] == 1;
	id->check = python_code__check(o, m, words);
	id->qualname = o->code_qualname ? python__u64(words, (__u16)o->code_qualname, PYTHON_CODE_BYTES) : 0;
	return 0;
}

static int code__fill(const struct python_offsets *o, const struct python_memory *m, const __u64 *words,
		      uint64_t qualname, struct python_code *c)
{
	const struct python_layout *l = &o->layout;
	int err = -EINVAL;

	c->first_line = python__u32(words, l->code_first_line, PYTHON_CODE_BYTES);
	if (qualname)
		err = str__read(o, m, qualname, &c->name);
	if (err && err != -ENOMEM)
		err = str__read(o, m, python__u64(words, l->code_name, PYTHON_CODE_BYTES), &c->name);
	if (err)
		return err;
	/* A function is known without its file and its lines, too. */
	err = str__read(o, m, python__u64(words, l->code_filename, PYTHON_CODE_BYTES), &c->file);
	if (err == -ENOMEM)
		return err;
	err = table__read(o, m, python__u64(words, l->code_table, PYTHON_CODE_BYTES), c);
	return err == -ENOMEM ? err : 0;
}

/*
 * Whether the object still is what it was. One that is just being made, in the place of one that died,
 * has a type and a reference already but the dead one's members, whose strings are others by now. That
 * takes nanoseconds, so what may be such a one is looked at again. A thread that the kernel stops within
 * these nanoseconds deceives us.
 */
static bool is_same(const struct python_offsets *o, const struct python_memory *m, uint64_t code,
		    const struct identity *before)
{
	__u64 words[PYTHON_CODE_BYTES / sizeof(__u64)];
	struct identity after;
	unsigned int looks = 0;

	do
		if (head__read(o, m, code, words, &after) || !after.live ||
		    after.check != before->check || after.qualname != before->qualname)
			return false;
	while (after.new && ++looks < 2);
	return true;
}

/*
 * An object that is the same before and after has held its strings in between. A failure in between
 * is a fact about it only if it still is the same; else it was another's memory that we looked at.
 */
int python_code__read(const struct python_offsets *o, const struct python_memory *m, uint64_t code,
		      uint32_t check, struct python_code **out)
{
	__u64 words[PYTHON_CODE_BYTES / sizeof(__u64)];
	struct identity before;
	struct python_code *c;
	int err;

	*out = NULL;
	err = head__read(o, m, code, words, &before);
	if (err)
		return err;
	if (before.check != check || !before.live)
		return -ESTALE;
	c = calloc(1, sizeof(*c));
	if (!c)
		return -ENOMEM;
	err = code__fill(o, m, words, before.qualname, c);
	if (!is_same(o, m, code, &before))
		err = -ESTALE;
	if (err) {
		python_code__free(c);
		return err;
	}
	*out = c;
	return 0;
}

void python_code__free(struct python_code *c)
{
	if (!c)
		return;
	free(c->name);
	free(c->file);
	free(c->table);
	free(c);
}

uint32_t python_code__line(const struct python_code *c, const struct python_offsets *o, uint32_t offset)
{
	/* Without a table only what needs none is known. */
	if (!c->table && offset != PYTHON_OFFSET_START)
		return 0;
	return python_lines__at(o->lines, c->table, c->table_len, c->first_line, offset);
}

size_t python_code__memory(const struct python_code *c)
{
	return sizeof(*c) + (c->name ? strlen(c->name) + 1 : 0) + (c->file ? strlen(c->file) + 1 : 0) +
	       (c->table ? c->table_len + 1 : 0);
}
