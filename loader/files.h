/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Every file whose code some process maps, by number. The descriptor stays open as long as the
 * registry lives: names can be looked up after the process, or the file's name, is gone, and the
 * inode number can't be given to another file. Descriptors are limited: where many files are mapped, those
 * are opened whose code was met.
 */
#ifndef LOADER_FILES_H
#define LOADER_FILES_H

#include <stdbool.h>
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
 * The number of the file behind an executable mapping of process `tgid`. A file that can't be opened gets
 * a number, too: its frames keep their module and offset; another process may open it under a new one.
 * 0: no file, or memory that generated code was written to; also on lack of memory or numbers.
 */
uint32_t files__of_mapping(struct files *files, pid_t tgid, const struct maps_line *line);
/* Whether a number stands for a file of this device and inode, as /proc/PID/maps shows them. */
bool files__is(const struct files *files, uint32_t file, const struct maps_line *line);

/* Number of files; valid numbers are 1 up to it. */
uint32_t files__count(const struct files *files);
/* Descriptor, owned by the registry; -1: can't be opened, or was not needed so far; or the vDSO. */
int files__fd(const struct files *files, uint32_t file);
/* The same; opens it if that was not needed so far. */
int files__open(struct files *files, uint32_t file);
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
/* Files whose code was met and for which there was no descriptor left. */
uint64_t files__too_many(const struct files *files);
/* The vDSO of this kernel: image and size. */
const void *files__vdso(const struct files *files, size_t *size);

#endif
