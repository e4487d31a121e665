// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "loader/python_names.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "bpf/gpucollect.h"
#include "loader/base/array.h"
#include "loader/base/index.h"
#include "loader/base/table.h"
#include "unwind/python_code.h"

#define ENTRY_COST 256u		/* of one, beside its code: itself, in the index, what malloc adds */
#define MAX_PARENTS 16
#define MAX_TRIES 3

/* A code object that was read, or could not be. */
struct entry {
	uint64_t address;
	uint32_t process;
	uint32_t check;
	uint32_t python;
	uint32_t processes;		/* that were known when it was met */
	unsigned int tries;
	struct python_code *code;	/* NULL: it was gone, or could not be read so far */
};

/* What is kept of one process. */
struct share {
	uint64_t bytes;
	bool full;
};

struct python_names {
	const struct python *py;
	const struct processes *processes;
	struct entry *entry;
	size_t room, nr;
	struct index by_code;
	struct table *shares;		/* index of a process -> struct share */
	uint64_t bytes, nr_full;
};

struct python_names *python_names__new(const struct python *py, const struct processes *processes)
{
	struct python_names *n = calloc(1, sizeof(*n));

	if (!n)
		return NULL;
	n->py = py;
	n->processes = processes;
	n->shares = table__new();
	if (n->shares)
		return n;
	free(n);
	return NULL;
}

void python_names__free(struct python_names *n)
{
	uint64_t process, share;
	size_t i, pos = 0;

	if (!n)
		return;
	for (i = 0; i < n->nr; i++)
		python_code__free(n->entry[i].code);
	free(n->entry);
	index__free(&n->by_code);
	while (table__next(n->shares, &pos, &process, &share))
		free((struct share *)(uintptr_t)share);
	table__free(n->shares);
	free(n);
}

uint64_t python_names__full(const struct python_names *n)
{
	return n->nr_full;
}

/* --- what is kept ------------------------------------------------------------------------- */

static struct share *share_of(struct python_names *n, const struct process *p)
{
	struct share *share;
	uint64_t value;

	if (table__get(n->shares, p->index, &value))
		return (struct share *)(uintptr_t)value;
	share = calloc(1, sizeof(*share));
	if (share && table__set(n->shares, p->index, (uintptr_t)share)) {
		free(share);
		return NULL;
	}
	return share;
}

/*
 * A process may make functions for ever. None has more than is left, so that those to come find some room,
 * however many have taken what they may.
 */
static bool take(struct python_names *n, struct share *share, size_t bytes)
{
	uint64_t left = PYTHON_NAMES_BYTES - n->bytes;

	if (share->bytes + bytes > (left < PYTHON_NAMES_SHARE ? left : PYTHON_NAMES_SHARE)) {
		n->nr_full += !share->full;
		share->full = true;
		return false;
	}
	share->bytes += bytes;
	n->bytes += bytes;
	return true;
}

/* --- functions ---------------------------------------------------------------------------- */

static uint32_t hash_of(uint32_t process, uint64_t address, uint32_t check)
{
	return (uint32_t)hash__mix(hash__mix(address) ^ ((uint64_t)process << 32 | check));
}

static struct entry *find(const struct python_names *n, uint32_t process, uint64_t address, uint32_t check)
{
	size_t pos = 0;
	uint32_t id;

	while (index__next(&n->by_code, hash_of(process, address, check), &pos, &id)) {
		struct entry *e = &n->entry[id];

		if (e->address == address && e->process == process && e->check == check)
			return e;
	}
	return NULL;
}

/* A process's memory as it was when a record was made of some of it. */
static int read_record(void *ctx, uint64_t addr, void *buf, size_t len)
{
	const struct rec_code *rec = ctx;
	const __u8 *piece = rec->object;

	for (int i = 0; i < NR_CODE_PIECES; i++) {
		uint64_t at = addr - rec->address[i], there = rec->len[i];

		if (at <= there && len <= there - at) {
			memcpy(buf, piece + at, len);
			return 0;
		}
		piece = (const __u8 *)(rec + 1) + (size_t)i * rec->size;
	}
	return -EFAULT;
}

