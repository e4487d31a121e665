// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "loader/report.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <linux/types.h>

#include "bpf/gpucollect.h"
#include "loader/base/table.h"
#include "loader/base/text.h"
#include "loader/graphs.h"
#include "loader/path.h"
#include "loader/widths.h"
#include "loader/works.h"

#define PULSE_ENTRIES 16
#define PULSE_WORDS 256
#define MISSING_SHOWN 5

struct report {
	const struct report_input *in;
	struct widths *widths;
	struct profile *profile;
	struct path *path;		/* of the entry in hand */
	struct table *python_threads;	/* process << 32 | thread: has Python frames in some stack */
	size_t parts;			/* of graphs, so far */
	bool whole;			/* some had too many */
};

#define MOST_PARTS (4u << 20)		/* a target may make up any number of results of one large graph */

static int gpu_frame(struct report *r, const struct tally_key *key)
{
	const char *raw = r->in->launches ? launches__name(r->in->launches, key->work) : "";
	struct profile_frame frame = { .kind = PROFILE_GPU };

	if (key->kind == TALLY_COPY) {
		frame.id = PROFILE_COPY;
		frame.name = launches__copy_name(key->work);
	} else if (key->flags & TALLY_GRAPH) {
		frame.id = PROFILE_GRAPH;
	} else if (key->work == WORKS_NAMELESS) {
		frame.id = PROFILE_KERNEL_NAMELESS;
	} else if (key->work) {			/* names come through the library alone */
		frame.name = raw[0] ? symbols__readable(r->in->symbols, raw) : raw;
		if (strcmp(frame.name, raw))
			frame.raw = raw;
	}
	if (key->kind == TALLY_LAUNCH) {
		frame.registers = works__registers(key->sizes);
		frame.shared_bytes = works__shared_bytes(key->sizes);
	}
	return path__add_frame(r->path, &frame);
}

static uint64_t thread_key(uint32_t process, uint32_t tid)
{
	return (uint64_t)process << 32 | tid;
}

static int find_python_threads(struct report *r)
{
	size_t i;
	int err = 0;

	r->python_threads = table__new();
	if (!r->python_threads)
		return -ENOMEM;
	for (i = 0; i < tally__count(r->in->tally) && !err; i++) {
		const struct tally_key *key = &tally__at(r->in->tally, i)->key;

		const struct process *of = processes__at(r->in->processes, key->process);

		if (of->python.layout &&
		    path__is_python(r->path, of, key->user, key->tid == (uint32_t)of->tgid))
			err = table__set(r->python_threads, thread_key(key->process, key->tid), 1);
	}
	return err;
}

/*
 * In a Python process, threads that Python has not made start with their name, PyTorch's for one, which call
 * a Python function now and then at most.
 */
static int add_thread(struct report *r, const struct process *p, uint32_t tid)
{
	struct profile_frame frame = { .kind = PROFILE_THREAD, .id = tid };
	uint64_t ignored;

	if (!p->python.layout || !tid || table__get(r->python_threads, thread_key(p->index, tid), &ignored))
		return 0;
	frame.name = profile__thread_name(r->profile, (uint32_t)p->tgid, tid);
	/* Of one that has ended before anybody asked: the name that it was born with. */
	if (!frame.name)
		frame.name = p->comm;
	frame.id = 0;		/* those of one name are shown as one */
	return path__add_frame(r->path, &frame);
}

static int add_path(struct report *r, uint32_t parent, uint32_t *node)
{
	size_t nr;
	const uint32_t *frames = path__frames(r->path, &nr);

	return profile__path(r->profile, parent, frames, nr, node);
}

/* What one such node takes otherwise: in the same shape, if one was timed. Negative: not known. */
static double mean_of(const struct report *r, uint32_t process, const struct graph_member *m)
{
	const struct shapes *shapes = launches__shapes(r->in->launches);
	double ns;

	/* A copy's time is by its bytes, which aren't known here. */
	if (m->copy || !m->work)
		return -1;
	return shapes__mean(shapes, process, m->work, &m->shape, &ns) ||
	       widths__mean(r->widths, process, m->work, &ns) ? ns : -1;
}

/* Its frame, below the graph's, and between them those from which it was captured. */
static int add_member(struct report *r, const struct process *p, uint32_t graph, const struct graph_member *m,
		      uint32_t *node)
{
	const struct tally_key key = {
		.kind = m->copy ? TALLY_COPY : TALLY_LAUNCH, .work = m->copy ? m->copy - 1 : m->work,
		.sizes = m->sizes,
	};
	int err = 0;

	path__clear(r->path);
	if (m->stack != STACKS_NONE)
		err = path__add_stack(r->path, p, m->stack, true);
	if (!err)
		err = gpu_frame(r, &key);
	return err ? err : add_path(r, graph, node);
}

