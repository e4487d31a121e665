/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* libcuda as a file: where a command will find it, and its launch entry points. */
#ifndef LOADER_DRIVER_H
#define LOADER_DRIVER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "loader/output/caller.h"

#define DRIVER_NAME "libcuda.so.1"

/*
 * Paths of every libcuda.so.1 that the dynamic loader would look at for a program started from
 * here: library_path (the value of LD_LIBRARY_PATH or NULL), then /etc/ld.so.cache, then the default
 * directories; the first is the one it takes. NULL-terminated, malloc'd with its strings; NULL: out of
 * memory.
 */
char **driver__candidates(const char *library_path);
void driver__free_candidates(char **paths);

/* "libcuda.so", "libcuda.so.1", "libcuda.so.580.159.04"; not libcudart. */
bool driver__is_named(const char *path);

/* A launch entry point that the file exports; entry: enum launch_entry. */
typedef void (*driver_entry)(void *ctx, uint32_t entry, uint64_t offset);

/* 0 or a negative errno; -ENOENT: it exports none of them. */
int driver__entries(int fd, driver_entry fn, void *ctx);

/*
 * Names of what would be touched that the file exports, each once: the launch entries, with `upkeep` also
 * the calls that the timing library watches. 0 or a negative errno; -ENOENT: no launch entry.
 */
int driver__exports(int fd, bool upkeep, void (*fn)(void *ctx, const char *name), void *ctx);

/*
 * Whether the timing library will find the driver's launch entries in the shape that it knows.
 * 0; -ENOEXEC: not, and *entry names the first that isn't; -ENOENT: no such entries; or another
 * negative errno.
 */
int driver__check(int fd, const char **entry);

/* An error of these two, for messages. */
const char *driver__error(int err);

#endif