static bool is_sound(const struct rec_code *rec)
{
	return (rec->size == CODE_SMALL || rec->size == CODE_LARGE || rec->size == CODE_HUGE) &&
	       rec->head.size == sizeof(*rec) + 3ul * rec->size &&
	       rec->len[CODE_OBJECT] <= CODE_OBJECT_BYTES && rec->len[CODE_NAME] <= rec->size &&
	       rec->len[CODE_FILE] <= rec->size && rec->len[CODE_TABLE] <= rec->size;
}

/*
 * By the record alone; what that doesn't hold the process may still have, but then all of it: its code
 * may be another by now.
 */
static void read_code(const struct python_names *n, const struct process *p, const struct rec_code *rec,
		      struct entry *e)
{
	const struct python_offsets *file = python__offsets(n->py, p->python.layout);
	struct python_offsets own;
	const struct python_memory recorded = { read_record, (void *)rec };
	pid_t pid = p->tgid;
	const struct python_memory memory = { python__read_memory, &pid };
	struct python_code *now = NULL;

	if (!file)
		return;
	own = *file;
	own.layout.type_code = p->python.code;	/* of which a freed object is not */
	e->tries++;
	e->python = p->python.layout;
	if (rec && is_sound(rec))
		python_code__read(&own, &recorded, e->address, e->check, &e->code);
	if (e->code && e->code->file && e->code->table)
		return;
	if (!p->exited && !python_code__read(&own, &memory, e->address, e->check, &now)) {
		python_code__free(e->code);
		e->code = now;
	}
}

static int meet(struct python_names *n, const struct process *p, uint64_t address, uint32_t check,
		const struct rec_code *rec)
{
	struct entry *e = find(n, p->index, address, check);
	struct share *share;

	if (e && (e->code || e->tries >= MAX_TRIES))
		return 0;
	share = share_of(n, p);
	if (!share)
		return -ENOMEM;
	if (!e) {
		if (!take(n, share, ENTRY_COST))
			return 0;
		if (index__reserve(&n->by_code) ||
		    array__reserve((void **)&n->entry, &n->room, n->nr, sizeof(*n->entry)))
			return -ENOMEM;
		e = &n->entry[n->nr];
		*e = (struct entry){ .address = address, .process = p->index, .check = check,
				     .processes = processes__count(n->processes) };
		index__add(&n->by_code, hash_of(p->index, address, check), (uint32_t)n->nr);
		n->nr++;
	}
	read_code(n, p, rec, e);
	if (e->code && !take(n, share, python_code__memory(e->code))) {
		python_code__free(e->code);
		e->code = NULL;
		e->tries = MAX_TRIES;
	}
	return 0;
}

int python_names__told(struct python_names *n, const struct process *p, const struct rec_code *rec)
{
	return meet(n, p, rec->address[CODE_OBJECT], rec->check, rec);
}

int python_names__met(struct python_names *n, const struct process *p, const uint64_t *words, uint32_t nr)
{
	int err = 0;

	for (uint32_t i = 0; i + 1 < nr && !err; i++) {
		uint64_t address = FRAME_ADDRESS(words[i]);
		uint32_t check = PYTHON_CHECK(words[i + 1]);

		if (FRAME_KIND(words[i]) == FRAME_PYTHON && FRAME_KIND(words[i + 1]) == FRAME_PYTHON_AT &&
		    address)
			err = meet(n, p, address, check, NULL);
	}
	return err;
}

bool python_names__of(const struct python_names *n, const struct process *p, uint64_t code, uint64_t at,
		      struct python_name *name)
{
	const struct entry *e = NULL;
	const struct python_offsets *o;
	uint32_t born = UINT32_MAX;	/* index of the child: there were so many processes before it */

	/*
	 * A child has its parent's code, and may have ended before its own could be read. What the parent
	 * has made since may have the same address and check as something of the child's.
	 */
	for (int i = 0; i < MAX_PARENTS; i++) {
		e = find(n, p->index, FRAME_ADDRESS(code), PYTHON_CHECK(at));
		if (e && e->processes > born)
			e = NULL;
		if ((e && e->code) || p->parent == p->index)
			break;
		born = p->index;
		p = processes__at(n->processes, p->parent);
	}
	o = e ? python__offsets(n->py, e->python) : NULL;
	if (!o || !e->code)
		return false;
	name->function = e->code->name;
	name->file = e->code->file;
	name->line = python_code__line(e->code, o, PYTHON_OFFSET(at));
	return true;
}
