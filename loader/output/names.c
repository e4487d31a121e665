// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "loader/output/names.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "loader/base/table.h"
#include "loader/output/lookalike.h"
#include "loader/output/shorten.h"

#define HASH_SEED 0	/* fixed: the same kernel has the same hash in every run */

struct names {
	char **text;
	uint32_t nr;
};

/* --- making a frame of any bytes --- */

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

/* Whether flamegraph.pl, inferno or speedscope would read it as a number. */
static bool is_weight(const char *s, size_t len)
{
	size_t i = 0;

	while (i < len && is_digit(s[i]))
		i++;
	if (!i)
		return false;
	if (i < len && s[i] == '.')
		i++;
	while (i < len && is_digit(s[i]))
		i++;
	return i == len;
}

void names__add_frame(struct text *t, const char *name, size_t len)
{
	size_t start = t->len, i, word;
	char *s;

	text__add_clean(t, name, len);
	if (t->failed)
		return;
	if (t->len == start)
		text__add_string(t, "[no name]");
	if (t->failed)
		return;
	s = t->data;
	for (i = start; i < t->len; i++)
		if (s[i] == ';')
			s[i] = ':';
	for (i = start; i < t->len && s[i] == ' '; i++)
		s[i] = '?';
	for (i = t->len; i > start && s[i - 1] == ' '; i--)
		s[i - 1] = '?';
	for (word = t->len; word > start && s[word - 1] != ' '; word--)
		;
	if (word > start && is_weight(s + word, t->len - word)) {
		text__add(t, "", 1);
		if (t->failed)
			return;
		t->len--;	/* the room is there, shift the word by one */
		memmove(t->data + word + 1, t->data + word, t->len - word);
		t->data[word] = '#';
		t->data[++t->len] = '\0';
	}
}

/* --- texts of all frames --- */

static const char *base_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash && slash[1] ? slash + 1 : path;
}

static void add_hash(struct text *t, const char *full)
{
	text__printf(t, "#%08" PRIx32, (uint32_t)hash__bytes(full, strlen(full), HASH_SEED));
}

/*
 * Whole where somebody wrote it. A program can make names of hundreds of KiB, which a stack may have
 * hundreds of times in each line: these are cut, and told apart by their hash.
 */
static bool add_python_text(struct text *t, const char *name)
{
	size_t len = strlen(name);

	if (len <= NAMES_PYTHON_BYTES) {
		text__add(t, name, len);
		return false;
	}
	text__add(t, name, text__cut(name, len, NAMES_PYTHON_BYTES));
	text__add_string(t, "\xe2\x80\xa6");
	add_hash(t, name);
	return true;
}

/* As a traceback has it: function, file, line. */
static void add_python(struct text *t, const struct profile_frame *f)
{
	bool cut = add_python_text(t, f->name ? f->name : "");

	lookalike__break_start(t, 0);
	if (!f->file && !cut)
		lookalike__break_end(t, 0);
	if (!t->len)
		text__add_string(t, "[no name]");
	if (!f->file)
		return;
	text__add_string(t, " (");
	add_python_text(t, f->file);
	if (f->line)
		text__printf(t, ":%" PRIu32, f->line);
	text__add_string(t, ")");
}

static void add_process(struct text *t, const struct profile_frame *f)
{
	const char *name = f->name ? f->name : "";

	/* Some readers take a line that begins with '#' for a comment, and eat blanks. */
	for (; *name == ' ' || (*name == '#' && !t->len); name++)
		text__add_string(t, "?");
	text__add_string(t, name);
	lookalike__break_start(t, 0);
	if (!t->len)
		text__add_string(t, "[no name]");
	text__printf(t, " (pid %" PRIu32 ")", f->id);
}

static void add_thread(struct text *t, const struct profile_frame *f)
{
	if (f->name && f->name[0])
		text__printf(t, "[thread %s]", f->name);
	else
		text__printf(t, "[thread %" PRIu32 "]", f->id);
	lookalike__break_end(t, 0);
}

static void add_mark(struct text *t, const struct profile_frame *f)
{
	const char *text = profile__mark_text((enum profile_mark)f->id), *hole = strstr(text, "%s");

	if (!hole) {
		text__add_string(t, text);
		return;
	}
	text__add(t, text, (size_t)(hole - text));
	shorten__add(t, f->module ? base_name(f->module) : "file not known", NAMES_GPU_BYTES);
	text__add_string(t, hole + 2);
	lookalike__break_end(t, 0);
}

/* What is a text of ours and no kernel's name; NULL: there is one. */
static const char *own_text(const struct profile_frame *f)
{
	if (f->id == PROFILE_COPY)
		return f->name;
	if (f->id == PROFILE_GRAPH)
		return "[graph]";
	if (f->id == PROFILE_KERNEL_NAMELESS)
		return "[kernel without a name]";
	if (!f->name)
		return "[unknown kernel]";
	return f->name[0] ? NULL : "[kernel with an empty name]";
}

static bool add_gpu(struct text *t, const struct profile_frame *f)
{
	const char *instead = own_text(f);
	bool shortened;
	size_t start;

	text__add_string(t, "[GPU] ");
	if (instead) {
		text__add_string(t, instead);
		return false;
	}
	start = t->len;
	shortened = shorten__add(t, f->name, NAMES_GPU_BYTES);
	lookalike__break_start(t, start);
	lookalike__break_end(t, start);
	lookalike__break_copy(t, start);
	return shortened;
}

