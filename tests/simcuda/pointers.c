// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* What memory is of the device or pinned: a list of all that was allocated here. */
#include "sim.h"
#include <stdlib.h>

#define ATTRIBUTE_MEMORY_TYPE 2

struct range {
	struct range *next;
	const char *start;
	size_t size;
	enum sim_memory type;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct range *ranges;

void *memory__allocate(size_t n, enum sim_memory type)
{
	struct range *r = malloc(sizeof(*r));

	*r = (struct range){ .start = malloc(n), .size = n, .type = type };
	pthread_mutex_lock(&lock);
	r->next = ranges;
	ranges = r;
	pthread_mutex_unlock(&lock);
	return (void *)(uintptr_t)r->start;
}

void memory__free(void *p)
{
	struct range *found = NULL;

	pthread_mutex_lock(&lock);
	for (struct range **r = &ranges; *r; r = &(*r)->next)
		if ((*r)->start == p) {
			found = *r;
			*r = found->next;
			break;
		}
	pthread_mutex_unlock(&lock);
	free(found);
	free(p);
}

enum sim_memory memory__type(const void *p)
{
	enum sim_memory type = MEMORY_UNKNOWN;

	pthread_mutex_lock(&lock);
	for (const struct range *r = ranges; r; r = r->next)
		if ((uintptr_t)p - (uintptr_t)r->start < r->size)
			type = r->type;
	pthread_mutex_unlock(&lock);
	return type;
}

/* An address that isn't known is no error: its attributes are 0. */
API(cuPointerGetAttributes, unsigned n, const int *attributes, void **data, CUdeviceptr p)
{
	ENTER();
	if (!n || !attributes || !data)
		RET(CU_INVALID_VALUE);
	for (unsigned i = 0; i < n; i++) {
		if (attributes[i] != ATTRIBUTE_MEMORY_TYPE)
			RET(CU_INVALID_VALUE);
		*(unsigned *)data[i] = memory__type((const void *)(uintptr_t)p);
	}
	RET(CU_OK);
}
