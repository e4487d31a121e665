// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * libFuzzer target: the first byte says what the rest is. Even: a file in which an interpreter is looked
 * for. Odd: the memory of a process with one of 3.8 to 3.14, from address 0 on, so that small numbers
 * are addresses; its _PyRuntime is at 0x100.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "unwind/python_threads.h"

#define RUNTIME 0x100

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct bytes {
	const uint8_t *data;
	size_t size;
};

static int read_bytes(void *ctx, uint64_t addr, void *buf, size_t len)
{
	const struct bytes *b = ctx;

	if (addr > b->size || len > b->size - addr)
		return -14;	/* EFAULT */
	memcpy(buf, b->data + addr, len);
	return 0;
}

static void look(const uint8_t *data, size_t size)
{
	int fd = memfd_create("fuzz", MFD_CLOEXEC);
	struct python_runtime r;
	char *why = NULL;

	if (fd < 0 || write(fd, data, size) != (ssize_t)size)
		abort();
	if (!python_runtime__find(fd, &r, &why) && (r.minor < 8 || r.minor > 14 || why))
		abort();
	free(why);
	close(fd);
}

static void learn(unsigned int version, const uint8_t *data, size_t size)
{
	struct bytes bytes = { data, size };
	const struct python_memory m = { .read = read_bytes, .ctx = &bytes };
	struct python_runtime r = { .runtime = RUNTIME, .type_code = 0x40, .minor = 8 + version % 7 };
	struct python_layout layout;
	char *why = NULL;
	int err;

	if (python_offsets__of(r.minor, r.minor >= 13 && version & 16, &r.offsets))
		abort();
	err = python_threads__learn(&r, RUNTIME, &m, &layout, &why);
	if (err > 0 || (!err && (why || layout.tsd_at >= 4096)))
		abort();
	free(why);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (size < 1)
		return 0;
	if (data[0] & 1)
		learn(data[0] >> 1, data + 1, size - 1);
	else
		look(data + 1, size - 1);
	return 0;
}
