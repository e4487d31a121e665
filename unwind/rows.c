// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "unwind/rows.h"
#include "loader/base/table.h"
#include "unwind/page.h"
#include "unwind/rules.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define MAX_RULES 65535u	/* PAGE_UNCOVERED is none */

struct unwind_store {
	struct unwind_store_config config;
	struct rule_set *rules;
	struct table *pages;	/* file << 32 | page -> first << 32 | nr */
	uint32_t nr_rows;
	struct unwind_store_stats stats;
	struct page page;	/* scratch */
};

static uint64_t store__key(uint32_t id, uint64_t page)
{
	return (uint64_t)id << 32 | page;
}

/* Rows and rules are overwritten afterwards, so no reader may have a page any more. */
static int store__flush(struct unwind_store *store)
{
	struct table *pages = table__new();

	if (!pages)
		return -ENOMEM;
	if (store->config.flush)
		store->config.flush(store->config.ctx);
	table__free(store->pages);
	store->pages = pages;
	store->nr_rows = 0;
	rule_set__clear(store->rules);
	store->stats.flushes++;
	return 0;
}

static int store__make_room(struct unwind_store *store)
{
	if (store->config.max_rows - store->nr_rows >= PAGE_BYTES &&
	    table__count(store->pages) < store->config.max_pages)
		return 0;
	return store__flush(store);
}

/* Leaves the page in store->page. -ENOMEM only: a file that can't be read has no rows. */
static int store__compile(struct unwind_store *store, struct unwind_file *file, uint64_t nr)
{
	struct page *page = &store->page;
	int err = file ? page__compile(page, file, nr) : 0;

	if (err == -ENOSPC) {
		err = store__flush(store);
		if (!err)
			err = page__compile(page, file, nr);
	}
	if (err == -ENOMEM)
		return err;
	if (!file || err)
		memset(page->rule, 0xff, sizeof(page->rule));
	store->stats.failed_pages += err != 0;
	return 0;
}

static void store__count(struct unwind_store *store, const struct page_rows *rows)
{
	struct unwind_store_stats *stats = &store->stats;

	stats->pages++;
	stats->rows += rows->nr;
	stats->empty_pages += rows->nr == 1 && store->config.rows[rows->first].rule == 0;
	stats->plt_pages += store->page.plt;
	stats->sigreturn_pages += store->page.sigreturn;
}

static int store__publish(struct unwind_store *store, uint32_t id, uint64_t page,
			  const struct page_rows *rows)
{
	const struct page_key key = { .file = id, .page = (uint32_t)page };
	uint64_t value = (uint64_t)rows->first << 32 | rows->nr;
	int err;

	err = table__set(store->pages, store__key(id, page), value);
	if (err || !store->config.publish)
		return err;
	err = store->config.publish(store->config.ctx, &key, rows);
	if (err)
		table__remove(store->pages, store__key(id, page));
	return err;
}

int unwind_store__page(struct unwind_store *store, uint32_t id, struct unwind_file *file,
		       uint64_t page, struct page_rows *out)
{
	uint64_t value;
	int err;

	if (page > UINT32_MAX)
		return -EINVAL;
	if (table__get(store->pages, store__key(id, page), &value)) {
		out->first = (uint32_t)(value >> 32);
		out->nr = (uint32_t)value;
		return 0;
	}
	store->page.plt = false;
	store->page.sigreturn = false;
	err = store__make_room(store);
	if (!err)
		err = store__compile(store, file, page);
	if (err)
		return err;
	out->first = store->nr_rows;
	out->nr = page__rows(&store->page, &store->config.rows[out->first]);
	err = store__publish(store, id, page, out);
	if (err)
		return err;
	store->nr_rows += out->nr;
	store__count(store, out);
	return 0;
}

int unwind_store__rule(struct unwind_store *store, uint32_t id, struct unwind_file *file,
		       uint64_t offset, struct unwind_rule *rule)
{
	uint32_t low = offset & (PAGE_BYTES - 1), lo, hi;
	struct page_rows rows;
	int err;

	err = unwind_store__page(store, id, file, offset >> GPUCOLLECT_PAGE_SHIFT, &rows);
	if (err)
		return err;
	lo = rows.first;
	hi = rows.first + rows.nr;
	while (hi - lo > 1) {
		uint32_t mid = lo + (hi - lo) / 2;

		if (store->config.rows[mid].pc <= low)
			lo = mid;
		else
			hi = mid;
	}
	*rule = store->config.rules[store->config.rows[lo].rule];
	return 0;
}

void unwind_store__stats(const struct unwind_store *store, struct unwind_store_stats *stats)
{
	*stats = store->stats;
	stats->rules_now = rule_set__count(store->rules);
	stats->rows_now = store->nr_rows;
	stats->pages_now = (uint32_t)table__count(store->pages);
}

int unwind_store__new(struct unwind_store **out, const struct unwind_store_config *config)
{
	struct unwind_store *store;
	int err = -ENOMEM;

	if (!config->rules || !config->rows || config->max_rules < 2 ||
	    config->max_rows < PAGE_BYTES || !config->max_pages)
		return -EINVAL;
	store = calloc(1, sizeof(*store));
	if (!store)
		return -ENOMEM;
	store->config = *config;
	if (store->config.max_rules > MAX_RULES)
		store->config.max_rules = MAX_RULES;
	store->pages = table__new();
	if (store->pages)
		err = rule_set__new(&store->rules, config->rules, store->config.max_rules);
	if (err) {
		unwind_store__free(store);
		return err;
	}
	store->page.rules = store->rules;
	store->page.cfi = &store->stats.cfi;
	*out = store;
	return 0;
}

void unwind_store__free(struct unwind_store *store)
{
	if (!store)
		return;
	rule_set__free(store->rules);
	table__free(store->pages);
	free(store);
}
