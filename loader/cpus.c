// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "loader/cpus.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/netlink.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

int cpus__parse(const char *text, uint8_t *set, int room)
{
	int nr = 0;

	memset(set, 0, (size_t)room);
	while (*text && *text != '\n') {
		char *end;
		long from = strtol(text, &end, 10), to = from;

		if (end == text)
			return -EINVAL;
		if (*end == '-') {
			text = end + 1;
			to = strtol(text, &end, 10);
			if (end == text)
				return -EINVAL;
		}
		if (from < 0 || to < from || to >= room || (*end && *end != ',' && *end != '\n'))
			return -EINVAL;
		memset(set + from, 1, (size_t)(to - from + 1));
		if (to >= nr)
			nr = (int)to + 1;
		text = *end == ',' ? end + 1 : end;
	}
	return nr ? nr : -EINVAL;
}

/* CPUs that are on; possible ones may be many more. */
int cpus__online(uint8_t *set)
{
	char text[4096] = "";
	int fd = open("/sys/devices/system/cpu/online", O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);
	int nr;

	if (fd >= 0)
		close(fd);
	nr = n > 0 ? cpus__parse(text, set, CPUS_MAX) : -EINVAL;
	if (nr > 0)
		return nr;
	nr = (int)sysconf(_SC_NPROCESSORS_ONLN);	/* no /sys: a guess, checked by the opening */
	if (nr < 1 || nr > CPUS_MAX)
		return -EINVAL;
	memset(set, 0, CPUS_MAX);
	memset(set, 1, (size_t)nr);
	return nr;
}

int cpus__parse_uevent(const char *text, size_t len)
{
	static const char head[] = "offline@/devices/system/cpu/cpu";
	char *end;
	long cpu;

	if (!len || text[len - 1] || strncmp(text, head, sizeof(head) - 1))
		return CPUS_NONE;
	text += sizeof(head) - 1;
	cpu = strtol(text, &end, 10);
	return end == text || *end || cpu < 0 || cpu >= CPUS_MAX ? CPUS_NONE : (int)cpu;
}

int cpus__watch(void)
{
	struct sockaddr_nl from = { .nl_family = AF_NETLINK, .nl_groups = 1 /* the kernel's */ };
	int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, NETLINK_KOBJECT_UEVENT);

	if (fd >= 0 && bind(fd, (struct sockaddr *)&from, sizeof(from))) {
		close(fd);
		fd = -1;
	}
	return fd;
}

int cpus__went_off(int fd)
{
	struct sockaddr_nl from;
	char text[4096];
	socklen_t size;
	ssize_t n;
	int cpu;

	for (;;) {
		size = sizeof(from);
		n = recvfrom(fd, text, sizeof(text), 0, (struct sockaddr *)&from, &size);
		if (n < 0)
			return errno == ENOBUFS ? CPUS_ANY : CPUS_NONE;
		cpu = from.nl_pid ? CPUS_NONE : cpus__parse_uevent(text, (size_t)n);
		if (cpu != CPUS_NONE)
			return cpu;
	}
}
