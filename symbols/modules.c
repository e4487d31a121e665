// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "symbols/modules.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "loader/base/array.h"
#include "loader/base/log.h"
#include "loader/base/table.h"
#include "symbols/debug_file.h"
#include "symbols/separate.h"

/* What was read of a file, for all modules that are copies of it. */
struct opened {
	struct symbol_file *file;
	struct lines *lines;
	const char *name;	/* of the module that it was opened for */
	uint64_t size;
	uid_t owner;
	bool complete;		/* has all names that may be had */
};

struct entry {
	struct module module;
	int fd;			/* -1: none, or opened */
	int root;
	char *path;		/* below root */
};

struct modules {
	struct name_set *names;
	struct lines_pool *lines;	/* NULL: none wanted */
	int (*fetch)(void *ctx, const struct build_id *id);
	void *fetch_ctx;
	struct table *by_file;		/* file id -> index in entries */
	struct table *by_build_id;	/* hash of build id, size, owner -> index in opened */
	struct entry *entries;
	struct opened *opened;
	size_t nr_entries, entries_size, nr_opened, opened_size;
};

struct modules *modules__new(struct name_set *names)
{
	struct modules *m = calloc(1, sizeof(*m));

	if (!m)
		return NULL;
	m->names = names;
	m->by_file = table__new();
	m->by_build_id = table__new();
	if (m->by_file && m->by_build_id)
		return m;
	modules__free(m);
	return NULL;
}

void modules__free(struct modules *m)
{
	if (!m)
		return;
	for (size_t i = 0; i < m->nr_opened; i++) {
		lines__free(m->opened[i].lines);
		symbol_file__free(m->opened[i].file);
	}
	lines_pool__free(m->lines);
	for (size_t i = 0; i < m->nr_entries; i++)
		free(m->entries[i].path);
	free(m->opened);
	free(m->entries);
	table__free(m->by_file);
	table__free(m->by_build_id);
	free(m);
}

static int add(struct modules *m, uint32_t file, const char *path, struct entry **out)
{
	const char *base = strrchr(path, '/');
	struct entry e = { .fd = -1, .root = -1 };
	uint64_t index;

	if (table__get(m->by_file, file, &index))
		return -EEXIST;
	base = base && base[1] ? base + 1 : path;
	base = base[0] ? base : "[unknown]";
	e.module.name = name_set__intern(m->names, base, strlen(base));
	e.path = strdup(path);
	if (!e.module.name || !e.path ||
	    array__reserve((void **)&m->entries, &m->entries_size, m->nr_entries, sizeof(e)) ||
	    table__set(m->by_file, file, m->nr_entries)) {
		free(e.path);
		return -ENOMEM;
	}
	*out = &m->entries[m->nr_entries++];
	**out = e;
	return 0;
}

int modules__add_file(struct modules *m, uint32_t file, int fd, const char *path)
{
	struct entry *e;
	int err = add(m, file, path, &e);

	if (!err)
		e->fd = fd;
	return err;
}

static int keep(struct modules *m, const struct opened *o)
{
	if (array__reserve((void **)&m->opened, &m->opened_size, m->nr_opened, sizeof(*o)))
		return -ENOMEM;
	m->opened[m->nr_opened++] = *o;
	return 0;
}

int modules__add_image(struct modules *m, uint32_t file, const void *image, size_t size,
		       const char *path)
{
	struct opened o = { .size = size };
	struct entry *e;
	int err = add(m, file, path, &e);

	if (err)
		return err;
	o.file = symbol_file__open_memory(image, size);
	if (!o.file) {
		log_debug("no symbols of %s: %s", e->module.name, strerror(errno));
		return 0;
	}
	err = keep(m, &o);
	if (err)
		symbol_file__free(o.file);
	else
		e->module.file = o.file;
	return err;
}

int modules__set_place(struct modules *m, uint32_t file, int root, const char *path)
{
	uint64_t index;
	char *copy;

	if (!table__get(m->by_file, file, &index))
		return -ENOENT;
	copy = strdup(path);
	if (!copy)
		return -ENOMEM;
	free(m->entries[index].path);
	m->entries[index].path = copy;
	m->entries[index].root = root;
	return 0;
}

int modules__use_lines(struct modules *m, bool (*pulse)(void *ctx), void *ctx)
{
	m->lines = m->lines ?: lines_pool__new();
	if (!m->lines)
		return -ENOMEM;
	lines_pool__set_pulse(m->lines, pulse, ctx);
	return 0;
}

