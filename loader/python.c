// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "loader/python.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "loader/base/array.h"
#include "loader/base/clock.h"
#include "loader/base/far.h"
#include "loader/base/log.h"
#include "unwind/elf_view.h"
#include "unwind/file.h"
#include "unwind/python_runtime.h"
#include "unwind/python_threads.h"

#define FIRST_DELAY_NS 5000000ull	/* an interpreter takes some 10 ms to start */
#define LAST_DELAY_NS 1000000000ull
#define LOOKS_PART 100		/* all looks together take one such part of our time in the long run */
#define LOOKS 6			/* before an interpreter is said to be another: over 0.3 s */
#define PAGE 4096ull

enum state { STATE_UNKNOWN, STATE_NONE, STATE_FOUND };

struct interpreter {
	enum state state;
	bool warned;
	struct python_runtime *runtime;	/* of STATE_FOUND */
};

/* A process whose interpreter was not ready, or could not be read in a consistent state. */
struct waiting {
	uint32_t process;
	uint64_t at, delay;
	unsigned int looks;
	bool refused;		/* until it maps something new */
};

struct python {
	struct files *files;
	struct processes *processes;
	struct python_layout *layouts;
	uint32_t file_of[GPUCOLLECT_MAX_PYTHONS];	/* whose layout it is */
	uint32_t nr_layouts;				/* element 0 is none */
	struct interpreter *interpreter;		/* by number of the file */
	size_t room, nr;
	struct waiting *waiting;
	size_t room_waiting, nr_waiting;
};

struct python *python__new(struct files *files, struct processes *processes, struct python_layout *layouts)
{
	struct python *py = calloc(1, sizeof(*py));

	if (!py)
		return NULL;
	py->files = files;
	py->processes = processes;
	py->layouts = layouts;
	py->nr_layouts = 1;
	return py;
}

void python__free(struct python *py)
{
	size_t i;

	if (!py)
		return;
	for (i = 0; i < py->nr; i++)
		free(py->interpreter[i].runtime);
	free(py->interpreter);
	free(py->waiting);
	free(py);
}

int python__read_memory(void *ctx, uint64_t addr, void *buf, size_t len)
{
	ssize_t n = far__read_memory(*(pid_t *)ctx, addr, buf, len);

	if (n < 0)
		return -errno;
	return (size_t)n == len ? 0 : -EFAULT;
}

bool python__is_named(const char *path)
{
	const char *base = path ? strrchr(path, '/') : NULL;

	return base && (!strncmp(base, "/python", 7) || !strncmp(base, "/libpython", 10));
}

/* --- files -------------------------------------------------------------------------------- */

static struct interpreter *slot_of(struct python *py, uint32_t file)
{
	while (py->nr <= file) {
		if (array__reserve((void **)&py->interpreter, &py->room, py->nr, sizeof(*py->interpreter)))
			return NULL;
		py->interpreter[py->nr++] = (struct interpreter){ 0 };
	}
	return &py->interpreter[file];
}

static void warn(struct python *py, uint32_t file, struct interpreter *in, char *why)
{
	if (!in->warned)
		log_warn("%s: %s; its Python frames are not shown", files__path(py->files, file),
			 why ? why : "an interpreter that is not known");
	in->warned = true;
	free(why);
}

/* The interpreter in a file; NULL: there is none, or none that can be read. */
static struct interpreter *interpreter_of(struct python *py, uint32_t file)
{
	int fd = file && file != FILES_VDSO ? files__fd(py->files, file) : -1, err;
	struct interpreter *in = fd < 0 ? NULL : slot_of(py, file);
	struct python_runtime *found;
	char *why = NULL;

