// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * What is looked for, in init_code of CPython's Objects/codeobject.c, as compilers put it:
 *
 *	mov	COUNTER, %eax		the version that is next, 0: there are no more
 *	mov	%eax, VERSION(%rbx)	into the code object
 *	...				one more, unless it is 0
 *	mov	%ecx, COUNTER
 *
 * COUNTER is far behind a register (PyInterpreterState), relative to the instruction, or at a register that
 * such an address was put into (lea). Encodings: Intel SDM volume 2, chapters 2.1 and 2.2.
 */
#include "unwind/python_versions.h"

#include <errno.h>
#include <string.h>

#include "unwind/elf_code.h"

#define BEFORE 96		/* bytes in which the load is looked for, and the lea before it */
#define BEHIND 48		/* the same of the second store */
#define LONGEST 16		/* an instruction */
#define OVERLAP (2 * BEFORE + BEHIND + 2 * LONGEST)
#define MIN_FAR 1024		/* the first members of PyInterpreterState are others */

#define MOV_STORE 0x89
#define MOV_LOAD 0x8b
#define LEA 0x8d
#define RIP 16			/* number of a register that there isn't */

struct search {
	const uint8_t *code;
	size_t len;
	uint64_t vaddr;
	uint32_t code_version;
	struct python_versions *out;
	unsigned int nr;	/* places found, equal ones once */
};

/* A register and a place in memory: disp(base), or the address disp with base RIP. */
struct operands {
	unsigned int reg, base;
	uint64_t disp;
	bool wide;
	size_t end;		/* index behind the instruction */
};

/*
 * The instruction whose opcode is at `at`. Whether what looks like its prefix (REX) is one, or the end of the
 * instruction before, isn't known: `prefixed` says which is meant.
 */
static bool decode(const struct search *s, size_t at, uint8_t opcode, bool prefixed, struct operands *o)
{
	uint8_t rex = prefixed && at ? s->code[at - 1] : 0;
	const uint8_t *p = s->code + at + 1;
	unsigned int mod, rm;
	int32_t far;

	if (at + LONGEST > s->len || s->code[at] != opcode || (prefixed && (rex & 0xf0) != 0x40))
		return false;
	mod = *p >> 6;
	rm = *p & 7;
	o->wide = rex & 8;
	o->reg = (*p++ >> 3 & 7) | (rex & 4) << 1;
	o->base = rm | (rex & 1) << 3;
	if (mod == 3 || (rm == 4 && *p++ != 0x24))
		return false;
	o->disp = 0;
	if (mod == 1) {
		o->disp = (uint64_t)(int64_t)(int8_t)*p++;
	} else if (mod == 2 || rm == 5) {
		memcpy(&far, p, sizeof(far));
		p += sizeof(far);
		o->disp = (uint64_t)(int64_t)far;
	}
	o->end = (size_t)(p - s->code);
	if (mod == 0 && rm == 5) {
		o->base = RIP;
		o->disp += s->vaddr + o->end;
	}
	return true;
}

static bool decode_mov(const struct search *s, size_t at, uint8_t opcode, bool prefixed, struct operands *o)
{
	return decode(s, at, opcode, prefixed, o) && !o->wide;
}

static bool same_place(const struct operands *a, const struct operands *b)
{
	return a->base == b->base && a->disp == b->disp;
}

static void search__found(struct search *s, bool of_interpreter, uint64_t at)
{
	if (s->nr && s->out->of_interpreter == of_interpreter && s->out->at == at)
		return;
	*s->out = (struct python_versions){ of_interpreter, at };
	s->nr++;
}

/* The address in a register comes from the last lea into it. */
static void search__pointer(struct search *s, const struct operands *counter, size_t load)
{
	size_t first = load > BEFORE ? load - BEFORE : 0;
	struct operands lea;

	for (size_t i = load; i-- > first;)
		if (decode(s, i, LEA, true, &lea) && lea.wide && lea.reg == counter->base &&
		    lea.end <= load) {
			if (lea.base == RIP)
				search__found(s, false, lea.disp + counter->disp);
			return;
		}
}

static bool search__stored(const struct search *s, const struct operands *counter, size_t from)
{
	struct operands store;

	for (size_t i = from; i < from + BEHIND && i < s->len; i++)
		for (int prefixed = 0; prefixed < 2; prefixed++)
			if (decode_mov(s, i, MOV_STORE, prefixed, &store) && same_place(&store, counter))
				return true;
	return false;
}

static void search__counter(struct search *s, const struct operands *load, size_t at)
{
	if (load->base == RIP)
		search__found(s, false, load->disp);
	else if (load->disp < MIN_FAR)
		search__pointer(s, load, at);
	else if (load->disp <= INT32_MAX)
		search__found(s, true, load->disp);
}

/* The instruction whose opcode is at `at` may put a version into a code object. */
static void search__version(struct search *s, size_t at, const struct operands *version)
{
	size_t first = at > BEFORE ? at - BEFORE : 0;
	struct operands load;

	for (size_t i = at; i-- > first;)
		for (int prefixed = 0; prefixed < 2; prefixed++) {
			if (!decode_mov(s, i, MOV_LOAD, prefixed, &load) || load.reg != version->reg ||
			    load.end > at || !search__stored(s, &load, version->end))
				continue;
			search__counter(s, &load, i);
			return;
		}
}

static void search__run(struct search *s)
{
	const uint8_t *at = s->code, *end = s->code + s->len;
	struct operands o;

	while (at < end && (at = memchr(at, MOV_STORE, (size_t)(end - at)))) {
		size_t i = (size_t)(at++ - s->code);

		for (int prefixed = 0; prefixed < 2; prefixed++)
			if (decode_mov(s, i, MOV_STORE, prefixed, &o) && o.base != RIP &&
			    o.disp == s->code_version)
				search__version(s, i, &o);
	}
}

int python_versions__decode(const uint8_t *code, size_t len, uint64_t vaddr, unsigned int code_version,
			    struct python_versions *out)
{
	struct search s = { code, len, vaddr, code_version, out, 0 };

	search__run(&s);
	return s.nr == 1 ? 0 : -ENOENT;
}

static int search__piece(void *ctx, const uint8_t *code, size_t len, uint64_t vaddr)
{
	struct search *s = ctx;

	s->code = code;
	s->len = len;
	s->vaddr = vaddr;
	search__run(s);
	return 0;
}

int python_versions__find(struct elf_view *view, unsigned int code_version, struct python_versions *out)
{
	struct search s = { .code_version = code_version, .out = out };
	int err = elf_code__each(view, OVERLAP, search__piece, &s);

	return err ? err : s.nr == 1 ? 0 : -ENOENT;
}
