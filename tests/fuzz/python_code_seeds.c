// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Writes the fuzzer's first inputs into a folder: a whole code object of each version, and tables. */
#include <stdint.h>
#include <stdio.h>
#include <string.h>

static unsigned int nr;

static int save(const char *folder, const void *bytes, size_t len)
{
	char path[4096];
	FILE *f;
	int err;

	snprintf(path, sizeof(path), "%s/seed-%02u", folder, nr++);
	f = fopen(path, "wb");
	if (!f)
		return -1;
	err = fwrite(bytes, len, 1, f) != 1;
	return fclose(f) || err ? -1 : 0;
}

int main(int argc, char **argv)
{
	/* kind, first line, offset, and 200 bytes that are steps in each form */
	uint8_t table[10 + 200] = { 0, 0, 9, 0, 0, 0, 90 };
	/* version, kinds, and its number of references: other ones at the start and later, then none */
	uint8_t code[3 + 3 * 8] = { 1, 0, 0, 0, 3, 0, 1, 9, 0, 0, 0, 3, 3, 0, 1, 1, 0, 0, 0, 5, 3, 0, 1 };

	if (argc != 2)
		return 64;
	for (unsigned int i = 10; i < sizeof(table); i += 2)
		memcpy(table + i, "\xd8\x01", 2);
	for (table[1] = 0; table[1] < 3; table[1]++)
		if (save(argv[1], table, sizeof(table)))
			return 1;
	for (unsigned int version = 0; version < 14; version++) {
		code[1] = (uint8_t)(version < 7 ? version : 63 + version - 6);
		code[2] = (uint8_t)(version * 5);
		if (save(argv[1], code, version & 1 ? sizeof(code) : 10))
			return 1;
	}
	return 0;
}