	if (!in || in->state == STATE_NONE)
		return NULL;
	if (in->state == STATE_FOUND)
		return in;
	found = calloc(1, sizeof(*found));
	if (!found)
		return NULL;
	err = python_runtime__find(fd, found, &why);
	in->state = err ? STATE_NONE : STATE_FOUND;
	if (err == -ENOTSUP)
		warn(py, file, in, why);
	if (err) {
		free(found);
		return NULL;
	}
	log_debug("%s: CPython 3.%u.%u", files__path(py->files, file), found->minor, found->micro);
	in->runtime = found;
	return in;
}

static const struct interpreter *known(const struct python *py, uint32_t file)
{
	return file < py->nr && py->interpreter[file].state == STATE_FOUND ? &py->interpreter[file] : NULL;
}

bool python__is_interpreter(const struct python *py, uint32_t file)
{
	return known(py, file) != NULL;
}

bool python__is_call(const struct python *py, uint64_t word)
{
	const struct interpreter *in;
	unsigned int i;

	if (FRAME_KIND(word) != FRAME_FILE && FRAME_KIND(word) != FRAME_FILE_GUESS)
		return false;
	in = known(py, FRAME_FILE_ID(word));
	for (i = 0; in && i < in->runtime->nr_eval; i++)
		if (FRAME_OFFSET(word) >= in->runtime->eval[i].start &&
		    FRAME_OFFSET(word) < in->runtime->eval[i].end)
			return true;
	return false;
}

const struct python_offsets *python__offsets(const struct python *py, uint32_t python)
{
	const struct interpreter *in;

	if (!python || python >= py->nr_layouts)
		return NULL;
	in = known(py, py->file_of[python]);
	return in ? &in->runtime->offsets : NULL;
}

/* --- processes ---------------------------------------------------------------------------- */

/* What is to be added to the file's addresses; false: the mapping is of no segment that has code. */
static bool bias_of(struct python *py, const struct mapping *m, uint64_t *bias)
{
	struct unwind_file *file = files__unwind(py->files, m->file);
	const struct elf_segment *s;
	size_t nr = 0, i;

	if (!file)
		return false;
	s = elf_view__segments(unwind_file__view(file), &nr);
	for (i = 0; i < nr; i++) {
		if (!s[i].executable || m->offset < (s[i].offset & ~(PAGE - 1)) ||
		    m->offset >= s[i].offset + s[i].size)
			continue;
		*bias = m->start - (s[i].vaddr + (m->offset - s[i].offset));
		return true;
	}
	return false;
}

/* Whether two files hold interpreters of one version: a thousand containers may each have their own copy. */
static bool is_alike(const struct python *py, uint32_t a, uint32_t b)
{
	return !memcmp(&known(py, a)->runtime->offsets, &known(py, b)->runtime->offsets,
		       sizeof(struct python_offsets));
}

/* The number of a layout on the BPF side; 0: there is no room for one more. */
static uint32_t publish(struct python *py, const struct python_layout *layout, uint32_t file)
{
	uint32_t i;

	for (i = 1; i < py->nr_layouts; i++)
		if (is_alike(py, py->file_of[i], file) && !memcmp(&py->layouts[i], layout, sizeof(*layout)))
			return i;
	if (i >= GPUCOLLECT_MAX_PYTHONS) {
		log_warn("%s: more than %u kinds of Python: its frames are not shown",
			 files__path(py->files, file), GPUCOLLECT_MAX_PYTHONS - 1);
		return 0;
	}
	py->layouts[i] = *layout;
	py->file_of[i] = file;
	__atomic_store_n(&py->nr_layouts, i + 1, __ATOMIC_RELEASE);
	return i;
}

