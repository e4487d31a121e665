// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "loader/python_frees.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "loader/base/array.h"
#include "loader/base/clock.h"
#include "loader/base/log.h"
#include "loader/closer.h"
#include "loader/kept_out.h"
#include "loader/uprobes.h"
#include "unwind/elf_view.h"
#include "unwind/file.h"
#include "unwind/python_frees.h"

#define TP_DEALLOC 48		/* in a PyTypeObject: behind a head of 24 bytes, tp_name and two sizes */
#define IN_FORCE_SHIFT 40
#define SECOND_NS 1000000000ull
#define BREAKPOINT 0xcc
#define TRIES 50
#define MAX_OF_FILE 4		/* functions that are looked at */
#define AT_A_TICK 4		/* that are looked at: a file's code is read, and who maps it looked for */

/* A process that is to have a probe. */
struct wanted {
	uint32_t process;
	unsigned int tries;
};

struct probe {
	uint32_t process;
	int fd;			/* -1: there is none */
	uint64_t address;	/* in the process */
	uint64_t before;	/* counted for others */
	struct python_frees_rate rate;
};

/* A function that frees code objects, by its place in a file. */
struct function {
	uint32_t file;
	uint64_t offset;
	unsigned int behind;	/* where its probe belongs, or `err` why it can't have one */
	int err;
};

struct python_frees {
	struct python_frees_config config;
	struct closer *closer;
	struct probe probe[GPUCOLLECT_MAX_FREED];	/* by element; 0 is nobody's */
	unsigned int in_use, last;
	uint64_t placed;	/* ever */
	uint64_t second;	/* that is under way ends */
	bool stopped;
	struct wanted *wanted;
	size_t nr_wanted, room_wanted;
	struct function *function;
	size_t nr_functions, room_functions;
};

struct python_frees *python_frees__new(const struct python_frees_config *config)
{
	struct python_frees *f = calloc(1, sizeof(*f));

	if (!f)
		return NULL;
	f->config = *config;
	f->closer = closer__new();
	if (!f->closer) {
		free(f);
		return NULL;
	}
	for (unsigned int i = 0; i < GPUCOLLECT_MAX_FREED; i++)
		f->probe[i].fd = -1;
	return f;
}

void python_frees__free(struct python_frees *f)
{
	if (!f)
		return;
	python_frees__stop(f);
	closer__free(f->closer);
	free(f->wanted);
	free(f->function);
	free(f);
}

bool python_frees__too_many(struct python_frees_rate *r, uint64_t nr, bool second)
{
	uint64_t n = nr - r->nr;

	if (n > FREES_PER_SECOND && r->sum + n > FREES_AT_ONCE)
		return true;
	if (!second)
		return false;
	r->nr = nr;
	r->seconds = n > FREES_PER_SECOND ? r->seconds + 1 : 0;
	r->sum = r->seconds ? r->sum + n : 0;
	return r->seconds >= FREES_SECONDS;
}

/* --- where it belongs --------------------------------------------------------------------- */

/* What is known of a place in a file, or is found out now; NULL: out of memory. */
static const struct function *function_at(struct python_frees *f, uint32_t file, uint64_t offset)
{
	struct unwind_file *unwind = files__unwind(f->config.files, file);
	const struct elf_segment *s = NULL;
	static const struct function none = { .err = -ENOENT };
	struct function *fn;
	size_t nr = 0, i, of_file = 0;

	for (i = 0; i < f->nr_functions; i++) {
		if (f->function[i].file == file && f->function[i].offset == offset)
			return &f->function[i];
		/* Processes say where theirs is, and may say anything; to look takes its time. */
		of_file += f->function[i].file == file;
	}
	if (of_file >= MAX_OF_FILE)
		return &none;
	if (array__reserve((void **)&f->function, &f->room_functions, f->nr_functions, sizeof(*f->function)))
		return NULL;
	fn = &f->function[f->nr_functions++];
	*fn = (struct function){ .file = file, .offset = offset, .err = -ENOENT };
	if (unwind)
		s = elf_view__segments(unwind_file__view(unwind), &nr);
	for (i = 0; i < nr; i++)
		if (s[i].executable && offset - s[i].offset < s[i].size)
			fn->err = python_frees__find(unwind_file__view(unwind),
						     s[i].vaddr + (offset - s[i].offset), &fn->behind);
	return fn;
}

