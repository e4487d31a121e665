// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * What names cost. usage: build/bench/names [-l] WORDS FILE...
 * Looks up WORDS places spread over the code of each file; -l with lines and inlined calls.
 */
#include <elf.h>
#include <fcntl.h>
#include <linux/types.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bpf/gpucollect.h"
#include "loader/base/clock.h"
#include "symbols/cache.h"

struct sums {
	uint64_t first, further, again;		/* ns */
	size_t files, words, named, inlines;
};

/* The largest executable segment; 0: none. */
static uint64_t code_of(int fd, uint64_t *size)
{
	Elf64_Ehdr h;
	Elf64_Phdr p;
	uint64_t offset = 0;

	*size = 0;
	if (pread(fd, &h, sizeof(h), 0) != sizeof(h) || memcmp(h.e_ident, ELFMAG, SELFMAG))
		return 0;
	for (int i = 0; i < h.e_phnum; i++)
		if (pread(fd, &p, sizeof(p), (off_t)(h.e_phoff + (uint64_t)i * sizeof(p))) == sizeof(p) &&
		    p.p_type == PT_LOAD && p.p_flags & PF_X && p.p_filesz > *size) {
			*size = p.p_filesz;
			offset = p.p_offset;
		}
	return offset;
}

static void look_up(struct symbols *s, uint32_t file, uint64_t offset, uint64_t step, size_t words,
		    struct sums *sums)
{
	struct resolved r;

	for (size_t i = 1; i < words; i++) {
		symbols__resolve(s, FRAME_MAKE_FILE(FRAME_FILE, file, offset + i * step), &r);
		sums->named += r.kind == RESOLVED_NATIVE;
		sums->inlines += r.nr_inlines;
	}
}

static void measure(struct symbols *s, uint32_t file, int fd, size_t words, struct sums *sums)
{
	struct sums none = {};
	struct resolved r;
	uint64_t size, offset = code_of(fd, &size), begin = clock__now_ns();

	symbols__resolve(s, FRAME_MAKE_FILE(FRAME_FILE, file, offset), &r);
	sums->first += clock__now_ns() - begin;
	begin = clock__now_ns();
	look_up(s, file, offset, size / words, words, sums);
	sums->further += clock__now_ns() - begin;
	begin = clock__now_ns();
	look_up(s, file, offset, size / words, words, &none);
	sums->again += clock__now_ns() - begin;
	sums->files++;
	sums->words += words - 1;
}

int main(int argc, char **argv)
{
	bool lines = argc > 1 && !strcmp(argv[1], "-l");
	char **arg = argv + 1 + lines;
	struct symbols *s = symbols__new();
	struct sums sums = {};
	size_t words = arg[0] ? strtoul(arg[0], NULL, 10) : 0;

	if (words < 2 || !arg[1])
		return 64;
	if (lines && symbols__use_lines(s, NULL, NULL))
		return 1;
	for (uint32_t i = 1; arg[i]; i++) {
		int fd = open(arg[i], O_RDONLY | O_CLOEXEC);

		if (fd >= 0 && !symbols__add_file(s, i, fd, arg[i]))
			measure(s, i, fd, words, &sums);
	}
	if (!sums.files)
		return 1;
	printf("%zu files: first word %.3f ms a file, further ones %.2f us, again %.3f us; named %.0f %%, "
	       "%.2f inlined calls a word\n", sums.files, (double)sums.first / 1e6 / (double)sums.files,
	       (double)sums.further / 1e3 / (double)sums.words,
	       (double)sums.again / 1e3 / (double)sums.words,
	       100.0 * (double)sums.named / (double)sums.words, (double)sums.inlines / (double)sums.words);
	symbols__free(s);
	return 0;
}
