// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Has its code in other memory than its file's, as programs do that want it in huge pages, and works.
 * usage: cpu_hugetext file|whole|part|memfd|hugetlb
 *   file: as it was loaded; whole, part: all of it, or all but the first pages, in anonymous memory;
 *   memfd: in a file in memory; hugetlb: in memory of huge pages (status 77: there is none)
 */
#include <link.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define PAGE 4096ul
#define HUGE (2ul << 20)

static volatile uint64_t sink;
static uintptr_t start, end;

/* Before and behind the code, so that a huge page holds all of it. */
#define FILLING(section, name) \
	__asm__(".pushsection " section ", \"ax\", @progbits\n.type " name ", @function\n" name \
		":\n.fill 0x300000, 1, 0x90\nret\n.size " name ", . - " name "\n.popsection\n")
FILLING(".text", "before");
FILLING(".text.z", "behind");

static int find_text(struct dl_phdr_info *info, size_t size, void *arg)
{
	(void)size, (void)arg;
	for (int i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *p = &info->dlpi_phdr[i];

		if (p->p_type != PT_LOAD || !(p->p_flags & PF_X))
			continue;
		start = (info->dlpi_addr + p->p_vaddr) & ~(PAGE - 1);
		end = (info->dlpi_addr + p->p_vaddr + p->p_memsz + PAGE - 1) & ~(PAGE - 1);
	}
	return 1;	/* the first is the program */
}

static void *memory(const char *how, size_t size)
{
	int flags = MAP_PRIVATE | MAP_ANONYMOUS, fd = -1;
	void *at;

	if (!strcmp(how, "memfd")) {
		fd = memfd_create("text", MFD_CLOEXEC);
		flags = MAP_SHARED;
		if (fd < 0 || ftruncate(fd, (off_t)size))
			exit(1);
	} else if (!strcmp(how, "hugetlb")) {
		flags |= MAP_HUGETLB;
	}
	at = mmap(NULL, size, PROT_READ | PROT_WRITE, flags, fd, 0);
	if (at == MAP_FAILED)
		exit(77);
	return at;
}

static void move_text(const char *how)
{
	uintptr_t from = start, to = end;
	void *copy;

	if (!strcmp(how, "part"))
		from += 3 * PAGE;
	if (!strcmp(how, "hugetlb")) {
		from = (start + HUGE - 1) & ~(HUGE - 1);
		to = end & ~(HUGE - 1);
	}
	copy = memory(how, to - from);
	memcpy(copy, (void *)from, to - from);
	if (mprotect(copy, to - from, PROT_READ | PROT_EXEC) ||
	    mremap(copy, to - from, to - from, MREMAP_MAYMOVE | MREMAP_FIXED, from) == MAP_FAILED) {
		perror("moving the text");
		exit(77);
	}
}

__attribute__((noinline, noclone)) static void inner(void)
{
	for (uint64_t i = 0; i < 30000000; i++)
		sink += i;
}

__attribute__((noinline, noclone)) static void outer(void)
{
	inner();
	sink++;
}

int main(int argc, char **argv)
{
	if (argc != 2)
		return 64;
	dl_iterate_phdr(find_text, NULL);
	if (strcmp(argv[1], "file"))
		move_text(argv[1]);
	for (;;)
		outer();
}
