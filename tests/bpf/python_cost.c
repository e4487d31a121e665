// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The cost of a Python frame. A probe sits on a C function that an interpreter calls from several depths,
 * whose difference leaves out all that does not depend on depth; every other hit is walked without
 * Python, so that what else grows with depth is left out, too, and stands beside it. The figure of a
 * depth is the median of single walks: whatever else the machine does in between does not count.
 *
 *	python_cost ROUNDS NAME PYTHON SCRIPT LIBRARY
 *
 * prints rows: what, measured, first budget, goal; 77: refused here.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <bpf/libbpf.h>

#include "loader/python.h"
#include "loader/python_frees.h"
#include "tests/bpf/python_cost.h"
#include "tests/bpf/warm.h"
#include "tests/python_cost.skel.h"

#define TIMES (NR_COSTS * COST_HITS)
#define MAX_ROUNDS 99
#define FULL 60			/* frames of a stack that has a budget */

enum { ONE_RUN, MANY_RUNS, NR_FORMS };
enum { ONE, SOME, MANY, MIXED, NR_DEPTHS };	/* MIXED: Python and native frames together are FULL */

struct form {
	const char *name, *title;
	unsigned int depth[NR_DEPTHS];
	unsigned int python_words[NR_DEPTHS], native_words[NR_DEPTHS];
	double ns[NR_DEPTHS][NR_COSTS][MAX_ROUNDS];
};

struct cost {
	struct python_cost_bpf *skel;
	struct warm warm;
	struct python *python;
	struct python_frees *frees;
	FILE *to, *from;
	pid_t child;
	struct form form[NR_FORMS];
};

static int load(struct cost *c)
{
	int err;

	libbpf_set_print(NULL);
	c->skel = python_cost_bpf__open();
	if (!c->skel)
		return -errno;
	err = python_cost_bpf__load(c->skel);
	return err ? err : warm__init(&c->warm, c->skel->obj);
}

/* --- the interpreter ---------------------------------------------------------------------- */

static int answered(struct cost *c, const char *expected)
{
	char line[64];

	return fgets(line, sizeof(line), c->from) && !strcmp(line, expected) ? 0 : -EPIPE;
}

static int start(struct cost *c, char *python, char *script, char *library)
{
	char *argv[] = { python, "-ES", script, library, NULL };
	int pair[2];

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair))
		return -errno;
	c->child = fork();
	if (c->child < 0)
		return -errno;
	if (!c->child) {
		if (dup2(pair[1], STDIN_FILENO) >= 0 && dup2(pair[1], STDOUT_FILENO) >= 0)
			execv(python, argv);
		_exit(127);
	}
	close(pair[1]);
	c->to = fdopen(pair[0], "w");
	c->from = fdopen(dup(pair[0]), "r");
	return c->to && c->from ? answered(c, "ready\n") : -ENOMEM;
}

static int call(struct cost *c, const struct form *f, unsigned int depth)
{
	fprintf(c->to, "%s %u %u\n", f->name, depth, TIMES);
	fflush(c->to);
	return answered(c, "done\n");
}

/* Functions of versions that don't count them are remembered as in a process that launches. */
static int count_frees(struct cost *c, struct process *p)
{
	const struct python_frees_config config = {
		.program_fd = bpf_program__fd(c->skel->progs.gpucollect_free),
		.freed = c->warm.freed,
		.files = c->warm.files,
		.processes = c->warm.processes,
		.python = c->python,
	};

	c->frees = python_frees__new(&config);
	if (!c->frees)
		return -ENOMEM;
	python_frees__launched(c->frees, p);
	python_frees__tick(c->frees);
	return !python__needs_frees(c->python, p) || p->freed ? 0 : -ENOTSUP;
}

static int know(struct cost *c)
{
	struct process *p = warm__process(&c->warm, c->child);

	if (!p)
		return -errno;
	c->python = python__new(c->warm.files, c->warm.processes, c->warm.pythons);
	if (!c->python)
		return -ENOMEM;
	python__mapped(c->python, p);
	return p->python.layout ? count_frees(c, p) : -ENOENT;
}

/* --- measuring ---------------------------------------------------------------------------- */

static double walk_ns(const struct cost *c, int which)
{
	double ns[COST_HITS];

	for (int i = 0; i < COST_HITS; i++)
		ns[i] = c->skel->bss->took[which][i];
	return warm__median(ns, COST_HITS);
}

/* A frame is two words, and begins a run or does not. */
static bool is_plausible(const struct form *f)
{
	unsigned int frames = f->depth[MANY] - f->depth[ONE];
	unsigned int words = f->python_words[MANY] - f->python_words[ONE];

	return words == 2 * frames || words == 3 * frames;
}

/* How deep it may be to have FULL frames in all; known after a first round. */
static unsigned int mixed_depth(const struct form *f)
{
	unsigned int natives = f->native_words[MANY] - f->native_words[ONE];
	unsigned int base = f->native_words[ONE] - 1 + f->depth[ONE] + 1;	/* end mark, module */
	unsigned int slope = natives / (f->depth[MANY] - f->depth[ONE]);

	return base >= FULL ? f->depth[ONE] : f->depth[ONE] + (FULL - base) / (slope + 1);
}

