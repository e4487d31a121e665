// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Damaged and hostile files: cut at every length, bytes changed everywhere, and random damage.
 * Whatever comes out must be well-formed, and walks over it must end. `make asan` runs this with
 * every access checked; each image lies in memory of exactly its size.
 */
#include <errno.h>
#include <malloc.h>
#include <stdio.h>

#include "tests/unit/elf_maker.h"
#include "tests/unit/unit.h"
#include "unwind/file.h"
#include "unwind/rows.h"
#include "unwind/stack.h"

#define NR_PAGES (MAKER_SIZE >> 12)
#define MAX_RULES 4096
#define MAX_ROWS 65536
#define BASE 0x7f0000000000ull

#ifdef __SANITIZE_ADDRESS__
#define FEWER 2		/* ten times slower, and looks closer at each */
#else
#define FEWER 1
#endif

static struct unwind_rule rules[MAX_RULES];
static struct unwind_row rows[MAX_ROWS];
static uint64_t seed = 88172645463325252ull;

static uint64_t random_word(void)
{
	seed ^= seed << 13;
	seed ^= seed >> 7;
	seed ^= seed << 17;
	return seed;
}

static int check_page(void *ctx, const struct page_key *key, const struct page_rows *page)
{
	(void)ctx;
	ck_assert_uint_lt(key->page, NR_PAGES + 1);
	ck_assert(page->nr >= 1 && page->nr <= GPUCOLLECT_MAX_PAGE_ROWS);
	ck_assert_uint_le(page->first + page->nr, MAX_ROWS);
	ck_assert_uint_eq(rows[page->first].pc, 0);
	for (uint32_t i = 0; i < page->nr; i++) {
		const struct unwind_row *row = &rows[page->first + i];
		const struct unwind_rule *rule = &rules[row->rule];

		ck_assert_uint_lt(row->rule, MAX_RULES);
		ck_assert(!i || (row->pc > row[-1].pc && row->rule != row[-1].rule));
		ck_assert(rule->cfa <= UNWIND_CFA_UNKNOWN && rule->cfa_reg < UNWIND_NR_REGS &&
			  rule->ra <= UNWIND_SAVE_DEREF && rule->ra_reg < UNWIND_NR_REGS &&
			  rule->rbp <= UNWIND_SAVE_DEREF && rule->rbp_reg < UNWIND_NR_REGS &&
			  rule->rbx <= UNWIND_SAVE_DEREF && rule->rbx != UNWIND_SAVE_REG &&
			  (rule->rsp == UNWIND_SAVE_SAME || rule->rsp == UNWIND_SAVE_REG) &&
			  rule->rsp_reg < UNWIND_NR_REGS && !rule->unused);
	}
	return 0;
}

static struct unwind_file *file_of(void *ctx, uint32_t id)
{
	(void)id;
	return ctx;
}

/* A stack of code addresses, addresses of the stack itself, and other numbers. */
static void walk_at_random(struct unwind_store *store, struct unwind_file *file)
{
	static __u64 stack[512], words[GPUCOLLECT_MAX_FRAMES];
	const struct mapping map = { BASE, BASE + MAKER_SIZE, 0, 1, MAPPING_FILE };
	const __u64 start = 0x7ffc00000000;
	__u64 regs[16];
	const struct unwind_stack_input in = {
		.regs = regs, .pc = BASE + 0x1000 + random_word() % 0x8000, .start = start,
		.stack = stack, .len = sizeof(stack), .mappings = &map, .nr_mappings = 1,
		.file = file_of, .ctx = file,
	};
	size_t n, max = 1 + random_word() % GPUCOLLECT_MAX_FRAMES;

	for (size_t i = 0; i < 512; i++)
		stack[i] = random_word() & 1 ? BASE + 0x1000 + random_word() % 0x8000 :
					       start + random_word() % sizeof(stack);
	for (int i = 0; i < 16; i++)
		regs[i] = start + random_word() % sizeof(stack);
	n = unwind_stack__walk(store, &in, words, max);
	ck_assert(n >= 1 && n <= max);
	for (size_t i = 0; i < n; i++)
		ck_assert((FRAME_KIND(words[i]) == FRAME_END) == (i == n - 1));
	ck_assert_uint_lt(FRAME_END_WHY(words[n - 1]), NR_END);
}

static void try(const uint8_t *image, size_t size)
{
	const struct unwind_store_config config = {
		.rules = rules, .rows = rows, .max_rules = MAX_RULES, .max_rows = MAX_ROWS,
		.max_pages = 64, .publish = check_page,
	};
	uint8_t *own = malloc(size ? size : 1);		/* so that a sanitizer sees its end */
	struct unwind_store *store;
	struct unwind_file *file;
	struct page_rows page;
	int err;

	memcpy(own, image, size);
	err = unwind_file__open_memory(&file, own, size);
	free(own);
	if (err) {
		ck_assert(err == -ENOTSUP || err == -EINVAL);
		return;
	}
	ck_assert_int_eq(unwind_store__new(&store, &config), 0);
	for (uint64_t nr = 0; nr <= NR_PAGES; nr++)
		ck_assert_int_eq(unwind_store__page(store, 1, file, nr, &page), 0);
	walk_at_random(store, file);
	unwind_store__free(store);
	unwind_file__free(file);
}