/* 0, or -EAGAIN: not ready, or another error: it won't be. `last`: what doesn't fit now won't. */
static int learn(struct python *py, struct process *p, const struct mapping *m, bool last)
{
	struct interpreter *in = interpreter_of(py, m->file);
	struct python_layout layout = { 0 };
	pid_t pid = p->tgid;
	const struct python_memory memory = { python__read_memory, &pid };
	struct process_python is;
	uint64_t bias, runtime;
	char *why = NULL;
	int err;

	if (!in || !bias_of(py, m, &bias))
		return -ENOENT;
	runtime = bias + in->runtime->runtime;
	err = python_threads__learn(in->runtime, runtime, &memory, &layout, &why);
	log_debug("process %d: CPython 3.%u: %s%s%s", (int)p->tgid, in->runtime->minor,
		  err ? strerror(-err) : "known", why ? ": " : "", why ? why : "");
	if (err == -ENOTSUP && last)
		warn(py, m->file, in, why);
	else
		free(why);
	if (err)
		return err == -ENOTSUP && !last ? -EAGAIN : err;
	is.code = layout.type_code;
	is.runtime = runtime;
	layout.type_code = 0;	/* the rest is the same in all processes of a file */
	is.layout = publish(py, &layout, m->file);
	if (is.layout)
		processes__set_python(py->processes, p, &is);
	return is.layout ? 0 : -ENOSPC;
}

/* 0: nothing more is to be done. */
static int look(struct python *py, struct process *p, bool last)
{
	uint32_t i, file = 0;
	int err = -ENOENT;

	for (i = 0; i < p->nr_mappings && (err == -ENOENT || err == -ENOTSUP); i++) {
		if (p->mappings[i].kind != MAPPING_FILE || p->mappings[i].file == file)
			continue;
		file = p->mappings[i].file;
		if (interpreter_of(py, file))
			err = learn(py, p, &p->mappings[i], last);
	}
	return err == -EAGAIN || err == -ETIMEDOUT ? -EAGAIN : 0;
}

bool python__needs_frees(const struct python *py, const struct process *p)
{
	return p->python.layout && py->layouts[p->python.layout].code_version == PYTHON_ABSENT;
}

void python__find_type(struct python *py, struct process *p)
{
	if (p->python.layout && !p->python.code)
		look(py, p, false);
}

/* What a look takes is up to the process: lists may be long, and never be what they should. */
uint64_t python__delay(uint64_t before, uint64_t took, size_t nr)
{
	uint64_t most = took * LOOKS_PART * nr;

	if (most < LAST_DELAY_NS)
		most = LAST_DELAY_NS;
	return before * 2 < most ? before * 2 : most;
}

void python__mapped(struct python *py, struct process *p)
{
	size_t i;

	if (p->exited || p->python.layout)
		return;
	for (i = 0; i < py->nr_waiting; i++) {
		if (py->waiting[i].process == p->index) {
			py->waiting[i].refused = false;
			return;
		}
	}
	if (!look(py, p, false) || array__reserve((void **)&py->waiting, &py->room_waiting, py->nr_waiting,
					    sizeof(*py->waiting)))
		return;
	p->kept = true;
	py->waiting[py->nr_waiting++] = (struct waiting){
		.process = p->index, .at = clock__now_ns() + FIRST_DELAY_NS, .delay = FIRST_DELAY_NS,
	};
}

bool python__asks(const struct python *py)
{
	for (size_t i = 0; i < py->nr_waiting; i++)
		if (!py->waiting[i].refused && !processes__at(py->processes, py->waiting[i].process)->exited)
			return true;
	return false;
}

void python__tick(struct python *py)
{
	uint64_t now = py->nr_waiting ? clock__now_ns() : 0;
	size_t i, kept = 0, asked = 0;

	for (i = 0; i < py->nr_waiting; i++)
		asked += !py->waiting[i].refused;
	for (i = 0; i < py->nr_waiting; i++) {
		struct waiting w = py->waiting[i];
		struct process *p = processes__at(py->processes, w.process);

		if (p->exited || p->python.layout)
			continue;
		if (!w.refused && now >= w.at) {
			uint64_t before = now;

			w.refused = !look(py, p, ++w.looks >= LOOKS);
			if (p->python.layout)
				continue;
			now = clock__now_ns();
			w.delay = python__delay(w.delay, now - before, asked);
			w.at = now + w.delay;
		}
		py->waiting[kept++] = w;
	}
	py->nr_waiting = kept;
}
