// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "loader/files.h"

#include <elf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/resource.h>
#include <unistd.h>

#include <linux/types.h>

#include "bpf/gpucollect.h"
#include "loader/base/array.h"
#include "loader/base/far.h"
#include "loader/base/log.h"
#include "loader/base/table.h"
#include "loader/mapped_file.h"
#include "loader/roots.h"
#include "unwind/file.h"

#define FILES_MAX ((1u << FRAME_FILE_BITS) - 1)
#define MOST_OPEN 65536u
#define TRIES 8		/* times that a file is tried to be opened, by different processes perhaps */

#define LIBRARY_NAME "/memfd:gpucollect"
#define LIBRARY_MAX (1 << 20)	/* bytes: it has some 100 KiB */

enum file_state {
	FILE_OPEN,
	FILE_CLOSED,		/* not needed so far */
	FILE_FAILED,
};

struct file {
	int fd;
	uint8_t state;		/* enum file_state */
	uint8_t tries;
	bool data;		/* of memory, and no ELF file: code is written there as the program runs */
	bool unwind_tried;
	char *path;
	struct unwind_file *unwind;
	uint64_t device;	/* as /proc/PID/maps shows it: major << 32 | minor */
	uint64_t inode;
	struct file_id id;
	uint64_t start, end;	/* a mapping that leads to it, */
	pid_t tgid;		/* of this process */
	uint32_t root;		/* of the process that mapped it first */
	uint32_t next;		/* of the same hash; 0: none */
	uint32_t twin;		/* stands for this one, which has the same bytes; 0: none does */
};

struct files {
	struct file *file;	/* [0] is not used */
	uint32_t nr;
	size_t room;
	struct table *by_inode;	/* hash of (device, inode) -> number of the first */
	uint32_t nr_open, most_open;
	uint64_t too_many;
	uint32_t library;	/* the timing library, as it was brought to a process; 0: was not met */
	struct roots *roots;
	struct file_systems *systems;
	const void *vdso;
	size_t vdso_size;
};

/* The image's size isn't told anywhere: its section table is its last part. */
static size_t vdso_size(const void *image)
{
	const Elf64_Ehdr *eh = image;

	if (memcmp(eh->e_ident, ELFMAG, SELFMAG) || eh->e_ident[EI_CLASS] != ELFCLASS64)
		return 0;
	return eh->e_shoff + (size_t)eh->e_shnum * eh->e_shentsize;
}

static int files__add(struct files *files, const struct file *file)
{
	if (files->nr == FILES_MAX)
		return -ENOSPC;
	if (array__reserve((void **)&files->file, &files->room, files->nr + 1, sizeof(*files->file)))
		return -ENOMEM;
	files->file[++files->nr] = *file;
	return 0;
}

struct files *files__new(void)
{
	struct file vdso = { .fd = -1, .path = strdup("[vdso]") };
	struct files *files = calloc(1, sizeof(*files));
	struct rlimit limit = { .rlim_cur = 64 };

	if (!files || !vdso.path)
		goto fail;
	files->by_inode = table__new();
	files->roots = roots__new();
	files->systems = file_systems__new();
	if (!files->by_inode || !files->roots || !files->systems || files__add(files, &vdso))
		goto fail;
	getrlimit(RLIMIT_NOFILE, &limit);
	files->most_open = limit.rlim_cur / 2 < MOST_OPEN ? (uint32_t)limit.rlim_cur / 2 : MOST_OPEN;
	files->vdso = (const void *)getauxval(AT_SYSINFO_EHDR);
	if (files->vdso)
		files->vdso_size = vdso_size(files->vdso);
	return files;
fail:
	free(vdso.path);
	if (files) {
		table__free(files->by_inode);
		roots__free(files->roots);
		file_systems__free(files->systems);
	}
	free(files);
	return NULL;
}

void files__free(struct files *files)
{
	uint32_t i;

	if (!files)
		return;
	for (i = 1; i <= files->nr; i++) {
		unwind_file__free(files->file[i].unwind);
		if (files->file[i].fd >= 0)
			far__close(files->file[i].fd);
		free(files->file[i].path);
	}
	table__free(files->by_inode);
	roots__free(files->roots);
	file_systems__free(files->systems);
	free(files->file);
	free(files);
}