/* One of everything: rules of all kinds, recognised code, both sections, both segments. */
static void make(struct maker *m, bool wide, enum maker_table table)
{
	static const char *const insns[] = {
		"\x41\x0e\x10\x86\x02\x43\x0d\x06\x0a\x45\x0c\x07\x08\x41\x0b",
		"\x0f\x03\x76\x78\x06\x10\x06\x02\x76\x00\x10\x03\x02\x76\x70",
		"\x0f\x0b\x77\x08\x80\x00\x3f\x1a\x3b\x2a\x33\x24\x22",
		"\x0f\x04\x77\xa0\x01\x06\x10\x10\x03\x77\xa8\x01\x10\x06\x03\x77\xf8\x00",
		"\x09\x10\x05\x16\x03\x02\x77\x08\x2e\x10\x02\x04\x07\x10",
		"\x02\x40\x0e\x18\x03\x00\x02\x0e\x20\x04\x00\x02\x00\x00\x0e\x28",
	};
	static const size_t lens[] = { 15, 15, 13, 18, 14, 16 };

	memset(m, 0, sizeof(*m));
	m->debug = true;
	m->wide = wide;
	m->table = table;
	m->text_shift = 0x1000;
	m->entry = maker__code(m, 0x6f00);
	for (unsigned int i = 0; i < 12; i++)
		m->fdes[i] = (struct maker_fde){
			maker__code(m, 0x1000 + 0x280 * i), i % 4 ? 0x280 - i : 0x900,
			insns[i % 6], lens[i % 6], i == 7 || i == 9,
		};
	m->fdes[12] = (struct maker_fde){ maker__code(m, 0x7100), 0x40, insns[0], lens[0], false };
	m->nr_fdes = 13;
	memcpy(m->image + 0x6800, "\xff\x25\x01\x02\x03\x04\x68\x00\x00\x00\x00\xe9", 12);
	memcpy(m->image + 0x6900, "\x48\xc7\xc0\x0f\x00\x00\x00\x0f\x05", 9);
	maker__build(m);
}

static struct maker m;

START_TEST(cut_at_every_length)
{
	mallopt(M_TRIM_THRESHOLD, 64 << 20);	/* else each try costs system calls */
	make(&m, false, TABLE_GOOD);
	for (size_t size = 0; size < sizeof(m.image); size += size < MAKER_SHDRS + 0x150 ? FEWER : 211)
		try(m.image, size);
}
END_TEST

static bool thorough(void)
{
	return getenv("GPUCOLLECT_TEST_FULL");
}

static void change_range(size_t from, size_t to)
{
	static const uint8_t values[] = { 0xff, 0x80, 0x00, 0x7f, 0x01 };
	size_t nr = thorough() ? sizeof(values) : 2 / FEWER;

	for (size_t at = from; at < to; at++) {
		uint8_t before = m.image[at];

		for (size_t i = 0; i <= nr; i++) {
			m.image[at] = i < nr ? values[i] : (uint8_t)(before + 1);
			if (m.image[at] != before)
				try(m.image, sizeof(m.image));
		}
		m.image[at] = before;
	}
}

/* Every byte of headers, tables and entries, set to what breaks parsers. */
static void change_bytes(bool wide, enum maker_table table)
{
	mallopt(M_TRIM_THRESHOLD, 64 << 20);
	make(&m, wide, table);
	change_range(EI_CLASS, sizeof(Elf64_Ehdr) + 4 * sizeof(Elf64_Phdr));
	change_range(MAKER_HDR, MAKER_HDR + 12 + 8 * 11);
	change_range(MAKER_EH, MAKER_EH + m.eh_size);
	change_range(MAKER_DEBUG, MAKER_DEBUG + m.debug_size);
	change_range(MAKER_SHDRS, MAKER_SHDRS + 4 * sizeof(Elf64_Shdr) + 40);
}

START_TEST(every_byte_changed)
{
	change_bytes(false, TABLE_GOOD);
}
END_TEST

START_TEST(every_byte_changed_of_another_form)
{
	change_bytes(true, TABLE_OMITTED);
}
END_TEST

START_TEST(damaged_at_random)
{
	static uint8_t image[MAKER_SIZE];

	for (int round = 0; round < (thorough() ? 100000 : 4000 / FEWER); round++) {
		unsigned int damages = 1 + random_word() % 8;

		if (round % 1000 == 0)
			make(&m, round % 2000, round % 4000 < 2000 ? TABLE_GOOD : TABLE_UNSORTED);
		memcpy(image, m.image, sizeof(image));
		for (unsigned int i = 0; i < damages; i++) {
			size_t at = EI_CLASS + random_word() % (MAKER_TEXT - 16);
			uint64_t v = random_word() >> random_word() % 64;

			memcpy(image + at, &v, 1 + random_word() % 8);
		}
		try(image, sizeof(image));
	}
}
END_TEST

START_TEST(nothing_but_noise)
{
	static uint8_t image[MAKER_SIZE];

	for (int round = 0; round < 1000; round++) {
		make(&m, false, TABLE_GOOD);
		memcpy(image, m.image, sizeof(image));
		/* valid headers, noise as unwind information */
		for (size_t at = MAKER_EH; at < MAKER_SHDRS; at += 8) {
			uint64_t v = random_word();

			memcpy(image + at, &v, 8);
		}
		try(image, sizeof(image));
	}
}
END_TEST

UNIT_MAIN("unwind_hostile", cut_at_every_length, every_byte_changed,
	  every_byte_changed_of_another_form, damaged_at_random, nothing_but_noise)
