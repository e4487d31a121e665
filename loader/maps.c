// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "loader/maps.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The kernel escapes a newline in a path, and nothing else. */
static void unescape(char *path)
{
	char *to = path;

	for (; *path; path++) {
		if (!strncmp(path, "\\012", 4)) {
			*to++ = '\n';
			path += 3;
		} else {
			*to++ = *path;
		}
	}
	*to = '\0';
}

int maps__parse(char *line, struct maps_line *out)
{
	char perms[5];
	int at = 0;
	size_t len;

	if (sscanf(line, "%" SCNx64 "-%" SCNx64 " %4c %" SCNx64 " %x:%x %" SCNu64 "%n", &out->start,
		   &out->end, perms, &out->offset, &out->dev_major, &out->dev_minor, &out->inode,
		   &at) != 7 || !at || out->start >= out->end)
		return -EINVAL;
	out->executable = perms[2] == 'x';
	out->path = line + at;
	while (*out->path == ' ')
		out->path++;
	len = strlen(out->path);
	if (len && out->path[len - 1] == '\n')
		out->path[len - 1] = '\0';
	unescape(out->path);
	return 0;
}

static int read_stream(FILE *f, int (*fn)(const struct maps_line *, void *), void *arg, bool *any)
{
	struct maps_line parsed;
	char *line = NULL;
	size_t size = 0;
	int err = 0;

	while (!err && getline(&line, &size, f) > 0) {
		*any = true;
		if (!maps__parse(line, &parsed) && parsed.executable)
			err = fn(&parsed, arg);
	}
	if (!err && ferror(f))
		err = -EIO;
	free(line);
	return err;
}

static int read_path(const char *path, int (*fn)(const struct maps_line *, void *), void *arg,
		     bool *any)
{
	FILE *f = fopen(path, "re");
	int err;

	if (!f)
		return -errno;
	err = read_stream(f, fn, arg, any);
	fclose(f);
	return err;
}

int maps__read(pid_t tgid, int (*fn)(const struct maps_line *line, void *arg), void *arg)
{
	struct dirent *entry;
	char path[320];
	bool any = false;
	DIR *dir;
	int err;

	snprintf(path, sizeof(path), "/proc/%d/maps", (int)tgid);
	err = read_path(path, fn, arg, &any);
	if (any || (err && err != -ESRCH))
		return err;
	snprintf(path, sizeof(path), "/proc/%d/task", (int)tgid);
	dir = opendir(path);
	if (!dir)
		return -errno;
	err = -ESRCH;
	while (!any && (entry = readdir(dir))) {
		if (!isdigit((unsigned char)entry->d_name[0]))
			continue;
		snprintf(path, sizeof(path), "/proc/%d/task/%s/maps", (int)tgid, entry->d_name);
		err = read_path(path, fn, arg, &any);
	}
	closedir(dir);
	return any ? err : -ESRCH;
}
