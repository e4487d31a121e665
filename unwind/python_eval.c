// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The pieces of the interpreter's function. Compilers move what is rarely run to a place of its own,
 * whose name a stripped file doesn't tell; on some systems that is nearly all of the function. Such a
 * piece has unwind information of its own, and is reached by jumps from the function's middle into it
 * with the frame as it stands, which nothing does that belongs to another function.
 */
#include "unwind/cfi.h"
#include "unwind/elf_view.h"
#include "unwind/file.h"
#include "unwind/python_runtime.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define MAX_CODE (1u << 20)	/* bytes of a piece that are looked at */
#define MAX_LOOKS 8192		/* jumps that are followed: all that bytes may be taken for */
#define MAX_CANDIDATES 64

/* What covers an address, and how to unwind from there. */
struct place {
	uint64_t start, end;
	uint64_t at;
	struct unwind_rule rule;
	bool found;
};

struct candidate {
	uint64_t start, end;
	unsigned int hits;
	bool begins;		/* as a function does, with nothing on the stack */
};

struct search {
	struct elf_view *view;
	struct fde_index *fdes;
	unsigned int looks;
	struct candidate candidates[MAX_CANDIDATES];
	unsigned int nr;
};

static int place__rule(void *ctx, uint64_t start, uint64_t end, const struct unwind_rule *rule)
{
	struct place *p = ctx;

	if (p->at >= start && p->at < end)
		p->rule = *rule;
	return 0;
}

static int place__fde(void *ctx, const struct fde *fde)
{
	struct place *p = ctx;
	struct cfi_stats stats = {};

	if (p->at < fde->start || p->at >= fde->end)
		return 0;
	p->start = fde->start;
	p->end = fde->end;
	p->found = true;
	return cfi__run(fde, p->at, p->at + 1, place__rule, p, &stats);
}

/* 0 or -ENOENT: no unwind information. */
static int search__look(struct search *s, uint64_t at, struct place *p)
{
	int err = -EAGAIN;

	*p = (struct place){ .at = at };
	if (s->looks++ > MAX_LOOKS)
		return -ENOENT;
	for (int i = 0; i < 2 && err == -EAGAIN; i++)
		err = fde_index__each(s->fdes, at, at + 1, place__fde, p);
	if (err == -EAGAIN)
		return -ENOENT;
	return err ? err : p->found ? 0 : -ENOENT;
}

static bool same_rule(const struct unwind_rule *a, const struct unwind_rule *b)
{
	return a->cfa == UNWIND_CFA_REG && !memcmp(a, b, sizeof(*a));
}

static bool search__code(const struct search *s, uint64_t at)
{
	size_t nr;
	const struct elf_segment *seg = elf_view__segments(s->view, &nr);

	for (size_t i = 0; i < nr; i++)
		if (seg[i].executable && at - seg[i].vaddr < seg[i].size)
			return true;
	return false;
}

static bool at_entry(const struct unwind_rule *rule)
{
	return rule->cfa == UNWIND_CFA_REG && rule->cfa_reg == UNWIND_RSP && rule->cfa_off <= 8;
}

/* A jump with the same frame at both ends, other than that of a function that has just begun. */
static int search__jump(struct search *s, uint64_t from, uint64_t to)
{
	struct candidate *c = s->candidates;
	struct place source, target, start;
	int err = search__look(s, to, &target);

	if (!err)
		err = search__look(s, from, &source);
	if (err)
		return err == -ENOENT ? 0 : err;
	if (!same_rule(&source.rule, &target.rule) || at_entry(&source.rule))
		return 0;
	while (c < s->candidates + s->nr && c->start != target.start)
		c++;
	if (c == s->candidates + MAX_CANDIDATES)
		return 0;
	if (c == s->candidates + s->nr) {
		err = search__look(s, target.start, &start);
		if (err)
			return err == -ENOENT ? 0 : err;
		*c = (struct candidate){ target.start, target.end, 0, at_entry(&start.rule) };
		s->nr++;
	}
	c->hits++;
	return 0;
}

/*
 * Calls search__jump for what may be a jump from [start, end) to elsewhere, or into [into, to) alone
 * if there is such a range. Bytes aren't decoded from the start of an instruction: what is none leads
 * nowhere, or to another frame.
 */
static int search__jumps(struct search *s, uint64_t start, uint64_t end, const struct python_range *into,
			 unsigned int *back)
{
	uint64_t offset, left, len = end - start;
	uint8_t *code;
	int err;

	if (!elf_view__offset(s->view, start, &offset, &left) || left < len || len > MAX_CODE)
		return -ENOENT;
	code = malloc(len);
	if (!code)
		return -ENOMEM;
	err = elf_view__read(s->view, offset, code, len);
	for (uint64_t i = 0; !err && i + 6 <= len; i++) {
		uint32_t skip = code[i] == 0xe9 ? 1 : code[i] == 0x0f && (code[i + 1] & 0xf0) == 0x80 ? 2 : 0;
		int32_t step;
		uint64_t to;

		if (!skip)
			continue;
		memcpy(&step, code + i + skip, sizeof(step));
		to = start + i + skip + 4 + (uint64_t)(int64_t)step;
		if (into)
			*back += to > into->start && to < into->end;
		else if ((to < start || to >= end) && search__code(s, to))
			err = search__jump(s, start + i, to);
	}
	free(code);
	return err;
}

static int add_range(struct search *s, uint64_t start, uint64_t end, struct python_range *eval,
		     unsigned int *nr)
{
	uint64_t offset, left;

	if (!elf_view__offset(s->view, start, &offset, &left) || left < end - start)
		return -ENOENT;
	eval[(*nr)++] = (struct python_range){ offset, offset + (end - start) };
	return 0;
}

static int search__run(struct search *s, uint64_t vaddr, struct python_range *eval, unsigned int *nr)
{
	struct python_range main;
	struct place place;
	int err = search__look(s, vaddr, &place);

	if (!err)
		err = add_range(s, place.start, place.end, eval, nr);
	if (!err)
		err = search__jumps(s, place.start, place.end, NULL, NULL);
	main = (struct python_range){ place.start, place.end };
	for (unsigned int i = 0; !err && i < s->nr && *nr < PYTHON_MAX_EVAL; i++) {
		struct candidate *c = &s->candidates[i];
		unsigned int back = 0;

		err = search__jumps(s, c->start, c->end, &main, &back);
		/* Bytes that are no jump may lead into any function, seldom twice and there and back. */
		if (!err && (!c->begins || (back && c->hits > 1)))
			err = add_range(s, c->start, c->end, eval, nr);
		if (err == -ENOENT)
			err = 0;
	}
	return err;
}

int python_eval__find(int fd, uint64_t vaddr, struct python_range *eval, unsigned int *nr)
{
	struct unwind_file *file = NULL;
	struct search *s = calloc(1, sizeof(*s));
	int err = s ? unwind_file__open(&file, fd) : -ENOMEM;

	*nr = 0;
	if (!err) {
		s->view = unwind_file__view(file);
		s->fdes = unwind_file__fdes(file, FDE_EH_FRAME);
		err = s->fdes ? search__run(s, vaddr, eval, nr) : -ENOENT;
	}
	unwind_file__free(file);
	free(s);
	return err;
}