/* A graph: what it runs, each with a part of its time. */
static int add_graph(struct report *r, const struct tally_value *v, uint32_t node, uint32_t labels)
{
	const struct process *p = processes__at(r->in->processes, v->key.process);
	const struct graph_member *m;
	struct share *shares;
	size_t nr = 0, i;
	int err = 0;

	m = r->in->launches ? graphs__get(launches__graphs(r->in->launches), v->key.work, &nr) : NULL;
	if (m && nr > MOST_PARTS - r->parts) {
		r->whole = true;
		m = NULL;
	}
	if (!m)
		return widths__add(r->widths, v, node, labels);
	r->parts += nr;
	shares = calloc(nr, sizeof(*shares));
	if (!shares)
		return -ENOMEM;
	for (i = 0; i < nr && !err; i++) {
		shares[i].count = m[i].count;
		shares[i].mean = mean_of(r, v->key.process, &m[i]);
		err = add_member(r, p, node, &m[i], &shares[i].node);
	}
	shares__weigh(shares, nr);
	if (!err)
		err = widths__add_graph(r->widths, v, node, labels, shares, nr);
	free(shares);
	return err;
}

static int add_entry(struct report *r, const struct tally_value *v)
{
	const struct process *p = processes__at(r->in->processes, v->key.process);
	bool launch = v->key.kind != TALLY_SAMPLE;	/* or a copy, or a wait */
	struct profile_labels labels = {
		.pid = (uint32_t)p->tgid,
		.tid = v->key.tid,
		.device = v->key.device < 0 ? PROFILE_NO_LABEL : (uint32_t)v->key.device,
		.stream = v->key.device < 0 ? 0 : v->key.stream,
		.rank = p->rank,
	};
	uint32_t node, label, root;
	int err;

	if (p->ours)
		return 0;
	path__clear(r->path);
	err = add_thread(r, p, v->key.tid);
	if (!err)
		err = path__add_stack(r->path, p, v->key.user, launch);
	if (!err && v->key.user == STACKS_NONE)
		err = path__add_mark(r->path, PROFILE_MARK_NO_STACK, NULL);
	if (!err && v->key.kernel != STACKS_NONE)
		err = path__add_stack(r->path, p, v->key.kernel, false);
	if (!err && launch && v->key.kind != TALLY_WAIT)
		err = gpu_frame(r, &v->key);
	if (!err)
		err = profile__process(r->profile, labels.pid, p->comm, &root);
	if (!err)
		err = profile__node(r->profile, PROFILE_ROOT, root, &node);
	if (!err)
		err = add_path(r, node, &node);
	if (!err)
		err = profile__labels(r->profile, &labels, &label);
	if (err)
		return err;
	if (v->key.flags & TALLY_GRAPH)
		return add_graph(r, v, node, label);
	return widths__add(r->widths, v, node, label);
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

/* Those of processes that make functions for ever. */
static int note_functions(const struct report_input *in, struct profile *p)
{
	uint64_t nr = in->python_names ? python_names__full(in->python_names) : 0;
	char one[TEXT_FIGURE], all[TEXT_FIGURE];
	struct text t = { 0 };
	int err;

	if (!nr)
		return 0;
	text__add_count(&t, nr, "process has", "processes have");
	err = t.failed ? -ENOMEM :
	      profile__note(p, "%s more Python functions than are kept (%s of one process, %s of all): "
			    "the others are shown as [unknown Python function]", t.data,
			    text__bytes(one, PYTHON_NAMES_SHARE), text__bytes(all, PYTHON_NAMES_BYTES));
	text__free(&t);
	return err;
}

int report__build(const struct report_input *in, struct profile *p)
{
	const struct path_input path = {
		.profile = p,
		.stacks = in->stacks,
		.files = in->files,
		.jit = in->jit,
		.symbols = in->symbols,
		.sites = in->sites,
		.python = in->python,
		.python_names = in->python_names,
		.native_python = in->native_python,
	};
	struct report r = { .in = in, .profile = p };
	size_t i;
	int err;

	if (in->jit)
		jit__read(in->jit);
	err = path__new(&path, &r.path);
	if (!err)
		err = find_python_threads(&r);
	if (!err)
		err = widths__new(in->tally, in->launches ? launches__strata(in->launches) : NULL,
				  in->launches ? launches__runs(in->launches) : NULL, p, in->period_ns,
				  &r.widths);
	if (!err)
		err = resolve_in_order(in);
	for (i = 0; i < tally__count(in->tally) && !err; i++)
		err = in->pulse && i % PULSE_ENTRIES == 0 && in->pulse(in->ctx) ? -ECANCELED :
		      add_entry(&r, tally__at(in->tally, i));
	if (!err)
		widths__finish(r.widths);
	if (!err && r.whole)
		err = profile__note(p, "graphs with too many parts in all: the time of some is not split");
	if (!err)
		err = note_missing(in, p);
	if (!err)
		err = note_functions(in, p);
	if (!err && in->jit && jit__overflowed(in->jit))
		err = profile__note(p, "some names of code made at run time are missing: processes told "
				    "more of them than are kept");
	path__free(r.path);
	table__free(r.python_threads);
	widths__free(r.widths);
	return err;
}
