/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Reading /proc/PID/maps. */
#ifndef LOADER_MAPS_H
#define LOADER_MAPS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* One line; proc(5). `path` points into the parsed line and is unescaped in place (\012). */
struct maps_line {
	uint64_t start;
	uint64_t end;
	uint64_t offset;
	uint64_t inode;		/* 0: no file */
	uint32_t dev_major;
	uint32_t dev_minor;
	bool executable;
	char *path;		/* "" for anonymous memory */
};

/* Pure: 0, or -EINVAL for anything that isn't a line of the kernel's. Changes `line`. */
int maps__parse(char *line, struct maps_line *out);

/*
 * Calls `fn` for each executable mapping of a process, in order of address. If its first thread
 * has ended, /proc/TGID/maps is empty: any live thread's is taken. 0, what `fn` returned if
 * that isn't 0, or negative errno (-ENOENT, -ESRCH: gone).
 */
int maps__read(pid_t tgid, int (*fn)(const struct maps_line *line, void *arg), void *arg);
/* The same for all mappings. */
int maps__read_all(pid_t tgid, int (*fn)(const struct maps_line *line, void *arg), void *arg);

#endif
