// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The store: what it hands to its readers and when, and what it does when it is full. */
#include <errno.h>
#include <stdio.h>

#include "tests/unit/elf_maker.h"
#include "tests/unit/unit.h"
#include "unwind/file.h"
#include "unwind/rows.h"
#include "unwind/rules.h"

#define MAX_RULES 64
#define MAX_ROWS 8192

struct reader {
	struct unwind_rule rules[MAX_RULES];
	struct unwind_row rows[MAX_ROWS];
	struct unwind_store *store;
	struct unwind_file *file;
	/* the page table that a reader would look into */
	struct page_key keys[64];
	struct page_rows pages[64];
	unsigned int nr_pages;
	unsigned int flushes;
	int refuse;
};

static int publish(void *ctx, const struct page_key *key, const struct page_rows *rows)
{
	struct reader *r = ctx;

	if (r->refuse)
		return r->refuse;
	ck_assert_uint_lt(r->nr_pages, 64);
	/* all that a reader needs is there before it can find the page */
	ck_assert_uint_ge(rows->nr, 1);
	ck_assert_uint_le(rows->first + rows->nr, MAX_ROWS);
	ck_assert_uint_eq(r->rows[rows->first].pc, 0);
	for (uint32_t i = 1; i < rows->nr; i++) {
		ck_assert_uint_gt(r->rows[rows->first + i].pc, r->rows[rows->first + i - 1].pc);
		ck_assert_uint_ne(r->rows[rows->first + i].rule,
				  r->rows[rows->first + i - 1].rule);
	}
	r->keys[r->nr_pages] = *key;
	r->pages[r->nr_pages++] = *rows;
	return 0;
}

static void flush(void *ctx)
{
	struct reader *r = ctx;

	r->nr_pages = 0;
	r->flushes++;
}

static struct unwind_store_config config_of(struct reader *r)
{
	return (struct unwind_store_config){
		.rules = r->rules, .rows = r->rows, .max_rules = MAX_RULES,
		.max_rows = MAX_ROWS, .max_pages = 16, .publish = publish, .flush = flush,
		.ctx = r,
	};
}

/* Pages 1 to 5 hold a function each, of 15 rows: CFA = rsp + 8, 16, 24, … 120 */
static void make_file(struct reader *r)
{
	static struct maker m;
	static char insns[5][64];

	memset(&m, 0, sizeof(m));
	for (unsigned int i = 0; i < 5; i++) {
		for (unsigned int k = 0; k < 14; k++) {
			insns[i][3 * k] = 0x44;			/* advance 4 */
			insns[i][3 * k + 1] = 0x0e;		/* CFA = rsp + … */
			insns[i][3 * k + 2] = (char)(16 + 8 * k);
		}
		m.fdes[i] = (struct maker_fde){ 0x1000 * (i + 1), 0x80, insns[i], 42, false };
	}
	m.nr_fdes = 5;
	maker__build(&m);
	ck_assert_int_eq(unwind_file__open_memory(&r->file, m.image, sizeof(m.image)), 0);
}

static struct reader *new_reader(struct unwind_store_config *config)
{
	struct reader *r = calloc(1, sizeof(*r));
	struct unwind_store_config own = config_of(r);

	if (config->max_rules)
		own.max_rules = config->max_rules;
	if (config->max_rows)
		own.max_rows = config->max_rows;
	if (config->max_pages)
		own.max_pages = config->max_pages;
	make_file(r);
	ck_assert_int_eq(unwind_store__new(&r->store, &own), 0);
	return r;
}

static void free_reader(struct reader *r)
{
	unwind_store__free(r->store);
	unwind_file__free(r->file);
	free(r);
}

static struct page_rows get(struct reader *r, uint32_t id, uint64_t page)
{
	struct page_rows out;

	ck_assert_int_eq(unwind_store__page(r->store, id, r->file, page, &out), 0);
	return out;
}

START_TEST(a_page_is_compiled_and_published_once)
{
	struct unwind_store_config config = { 0 };
	struct reader *r = new_reader(&config);
	struct unwind_store_stats stats;
	struct page_rows a, b;

	a = get(r, 7, 2);
	ck_assert_uint_eq(r->nr_pages, 1);
	ck_assert_uint_eq(r->keys[0].file, 7);
	ck_assert_uint_eq(r->keys[0].page, 2);
	ck_assert_mem_eq(&r->pages[0], &a, sizeof(a));
	ck_assert_uint_eq(a.nr, 16);		/* 15 of the function, none behind it */
	b = get(r, 7, 2);
	ck_assert_mem_eq(&a, &b, sizeof(a));
	ck_assert_uint_eq(r->nr_pages, 1);
	/* the same page of another file is another page, over the same rules */
	b = get(r, 8, 2);
	ck_assert_uint_eq(b.first, a.first + a.nr);
	ck_assert_uint_eq(r->nr_pages, 2);
	ck_assert_uint_eq(r->keys[1].file, 8);
	for (uint32_t i = 0; i < a.nr; i++)
		ck_assert_uint_eq(r->rows[a.first + i].rule, r->rows[b.first + i].rule);
	unwind_store__stats(r->store, &stats);
	ck_assert_uint_eq(stats.pages, 2);
	ck_assert_uint_eq(stats.rows, 32);
	ck_assert_uint_eq(stats.rows_now, 32);
	ck_assert_uint_eq(stats.pages_now, 2);
	ck_assert_uint_eq(stats.rules_now, 16);	/* 15 and "none" */
	ck_assert_uint_eq(stats.cfi.rows, 30);
	free_reader(r);
}
END_TEST