/* Of memory that no name leads to; programs that generate code keep it in such. */
static bool is_memory(const struct maps_line *line)
{
	return !strncmp(line->path, "/memfd:", 7) || !strncmp(line->path, "/dev/zero", 9) ||
	       !strncmp(line->path, "/SYSV", 5) || !strncmp(line->path, "/anon_hugepage", 14);
}

static bool is_elf(int fd)
{
	char magic[SELFMAG];

	return far__read(fd, magic, sizeof(magic), 0) == sizeof(magic) && !memcmp(magic, ELFMAG, SELFMAG);
}

/* Opens a new file, if there are descriptors to spare for what may never be needed. */
static void file__open(struct files *files, struct file *file, pid_t tgid,
		       const struct maps_line *line)
{
	uint32_t room = is_memory(line) ? files->most_open : files->most_open / 2;
	struct mapped_file found = { .fd = -1 };
	int err;

	file->state = FILE_CLOSED;
	if (files->nr_open < room)
		err = mapped_file__open(files->systems, tgid, line, &found);
	else
		err = mapped_file__stat(tgid, line, &found);
	file->id = found.id;
	file->fd = found.fd;
	file->path = mapped_file__name(tgid, line, found.unlinked);
	if (err) {
		log_debug("can't open %s of process %d: %s", line->path, (int)tgid, strerror(-err));
		file->state = FILE_FAILED;
	} else if (file->fd >= 0) {
		files->nr_open++;
		file->state = FILE_OPEN;
		file->data = is_memory(line) && !is_elf(file->fd);
	}
}

bool files__is(const struct files *files, uint32_t file, const struct maps_line *line)
{
	const struct file *f;

	if (!file || file > files->nr)
		return false;
	f = &files->file[file];
	return f->device == ((uint64_t)line->dev_major << 32 | line->dev_minor) &&
	       f->inode == line->inode;
}

/*
 * The file among those of the same device and inode; 0: none. Only disks have numbers that mean one file.
 * *failed: one of this name that could not be opened.
 */
static uint32_t files__find(const struct files *files, uint32_t first, pid_t tgid,
			    const struct maps_line *line, uint32_t *failed)
{
	bool exact = line->dev_major, known = false;
	struct mapped_file found;
	uint32_t i;

	*failed = 0;
	if (first && !exact)
		known = !mapped_file__stat(tgid, line, &found);
	for (i = first; i; i = files->file[i].next) {
		const struct file *f = &files->file[i];

		if (!files__is(files, i, line))
			continue;
		if (f->state != FILE_FAILED &&
		    (exact || (known ? file_id__equal(&f->id, &found.id) : !strcmp(f->path, line->path))))
			return i;
		if (f->state == FILE_FAILED && !strcmp(f->path, line->path))
			*failed = i;
	}
	return 0;
}

/* A process that lives can open it when that is needed; a name that was never used may be another by now. */
static void file__met_again(struct file *f, pid_t tgid, const struct maps_line *line)
{
	char *path;

	if (f->state != FILE_CLOSED)
		return;
	f->tgid = tgid;
	f->start = line->start;
	f->end = line->end;
	path = strcmp(f->path, line->path) ? mapped_file__name(tgid, line, false) : NULL;
	if (!path)
		return;
	free(f->path);
	f->path = path;
}

static uint32_t files__register(struct files *files, struct file *file, uint64_t key)
{
	if (file->path && !files__add(files, file)) {
		/* Should this fail it is met as a new one the next time. */
		table__set(files->by_inode, key, files->nr);
		return file->data ? 0 : file->twin ? file->twin : files->nr;
	}
	if (file->fd >= 0) {
		far__close(file->fd);
		files->nr_open--;
	}
	free(file->path);
	return 0;
}

static bool have_same_bytes(int a, int b)
{
	char x[4096], y[sizeof(x)];
	off_t at = 0;
	ssize_t n;

	do {
		n = pread(a, x, sizeof(x), at);
		if (n < 0 || pread(b, y, sizeof(y), at) != n || memcmp(x, y, (size_t)n))
			return false;
		at += n;
	} while (n && at < LIBRARY_MAX);
	return !n;
}

/*
 * The timing library is brought to each process in a file of its own: where these are of one build, one
 * stands for all, with one descriptor and one set of unwind rows.
 */
