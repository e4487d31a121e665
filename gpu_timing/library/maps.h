/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* /proc/self/maps without stdio or malloc. */
#ifndef LIBRARY_MAPS_H
#define LIBRARY_MAPS_H

#include <stdbool.h>
#include <stdint.h>

struct map {
	uint64_t start, end;
	uint32_t prot;		/* PROT_* */
	bool is_private;
	uint64_t dev;		/* major << 32 | minor */
	uint64_t inode;		/* 0: no file */
	const char *name;	/* the path's last bytes, "" without; gone after the call */
};

/* Calls fn for each mapping until it returns false. 0 or negative errno. */
int own_maps__each(bool (*fn)(const struct map *map, void *ctx), void *ctx);
/* One line, which is changed; false: not a mapping. For tests. */
bool own_maps__parse(char *line, struct map *map);

#endif
