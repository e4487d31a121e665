// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * What symbols/ reads from outside, for libFuzzer. The first byte chooses the reader: 0 ELF, 1
 * kallsyms, 2 a mangled name, 3 an ELF file's debug link, build id and compressed symbols, 4 an answer
 * of the process that reads debug information, 5 a perf map, 6 a jitdump; what follows is its input.
 * The time limit of "make fuzz" is part of the check: every input is to be answered in bounded time.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "symbols/demangle.h"
#include "symbols/file.h"
#include "symbols/jit_map.h"
#include "symbols/kernel.h"
#include "symbols/lines_reply.h"
#include "symbols/separate.h"

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

static void fuzz_separate(const uint8_t *data, size_t size)
{
	struct elf_image image;
	struct separate s;
	uint8_t *bytes;
	size_t len;

	if (elf_image__open_memory(&image, data, size))
		return;
	if (!separate__read(&image, &s)) {
		must(s.id.len <= BUILD_ID_MAX && !strchr(s.link, '/'));
		must(!s.id.len || separate__belongs(&s, &image));
		if (!separate__mini(&s, &image, &bytes, &len)) {
			must(len <= SEPARATE_MAX_MINI);
			free(bytes);
		}
	}
	elf_image__close(&image);
}

/* What was understood says the same when it is written again. */
static void fuzz_reply(const uint8_t *data, size_t size)
{
	static char text[LINES_REPLY_TEXT], message[LINES_MESSAGE], again_text[LINES_REPLY_TEXT];
	static struct lines_frame frames[DWARF_MAX_FRAMES], again[DWARF_MAX_FRAMES];
	struct dwarf_answer answer = {};
	uint32_t flags;

	answer.nr = lines_reply__parse((const char *)data, size, &flags, frames, text);
	for (size_t i = 0; i < answer.nr; i++)
		answer.frames[i] = (struct dwarf_frame){ frames[i].name, frames[i].file, frames[i].line };
	size = lines_reply__write(&answer, flags, message);
	must(lines_reply__parse(message, size, &flags, again, again_text) == answer.nr);
	for (size_t i = 0; i < answer.nr; i++)
		must(again[i].line == frames[i].line && !again[i].name == !frames[i].name &&
		     (!again[i].name || !strcmp(again[i].name, frames[i].name)));
}

static void fuzz_jit(const uint8_t *data, size_t size, bool dump)
{
	static int fd = -1;
	struct jit_budget budget = { .bytes = 1 << 20 };
	struct jit_map *m = jit_map__new(&budget);
	struct jit_dump d = {};
	uint64_t at = 0;
	const char *name;

	if (fd < 0)
		fd = memfd_create("fuzz", MFD_CLOEXEC);
	/* In two parts, as it grows. */
	must(!ftruncate(fd, 0));
	for (int part = 0; part < 2; part++) {
		size_t len = part ? size : size / 2;

		must(pwrite(fd, data, len, 0) == (ssize_t)len);
		if (dump)
			must(jit_dump__read(&d, fd, UINT64_MAX, m) == 1);
		else
			must(perf_map__read(fd, &at, UINT64_MAX, 0, m) == 1 && at <= len);
	}
	for (int bit = 0; bit < 64; bit++) {
		name = jit_map__find(m, 1ull << bit, 1ull << (bit / 2));
		must(!name || (name[0] && strlen(name) <= JIT_MAX_NAME));
	}
	jit_dump__free(&d);
	jit_map__free(m);
	must(budget.bytes == 1 << 20);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (!size)
		return 0;
	switch (data[0] % 7) {
	case 0:
		fuzz_elf(data + 1, size - 1);
		break;
	case 1:
		fuzz_kallsyms(data + 1, size - 1);
		break;
	case 2:
		fuzz_name(data + 1, size - 1);
		break;
	case 3:
		fuzz_separate(data + 1, size - 1);
		break;
	case 4:
		fuzz_reply(data + 1, size - 1);
		break;
	default:
		fuzz_jit(data + 1, size - 1, data[0] % 7 == 6);
	}
	return 0;
}
