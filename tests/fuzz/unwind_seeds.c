// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Writes the fuzzer's first inputs into a folder: images of every form that the tests know. */
#include <stdio.h>

#include "tests/unit/elf_maker.h"

static int save(const char *folder, unsigned int nr, const struct maker *m)
{
	char path[4096];
	FILE *f;
	int err;

	snprintf(path, sizeof(path), "%s/seed-%02u", folder, nr);
	f = fopen(path, "wb");
	if (!f)
		return -1;
	err = fwrite(m->image, sizeof(m->image), 1, f) != 1;
	return fclose(f) || err ? -1 : 0;
}

static void add_functions(struct maker *m)
{
	static const char *const insns[] = {
		"\x41\x0e\x10\x86\x02\x43\x0d\x06\x0a\x45\x0c\x07\x08\x41\x0b",
		"\x0f\x03\x76\x78\x06\x10\x06\x02\x76\x00\x10\x03\x02\x76\x70",
		"\x0f\x0b\x77\x08\x80\x00\x3f\x1a\x3b\x2a\x33\x24\x22",
		"\x0f\x04\x77\xa0\x01\x06\x10\x10\x03\x77\xa8\x01\x10\x06\x03\x77\xf8\x00",
		"\x09\x10\x05\x16\x03\x02\x77\x08\x2e\x10\x02\x04\x07\x10",
	};
	static const size_t lens[] = { 15, 15, 13, 18, 14 };

	for (unsigned int i = 0; i < 10; i++)
		m->fdes[i] = (struct maker_fde){ maker__code(m, 0x1000 + 0x300 * i), 0x2f8,
						 insns[i % 5], lens[i % 5], m->debug && i % 2 };
	m->nr_fdes = 10;
	m->entry = maker__code(m, 0x6f00);
	memcpy(m->image + 0x6800, "\xff\x25\x01\x02\x03\x04\x68\x00\x00\x00\x00\xe9", 12);
	memcpy(m->image + 0x6900, "\x48\xc7\xc0\x0f\x00\x00\x00\x0f\x05", 9);
}

int main(int argc, char **argv)
{
	static struct maker m;

	if (argc != 2)
		return 64;
	for (unsigned int nr = 0; nr < 28; nr++) {
		memset(&m, 0, sizeof(m));
		m.table = (enum maker_table)(nr % 7);
		m.debug = nr / 7 & 1;
		m.wide = nr / 14;
		m.no_sections = nr % 3 == 2;
		m.vaddr = nr % 2 ? 0x400000 : 0;
		m.text_shift = nr % 5 ? 0x1000 : 0;
		add_functions(&m);
		maker__build(&m);
		if (save(argv[1], nr, &m))
			return 1;
	}
	return 0;
}
