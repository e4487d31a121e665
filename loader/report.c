// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "loader/report.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <linux/types.h>

#include "bpf/gpucollect.h"
#include "loader/base/table.h"

/* Mean device time of a kind of work in a process: for launches that were not timed themselves. */
struct mean {
	uint64_t weight;
	uint64_t ns;
};

#define PULSE_ENTRIES 16
#define PULSE_WORDS 256
#define MOST_NS 9007199254740992.0	/* 2^53: 104 days */
#define MISSING_SHOWN 5
#define OWN_MEAN 10		/* timed launches that make a path's own mean good enough */

struct report {
	const struct report_input *in;
	struct table *means;	/* hash of process and work -> index in mean */
	struct mean *mean;
	struct profile *profile;
	uint32_t *path;		/* frames of the stack in hand, outermost first */
	size_t nr, room;
	bool *is_library;	/* by file */
};

static enum profile_mark mark_of(uint32_t why)
{
	switch (why) {
	case END_TRUNCATED: return PROFILE_MARK_TRUNCATED;
	case END_NO_INFO: return PROFILE_MARK_NO_UNWIND_INFO;
	case END_NO_RULE: return PROFILE_MARK_NO_UNWIND_RULE;
	case END_UNREADABLE: return PROFILE_MARK_STACK_UNREADABLE;
	case END_NO_PROGRESS: return PROFILE_MARK_STACK_LOOPS;
	case END_NOT_CODE: return PROFILE_MARK_NOT_CODE;
	case END_ANON: return PROFILE_MARK_GENERATED;
	case END_NO_STACK: return PROFILE_MARK_NO_STACK;
	default: return PROFILE_MARK_UNKNOWN;
	}
}

static uint8_t unresolved_of(const struct report_input *in, const struct resolved *r, uint64_t word)
{
	if (r->kind != RESOLVED_UNNAMED)
		return PROFILE_RESOLVED;
	switch (FRAME_KIND(word)) {
	case FRAME_ANON:
	case FRAME_ANON_GUESS:
		return PROFILE_GENERATED;
	case FRAME_KERNEL:
		return PROFILE_KERNEL_HIDDEN;
	default:
		return files__fd(in->files, FRAME_FILE_ID(word)) < 0 &&
		       FRAME_FILE_ID(word) != FILES_VDSO ? PROFILE_FILE_UNREADABLE :
		       PROFILE_NO_SYMBOL;
	}
}

/* Room for `more` frames behind the path. */
static int reserve(struct report *r, size_t more)
{
	size_t room = (r->nr + more) * 2;
	uint32_t *grown;

	if (r->nr + more <= r->room)
		return 0;
	grown = realloc(r->path, room * sizeof(*grown));
	if (!grown)
		return -ENOMEM;
	r->path = grown;
	r->room = room;
	return 0;
}

static int add_frame(struct report *r, const struct profile_frame *frame)
{
	int err = reserve(r, 1);

	return err ? err : profile__frame(r->profile, frame, &r->path[r->nr++]);
}

static int add_mark(struct report *r, enum profile_mark mark, const char *module)
{
	int err = reserve(r, 1);

	return err ? err : profile__mark(r->profile, mark, module, &r->path[r->nr++]);
}

/* Outermost first, as they stand behind the function that they are inlined in. */
static int add_inlines(struct report *r, const struct resolved *res, uint8_t flags)
{
	int err = 0;

	for (uint32_t i = 0; i < res->nr_inlines && !err; i++) {
		const struct resolved_inline *in = &res->inlines[i];
		const struct profile_frame frame = {
			.kind = PROFILE_NATIVE,
			.flags = (uint8_t)(flags | PROFILE_INLINED),
			.line = in->line,
			.name = in->name,
			.raw = in->symbol && strcmp(in->symbol, in->name) ? in->symbol : NULL,
			.module = res->module,
			.file = in->file,
		};

		err = add_frame(r, &frame);
	}
	return err;
}

/* Code that the process made at run time: its name is what the process told, if it did. */
static void name_generated(struct report *r, const struct process *p, uint32_t stack, uint64_t word,
			   struct profile_frame *frame)
{
	const char *name = r->in->jit ? jit__name(r->in->jit, p, stack, word) : NULL;

	if (name || FRAME_KIND(word) == FRAME_ANON || FRAME_KIND(word) == FRAME_ANON_GUESS)
		frame->flags |= PROFILE_JIT;
	if (!name)
		return;
	frame->name = symbols__readable(r->in->symbols, name);
	frame->raw = strcmp(frame->name, name) ? name : NULL;
	frame->unresolved = PROFILE_RESOLVED;
}