static const struct mapping *mapping_of(const struct process *p, uint64_t address)
{
	for (uint32_t i = 0; i < p->nr_mappings; i++)
		if (address - p->mappings[i].start < p->mappings[i].end - p->mappings[i].start)
			return &p->mappings[i];
	return NULL;
}

/* 0, with the place in the file and in the process; -EAGAIN: not yet. */
static int locate(struct python_frees *f, struct process *p, struct function *out, uint64_t *address)
{
	const struct function *fn;
	const struct mapping *m;
	pid_t pid = p->tgid;
	int err;

	if (p->slot == PROC_NO_SLOT || !p->published || processes__stale(f->config.processes, p))
		return -EAGAIN;
	python__find_type(f->config.python, p);
	if (!p->python.code)
		return -EAGAIN;
	err = python__read_memory(&pid, p->python.code + TP_DEALLOC, address, sizeof(*address));
	if (err)
		return err;
	m = mapping_of(p, *address);
	if (!m || m->kind != MAPPING_FILE || !python__is_interpreter(f->config.python, m->file))
		return -ENOENT;
	fn = function_at(f, m->file, m->offset + (*address - m->start));
	if (!fn)
		return -ENOMEM;
	*out = *fn;
	*address += fn->behind;
	return fn->err;
}

/* --- placing ------------------------------------------------------------------------------ */

static void let_go(void *fd)
{
	uprobes__detach((int)(intptr_t)fd);
}

/* The kernel says nothing where code was laid over the file's, or a page of it was thrown away. */
static bool is_there(const struct process *p, uint64_t address)
{
	pid_t pid = p->tgid;
	uint8_t byte;

	return !python__read_memory(&pid, address, &byte, sizeof(byte)) && byte == BREAKPOINT;
}

/* In turn: the probe that had it last may count on for some time. */
static unsigned int free_element(struct python_frees *f)
{
	unsigned int n = GPUCOLLECT_MAX_FREED - 1, i;

	for (i = 0; i < n; i++) {
		f->last = f->last % n + 1;
		if (f->probe[f->last].fd < 0)
			return f->last;
	}
	return GPUCOLLECT_MAX_FREED;
}

/*
 * Nothing counts before the probe is there, and it is made sure that it is. What it is about is the
 * image whose mappings are known: if there was an exec since, the BPF side knows.
 */
static int attach(struct python_frees *f, struct process *p, const struct function *fn, uint64_t address)
{
	unsigned int i = free_element(f);
	struct python_freed *freed = &f->config.freed[i];
	char path[64];
	int fd;

	snprintf(path, sizeof(path), "/proc/self/fd/%d", files__fd(f->config.files, fn->file));
	fd = uprobes__attach_process(f->config.program_fd, path, fn->offset + fn->behind, i, p->tgid);
	if (fd < 0)
		return fd;
	if (!is_there(p, address)) {
		closer__add(f->closer, let_go, (void *)(intptr_t)fd);
		return -EFAULT;
	}
	f->probe[i] = (struct probe){
		.process = p->index,
		.fd = fd,
		.address = address,
		.before = __atomic_load_n(&freed->nr, __ATOMIC_RELAXED),
	};
	f->probe[i].rate.nr = f->probe[i].before;
	f->in_use++;
	freed->tgid = (uint32_t)p->tgid;
	freed->execs = p->execs;
	__atomic_store_n(&freed->in_force, ++f->placed << IN_FORCE_SHIFT, __ATOMIC_SEQ_CST);
	processes__set_freed(f->config.processes, p, i);
	return 0;
}

