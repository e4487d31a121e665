// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Writes what symbols_fuzz begins with into a folder: one well-formed input for each reader. */
#include <stdio.h>
#include <sys/auxv.h>
#include <unistd.h>

#include "tests/unit/symbols_elf.h"

#define ARRAY(a) a, sizeof(a) / sizeof((a)[0])

static const char *dir;

static void put(const char *name, char reader, const void *data, size_t size)
{
	char path[4096];
	FILE *f;

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	f = fopen(path, "w");
	if (!f) {
		perror(path);
		exit(1);
	}
	fputc(reader, f);
	fwrite(data, 1, size, f);
	fclose(f);
}

static void put_elf(void)
{
	static const struct test_symbol symbols[] = {
		{ "global", TEXT + 0x10, 0x10, STB_GLOBAL, STT_FUNC, 0 },
		{ "_weak", TEXT + 0x10, 0x10, STB_WEAK, STT_FUNC, 0 },
		{ "inner", TEXT + 0x14, 0x04, STB_LOCAL, STT_FUNC, 0 },
		{ "label@@V_1", TEXT + 0x40, 0, STB_GLOBAL, STT_NOTYPE, 0 },
		{ "indirect", TEXT + 0x80, 0x10, STB_GLOBAL, STT_GNU_IFUNC, 0 },
	};
	struct test_elf e = test_elf__new(ARRAY(symbols), ARRAY(symbols));

	put("elf", 0, e.bytes, e.size);
	test_elf__free(&e);
}

/* A real one, with hashes and a dynamic segment, and small. */
static void put_vdso(void)
{
	const uint8_t *image = (const uint8_t *)getauxval(AT_SYSINFO_EHDR);
	const Elf64_Ehdr *h = (const Elf64_Ehdr *)image;
	size_t size = image ? h->e_shoff + (size_t)h->e_shnum * sizeof(Elf64_Shdr) : 0;
	uint8_t *copy;

	if (!size || size > 2 * (size_t)sysconf(_SC_PAGESIZE))
		return;
	copy = malloc(size);
	memcpy(copy, image, size);
	put("vdso", 0, copy, size);
	((Elf64_Ehdr *)copy)->e_shoff = 0;
	put("vdso_without_headers", 0, copy, size);
	free(copy);
}

int main(int argc, char **argv)
{
	static const char kallsyms[] =
		"ffffffff81000000 T schedule\nffffffff81000100 t local_one\n"
		"ffffffff82000000 D data\nffffffffc0001000 t nft_do_chain\t[nf_tables]\n";
	static const char *const names[] = {
		"_ZZN2at6native3fooIfEEvRKNS_6TensorEENKUlvE_clEv.cold",
		"_ZNSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEE6appendEPKc",
		"_Z1fIM1AKFvvEXadL_Z3bariEELin3EJidEEvT_", "_ZNK1AcvT_IiEEv", "_ZThn16_N1B3fooEv",
		"_ZN4core3ptr42drop_in_place$LT$alloc..string..String$GT$17h0123456789abcdefE",
		"_RNvXC4testNtB2_3FooNtB2_3Bar3baz.llvm.1", "_RINvNtC3std3mem8align_ofdE",
		"_RNqCs4fqI2P2rA04_11utf8_identsu30____7hkackfecea1cbdathfdh9hlq6y",
	};
	char name[16];

	if (argc != 2)
		return 64;
	dir = argv[1];
	put_elf();
	put_vdso();
	put("kallsyms", 1, kallsyms, sizeof(kallsyms) - 1);
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		snprintf(name, sizeof(name), "name%zu", i);
		put(name, 2, names[i], strlen(names[i]));
	}
	return 0;
}
