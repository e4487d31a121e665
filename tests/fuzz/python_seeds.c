// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Writes the fuzzer's first inputs into a folder: files of every form, and a process of 3.11 and of 3.12. */
#include <stdio.h>

#include "tests/unit/python_elf.h"

static unsigned int nr;

static int save(const char *folder, uint8_t kind, const void *bytes, size_t len)
{
	char path[4096];
	FILE *f;
	int err;

	snprintf(path, sizeof(path), "%s/seed-%02u", folder, nr++);
	f = fopen(path, "wb");
	if (!f)
		return -1;
	err = fwrite(&kind, 1, 1, f) != 1 || fwrite(bytes, len, 1, f) != 1;
	return fclose(f) || err ? -1 : 0;
}

static int save_file(const char *folder, unsigned int form)
{
	static struct python_elf e;
	const uint64_t version = form & 1 ? 0x030d00f0 : 0x030b07f0;

	memset(&e, 0, sizeof(e));
	e.where = form / 2 % 3;
	e.program = e.section = e.where == IN_SYMTAB;
	memcpy(python_elf__add(&e, "_PyRuntime", 283320), "xdebugpy", form & 1 ? 8 : 0);
	memcpy(e.image + ELF_RUNTIME + 8, &version, form & 1 ? 8 : 0);
	python_elf__add(&e, "PyCode_Type", 408);
	if (form < 6)
		memcpy(python_elf__add(&e, "Py_Version", 8), &version, 8);
	else
		memcpy(python_elf__add(&e, "Py_GetVersion", 32) + 64, "3.10.13", 8);
	python_elf__finish(&e);
	return save(folder, 0, e.image, sizeof(e.image));
}

static uint8_t memory[16384];

static void put(uint32_t at, uint64_t value)
{
	memcpy(memory + at, &value, sizeof(value));
}

/* Offsets of 3.11 or 3.12, from their headers: one thread with one frame, under key 3. */
static int save_process(const char *folder, bool is_312)
{
	const uint32_t interpreter = 0x1000, state = 0x1800, pthread = 0x2000, frame = 0x3000;
	const uint32_t code = 0x3100, type = 0x3300, str = 0x3600, text = 0x3500, cframe = 0x3580;

	memset(memory, 0, sizeof(memory));
	put(0x100 + 40, interpreter);
	put(0x100 + (is_312 ? 1544 : 592), 1 | 3ull << 32);
	put(interpreter + (is_312 ? 72 : 16), state);
	put(state + 16, interpreter);
	put(state + 56, cframe);
	put(state + (is_312 ? 136 : 152), pthread);
	put(pthread + 0x510, pthread + 0x310);
	put(pthread + 0x310 + 3 * 16 + 8, state);
	put(cframe + (is_312 ? 0 : 8), frame);
	put(frame + (is_312 ? 0 : 32), code);
	put(code + 8, type);
	put(code + 112, text);
	put(code + 120, text);
	put(type + 24, 0x3700);
	memcpy(memory + 0x3700, "code", 5);
	put(text + 8, str);
	put(str + 24, 0x3710);
	memcpy(memory + 0x3710, "str", 4);
	return save(folder, (uint8_t)(1 | (is_312 ? 4 : 3) << 1), memory, sizeof(memory));
}

int main(int argc, char **argv)
{
	int err = 0;

	if (argc != 2)
		return 64;
	for (unsigned int form = 0; form < 9 && !err; form++)
		err = save_file(argv[1], form);
	if (!err)
		err = save_process(argv[1], false);
	if (!err)
		err = save_process(argv[1], true);
	return err ? 1 : 0;
}