/* First nothing is relied on any more, then the probe goes. */
static void withdraw(struct python_frees *f, unsigned int i, const char *why)
{
	struct probe *probe = &f->probe[i];
	struct process *p = processes__at(f->config.processes, probe->process);
	uint64_t nr = f->config.freed[i].nr - probe->before;

	__atomic_store_n(&f->config.freed[i].in_force, 0, __ATOMIC_SEQ_CST);
	if (!p->exited) {
		log_debug("process %d: its frees of code objects are no longer counted, after %" PRIu64
			  ": %s", (int)p->tgid, nr, why);
		processes__set_freed(f->config.processes, p, 0);
	}
	closer__add(f->closer, let_go, (void *)(intptr_t)probe->fd);
	probe->fd = -1;
	f->in_use--;
}

static const char *reason(int err)
{
	return err == -ENOENT ? "what frees them is no function with a push at its start" :
	       err == -EEXIST ? "other functions may hold a copy of the one that frees them" : strerror(-err);
}

/* 0: it is decided. */
static int place(struct python_frees *f, struct process *p)
{
	struct function fn = { 0 };
	uint64_t address = 0;
	int err;

	if (!python__needs_frees(f->config.python, p) || kept_out__why(p->tgid))
		return 0;
	err = locate(f, p, &fn, &address);
	if (!err)
		err = attach(f, p, &fn, address);
	if (err == -EAGAIN)
		return err;
	if (err)
		log_debug("process %d: its frees of code objects are not counted: %s", (int)p->tgid,
			  reason(err));
	else
		log_debug("process %d: its frees of code objects are counted, by a probe on %s+0x%" PRIx64,
			  (int)p->tgid, files__path(f->config.files, fn.file), fn.offset + fn.behind);
	return 0;
}

void python_frees__launched(struct python_frees *f, struct process *p)
{
	if (p->frees_asked || !p->python.layout || f->stopped)
		return;
	if (array__reserve((void **)&f->wanted, &f->room_wanted, f->nr_wanted, sizeof(*f->wanted)))
		return;
	p->frees_asked = true;
	f->wanted[f->nr_wanted++] = (struct wanted){ .process = p->index };
}

/* --- in between --------------------------------------------------------------------------- */

static void look_at(struct python_frees *f, unsigned int i, bool second)
{
	struct probe *probe = &f->probe[i];
	const struct process *p = processes__at(f->config.processes, probe->process);
	uint64_t nr = __atomic_load_n(&f->config.freed[i].nr, __ATOMIC_RELAXED);

	if (p->exited)
		withdraw(f, i, "it has ended");
	else if (python_frees__too_many(&probe->rate, nr, second))
		withdraw(f, i, "there are too many");
	else if (second && !is_there(p, probe->address))
		withdraw(f, i, "the probe is gone");
}

/* Whoever finds no room waits for it. */
static void place_wanted(struct python_frees *f)
{
	size_t i, kept = 0, looked = 0;

	for (i = 0; i < f->nr_wanted; i++) {
		struct wanted w = f->wanted[i];
		struct process *p = processes__at(f->config.processes, w.process);

		if (p->exited)
			continue;
		if (looked < AT_A_TICK && f->in_use < GPUCOLLECT_MAX_FREED - 1) {
			looked++;
			if (!place(f, p) || ++w.tries == TRIES)
				continue;
		}
		f->wanted[kept++] = w;
	}
	f->nr_wanted = kept;
}

void python_frees__tick(struct python_frees *f)
{
	uint64_t now = f->in_use ? clock__now_ns() : 0;
	bool second = now >= f->second;
	unsigned int i;

	if (second)
		f->second = now + SECOND_NS;
	for (i = 1; i < GPUCOLLECT_MAX_FREED && f->in_use; i++)
		if (f->probe[i].fd >= 0)
			look_at(f, i, second);
	if (!f->stopped)
		place_wanted(f);
}

void python_frees__stop(struct python_frees *f)
{
	f->stopped = true;
	for (unsigned int i = 1; i < GPUCOLLECT_MAX_FREED; i++)
		if (f->probe[i].fd >= 0)
			withdraw(f, i, "the capture is over");
}