static bool add_function(struct text *t, const struct profile_frame *f)
{
	bool shortened;

	if (!f->name || !f->name[0]) {
		text__add_string(t, "[unknown]");
		return false;
	}
	shortened = shorten__add(t, f->name, NAMES_BYTES);
	/* Without a symbol it is a file's name and the offset, or a text of ours. */
	if (!f->unresolved || strchr(f->name, '+'))
		lookalike__break_start(t, 0);
	if (!f->unresolved)
		lookalike__break_end(t, 0);
	return shortened;
}

/* The raw text of a frame; tells whether it isn't whole. */
static bool add_name(struct text *t, const struct profile_frame *f)
{
	switch ((enum profile_kind)f->kind) {
	case PROFILE_PROCESS:
		add_process(t, f);
		return false;
	case PROFILE_THREAD:
		add_thread(t, f);
		return false;
	case PROFILE_MARK:
		add_mark(t, f);
		return false;
	case PROFILE_GPU:
		return add_gpu(t, f);
	case PROFILE_PYTHON:
		add_python(t, f);
		return false;
	default:
		return add_function(t, f);
	}
}

static void add_suffix(struct text *t, const struct profile_frame *f)
{
	if (f->kind == PROFILE_KERNEL)
		text__add_string(t, "_[k]");
	else if (f->kind == PROFILE_GPU)
		text__add_string(t, "_[G]");
	else if (f->flags & PROFILE_INLINED)
		text__add_string(t, "_[i]");
	else if (f->flags & PROFILE_JIT)
		text__add_string(t, "_[j]");
}

/* The frame's whole text; `hash` with the hash of the full name behind the name. */
static char *make(const struct profile_frame *f, bool hash, bool annotate, bool *shortened)
{
	struct text raw = { 0 }, t = { 0 };

	*shortened = add_name(&raw, f);
	if (hash)
		add_hash(&raw, f->raw ? f->raw : f->name ? f->name : "");
	if (!raw.failed)
		names__add_frame(&t, raw.data, raw.len);
	else
		t.failed = true;
	text__free(&raw);
	if (annotate)
		add_suffix(&t, f);
	return text__take(&t);
}

/* One frame that must not look like another. */
struct candidate {
	const char *text;
	const char *key;	/* what tells it from others; NULL: nothing */
	uint32_t frame;
};

static int candidate_cmp(const void *a, const void *b)
{
	const struct candidate *x = a, *y = b;

	return strcmp(x->text, y->text);
}

static bool same_key(const struct candidate *a, const struct candidate *b)
{
	return a->key && b->key ? !strcmp(a->key, b->key) : a->key == b->key;
}

/* Gives each of `c`, all with the same text, a hash if not all are the same thing. */
static int tell_apart(struct names *n, const struct profile *p, struct candidate *c, size_t nr,
		      bool annotate)
{
	bool shortened, differ = false;
	size_t i;

	for (i = 1; i < nr; i++)
		differ |= !same_key(&c[0], &c[i]);
	if (!differ)
		return 0;
	for (i = 0; i < nr; i++) {
		char *text = make(profile__frame_at(p, c[i].frame), true, annotate, &shortened);

		if (!text)
			return -ENOMEM;
		free(n->text[c[i].frame]);
		n->text[c[i].frame] = text;
	}
	return 0;
}

static int tell_all_apart(struct names *n, const struct profile *p, struct candidate *c,
			  size_t nr, bool annotate)
{
	size_t i, end;
	int err;

	if (nr)
		qsort(c, nr, sizeof(*c), candidate_cmp);
	for (i = 0; i < nr; i = end) {
		for (end = i + 1; end < nr && !strcmp(c[i].text, c[end].text); end++)
			;
		err = tell_apart(n, p, c + i, end - i, annotate);
		if (err)
			return err;
	}
	return 0;
}

int names__new(const struct profile *p, bool annotate, struct names **out)
{
	struct names *n = calloc(1, sizeof(*n));
	uint32_t nr = profile__nr_frames(p), i;
	struct candidate *c = calloc((size_t)nr + 1, sizeof(*c));
	size_t nr_candidates = 0;
	bool shortened;
	int err = -ENOMEM;

	if (!n || !c)
		goto out;
	n->text = calloc((size_t)nr + 1, sizeof(*n->text));
	if (!n->text)
		goto out;
	n->nr = nr;
	for (i = 0; i < nr; i++) {
		const struct profile_frame *f = profile__frame_at(p, i);

		n->text[i] = make(f, false, annotate, &shortened);
		if (!n->text[i])
			goto out;
		if ((f->kind != PROFILE_GPU || f->id == PROFILE_COPY) && !shortened)
			continue;
		c[nr_candidates++] = (struct candidate){
			.text = n->text[i], .frame = i,
			.key = f->kind == PROFILE_GPU && f->raw ? f->raw : f->name,
		};
	}
	err = tell_all_apart(n, p, c, nr_candidates, annotate);
out:
	free(c);
	if (err)
		names__free(n);
	else
		*out = n;
	return err;
}

void names__free(struct names *n)
{
	uint32_t i;

	if (!n)
		return;
	for (i = 0; i < n->nr; i++)
		free(n->text[i]);
	free(n->text);
	free(n);
}

const char *names__of(const struct names *n, uint32_t frame)
{
	return n->text[frame];
}
