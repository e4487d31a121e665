// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "symbols/kernel.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "symbols/name_order.h"

#define MAX_TEXT (256u << 20)
#define MAX_ENTRIES (1u << 23)
#define MAX_MODULES 65535
#define NOT_TEXT 0xff		/* only says where the text before ends */
#define PAGE 4096

struct kernel_entry {
	uint64_t address;
	uint32_t name;		/* in names */
	uint16_t module;	/* 0: the kernel; else modules[module - 1] */
	uint8_t rank;		/* 0 global, 1 weak, 2 local, NOT_TEXT */
};

struct kernel_symbols {
	struct kernel_entry *entries;	/* sorted by address, one for each */
	size_t nr, size;
	char *names;
	size_t names_len;
	uint32_t *modules;		/* in names */
	size_t nr_modules;
};

struct span {
	const char *text;
	size_t len;
};

/* The next word of the line; empty at its end. */
static struct span next_word(const char **at, const char *end)
{
	const char *s = *at;
	struct span word;

	while (s < end && (*s == ' ' || *s == '\t'))
		s++;
	word.text = s;
	while (s < end && *s != ' ' && *s != '\t' && *s != '\r')
		s++;
	word.len = (size_t)(s - word.text);
	*at = s;
	return word;
}

static bool parse_hex(struct span word, uint64_t *value)
{
	uint64_t v = 0;

	if (!word.len || word.len > 16)
		return false;
	for (size_t i = 0; i < word.len; i++) {
		char c = word.text[i];

		if (c >= '0' && c <= '9')
			v = v << 4 | (uint64_t)(c - '0');
		else if ((c | 32) >= 'a' && (c | 32) <= 'f')
			v = v << 4 | (uint64_t)((c | 32) - 'a' + 10);
		else
			return false;
	}
	*value = v;
	return true;
}

static uint8_t rank_of(char type)
{
	switch (type) {
	case 'T':
		return 0;
	case 'W': case 'w':
		return 1;
	case 't':
		return 2;
	default:
		return NOT_TEXT;
	}
}

/* There is room for every name: what is stored is part of the text. */
static uint32_t add_name(struct kernel_symbols *k, struct span word)
{
	uint32_t at = (uint32_t)k->names_len;

	memcpy(k->names + at, word.text, word.len);
	k->names[at + word.len] = '\0';
	k->names_len += word.len + 1;
	return at;
}

/* The lines of a module follow each other. 0 for none, or when there are too many. */
static int module_of(struct kernel_symbols *k, struct span word, uint16_t *module)
{
	const char *name;
	uint32_t *modules;

	*module = 0;
	if (word.len < 3 || word.text[0] != '[' || word.text[word.len - 1] != ']')
		return 0;
	word.text++;
	word.len -= 2;
	for (size_t i = k->nr_modules; i > 0; i--) {
		name = k->names + k->modules[i - 1];
		if (!strncmp(name, word.text, word.len) && !name[word.len]) {
			*module = (uint16_t)i;
			return 0;
		}
	}
	if (k->nr_modules == MAX_MODULES)
		return 0;
	if ((k->nr_modules & (k->nr_modules - 1)) == 0) {
		modules = realloc(k->modules, (k->nr_modules ? k->nr_modules * 2 : 1) *
					      sizeof(*modules));
		if (!modules)
			return -ENOMEM;
		k->modules = modules;
	}
	k->modules[k->nr_modules++] = add_name(k, word);
	*module = (uint16_t)k->nr_modules;
	return 0;
}

static int add_entry(struct kernel_symbols *k, const struct kernel_entry *e)
{
	struct kernel_entry *entries;

	if (k->nr == MAX_ENTRIES)
		return 0;
	if (k->nr == k->size) {
		k->size = k->size ? k->size * 2 : 1024;
		entries = realloc(k->entries, k->size * sizeof(*entries));
		if (!entries)
			return -ENOMEM;
		k->entries = entries;
	}
	k->entries[k->nr++] = *e;
	return 0;
}

static int parse_line(struct kernel_symbols *k, const char *line, const char *end)
{
	struct span address = next_word(&line, end), type = next_word(&line, end);
	struct span name = next_word(&line, end);
	struct kernel_entry e = {};
	int err = 0;

	if (!parse_hex(address, &e.address) || type.len != 1 || !name.len ||
	    memchr(name.text, '\0', name.len) || type.text[0] == 'a' || type.text[0] == 'A')
		return 0;
	e.rank = rank_of(type.text[0]);
	if (e.rank != NOT_TEXT) {
		err = module_of(k, next_word(&line, end), &e.module);
		e.name = add_name(k, name);
	}
	return err ? err : add_entry(k, &e);
}

static int parse_lines(struct kernel_symbols *k, const char *text, size_t len)
{
	const char *end = text + len, *eol;
	int err = 0;

	for (; text < end && !err; text = eol + 1) {
		eol = memchr(text, '\n', (size_t)(end - text));
		if (!eol)
			eol = end;
		err = parse_line(k, text, eol);
	}
	return err;
}

