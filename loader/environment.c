// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "loader/environment.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#define MAX_BYTES (8u << 20)	/* the kernel allows some 6 MB of arguments and environment */

/* An environment without any variable looks like that of a process that is over: nothing to read. */
static bool has_ended(pid_t tgid)
{
	char path[64];
	struct stat st;

	snprintf(path, sizeof(path), "/proc/%d/exe", (int)tgid);
	return stat(path, &st) && errno == ENOENT;
}

int environment__get(pid_t tgid, const char *name, char **value)
{
	size_t room = 0, bytes = 0, len = strlen(name);
	char path[64], *line = NULL;
	ssize_t n;
	FILE *f;
	int err = 0;

	*value = NULL;
	snprintf(path, sizeof(path), "/proc/%d/environ", (int)tgid);
	f = fopen(path, "re");
	if (!f)
		return errno == ENOENT ? -ESRCH : -errno;
	while (bytes < MAX_BYTES && !*value && (n = getdelim(&line, &room, '\0', f)) > 0) {
		bytes += (size_t)n;
		if (strncmp(line, name, len) || line[len] != '=')
			continue;
		*value = strdup(line + len + 1);
		if (!*value)
			err = -ENOMEM;
		break;
	}
	fclose(f);
	free(line);
	return !err && !bytes && has_ended(tgid) ? -ESRCH : err;
}

int environment__stat(pid_t tgid, const char *path, struct stat *st)
{
	const struct open_how how = { .flags = O_PATH | O_CLOEXEC, .resolve = RESOLVE_IN_ROOT };
	char name[64];
	int root, fd, err;

	snprintf(name, sizeof(name), "/proc/%d/root", (int)tgid);
	root = open(name, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (root < 0)
		return errno == ENOENT ? -ESRCH : -errno;
	fd = (int)syscall(SYS_openat2, root, path, &how, sizeof(how));
	err = fd < 0 || fstat(fd, st) ? -errno : 0;
	if (fd >= 0)
		close(fd);
	close(root);
	return err;
}
