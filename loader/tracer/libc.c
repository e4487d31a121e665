// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "loader/tracer/libc.h"

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "loader/tracer/exports.h"
#include "loader/tracer/space.h"

#define MAX_CODE (64u << 20)	/* of a C library */

#define FUNCTION(name, member) { name, offsetof(struct libc, member) }
static const struct {
	const char *name;
	size_t member;
} functions[] = {
	FUNCTION("getpid", getpid), FUNCTION("pthread_attr_init", attr_init),
	FUNCTION("pthread_attr_setdetachstate", attr_setdetachstate),
	FUNCTION("pthread_attr_setstacksize", attr_setstacksize),
	FUNCTION("pthread_create", pthread_create), FUNCTION("__errno_location", errno_location),
	FUNCTION("munmap", munmap), FUNCTION("dlopen", dlopen), FUNCTION("dlsym", dlsym),
	FUNCTION("dlerror", dlerror),
};

#define NR_FUNCTIONS (sizeof(functions) / sizeof(functions[0]))

static const uint8_t endbr64[] = { 0xf3, 0x0f, 0x1e, 0xfa };
static const uint8_t getpid_code[] = { 0xb8, 0x27, 0, 0, 0, 0x0f, 0x05, 0xc3 };
static const uint8_t restore_rt_code[] = { 0x48, 0xc7, 0xc0, 0x0f, 0, 0, 0, 0x0f, 0x05 };

static bool code_is(const struct space *s, uint64_t at, const uint8_t *code, size_t len)
{
	uint8_t found[16];

	return !space__peek(s->pid, at, found, len) && !memcmp(found, code, len);
}

/* Where a mapping has these bytes, in *at, which stays 0 if it has them nowhere. 0 or -ENOMEM. */
static int find_code(const struct space *s, const struct mapping *m, const uint8_t *code, size_t len,
		     uint64_t *at)
{
	size_t size = (size_t)(m->end - m->start);
	uint8_t *bytes, *found;

	if (m->end - m->start > MAX_CODE)
		return 0;
	bytes = malloc(size);
	if (!bytes)
		return -ENOMEM;
	if (!space__peek(s->pid, m->start, bytes, size)) {
		found = memmem(bytes, size, code, len);
		if (found)
			*at = m->start + (uint64_t)(found - bytes);
	}
	free(bytes);
	return 0;
}

static int find_restore_rt(const struct libc *l, const struct space *s, uint64_t *at)
{
	int err = 0;

	*at = 0;
	for (size_t i = 0; i < s->nr_code && !*at && !err; i++)
		if (s->code[i].kind == MAPPING_FILE && s->code[i].file == l->file)
			err = find_code(s, &s->code[i], restore_rt_code, sizeof(restore_rt_code), at);
	return err;
}

/* Whether a function's first bytes in memory are those of the file: the address is right. */
static bool is_unchanged(const struct libc *l, const struct space *s, const struct exports *e,
			 uint64_t function)
{
	uint8_t code[16];
	uint64_t offset;

	return elf_image__to_offset(&e->image, function - l->bias, &offset) &&
	       !elf_image__read(&e->image, offset, code, sizeof(code)) &&
	       code_is(s, function, code, sizeof(code));
}

static int refuse(char *why, size_t size, const char *text)
{
	snprintf(why, size, "%s", text);
	return -ENOTSUP;
}

/* 0, or -ENOTSUP and why. */
static int find_functions(struct libc *l, const struct space *s, const struct exports *e, char *why,
			  size_t size)
{
	uint64_t address;

	/* Before, it was in a library of its own. */
	if (exports__find(e, "dlopen", &address))
		return refuse(why, size, "its C library is glibc older than 2.34");
	for (size_t i = 0; i < NR_FUNCTIONS; i++) {
		if (exports__find(e, functions[i].name, &address))
			return refuse(why, size, "its C library lacks a function that is needed");
		address += l->bias;
		if (!is_unchanged(l, s, e, address))
			return refuse(why, size, "its C library's code was changed in memory");
		memcpy((char *)l + functions[i].member, &address, sizeof(address));
	}
	return 0;
}

static int take(struct libc *l, const struct space *s, const struct mapping *m,
		const struct exports *e, char *why, size_t size)
{
	uint64_t address;
	int err;

	if (!elf_image__to_address(&e->image, m->offset, &address))
		return refuse(why, size, "its C library is damaged");
	l->file = m->file;
	l->bias = m->start - address;
	err = find_functions(l, s, e, why, size);
	if (err)
		return err;
	if (code_is(s, l->getpid, endbr64, sizeof(endbr64)))
		l->getpid += sizeof(endbr64);
	l->syscall = l->getpid + 5;
	err = find_restore_rt(l, s, &l->restore_rt);
	if (err)
		return err;
	if (!l->restore_rt || libc__verify(l, s))
		return refuse(why, size, "its C library's code is not as expected");
	return 0;
}

int libc__find(struct libc *l, const struct space *s, char *why, size_t size)
{
	uint64_t address;
	uint32_t seen = 0;
	bool musl = false;
	int err = -ENOENT;

	*l = (struct libc){ 0 };
	for (size_t i = 0; i < s->nr_code; i++) {
		const struct mapping *m = &s->code[i];
		struct exports e;

		if (m->kind != MAPPING_FILE || m->file == seen || m->file == FILES_VDSO ||
		    exports__open(&e, files__fd(s->files, m->file)))
			continue;
		seen = m->file;
		/* There the dynamic loader is the C library; not all builds of it say their name. */
		if (m->file == s->loader)
			musl = !exports__find(&e, "__libc_start_main", &address);
		if (exports__is_called(&e, "libc.so.6")) {
			if (err == 0 && m->file != l->file)
				err = refuse(why, size, "it has two C libraries");
			else if (err == -ENOENT)
				err = take(l, s, m, &e, why, size);
		}
		exports__close(&e);
	}
	if (err != -ENOENT)
		return err;
	return refuse(why, size, musl ? "its C library is musl, not glibc" :
		      s->loader ? "its C library is not glibc" :
		      "it is statically linked");
}

int libc__verify(const struct libc *l, const struct space *s)
{
	uint8_t byte;

	if (space__peek(s->pid, l->getpid, &byte, 1))
		return -ESRCH;
	return code_is(s, l->getpid, getpid_code, sizeof(getpid_code)) &&
	       code_is(s, l->restore_rt, restore_rt_code, sizeof(restore_rt_code)) ? 0 : -ENOTSUP;
}
