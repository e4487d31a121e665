// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * What symbols/ reads from outside, for libFuzzer. The first byte chooses the reader: 0 ELF, 1
 * kallsyms, 2 a mangled name; what follows is its input. The time limit of "make fuzz" is part of
 * the check: every input is to be answered in bounded time.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "symbols/demangle.h"
#include "symbols/file.h"
#include "symbols/kernel.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool fact)
{
	if (!fact)
		abort();
}

static void look_up(struct symbol_file *f, uint64_t offset)
{
	struct symbol s, again;
	uint64_t address;

	if (symbol_file__find(f, offset, &s))
		return;
	must(s.name[0] && s.offset < s.size);
	must(symbol_file__address(f, offset, &address) && address == s.address + s.offset);
	must(!symbol_file__find(f, offset, &again) && again.address == s.address);
}

static void fuzz_elf(const uint8_t *data, size_t size)
{
	struct symbol_file *f = symbol_file__open_memory(data, size);

	if (!f)
		return;
	for (uint64_t offset = 0; offset < size; offset += 1 + offset / 8)
		look_up(f, offset);
	look_up(f, UINT64_MAX);
	symbol_file__free(f);
}

static void fuzz_kallsyms(const uint8_t *data, size_t size)
{
	struct kernel_symbols *k;
	struct kernel_symbol s;

	if (kernel_symbols__parse((const char *)data, size, &k))
		return;
	for (int bit = 0; bit < 64; bit++)
		for (int step = -1; step <= 1; step++)
			if (!kernel_symbols__find(k, (1ull << bit) + (uint64_t)step, &s))
				must(s.name[0] && s.address <= (1ull << bit) + (uint64_t)step);
	kernel_symbols__free(k);
}

static void fuzz_name(const uint8_t *data, size_t size)
{
	char *name = malloc(size + 1), *text;

	memcpy(name, data, size);
	name[size] = '\0';
	text = demangle(name);
	must(!text || text[0]);
	free(text);
	free(name);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (!size)
		return 0;
	switch (data[0] % 3) {
	case 0:
		fuzz_elf(data + 1, size - 1);
		break;
	case 1:
		fuzz_kallsyms(data + 1, size - 1);
		break;
	default:
		fuzz_name(data + 1, size - 1);
	}
	return 0;
}
