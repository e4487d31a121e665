/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Every file whose code some process maps, by number. The descriptor stays open as long as the
 * registry lives: names can be looked up after the process, or the file's name, is gone, and the
 * inode number can't be given to another file.
 */
#ifndef LOADER_FILES_H
#define LOADER_FILES_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "loader/maps.h"

struct files;
struct roots;
struct unwind_file;

#define FILES_VDSO 1u	/* always there */

struct files *files__new(void);		/* NULL: out of memory */
void files__free(struct files *files);

/*
 * The number of the file behind an executable mapping of process `tgid`; new files are opened
 * through /proc/PID/map_files, which finds deleted ones and those of other mount namespaces.
 * A file that can't be opened gets a number, too: its frames keep their module and offset.
 * 0 on lack of memory or numbers.
 */
uint32_t files__of_mapping(struct files *files, pid_t tgid, const struct maps_line *line);

/* Number of files; valid numbers are 1 up to it. */
uint32_t files__count(const struct files *files);
/* Descriptor, owned by the registry; -1: could not be opened, or the vDSO. */
int files__fd(const struct files *files, uint32_t file);
/* As the kernel shows it, e.g. "/usr/lib/libfoo.so" or "[vdso]". */
const char *files__path(const struct files *files, uint32_t file);
/*
 * The root of the process that mapped it first, an O_PATH descriptor owned by the registry (-1: not
 * known), and the path from there.
 */
int files__place(const struct files *files, uint32_t file, const char **path);
struct roots *files__roots(const struct files *files);
/* Unwind tables, opened at first use; NULL where there are none. */
struct unwind_file *files__unwind(struct files *files, uint32_t file);
/* The vDSO of this kernel: image and size. */
const void *files__vdso(const struct files *files, size_t *size);

#endif
