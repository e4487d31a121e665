// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "loader/base/proc.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define EXITING 0x00000004u		/* PF_EXITING */
#define KERNEL_THREAD 0x00200000u	/* PF_KTHREAD */
#define STAT_BYTES 1024			/* what is of use are the first 22 fields of some 50 */
#define STATUS_LINE 256

int proc__parse_stat(const char *data, struct proc_stat *stat)
{
	/* The name between them may hold brackets, too; behind it are only numbers. */
	const char *name = strchr(data, '('), *end = strrchr(data, ')');
	unsigned int flags;
	int parent;

	memset(stat, 0, sizeof(*stat));
	if (!name || !end || end < name)
		return -EBADMSG;
	if (sscanf(end, ") %c %d %*d %*d %*d %*d %u %*u %*u %*u %*u %*u %*u %*d %*d %*d %*d %*d %*d %" SCNu64,
		   &stat->state, &parent, &flags, &stat->started) != 4)
		return -EBADMSG;
	snprintf(stat->name, sizeof(stat->name), "%.*s", (int)(end - name - 1), name + 1);
	stat->parent = parent;
	stat->ending = flags & EXITING;
	stat->kernel = flags & KERNEL_THREAD;
	return 0;
}

int proc__stat(pid_t pid, pid_t tid, struct proc_stat *stat)
{
	char path[64], data[STAT_BYTES];
	ssize_t n;
	int fd;

	if (tid)
		snprintf(path, sizeof(path), "/proc/%d/task/%d/stat", (int)pid, (int)tid);
	else
		snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	n = read(fd, data, sizeof(data) - 1);
	if (n < 0)
		n = -errno;
	close(fd);
	if (n < 0)
		return (int)n;
	data[n] = '\0';
	return proc__parse_stat(data, stat);
}

int proc__parse_number(const char *line, const char *field, uint64_t *value)
{
	size_t len = strlen(field);

	if (strncmp(line, field, len) || line[len] != ':')
		return -ENODATA;
	line += len + 1;
	line += strspn(line, " \t");
	/* sscanf would take a sign. */
	return isdigit((unsigned char)*line) && sscanf(line, "%" SCNu64, value) == 1 ? 0 : -ENODATA;
}

int proc__number(pid_t pid, const char *field, uint64_t *value)
{
	char path[64], line[STATUS_LINE];
	int err = -ENODATA;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/status", (int)pid);
	f = fopen(path, "re");
	if (!f)
		return -errno;
	/* A longer line comes in parts; those that there are have numbers alone behind their field. */
	while (err && fgets(line, sizeof(line), f))
		err = proc__parse_number(line, field, value);
	fclose(f);
	return err;
}