static int compare_entries(const void *left, const void *right, void *arg)
{
	const struct kernel_entry *a = left, *b = right;
	const struct kernel_symbols *k = arg;

	if (a->address != b->address)
		return a->address < b->address ? -1 : 1;
	if (a->rank != b->rank)
		return a->rank < b->rank ? -1 : 1;
	if (a->rank == NOT_TEXT || a->name == b->name)
		return 0;
	return name__better(k->names + a->name, k->names + b->name) ? -1 :
	       name__better(k->names + b->name, k->names + a->name) ? 1 : 0;
}

/* Keeps the first of each address, and of what isn't text only where text ends. */
static void thin_out(struct kernel_symbols *k)
{
	size_t to = 0;

	for (size_t i = 0; i < k->nr; i++) {
		const struct kernel_entry *e = &k->entries[i];

		if (to && k->entries[to - 1].address == e->address)
			continue;
		if (e->rank == NOT_TEXT && (!to || k->entries[to - 1].rank == NOT_TEXT))
			continue;
		k->entries[to++] = *e;
	}
	k->nr = to;
}

static int finish(struct kernel_symbols *k)
{
	bool text = false, visible = false;
	void *fitted;

	for (size_t i = 0; i < k->nr; i++) {
		text |= k->entries[i].rank != NOT_TEXT;
		visible |= k->entries[i].rank != NOT_TEXT && k->entries[i].address;
	}
	if (!text)
		return -ENODATA;
	if (!visible)
		return -EPERM;
	qsort_r(k->entries, k->nr, sizeof(*k->entries), compare_entries, k);
	thin_out(k);
	fitted = realloc(k->entries, k->nr * sizeof(*k->entries));
	k->entries = fitted ?: k->entries;
	fitted = realloc(k->names, k->names_len);
	k->names = fitted ?: k->names;
	return 0;
}

int kernel_symbols__parse(const char *text, size_t len, struct kernel_symbols **out)
{
	struct kernel_symbols *k;
	int err;

	if (len > MAX_TEXT)
		return -E2BIG;
	k = calloc(1, sizeof(*k));
	if (!k)
		return -ENOMEM;
	k->names = malloc(len + 1);
	err = k->names ? parse_lines(k, text, len) : -ENOMEM;
	if (!err)
		err = finish(k);
	if (err) {
		kernel_symbols__free(k);
		return err;
	}
	*out = k;
	return 0;
}

/* Files in /proc have no size. */
static int read_all(int fd, char **text, size_t *len)
{
	size_t size = 0;
	char *grown;
	ssize_t n;

	for (;;) {
		if (*len == size) {
			size = size ? size * 2 : 1u << 20;
			grown = size <= MAX_TEXT ? realloc(*text, size) : NULL;
			if (!grown)
				return size <= MAX_TEXT ? -ENOMEM : -E2BIG;
			*text = grown;
		}
		n = read(fd, *text + *len, size - *len);
		if (n == 0)
			return 0;
		if (n > 0)
			*len += (size_t)n;
		else if (errno != EINTR)
			return -errno;
	}
}

int kernel_symbols__read(const char *path, struct kernel_symbols **out)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC), err;
	char *text = NULL;
	size_t len = 0;

	if (fd < 0)
		return -errno;
	err = read_all(fd, &text, &len);
	close(fd);
	if (!err)
		err = kernel_symbols__parse(text, len, out);
	free(text);
	return err;
}

void kernel_symbols__free(struct kernel_symbols *k)
{
	if (!k)
		return;
	free(k->entries);
	free(k->names);
	free(k->modules);
	free(k);
}

size_t kernel_symbols__count(const struct kernel_symbols *k)
{
	size_t nr = 0;

	for (size_t i = 0; i < k->nr; i++)
		nr += k->entries[i].rank != NOT_TEXT;
	return nr;
}

/* The last symbol of a module says nothing about its end: the rest of its page, and one more. */
static uint64_t end_of(const struct kernel_symbols *k, size_t i)
{
	const struct kernel_entry *e = &k->entries[i], *next = e + 1;
	uint64_t page_end = (e->address | (PAGE - 1)) + PAGE;
	bool last = i + 1 == k->nr ||
		    (next->rank != NOT_TEXT && next->module != e->module);

	if (last && (i + 1 == k->nr || page_end < next->address))
		return page_end;
	return next->address - 1;
}

int kernel_symbols__find(const struct kernel_symbols *k, uint64_t address,
			 struct kernel_symbol *out)
{
	size_t low = 0, high = k->nr;
	const struct kernel_entry *e;

	while (low < high) {
		size_t mid = low + (high - low) / 2;

		if (k->entries[mid].address <= address)
			low = mid + 1;
		else
			high = mid;
	}
	if (low == 0)
		return -ENOENT;
	e = &k->entries[low - 1];
	if (e->rank == NOT_TEXT || address > end_of(k, low - 1))
		return -ENOENT;
	*out = (struct kernel_symbol){
		.name = k->names + e->name,
		.module = e->module ? k->names + k->modules[e->module - 1] : NULL,
		.address = e->address,
	};
	return 0;
}