/* The frames of a word of a process's stack: none, one, or a function and what is inlined in it. */
static int add_word(struct report *r, const struct process *p, uint32_t stack, uint64_t word)
{
	struct resolved res;
	struct profile_frame frame = {};
	int err;

	if (FRAME_KIND(word) == FRAME_END && FRAME_END_WHY(word) == END_KERNEL_THREAD)
		return 0;	/* its kernel stack is all there is */
	if (!symbols__resolve(r->in->symbols, word, &res))
		return 0;
	if (FRAME_KIND(word) == FRAME_END)
		return add_mark(r, mark_of(FRAME_END_WHY(word)), res.module);
	frame.kind = FRAME_KIND(word) == FRAME_KERNEL ? PROFILE_KERNEL : PROFILE_NATIVE;
	frame.flags = res.guess ? PROFILE_GUESS : 0;
	frame.unresolved = unresolved_of(r->in, &res, word);
	frame.name = res.name;
	if (res.symbol && strcmp(res.symbol, res.name))
		frame.raw = res.symbol;
	frame.module = res.module;
	frame.file = res.file;
	frame.line = res.line;
	if (res.kind == RESOLVED_UNNAMED)
		name_generated(r, p, stack, word, &frame);
	err = add_frame(r, &frame);
	return err ? err : add_inlines(r, &res, frame.flags);
}

/* Appends a stack, outermost frame first; the words come leaf first. */
static int append(struct report *r, const struct process *p, uint32_t stack, bool cut_library)
{
	uint32_t words, i;
	const uint64_t *word = stacks__words(r->in->stacks, stack, &words);
	uint32_t first = 0;
	int err = 0;

	while (cut_library && first < words && FRAME_KIND(word[first]) == FRAME_FILE &&
	       r->is_library[FRAME_FILE_ID(word[first])])
		first++;
	for (i = words; i > first && !err; i--)
		err = add_word(r, p, stack, word[i - 1]);
	return err;
}

static int gpu_frame(struct report *r, const struct tally_key *key)
{
	const char *raw = r->in->launches ? launches__name(r->in->launches, key->work) : "";
	struct profile_frame frame = { .kind = PROFILE_GPU };

	if (key->flags & TALLY_GRAPH) {
		frame.name = "[graph]";
	} else if (!key->work) {
		frame.name = "[unknown kernel]";	/* names come through the library alone */
	} else {
		frame.name = symbols__readable(r->in->symbols, raw);
		if (strcmp(frame.name, raw))
			frame.raw = raw;
	}
	return add_frame(r, &frame);
}

static uint64_t mean_key(const struct tally_key *key)
{
	return hash__mix((uint64_t)key->process << 32 | key->work) ^ (key->flags & TALLY_GRAPH);
}

static int find_means(struct report *r)
{
	size_t i, nr = tally__count(r->in->tally);
	uint64_t at;

	r->means = table__new();
	r->mean = calloc(nr + 1, sizeof(*r->mean));
	if (!r->means || !r->mean)
		return -ENOMEM;
	for (i = 0; i < nr; i++) {
		const struct tally_value *v = tally__at(r->in->tally, i);

		if (!v->weight)
			continue;
		if (!table__get(r->means, mean_key(&v->key), &at)) {
			at = table__count(r->means);
			if (table__set(r->means, mean_key(&v->key), at))
				return -ENOMEM;
		}
		r->mean[at].weight += v->weight;
		r->mean[at].ns += v->weighted_ns;
	}
	return 0;
}

static int add_estimate(struct report *r, const struct tally_value *v, uint32_t node,
			uint32_t labels, unsigned int flags)
{
	struct mean mean = { v->weight, v->weighted_ns };
	uint64_t at;
	double ns;

	if (!v->untimed)
		return 0;
	/* One path's launches are more alike than all of a kernel's, if enough of them are known. */
	if (v->timed < OWN_MEAN) {
		if (!table__get(r->means, mean_key(&v->key), &at))
			return profile__count(r->profile, PROFILE_UNTIMED,
					      "no launch of the kernel was timed", v->untimed);
		mean = r->mean[at];
	}
	ns = (double)mean.ns / (double)mean.weight * (double)v->untimed + 0.5;
	/* Times and weights are the target's: made up ones must not overflow. */
	if (!(ns < MOST_NS))
		ns = MOST_NS;
	return profile__add(r->profile, node, labels, PROFILE_GPU_NS, flags | PROFILE_ESTIMATED,
			    (uint64_t)ns, v->untimed);
}

static int add_values(struct report *r, const struct tally_value *v, uint32_t node, uint32_t labels)
{
	unsigned int flags = v->key.flags & TALLY_UNCALIBRATED ? PROFILE_UNCALIBRATED : 0;
	int err;

	if (v->key.kind == TALLY_SAMPLE)
		return profile__add(r->profile, node, labels, PROFILE_CPU_NS, 0,
				    v->count * r->in->period_ns, v->count);
	err = profile__add(r->profile, node, labels, PROFILE_LAUNCHES, 0, v->count, v->count);
	if (!err && v->timed)
		err = profile__add(r->profile, node, labels, PROFILE_GPU_NS, flags, v->ns, v->timed);
	return err ? err : add_estimate(r, v, node, labels, flags);
}

