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

struct reading {
	bool all;	/* not only executable ones */
	bool any;	/* a line was found */
	int (*fn)(const struct maps_line *, void *);
	void *arg;
};

static int read_stream(FILE *f, struct reading *r)
{
	struct maps_line parsed;
	char *line = NULL;
	size_t size = 0;
	int err = 0;

	while (!err && getline(&line, &size, f) > 0) {
		r->any = true;
		if (!maps__parse(line, &parsed) && (r->all || parsed.executable))
			err = r->fn(&parsed, r->arg);
	}
	if (!err && ferror(f))
		err = -EIO;
	free(line);
	return err;
}

static int read_path(const char *path, struct reading *r)
{
	FILE *f = fopen(path, "re");
	int err;

	if (!f)
		return -errno;
	err = read_stream(f, r);
	fclose(f);
	return err;
}

static int read_process(pid_t tgid, struct reading *r)
{
	struct dirent *entry;
	char path[320];
	DIR *dir;
	int err;

	snprintf(path, sizeof(path), "/proc/%d/maps", (int)tgid);
	err = read_path(path, r);
	if (r->any || (err && err != -ESRCH))
		return err;
	snprintf(path, sizeof(path), "/proc/%d/task", (int)tgid);
	dir = opendir(path);
	if (!dir)
		return -errno;
	err = -ESRCH;
	while (!r->any && (entry = readdir(dir))) {
		if (!isdigit((unsigned char)entry->d_name[0]))
			continue;
		snprintf(path, sizeof(path), "/proc/%d/task/%s/maps", (int)tgid, entry->d_name);
		err = read_path(path, r);
	}
	closedir(dir);
	return r->any ? err : -ESRCH;
}

int maps__read(pid_t tgid, int (*fn)(const struct maps_line *line, void *arg), void *arg)
{
	struct reading r = { .fn = fn, .arg = arg };

	return read_process(tgid, &r);
}

int maps__read_all(pid_t tgid, int (*fn)(const struct maps_line *line, void *arg), void *arg)
{
	struct reading r = { .all = true, .fn = fn, .arg = arg };

	return read_process(tgid, &r);
}