START_TEST(files_and_pages_without_code_have_one_row)
{
	struct unwind_store_config config = { 0 };
	struct reader *r = new_reader(&config);
	struct unwind_store_stats stats;
	struct page_rows page;

	page = get(r, 1, 100);
	ck_assert_uint_eq(page.nr, 1);
	ck_assert_uint_eq(r->rows[page.first].rule, 0);
	ck_assert_int_eq(unwind_store__page(r->store, 2, NULL, 1, &page), 0);
	ck_assert_uint_eq(page.nr, 1);
	ck_assert_uint_eq(r->rows[page.first].rule, 0);
	ck_assert_uint_eq(r->nr_pages, 2);
	unwind_store__stats(r->store, &stats);
	ck_assert_uint_eq(stats.empty_pages, 2);
	ck_assert_uint_eq(stats.failed_pages, 0);
	ck_assert_uint_eq(r->rules[0].cfa, UNWIND_CFA_NONE);
	ck_assert_int_eq(unwind_store__page(r->store, 1, NULL, 1ull << 32, &page), -EINVAL);
	free_reader(r);
}
END_TEST

START_TEST(full_of_rows_it_starts_again)
{
	struct unwind_store_config config = { .max_rows = GPUCOLLECT_MAX_PAGE_ROWS + 40 };
	struct reader *r = new_reader(&config);
	struct unwind_store_stats stats;
	struct page_rows page;

	get(r, 1, 1);
	get(r, 1, 2);
	get(r, 1, 3);		/* 48 rows: a page of the largest size does not fit behind them */
	ck_assert_uint_eq(r->flushes, 0);
	page = get(r, 1, 4);
	ck_assert_uint_eq(r->flushes, 1);
	ck_assert_uint_eq(page.first, 0);
	ck_assert_uint_eq(r->nr_pages, 1);
	ck_assert_uint_eq(r->keys[0].page, 4);
	get(r, 1, 1);		/* was dropped: compiled again */
	ck_assert_uint_eq(r->nr_pages, 2);
	unwind_store__stats(r->store, &stats);
	ck_assert_uint_eq(stats.flushes, 1);
	ck_assert_uint_eq(stats.pages, 5);
	ck_assert_uint_eq(stats.pages_now, 2);
	free_reader(r);
}
END_TEST

START_TEST(full_of_pages_it_starts_again)
{
	struct unwind_store_config config = { .max_pages = 3 };
	struct reader *r = new_reader(&config);

	for (uint32_t id = 1; id <= 4; id++)
		get(r, id, 1);
	ck_assert_uint_eq(r->flushes, 1);
	ck_assert_uint_eq(r->nr_pages, 1);
	free_reader(r);
}
END_TEST

START_TEST(full_of_rules_it_starts_again)
{
	struct unwind_store_config config = { .max_rules = 17 };
	struct reader *r = new_reader(&config);
	struct unwind_store_stats stats;
	struct unwind_file *other;
	static struct maker m = { .nr_fdes = 1,
				  .fdes = { { 0x1000, 0x10, "\x0c\x06\x10", 3, false } } };
	static struct maker n = { .nr_fdes = 1,
				  .fdes = { { 0x1000, 0x10, "\x0c\x06\x18", 3, false } } };
	struct page_rows page;
	struct unwind_rule rule;

	get(r, 1, 1);		/* 16 rules */
	maker__build(&m);
	ck_assert_int_eq(unwind_file__open_memory(&other, m.image, sizeof(m.image)), 0);
	ck_assert_int_eq(unwind_store__page(r->store, 2, other, 1, &page), 0);
	ck_assert_uint_eq(r->flushes, 0);
	unwind_file__free(other);
	maker__build(&n);
	ck_assert_int_eq(unwind_file__open_memory(&other, n.image, sizeof(n.image)), 0);
	ck_assert_int_eq(unwind_store__rule(r->store, 3, other, 0x1008, &rule), 0);
	ck_assert_uint_eq(rule.cfa_reg, UNWIND_RBP);
	ck_assert_int_eq(rule.cfa_off, 24);
	ck_assert_uint_eq(r->flushes, 1);
	ck_assert_uint_eq(r->nr_pages, 1);
	unwind_store__stats(r->store, &stats);
	ck_assert_uint_eq(stats.rules_now, 2);
	unwind_file__free(other);
	free_reader(r);
}
END_TEST

