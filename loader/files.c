// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "loader/files.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/stat.h>
#include <unistd.h>

#include <linux/types.h>

#include "bpf/gpucollect.h"
#include "loader/base/array.h"
#include "loader/base/log.h"
#include "loader/base/table.h"
#include "loader/roots.h"
#include "unwind/file.h"

#define FILES_MAX ((1u << FRAME_FILE_BITS) - 1)

struct file {
	int fd;
	bool unwind_tried;
	char *path;
	struct unwind_file *unwind;
	uint64_t device;	/* major << 32 | minor */
	uint64_t inode;
	uint32_t root;		/* of the process that mapped it first */
	uint32_t next;		/* of the same hash; 0: none */
};

struct files {
	struct file *file;	/* [0] is not used */
	uint32_t nr;
	size_t room;
	struct table *by_inode;	/* hash of (device, inode) -> number of the first */
	struct roots *roots;
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

	if (!files || !vdso.path)
		goto fail;
	files->by_inode = table__new();
	files->roots = roots__new();
	if (!files->by_inode || !files->roots || files__add(files, &vdso))
		goto fail;
	files->vdso = (const void *)getauxval(AT_SYSINFO_EHDR);
	if (files->vdso)
		files->vdso_size = vdso_size(files->vdso);
	return files;
fail:
	free(vdso.path);
	if (files) {
		table__free(files->by_inode);
		roots__free(files->roots);
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
			close(files->file[i].fd);
		free(files->file[i].path);
	}
	table__free(files->by_inode);
	roots__free(files->roots);
	free(files->file);
	free(files);
}

/*
 * Opens a mapped file for reading, if it is a regular one: what a target maps may be a device,
 * whose open() does something. map_files needs CAP_CHECKPOINT_RESTORE; the path below the
 * target's root serves where that is missing, if it still is the same inode.
 */
static int open_mapped(pid_t tgid, const struct maps_line *line)
{
	char path[4096 + 64], self[64];
	struct stat st;
	int handle, fd = -1;
	bool by_path = false;

	snprintf(path, sizeof(path), "/proc/%d/map_files/%" PRIx64 "-%" PRIx64, (int)tgid,
		 line->start, line->end);
	handle = open(path, O_PATH | O_CLOEXEC);
	if (handle < 0 && line->path[0] == '/') {
		snprintf(path, sizeof(path), "/proc/%d/root%s", (int)tgid, line->path);
		handle = open(path, O_PATH | O_CLOEXEC);
		by_path = true;
	}
	if (handle < 0)
		return -1;
	if (!fstat(handle, &st) && S_ISREG(st.st_mode) && (!by_path || st.st_ino == line->inode)) {
		snprintf(self, sizeof(self), "/proc/self/fd/%d", handle);
		fd = open(self, O_RDONLY | O_CLOEXEC | O_NOCTTY);
	}
	close(handle);
	return fd;
}

uint32_t files__of_mapping(struct files *files, pid_t tgid, const struct maps_line *line)
{
	struct file file = {
		.device = (uint64_t)line->dev_major << 32 | line->dev_minor,
		.inode = line->inode,
	};
	uint64_t key, first = 0;
	uint32_t i;

	if (!line->inode)
		return strcmp(line->path, "[vdso]") ? 0 : FILES_VDSO;
	key = hash__mix(hash__mix(file.device) ^ file.inode);
	if (table__get(files->by_inode, key, &first))
		for (i = (uint32_t)first; i; i = files->file[i].next)
			if (files->file[i].device == file.device &&
			    files->file[i].inode == file.inode)
				return i;
	file.fd = open_mapped(tgid, line);
	if (file.fd < 0)
		log_debug("can't open %s of process %d: %s", line->path, (int)tgid, strerror(errno));
	file.next = (uint32_t)first;
	file.root = roots__of(files->roots, tgid);
	file.path = strdup(line->path);
	if (!file.path || files__add(files, &file)) {
		free(file.path);
		if (file.fd >= 0)
			close(file.fd);
		return 0;
	}
	if (table__set(files->by_inode, key, files->nr))
		return 0;
	return files->nr;
}

uint32_t files__count(const struct files *files)
{
	return files->nr;
}

int files__fd(const struct files *files, uint32_t file)
{
	return file && file <= files->nr ? files->file[file].fd : -1;
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
		else if (f->fd >= 0)
			unwind_file__open(&f->unwind, f->fd);
	}
	return f->unwind;
}

const void *files__vdso(const struct files *files, size_t *size)
{
	*size = files->vdso_size;
	return files->vdso;
}
