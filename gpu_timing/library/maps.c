// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "gpu_timing/library/maps.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define LINE_ROOM 1024

/* A number up to the first byte that isn't a digit; steps over that byte, which must be `end`. */
static bool number(char **at, unsigned int base, char end, uint64_t *value)
{
	uint64_t v = 0;
	char *p = *at;

	for (;; p++) {
		unsigned int digit;

		if (*p >= '0' && *p <= '9')
			digit = (unsigned int)(*p - '0');
		else if (base == 16 && *p >= 'a' && *p <= 'f')
			digit = (unsigned int)(*p - 'a') + 10;
		else
			break;
		v = v * base + digit;
	}
	if (p == *at || (*p != end && !(end == ' ' && !*p)))
		return false;
	*at = *p ? p + 1 : p;
	*value = v;
	return true;
}

bool own_maps__parse(char *line, struct map *map)
{
	uint64_t major, minor, offset;
	char *p = line;

	if (!number(&p, 16, '-', &map->start) || !number(&p, 16, ' ', &map->end) || strlen(p) < 5)
		return false;
	map->prot = (p[0] == 'r' ? PROT_READ : 0u) | (p[1] == 'w' ? PROT_WRITE : 0u) |
		    (p[2] == 'x' ? PROT_EXEC : 0u);
	map->is_private = p[3] == 'p';
	p += 5;
	if (!number(&p, 16, ' ', &offset) || !number(&p, 16, ':', &major) ||
	    !number(&p, 16, ' ', &minor) || !number(&p, 10, ' ', &map->inode))
		return false;
	map->dev = major << 32 | minor;
	map->name = p + strspn(p, " ");
	return map->start < map->end;
}

int own_maps__each(bool (*fn)(const struct map *map, void *ctx), void *ctx)
{
	int fd = open("/proc/self/maps", O_RDONLY | O_CLOEXEC), err = 0;
	char line[LINE_ROOM], buf[4096];
	size_t len = 0;
	bool more = true;

	if (fd < 0)
		return -errno;
	while (more) {
		ssize_t n = read(fd, buf, sizeof(buf));

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0) {
			err = n < 0 ? -errno : 0;
			break;
		}
		for (ssize_t i = 0; i < n && more; i++) {
			struct map map;

			if (buf[i] != '\n') {
				/* Of a long path the end counts: the file's own name. */
				if (len == sizeof(line) - 1) {
					memmove(line + LINE_ROOM / 2, line + LINE_ROOM / 2 + 1,
						LINE_ROOM / 2 - 2);
					len--;
				}
				line[len++] = buf[i];
				continue;
			}
			line[len] = '\0';
			len = 0;
			if (own_maps__parse(line, &map))
				more = fn(&map, ctx);
		}
	}
	close(fd);
	return err;
}
