// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Objects whose memory keeps its type: never unmapped, last freed first reused. */
#include "sim.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define CHUNK (256 * 1024)
#define HEAD 16			/* link before the object, so that the object's magic survives */

static void slab__grow(struct slab *slab)
{
	size_t step = HEAD + ((slab->size + 15) & ~(size_t)15);
	size_t room = step * 8 > CHUNK ? step * 8 : CHUNK;
	char *p = mmap(NULL, room, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (p == MAP_FAILED) {
		fputs("simcuda: out of memory\n", stderr);
		abort();
	}
	/* backwards, so that the first objects get the lowest addresses */
	for (size_t n = room / step; n-- > 0;) {
		void **link = (void **)(p + n * step);

		*link = slab->free;
		slab->free = link;
	}
}

void *slab__get(struct slab *slab)
{
	void **link;

	pthread_mutex_lock(&slab->lock);
	if (!slab->free)
		slab__grow(slab);
	link = slab->free;
	slab->free = *link;
	pthread_mutex_unlock(&slab->lock);
	return (char *)link + HEAD;
}

void slab__put(struct slab *slab, void *object)
{
	void **link = (void **)((char *)object - HEAD);

	pthread_mutex_lock(&slab->lock);
	*link = slab->free;
	slab->free = link;
	pthread_mutex_unlock(&slab->lock);
}
