// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Executable mappings, above all those whose code was copied out of its file. */
#include <fcntl.h>
#include <link.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "loader/mappings.h"
#include "tests/unit/unit.h"

#define PAGE 4096ul
#define ROUND_UP(x) (((x) + PAGE - 1) & ~(PAGE - 1))
#define ROUND_DOWN(x) ((x) & ~(PAGE - 1))

static ElfW(Phdr) text, after;		/* of this program: its code, and the segment behind it */
static struct files *files;
static int self;

static int find(struct dl_phdr_info *info, size_t size, void *arg)
{
	(void)size, (void)arg;
	for (int i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *p = &info->dlpi_phdr[i];

		if (p->p_type == PT_LOAD && p->p_flags & PF_X)
			text = *p;
		else if (p->p_type == PT_LOAD && text.p_memsz && !after.p_memsz)
			after = *p;
	}
	return 1;
}

static void begin(void)
{
	dl_iterate_phdr(find, NULL);
	ck_assert_uint_ne(text.p_memsz, 0);
	ck_assert_uint_ne(after.p_memsz, 0);
	files = files__new();
	self = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	ck_assert(files && self >= 0);
}

static void put(char *at, size_t size, int prot, int fd, uint64_t offset)
{
	int flags = MAP_FIXED | MAP_PRIVATE | (fd < 0 ? MAP_ANONYMOUS : 0);

	ck_assert_ptr_eq(mmap(at, size, prot, flags, fd, (off_t)offset), at);
}

/* This program once more, as the loader would, but for its code, which is in memory. */
static char *load(bool behind)
{
	size_t size = ROUND_UP(after.p_vaddr + after.p_memsz);
	uint64_t first = ROUND_DOWN(text.p_vaddr), last = ROUND_DOWN(after.p_vaddr);
	char *at = mmap(NULL, size + PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	ck_assert_ptr_ne(at, MAP_FAILED);
	put(at, first, PROT_READ, self, 0);
	put(at + first, last - first, PROT_READ | PROT_EXEC, -1, 0);
	if (behind)
		put(at + last, size - last, PROT_READ, self, ROUND_DOWN(after.p_offset));
	return at;
}

static struct mapping get(const void *at)
{
	const struct mappings none = {};
	struct mapping found = { .kind = 99 };
	struct mappings m;

	ck_assert_int_eq(mappings__read(files, getpid(), &none, &m), 0);
	for (uint32_t i = 0; i < m.nr; i++)
		if ((uintptr_t)at >= m.list[i].start && (uintptr_t)at < m.list[i].end)
			found = m.list[i];
	free(m.list);
	return found;
}

START_TEST(code_in_memory_is_its_files)
{
	struct mapping m, own;
	char *at, *code;
	void (*here)(void) = begin;
	void *place;

	begin();
	at = load(true);
	code = at + ROUND_DOWN(text.p_vaddr);
	m = get(code);
	ck_assert_int_eq(m.kind, MAPPING_FILE);
	ck_assert_uint_eq(m.offset, ROUND_DOWN(text.p_offset));
	memcpy(&place, &here, sizeof(place));
	own = get(place);
	ck_assert_uint_eq(m.file, own.file);
	/* In two mappings, one of them writable. */
	ck_assert_int_eq(mprotect(code, PAGE, PROT_READ | PROT_WRITE | PROT_EXEC), 0);
	m = get(code + PAGE);
	ck_assert_int_eq(m.kind, MAPPING_FILE);
	ck_assert_uint_eq(m.start, (uintptr_t)code + PAGE);
	ck_assert_uint_eq(m.offset, ROUND_DOWN(text.p_offset) + PAGE);
}
END_TEST

START_TEST(other_code_in_memory_is_not)
{
	uint64_t last;
	char *at;

	begin();
	/* Behind a file, with nothing of it behind that. */
	at = load(false);
	ck_assert_int_eq(get(at + ROUND_DOWN(text.p_vaddr)).kind, MAPPING_ANON);
	/* With a gap before it. */
	at = load(true);
	munmap(at + ROUND_DOWN(text.p_vaddr), PAGE);
	ck_assert_int_eq(get(at + ROUND_DOWN(text.p_vaddr) + PAGE).kind, MAPPING_ANON);
	/* Between two parts, where the file has no code. */
	at = load(true);
	last = ROUND_DOWN(after.p_vaddr);
	put(at + ROUND_DOWN(text.p_vaddr), last - ROUND_DOWN(text.p_vaddr), PROT_READ, self,
	    ROUND_DOWN(text.p_offset));
	put(at + last + PAGE, PAGE, PROT_READ | PROT_EXEC, -1, 0);
	put(at + last + 2 * PAGE, PAGE, PROT_READ, self, ROUND_DOWN(after.p_offset) + 2 * PAGE);
	ck_assert_int_eq(get(at + last + PAGE).kind, MAPPING_ANON);
	/* Between parts of two files. */
	at = load(true);
	put(at + last, PAGE, PROT_READ, open("/bin/sh", O_RDONLY), 0);
	ck_assert_int_eq(get(at + ROUND_DOWN(text.p_vaddr)).kind, MAPPING_ANON);
}
END_TEST

/* A word has 36 bits for it: more would name another file. */
START_TEST(offsets_that_no_word_can_hold)
{
	char path[] = "/tmp/test_mappings.XXXXXX";
	const uint64_t most = 1ull << FRAME_OFFSET_BITS;
	int fd = mkstemp(path);
	char *at;

	begin();
	unlink(path);
	if (ftruncate(fd, (off_t)(most + 16 * PAGE)))
		return;		/* not on this file system */
	at = mmap(NULL, 64 * PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	put(at, PAGE, PROT_READ | PROT_EXEC, fd, most);
	put(at + 4 * PAGE, 2 * PAGE, PROT_READ | PROT_EXEC, fd, most - PAGE);
	put(at + 8 * PAGE, PAGE, PROT_READ | PROT_EXEC, self, 0);
	ck_assert_int_eq(get(at).kind, MAPPING_ANON);
	ck_assert_int_eq(get(at + 4 * PAGE).kind, MAPPING_ANON);
	ck_assert_int_eq(get(at + 8 * PAGE).kind, MAPPING_FILE);
}
END_TEST

UNIT_MAIN("mappings", code_in_memory_is_its_files, other_code_in_memory_is_not,
	  offsets_that_no_word_can_hold)
