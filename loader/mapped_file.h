/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The file behind a mapping of another process. The mapping itself leads to it, by
 * /proc/PID/map_files (proc(5); needs CAP_CHECKPOINT_RESTORE), whatever its name is by now and whatever
 * the process's root is. Where that can't be had the name is tried, and believed if it still leads to the
 * same inode.
 */
#ifndef LOADER_MAPPED_FILE_H
#define LOADER_MAPPED_FILE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "loader/file_systems.h"
#include "loader/maps.h"

/*
 * As stat(2) gives it. /proc/PID/maps has the device of the file system instead: subvolumes of a btrfs,
 * or layers of an overlay, have different files of one number there.
 */
struct file_id {
	uint64_t device;	/* major << 32 | minor */
	uint64_t inode;
};

static inline bool file_id__equal(const struct file_id *a, const struct file_id *b)
{
	return a->device == b->device && a->inode == b->inode;
}

struct mapped_file {
	struct file_id id;
	bool unlinked;		/* the name in the line ends with " (deleted)", which is none of its own */
	int fd;			/* to be read and closed as base/far.h says; -1 from mapped_file__stat */
};

/*
 * Of the line start, end, device, inode and path are used. What isn't a regular file is not opened,
 * since open() of a device does something. 0 or negative errno: -ENOENT, -ESRCH: process or mapping are
 * gone; -EINVAL: not a regular file; -ESTALE: another file has the name now. Without `f` every file is
 * taken to be here.
 */
int mapped_file__stat(pid_t tgid, const struct maps_line *line, struct mapped_file *out);
int mapped_file__open(struct file_systems *f, pid_t tgid, const struct maps_line *line,
		      struct mapped_file *out);

/*
 * The file's name, malloc'd: as in the line, but for what can't be told there. A newline is written as
 * \012, and so is a name with these four characters; NULL: out of memory.
 */
char *mapped_file__name(pid_t tgid, const struct maps_line *line, bool unlinked);

#endif