static void find_twin(struct files *files, struct file *file)
{
	if (!files->library || files->file[files->library].fd < 0) {
		files->library = files->nr + 1;
		return;
	}
	if (!have_same_bytes(file->fd, files->file[files->library].fd))
		return;
	far__close(file->fd);
	files->nr_open--;
	file->fd = -1;
	file->state = FILE_CLOSED;
	file->twin = files->library;
}

uint32_t files__of_mapping(struct files *files, pid_t tgid, const struct maps_line *line)
{
	struct file file = {
		.fd = -1,
		.device = (uint64_t)line->dev_major << 32 | line->dev_minor,
		.inode = line->inode,
		.start = line->start,
		.end = line->end,
		.tgid = tgid,
	};
	uint64_t key, first = 0;
	uint32_t i, failed;

	if (!line->inode)
		return strcmp(line->path, "[vdso]") ? 0 : FILES_VDSO;
	key = hash__mix(hash__mix(file.device) ^ file.inode);
	if (!table__get(files->by_inode, key, &first))
		first = 0;
	i = files__find(files, (uint32_t)first, tgid, line, &failed);
	if (i) {
		file__met_again(&files->file[i], tgid, line);
		return files->file[i].data ? 0 : files->file[i].twin ? files->file[i].twin : i;
	}
	if (failed && files->file[failed].tries++ >= TRIES) {
		files->file[failed].tries = TRIES;
		return failed;
	}
	file__open(files, &file, tgid, line);
	if (failed && file.state == FILE_FAILED) {
		free(file.path);
		return failed;
	}
	file.next = (uint32_t)first;
	file.root = roots__of(files->roots, tgid);
	if (!strncmp(line->path, LIBRARY_NAME, strlen(LIBRARY_NAME)) && file.state == FILE_OPEN)
		find_twin(files, &file);
	return files__register(files, &file, key);
}

uint32_t files__count(const struct files *files)
{
	return files->nr;
}

int files__fd(const struct files *files, uint32_t file)
{
	return file && file <= files->nr ? files->file[file].fd : -1;
}

int files__open(struct files *files, uint32_t file)
{
	struct mapped_file found;
	struct file *f;
	int err;

	if (!file || file > files->nr)
		return -1;
	f = &files->file[file];
	if (f->state != FILE_CLOSED || file == FILES_VDSO)
		return f->fd;
	const struct maps_line line = {
		.start = f->start,
		.end = f->end,
		.inode = f->inode,
		.dev_major = (uint32_t)(f->device >> 32),
		.dev_minor = (uint32_t)f->device,
		.path = f->path,
	};
	f->state = FILE_FAILED;
	if (files->nr_open >= files->most_open) {
		files->too_many++;
		return -1;
	}
	err = mapped_file__open(files->systems, f->tgid, &line, &found);
	if (!err && !file_id__equal(&found.id, &f->id)) {
		far__close(found.fd);
		err = -ESTALE;
	}
	if (err) {
		log_debug("can't open %s: %s", f->path, strerror(-err));
		return -1;
	}
	files->nr_open++;
	f->fd = found.fd;
	f->state = FILE_OPEN;
	return f->fd;
}

uint64_t files__too_many(const struct files *files)
{
	return files->too_many;
}

const char *files__path(const struct files *files, uint32_t file)
{
	return file && file <= files->nr ? files->file[file].path : "[unknown]";
}

int files__place(const struct files *files, uint32_t file, const char **path)
{
	uint32_t root = file && file <= files->nr ? files->file[file].root : ROOTS_NONE;

	*path = roots__path(files->roots, root, files__path(files, file));
	return roots__fd(files->roots, root);
}

struct roots *files__roots(const struct files *files)
{
	return files->roots;
}

struct unwind_file *files__unwind(struct files *files, uint32_t file)
{
	struct file *f;

	if (!file || file > files->nr)
		return NULL;
	f = &files->file[file];
	if (!f->unwind_tried) {
		f->unwind_tried = true;
		if (file == FILES_VDSO && files->vdso)
			unwind_file__open_memory(&f->unwind, files->vdso, files->vdso_size);
		else if (files__open(files, file) >= 0)
			unwind_file__open(&f->unwind, f->fd);
	}
	return f->unwind;
}

const void *files__vdso(const struct files *files, size_t *size)
{
	*size = files->vdso_size;
	return files->vdso;
}
