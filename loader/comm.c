// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "loader/comm.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

int comm__read(pid_t tgid, pid_t tid, char comm[GPUCOLLECT_COMM_LEN])
{
	char path[64], text[GPUCOLLECT_COMM_LEN + 2];
	ssize_t n;
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/task/%d/comm", (int)tgid, (int)tid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	n = read(fd, text, sizeof(text) - 1);
	if (n <= 0)
		n = n ? -errno : -ESRCH;
	close(fd);
	if (n < 0)
		return (int)n;
	if (text[n - 1] == '\n')
		n--;
	text[n] = '\0';
	memset(comm, 0, GPUCOLLECT_COMM_LEN);
	memcpy(comm, text, strnlen(text, GPUCOLLECT_COMM_LEN - 1));
	return 0;
}