static int add_entry(struct report *r, const struct tally_value *v)
{
	const struct process *p = processes__at(r->in->processes, v->key.process);
	bool launch = v->key.kind == TALLY_LAUNCH;
	struct profile_labels labels = {
		.pid = (uint32_t)p->tgid,
		.tid = v->key.tid,
		.device = v->key.device < 0 ? PROFILE_NO_LABEL : (uint32_t)v->key.device,
		.stream = v->key.device < 0 ? 0 : v->key.stream,
	};
	uint32_t node, label, root;
	int err;

	if (p->ours)
		return 0;
	r->nr = 0;
	err = append(r, p, v->key.user, launch);
	if (!err && v->key.user == STACKS_NONE)
		err = add_mark(r, PROFILE_MARK_NO_STACK, NULL);
	if (!err && v->key.kernel != STACKS_NONE)
		err = append(r, p, v->key.kernel, false);
	if (!err && launch)
		err = gpu_frame(r, &v->key);
	if (!err)
		err = profile__process(r->profile, labels.pid, p->comm, &root);
	if (!err)
		err = profile__node(r->profile, PROFILE_ROOT, root, &node);
	if (!err)
		err = profile__path(r->profile, node, r->path, r->nr, &node);
	if (!err)
		err = profile__labels(r->profile, &labels, &label);
	return err ? err : add_values(r, v, node, label);
}

static int compare_words(const void *left, const void *right)
{
	const uint64_t *a = left, *b = right;

	return (*a > *b) - (*a < *b);
}

/* All words of files, each once. The array is to be freed. */
static int collect_words(const struct report_input *in, uint64_t **words, size_t *nr)
{
	struct table *seen = table__new();
	uint64_t word, ignored;
	size_t pos = 0;
	int err = seen ? 0 : -ENOMEM;

	for (uint32_t stack = 1; !err && stack <= stacks__count(in->stacks); stack++) {
		uint32_t len;
		const uint64_t *of = stacks__words(in->stacks, stack, &len);

		for (uint32_t i = 0; !err && i < len; i++)
			if (FRAME_KIND(of[i]) == FRAME_FILE || FRAME_KIND(of[i]) == FRAME_FILE_GUESS)
				err = table__set(seen, of[i], 0);
	}
	*words = err ? NULL : malloc((table__count(seen) + 1) * sizeof(**words));
	*nr = 0;
	while (*words && table__next(seen, &pos, &word, &ignored))
		(*words)[(*nr)++] = word;
	table__free(seen);
	return *words ? 0 : -ENOMEM;
}

/*
 * Names are remembered, so their order is free: file by file, since few files at a time have a process
 * that reads their debug information, which goes through it unit by unit.
 */
static int resolve_in_order(const struct report_input *in)
{
	struct resolved ignored;
	uint64_t *words;
	size_t nr;
	int err = collect_words(in, &words, &nr);

	if (err)
		return err;
	qsort(words, nr, sizeof(*words), compare_words);
	for (size_t i = 0; i < nr && !err; i++) {
		symbols__resolve(in->symbols, words[i], &ignored);
		if (in->pulse && i % PULSE_WORDS == 0 && in->pulse(in->ctx))
			err = -ECANCELED;
	}
	free(words);
	return err;
}

/* What inlined frames are missing must not be taken for code without any. */
static int note_missing(const struct report_input *in, struct profile *p)
{
	const char *name, *why;
	size_t pos = 0, nr = 0;
	int err = 0;

	while (!err && symbols__next_missing(in->symbols, &pos, &name, &why))
		if (nr++ < MISSING_SHOWN)
			err = profile__note(p, "%s: inlined functions are not all shown: %s", name, why);
	if (!err && nr > MISSING_SHOWN)
		err = profile__note(p, "the same holds of %zu more files", nr - MISSING_SHOWN);
	return err;
}

/* A process that the library was brought to has a file of its own with it. */
static int find_libraries(struct report *r)
{
	uint32_t i, nr = files__count(r->in->files);

	r->is_library = calloc(nr + 1ul, sizeof(*r->is_library));
	if (!r->is_library)
		return -ENOMEM;
	for (i = 1; r->in->sites && i <= nr; i++)
		if (files__fd(r->in->files, i) >= 0)
			r->is_library[i] = sites__has(r->in->sites, files__fd(r->in->files, i));
	return 0;
}

int report__build(const struct report_input *in, struct profile *p)
{
	struct report r = { .in = in, .profile = p, .room = 64 };
	size_t i;
	int err;

	if (in->jit)
		jit__read(in->jit);
	r.path = malloc(r.room * sizeof(*r.path));
	err = r.path ? find_libraries(&r) : -ENOMEM;
	if (!err)
		err = find_means(&r);
	if (!err)
		err = resolve_in_order(in);
	for (i = 0; i < tally__count(in->tally) && !err; i++)
		err = in->pulse && i % PULSE_ENTRIES == 0 && in->pulse(in->ctx) ? -ECANCELED :
		      add_entry(&r, tally__at(in->tally, i));
	if (!err)
		err = note_missing(in, p);
	if (!err && in->jit && jit__overflowed(in->jit))
		err = profile__note(p, "some names of code made at run time are missing: processes told "
				    "more of them than are kept");
	free(r.path);
	free(r.is_library);
	free(r.mean);
	table__free(r.means);
	return err;
}
