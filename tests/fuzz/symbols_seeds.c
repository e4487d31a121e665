// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Writes what symbols_fuzz begins with into a folder: one well-formed input for each reader. */
#include <lzma.h>
#include <stdio.h>
#include <sys/auxv.h>
#include <unistd.h>

#include "symbols/lines_reply.h"
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

/* The same with three sections more, and with itself compressed in the last. */
static void put_separate(void)
{
	static const char names[] = "\0.note.gnu.build-id\0.gnu_debuglink\0.gnu_debugdata\0.shstrtab";
	static const struct test_symbol symbols[] = {
		{ "global", TEXT + 0x10, 0x10, STB_GLOBAL, STT_FUNC, 0 },
	};
	static const unsigned char note[] = "\4\0\0\0\4\0\0\0\3\0\0\0GNU\0\1\2\3\4";
	static const unsigned char link[] = "some.debug\0\0\1\2\3\4";
	struct test_elf e = test_elf__new(ARRAY(symbols), ARRAY(symbols));
	static unsigned char packed[1 << 16];
	size_t packed_len = 0;
	Elf64_Ehdr *h;
	Elf64_Shdr s[5] = {
		{ .sh_type = SHT_NULL },
		{ .sh_name = 1, .sh_type = SHT_NOTE, .sh_size = sizeof(note) - 1 },
		{ .sh_name = 20, .sh_type = SHT_PROGBITS, .sh_size = sizeof(link) - 1 },
		{ .sh_name = 35, .sh_type = SHT_PROGBITS },
		{ .sh_name = 50, .sh_type = SHT_STRTAB, .sh_size = sizeof(names) },
	};

	if (lzma_easy_buffer_encode(6, LZMA_CHECK_CRC32, NULL, e.bytes, e.size, packed, &packed_len,
				    sizeof(packed)) != LZMA_OK)
		exit(1);
	s[1].sh_offset = test_elf__put(&e, note, sizeof(note) - 1);
	s[2].sh_offset = test_elf__put(&e, link, sizeof(link) - 1);
	s[3].sh_offset = test_elf__put(&e, packed, packed_len);
	s[3].sh_size = packed_len;
	s[4].sh_offset = test_elf__put(&e, names, sizeof(names));
	h = (Elf64_Ehdr *)e.bytes;
	h->e_shnum = 5;
	h->e_shstrndx = 4;
	packed_len = test_elf__put(&e, s, sizeof(s));	/* may move the bytes */
	((Elf64_Ehdr *)e.bytes)->e_shoff = packed_len;
	put("separate", 3, e.bytes, e.size);
	test_elf__free(&e);
}

static void put_reply(void)
{
	static char message[LINES_MESSAGE];
	struct lines_reply head = { .nr = 2 };
	struct lines_reply_frame frames[] = { { 12, LINES_NO_STRING, 3 }, { 7, 5, LINES_NO_STRING } };
	char *end = mempcpy(message, &head, sizeof(head));

	end = mempcpy(mempcpy(end, &frames[0], sizeof(frames[0])), "a.c", 3);
	end = mempcpy(mempcpy(end, &frames[1], sizeof(frames[1])), "_Z1fv", 5);
	put("reply", 4, message, (size_t)(end - message));
}

static void put_jit(void)
{
	static const char map[] = "7f0000001000 100 plain\n0x1000 0x10 _ZN1A3fooEv\n";
	static const uint32_t head[] = { 0x4a695444, 1, 40, 62, 0, 1, 5, 0, 0, 0 };
	static const uint32_t load[] = { 0, 16 + 40 + 4 + 4, 9, 0, 1, 1, 0x1000, 0, 0x1000, 0, 4, 0, 1, 0,
					 0x00656e6f, 0xcccccccc };
	static const uint32_t move[] = { 1, 16 + 48, 10, 0, 1, 1, 0x2000, 0, 0x1000, 0, 0x2000, 0, 4, 0,
					 1, 0 };
	static char dump[sizeof(head) + sizeof(load) + sizeof(move)];

	mempcpy(mempcpy(mempcpy(dump, head, sizeof(head)), load, sizeof(load)), move, sizeof(move));
	put("perf_map", 5, map, sizeof(map) - 1);
	put("jitdump", 6, dump, sizeof(dump));
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
	put_separate();
	put_reply();
	put_jit();
	put("kallsyms", 1, kallsyms, sizeof(kallsyms) - 1);
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		snprintf(name, sizeof(name), "name%zu", i);
		put(name, 2, names[i], strlen(names[i]));
	}
	return 0;
}