START_TEST(a_page_with_more_rules_than_there_is_room_for)
{
	struct unwind_store_config config = { .max_rules = 4 };
	struct reader *r = new_reader(&config);
	struct unwind_store_stats stats;
	struct page_rows page = get(r, 1, 1);

	ck_assert_uint_eq(page.nr, 1);
	ck_assert_uint_eq(r->rows[page.first].rule, 0);
	unwind_store__stats(r->store, &stats);
	ck_assert_uint_eq(stats.failed_pages, 1);
	free_reader(r);
}
END_TEST

START_TEST(what_can_not_be_published_is_not_known)
{
	struct unwind_store_config config = { 0 };
	struct reader *r = new_reader(&config);
	struct page_rows page;

	r->refuse = -E2BIG;
	ck_assert_int_eq(unwind_store__page(r->store, 1, r->file, 1, &page), -E2BIG);
	r->refuse = 0;
	page = get(r, 1, 1);
	ck_assert_uint_eq(page.first, 0);
	ck_assert_uint_eq(r->nr_pages, 1);
	free_reader(r);
}
END_TEST

START_TEST(the_rule_of_an_offset)
{
	struct unwind_store_config config = { 0 };
	struct reader *r = new_reader(&config);
	struct unwind_rule rule;

	for (uint64_t at = 0; at < 0x1000; at++) {
		ck_assert_int_eq(unwind_store__rule(r->store, 1, r->file, 0x3000 + at, &rule), 0);
		if (at >= 0x80) {
			ck_assert_uint_eq(rule.cfa, UNWIND_CFA_NONE);
			continue;
		}
		ck_assert_uint_eq(rule.cfa, UNWIND_CFA_REG);
		ck_assert_int_eq(rule.cfa_off, 8 + 8 * (int)(at / 4 < 14 ? at / 4 : 14));
	}
	free_reader(r);
}
END_TEST

START_TEST(a_store_without_readers)
{
	struct reader *r = calloc(1, sizeof(*r));
	struct unwind_store_config config = config_of(r);
	struct page_rows page;

	config.publish = NULL;
	config.flush = NULL;
	config.max_pages = 1;
	make_file(r);
	ck_assert_int_eq(unwind_store__new(&r->store, &config), 0);
	ck_assert_int_eq(unwind_store__page(r->store, 1, r->file, 1, &page), 0);
	ck_assert_int_eq(unwind_store__page(r->store, 1, r->file, 2, &page), 0);
	ck_assert_uint_eq(page.first, 0);
	free_reader(r);
	unwind_store__free(NULL);
	unwind_file__free(NULL);
}
END_TEST

START_TEST(too_little_storage_is_refused)
{
	struct reader *r = calloc(1, sizeof(*r));
	struct unwind_store_config config = config_of(r);

	config.max_rows = GPUCOLLECT_MAX_PAGE_ROWS - 1;
	ck_assert_int_eq(unwind_store__new(&r->store, &config), -EINVAL);
	config = config_of(r);
	config.max_rules = 1;
	ck_assert_int_eq(unwind_store__new(&r->store, &config), -EINVAL);
	config = config_of(r);
	config.max_pages = 0;
	ck_assert_int_eq(unwind_store__new(&r->store, &config), -EINVAL);
	free(r);
}
END_TEST

START_TEST(rules_are_interned)
{
	static struct unwind_rule array[5000];
	struct rule_set *set;

	ck_assert_int_eq(rule_set__new(&set, array, 5000), 0);
	for (int round = 0; round < 2; round++)
		for (int i = 1; i < 5000; i++) {
			const struct unwind_rule rule = { .cfa = UNWIND_CFA_REG, .cfa_off = i };

			ck_assert_int_eq(rule_set__intern(set, &rule), i);
			ck_assert_int_eq(array[i].cfa_off, i);
		}
	ck_assert_int_eq(rule_set__intern(set, &(struct unwind_rule){ 0 }), 0);
	ck_assert_int_eq(rule_set__intern(set, &(struct unwind_rule){ .cfa_off = 1 }), -ENOSPC);
	ck_assert_uint_eq(rule_set__count(set), 5000);
	rule_set__clear(set);
	ck_assert_uint_eq(rule_set__count(set), 1);
	ck_assert_int_eq(rule_set__intern(set, &(struct unwind_rule){ .cfa_off = 9 }), 1);
	rule_set__free(set);
	rule_set__free(NULL);
}
END_TEST

UNIT_MAIN("rows", a_page_is_compiled_and_published_once,
	  files_and_pages_without_code_have_one_row, full_of_rows_it_starts_again,
	  full_of_pages_it_starts_again, full_of_rules_it_starts_again,
	  a_page_with_more_rules_than_there_is_room_for, what_can_not_be_published_is_not_known,
	  the_rule_of_an_offset, a_store_without_readers, too_little_storage_is_refused,
	  rules_are_interned)