void modules__set_fetch(struct modules *m, int (*fetch)(void *ctx, const struct build_id *id),
			void *ctx)
{
	m->fetch = fetch;
	m->fetch_ctx = ctx;
}

/* Whether a debug file was found. */
static bool add_debug(const struct modules *m, const struct entry *e, struct symbol_file *file)
{
	struct debug_places places = { .root = e->root, .path = e->path };
	const struct separate *of = symbol_file__separate(file);
	int fd = debug_file__open(&places, of, e->fd);

	if (fd < 0 && m->fetch && of->id.len)
		fd = m->fetch(m->fetch_ctx, &of->id);

	if (fd < 0)
		return false;
	if (!symbol_file__add_debug(file, fd))
		return true;
	close(fd);
	return false;
}

static uint64_t key_of(const struct opened *o)
{
	const struct build_id *id = &symbol_file__separate(o->file)->id;

	return hash__bytes(id->bytes, id->len, o->size ^ (uint64_t)o->owner << 40);
}

/* A copy of the same file that was read before. */
static struct opened *find_copy(struct modules *m, const struct opened *o)
{
	const struct build_id *id = &symbol_file__separate(o->file)->id;
	struct opened *other;
	uint64_t index;

	if (!id->len || !table__get(m->by_build_id, key_of(o), &index))
		return NULL;
	other = &m->opened[index];
	return other->size == o->size && other->owner == o->owner &&
	       build_id__equal(&symbol_file__separate(other->file)->id, id) ? other : NULL;
}

/* Whether the file has all that is wanted, with its debug file if need be. */
static bool complete(const struct modules *m, const struct entry *e, struct symbol_file *file)
{
	const struct separate *has = symbol_file__separate(file);

	return (has->has_symtab && (has->has_debug_info || !m->lines)) || add_debug(m, e, file);
}

static struct lines *open_lines(const struct modules *m, const struct entry *e,
				const struct symbol_file *file)
{
	struct debug_places places = { .root = e->root, .path = e->path };
	const struct separate *of;
	int fd = symbol_file__debug_info(file, &of), alt = -1;

	if (fd < 0)
		return NULL;
	if (of->alt[0])
		alt = debug_file__open_alt(&places, of, fd);
	if (of->alt[0] && alt < 0 && m->fetch)
		alt = m->fetch(m->fetch_ctx, &of->alt_id);
	return lines__new(m->lines, fd, alt);
}

static void use(struct entry *e, const struct opened *o)
{
	e->module.file = o->file;
	e->module.lines = o->lines;
}

/* One copy may lie where its debug file is found, and the one before it elsewhere. */
static void take(struct modules *m, struct entry *e, struct opened *o)
{
	struct opened *copy = find_copy(m, o);

	if (!copy || !copy->complete)
		o->complete = complete(m, e, o->file);
	if (copy && (copy->complete || !o->complete)) {
		symbol_file__free(o->file);
		use(e, copy);
		return;
	}
	if (m->lines)
		o->lines = open_lines(m, e, o->file);
	o->name = e->module.name;
	if (keep(m, o)) {
		lines__free(o->lines);
		symbol_file__free(o->file);
		return;
	}
	/* Failing to remember costs time only. */
	if (symbol_file__separate(o->file)->id.len)
		table__set(m->by_build_id, key_of(o), m->nr_opened - 1);
	use(e, o);
}

static void open_entry(struct modules *m, struct entry *e)
{
	struct opened o = {};
	struct stat st;

	o.file = symbol_file__open(e->fd);
	if (o.file && !fstat(e->fd, &st)) {
		o.size = (uint64_t)st.st_size;
		o.owner = st.st_uid;
		take(m, e, &o);
	} else {
		log_debug("no symbols of %s: %s", e->module.name, strerror(errno));
		symbol_file__free(o.file);
	}
	e->fd = -1;
}

const struct module *modules__find(struct modules *m, uint32_t file)
{
	uint64_t index;

	if (!table__get(m->by_file, file, &index))
		return NULL;
	if (m->entries[index].fd >= 0)
		open_entry(m, &m->entries[index]);
	return &m->entries[index].module;
}

size_t modules__nr_opened(const struct modules *m)
{
	return m->nr_opened;
}

bool modules__next_missing(const struct modules *m, size_t *pos, const char **name,
			   const char **why)
{
	while (*pos < m->nr_opened) {
		const struct opened *o = &m->opened[(*pos)++];

		*why = o->lines ? lines__missing(o->lines) : NULL;
		*name = o->name;
		if (*why)
			return true;
	}
	return false;
}