static int measure(struct cost *c, struct form *f, int depth, int round)
{
	int err;

	if (depth == MIXED && round < 0)
		f->depth[MIXED] = mixed_depth(f);
	c->skel->bss->hits = 0;
	err = call(c, f, f->depth[depth]);
	if (err)
		return err;
	if (c->skel->bss->hits != TIMES || !c->skel->bss->native_words)
		return -EBADMSG;
	for (int which = 0; which < NR_COSTS && round >= 0; which++)
		f->ns[depth][which][round] = walk_ns(c, which);
	f->python_words[depth] = c->skel->bss->python_words;
	f->native_words[depth] = c->skel->bss->native_words;
	return depth == MANY && !is_plausible(f) ? -EBADMSG : 0;
}

static int measure_all(struct cost *c, const char *library, int rounds)
{
	LIBBPF_OPTS(bpf_uprobe_opts, opts, .func_name = "calls_spin");
	struct bpf_link *link = bpf_program__attach_uprobe_opts(c->skel->progs.cost_python, c->child,
								library, 0, &opts);
	int err = link ? 0 : -errno;

	for (int round = -1; round < rounds && !err; round++)	/* the first is to get warm */
		for (int i = 0; i < NR_DEPTHS * NR_FORMS && !err; i++)
			err = measure(c, &c->form[i % NR_FORMS], i / NR_FORMS, round);
	bpf_link__destroy(link);
	return err;
}

/* --- the report --------------------------------------------------------------------------- */

static double at(struct form *f, int depth, int which, int rounds)
{
	return warm__median(f->ns[depth][which], (size_t)rounds);
}

static double slope(struct form *f, int from, int to, int which, int rounds)
{
	return (at(f, to, which, rounds) - at(f, from, which, rounds)) / (f->depth[to] - f->depth[from]);
}

static void row(const char *name, const char *what, double value, const char *first)
{
	char text[128];

	snprintf(text, sizeof(text), "Python %s: %s", name, what);
	warm__row(text, value, first, "-");
}

static void report_form(struct form *f, const char *name, int rounds)
{
	unsigned int natives = f->native_words[MIXED] - 1;
	double native, python;
	char what[96];

	for (int from = ONE; from < MANY; from++) {
		python = slope(f, from, from + 1, COST_PYTHON, rounds) -
			 slope(f, from, from + 1, COST_NATIVE, rounds);
		snprintf(what, sizeof(what), "ns a frame, %s, %u to %u", f->title, f->depth[from],
			 f->depth[from + 1]);
		row(name, what, python, "60");
	}
	native = slope(f, ONE, MANY, COST_NATIVE, rounds);
	if (f->native_words[MANY] > f->native_words[ONE]) {
		native *= f->depth[MANY] - f->depth[ONE];
		native /= f->native_words[MANY] - f->native_words[ONE];
		row(name, "ns a native frame beside it", native, "-");
		row(name, "a Python frame / a native frame", python / native, "-");
	}
	snprintf(what, sizeof(what), "ns a stack, %s, %u Python and %u native", f->title,
		 f->depth[MIXED] + 1, natives);
	row(name, what, at(f, MIXED, COST_PYTHON, rounds),
	    f->depth[MIXED] + 1 + natives > FULL ? "-" : "3000");
	row(name, "of that the native frames", at(f, MIXED, COST_NATIVE, rounds), "-");
}

int main(int argc, char **argv)
{
	static struct cost c = {
		.form = {
			[ONE_RUN] = { .name = "run", .title = "one run", .depth = { 1, 20, 60 } },
			[MANY_RUNS] = { .name = "runs", .title = "called by C", .depth = { 1, 20, 60 } },
		},
	};
	int rounds = argc == 6 ? atoi(argv[1]) : 0, err;

	if (rounds < 1 || rounds > MAX_ROUNDS)
		return 64;
	err = load(&c);
	if (err) {
		printf("skipped: BPF programs are refused here: %s\n", strerror(-err));
		return 77;
	}
	err = start(&c, argv[3], argv[4], argv[5]);
	err = err ? err : know(&c);
	err = err ? err : measure_all(&c, argv[5], rounds);
	if (err)
		fprintf(stderr, "measuring Python %s: %s\n", argv[2], strerror(-err));
	for (int i = 0; i < NR_FORMS && !err; i++)
		report_form(&c.form[i], argv[2], rounds);
	python_frees__free(c.frees);
	if (c.to)
		fclose(c.to);	/* and the interpreter ends */
	if (c.from)
		fclose(c.from);
	if (c.child > 0)
		waitpid(c.child, NULL, 0);
	python__free(c.python);
	warm__free(&c.warm);
	python_cost_bpf__destroy(c.skel);
	return err != 0;
}
