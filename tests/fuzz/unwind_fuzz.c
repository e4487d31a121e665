// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * libFuzzer target: an ELF image as found in a target. Its first pages are compiled, and a stack
 * made of the image's own bytes is walked by what came out. See tests/fuzz/fuzz.mk.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "unwind/elf_view.h"
#include "unwind/file.h"
#include "unwind/rows.h"
#include "unwind/stack.h"

#define MAX_RULES 4096
#define MAX_ROWS 65536
#define BASE 0x7f0000000000ull
#define STACK 0x7ffc00000000ull
#define MAX_PAGES 24

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct unwind_rule rules[MAX_RULES];
static struct unwind_row rows[MAX_ROWS];

static struct unwind_file *file_of(void *ctx, uint32_t id)
{
	(void)id;
	return ctx;
}

static void walk(struct unwind_store *store, struct unwind_file *file, const uint8_t *data,
		 size_t size)
{
	const struct mapping map = { BASE, BASE + size, 0, 1, MAPPING_FILE };
	static __u64 words[GPUCOLLECT_MAX_FRAMES], stack[256];
	__u64 regs[16], pc = 0;
	struct unwind_stack_input in = {
		.regs = regs, .start = STACK, .stack = stack, .len = sizeof(stack),
		.mappings = &map, .nr_mappings = 1, .file = file_of, .ctx = file,
	};
	size_t n;

	/* bytes of the image as numbers that look like addresses of code or of the stack */
	for (size_t i = 0; i < 256; i++) {
		uint32_t v;

		memcpy(&v, data + (i * 4) % (size - 3), 4);
		stack[i] = v & 1 ? BASE + v % size : STACK + v % sizeof(stack);
	}
	for (size_t i = 0; i < 16; i++)
		regs[i] = stack[i];
	regs[UNWIND_RSP] = STACK + (stack[16] & 0x3f8);
	memcpy(&pc, data + size - 4, 4);
	in.pc = BASE + pc % size;
	in.in_syscall = pc & 1;
	n = unwind_stack__walk(store, &in, words, GPUCOLLECT_MAX_FRAMES);
	if (n < 1 || FRAME_KIND(words[n - 1]) != FRAME_END)
		abort();
}

/* Pages of code first, so that a large segment of data doesn't use up the few. */
static void compile(struct unwind_store *store, struct unwind_file *file)
{
	struct page_rows page;
	unsigned int left = MAX_PAGES;
	const struct elf_segment *seg;
	size_t nr;

	seg = elf_view__segments(unwind_file__view(file), &nr);
	for (size_t i = 0; i < nr; i++) {
		uint64_t end = (seg[i].offset + seg[i].size + 4095) >> 12;

		for (uint64_t p = seg[i].offset >> 12; seg[i].executable && p < end && left; p++) {
			left--;
			if (unwind_store__page(store, 1, file, p, &page))
				abort();
			for (uint32_t k = 0; k < page.nr; k++)
				if ((k ? rows[page.first + k].pc <= rows[page.first + k - 1].pc :
					 rows[page.first].pc) || rows[page.first + k].rule >= MAX_RULES)
					abort();
		}
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const struct unwind_store_config config = {
		.rules = rules, .rows = rows, .max_rules = MAX_RULES, .max_rows = MAX_ROWS,
		.max_pages = 64,
	};
	struct unwind_store *store;
	struct unwind_file *file;

	if (unwind_file__open_memory(&file, data, size))
		return 0;
	if (unwind_store__new(&store, &config))
		abort();
	compile(store, file);
	walk(store, file, data, size);
	unwind_store__free(store);
	unwind_file__free(file);
	return 0;
}
