// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Which files hold a Python, and which one; from files made for it. */
#include "tests/unit/python_elf.h"
#include "tests/unit/unit.h"
#include "unwind/python_runtime.h"

#include <errno.h>

static struct python_elf elf;
static struct python_runtime found;

static int find_cut(size_t len, char **why)
{
	int fd = python_elf__fd(&elf, len), err;

	ck_assert_int_ge(fd, 0);
	err = python_runtime__find(fd, &found, why);
	close(fd);
	return err;
}

static int find(char **why)
{
	python_elf__finish(&elf);
	return find_cut(ELF_SIZE, why);
}

static void refused(const char *text)
{
	char *why;

	ck_assert_int_eq(find(&why), -ENOTSUP);
	ck_assert_ptr_nonnull(why);
	ck_assert_msg(strstr(why, text), "said: %s", why);
	free(why);
}

/* PY_VERSION_HEX */
static uint64_t hex(unsigned int minor, unsigned int micro, unsigned int level)
{
	return 3u << 24 | minor << 16 | micro << 8 | level;
}

static void add_runtime(uint64_t size)
{
	python_elf__add(&elf, "_PyRuntime", size);
	python_elf__add(&elf, "PyCode_Type", 408);
}

static void add_version(uint64_t version)
{
	memcpy(python_elf__add(&elf, "Py_Version", 8), &version, sizeof(version));
}

/* A function that loads the address of `text`, as position independent code does, or not. */
static void add_text(const char *text, bool absolute)
{
	uint8_t *code = python_elf__add(&elf, "Py_GetVersion", 32);
	uint32_t at = (uint32_t)(code - elf.image) + 64, value = at - ((uint32_t)(code - elf.image) + 11);

	memcpy(code, "\x48\x83\xec\x08\x48\x8d\x0d", 7);	/* sub $8, %rsp; lea text(%rip), %rcx */
	if (absolute) {
		memcpy(code + 4, "\xb8\xb9", 2);		/* mov $text, %ecx, at an odd place */
		value = (uint32_t)ELF_BASE + at;
		memcpy(code + 6, &value, 4);
	} else {
		memcpy(code + 7, &value, 4);
	}
	memcpy(elf.image + at, text, strlen(text) + 1);
}

static void put_debug(uint16_t at, uint64_t value)
{
	memcpy(elf.image + ELF_RUNTIME + at, &value, sizeof(value));
}

/* What 3.13.0 tells, but for a thread_id of `id`: the offsets that the header of 3.13.0 gives. */
static void add_debug(uint64_t version, uint64_t free_threaded, uint64_t id)
{
	static const struct {
		uint16_t at, value;
	} fields[] = {
		{ 40, 632 }, { 64, 7264 }, { 72, 7344 },			/* runtime, interpreter */
		{ 168, 8 }, { 176, 16 }, { 184, 72 },				/* thread */
		{ 232, 8 }, { 240, 0 }, { 248, 56 }, { 256, 72 }, { 264, 70 },	/* frame */
		{ 280, 112 }, { 288, 120 }, { 296, 128 }, { 304, 136 }, { 312, 68 }, { 320, 52 },
		{ 344, 200 },							/* code */
		{ 360, 8 }, { 376, 24 },					/* object, type */
		{ 520, 16 }, { 528, 32 }, { 544, 32 }, { 552, 16 }, { 560, 40 },	/* bytes, str */
	};

	add_runtime(283320);
	memcpy(elf.image + ELF_RUNTIME, "xdebugpy", 8);
	put_debug(8, version);
	put_debug(16, free_threaded);
	put_debug(192, id);
	for (size_t i = 0; i < sizeof(fields) / sizeof(fields[0]); i++)
		put_debug(fields[i].at, fields[i].value);
}

START_TEST(finds_by_either_hash_table)
{
	for (int where = IN_GNU_HASH; where <= IN_HASH; where++) {
		memset(&elf, 0, sizeof(elf));
		elf.where = where;
		add_runtime(166688);
		add_version(hex(11, 7, 0xf0));
		ck_assert_int_eq(find(NULL), 0);
		ck_assert_uint_eq(found.minor, 11);
		ck_assert_uint_eq(found.micro, 7);
		ck_assert_uint_eq(found.runtime, ELF_BASE + ELF_RUNTIME);
		ck_assert_uint_eq(found.runtime_size, 166688);
		ck_assert_uint_eq(found.type_code, ELF_BASE + ELF_DATA + 256);
		ck_assert_uint_eq(found.offsets.runtime_key, 592);
		ck_assert_uint_eq(found.nr_eval, 0);
	}
}
END_TEST

START_TEST(reads_the_version_from_code)
{
	for (int absolute = 0; absolute < 2; absolute++) {
		memset(&elf, 0, sizeof(elf));
		add_runtime(672);
		add_text("3.10.13+", absolute);
		ck_assert_int_eq(find(NULL), 0);
		ck_assert_uint_eq(found.minor, 10);
		ck_assert_uint_eq(found.micro, 13);
	}
}
END_TEST

START_TEST(reads_the_version_from_the_name_of_the_library)
{
	elf.soname = "libpython3.10.so.1.0";
	add_runtime(672);
	ck_assert_int_eq(find(NULL), 0);
	ck_assert_uint_eq(found.minor, 10);
}
END_TEST

START_TEST(does_not_guess_a_version)
{
	add_runtime(672);
	add_text("3.10.13 and more", false);
	refused("version that can't be told");
}
END_TEST

START_TEST(refuses_other_versions)
{
	static const struct {
		unsigned int minor, level;
		const char *text;
	} cases[] = {
		{ 7, 0xf0, "CPython 3.7 is not" }, { 15, 0xf0, "CPython 3.15 is not" },
		{ 255, 0xf0, "CPython 3.255 is not" }, { 12, 0xb4, "before its release" },
		{ 13, 0xf0, "layout that is not known" },	/* which doesn't tell its offsets */
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		memset(&elf, 0, sizeof(elf));
		add_runtime(283320);
		add_version(hex(cases[i].minor, 1, cases[i].level));
		refused(cases[i].text);
	}
}
END_TEST

START_TEST(refuses_what_came_before_there_was_a_runtime)
{
	elf.soname = "libpython2.7.so.1.0";
	python_elf__add(&elf, "_PyThreadState_Current", 8);
	python_elf__add(&elf, "PyEval_EvalFrameEx", 20);
	add_text("2.7.18", false);
	refused("CPython 2.7 is not");
}
END_TEST

START_TEST(believes_what_the_interpreter_tells)
{
	add_debug(hex(13, 0, 0xf0), 0, 168);
	ck_assert_int_eq(find(NULL), 0);
	ck_assert_uint_eq(found.minor, 13);
	ck_assert(!found.offsets.free_threaded);
	ck_assert_uint_eq(found.offsets.layout.thread_id, 168);	/* and not 152 */
	ck_assert_uint_eq(found.offsets.layout.top, 72);
	ck_assert_uint_eq(found.offsets.layout.frame_owner, 70);
	ck_assert_uint_eq(found.offsets.layout.frame_bytes, 72);
	ck_assert_uint_eq(found.offsets.layout.code_flags, 48);
	ck_assert_uint_eq(found.offsets.layout.code_version, 92);
	ck_assert_uint_eq(found.offsets.layout.code_traceable, 184);
	ck_assert_uint_eq(found.offsets.str_compact, 56);
}
END_TEST

START_TEST(refuses_what_it_can_not_tell)
{
	static const struct {
		uint64_t version, free_threaded, id;
	} cases[] = {
		{ 0x030d00f0, 2, 152 }, { 0x030d00f0, 0, 153 }, { 0x030d00f0, 0, 1 << 20 },
		{ 0x030d00f0, 0, UINT64_MAX - 7 }, { 0x030f00f0, 0, 152 }, { 0x030d00a4, 0, 152 },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		memset(&elf, 0, sizeof(elf));
		add_debug(cases[i].version, cases[i].free_threaded, cases[i].id);
		refused("");
	}
	memset(&elf, 0, sizeof(elf));
	add_debug(hex(13, 0, 0xf0), 0, 152);
	put_debug(320, 0);		/* co_argcount at 0: the flags would lie before */
	refused("");
}
END_TEST

START_TEST(refuses_two_versions)
{
	add_debug(hex(13, 0, 0xf0), 0, 152);
	add_version(hex(12, 1, 0xf0));
	refused("two versions");
}
END_TEST

START_TEST(is_not_taken_in_by_names)
{
	/* too small; no code objects; or only asked for */
	add_runtime(64);
	add_version(hex(11, 4, 0xf0));
	ck_assert_int_eq(find(NULL), -ENOENT);
	memset(&elf, 0, sizeof(elf));
	python_elf__add(&elf, "_PyRuntime", 166688);
	add_version(hex(11, 4, 0xf0));
	ck_assert_int_eq(find(NULL), -ENOENT);
	memset(&elf, 0, sizeof(elf));
	add_runtime(166688);
	add_version(hex(11, 4, 0xf0));
	elf.symbols[0].undefined = true;
	ck_assert_int_eq(find(NULL), -ENOENT);
}
END_TEST

/* Without dynamic symbols: only a program, or what has the section, is worth a search. */
START_TEST(looks_at_all_symbols_where_it_is_worth_it)
{
	for (int i = 0; i < 4; i++) {
		memset(&elf, 0, sizeof(elf));
		elf.where = IN_SYMTAB;
		elf.program = i & 1;
		elf.section = i & 2;
		add_runtime(166688);
		add_version(hex(11, 7, 0xf0));
		ck_assert_int_eq(find(NULL), i ? 0 : -ENOENT);
		if (i)
			ck_assert_uint_eq(found.runtime, ELF_BASE + ELF_RUNTIME);
	}
}
END_TEST

START_TEST(finds_a_stripped_program_by_what_it_tells)
{
	add_debug(hex(13, 0, 0xf0), 0, 152);
	elf.nr = 0;
	elf.program = true;
	ck_assert_int_eq(find(NULL), 0);
	ck_assert_uint_eq(found.runtime, ELF_BASE + ELF_RUNTIME);
	ck_assert_uint_eq(found.type_code, 0);
	elf.program = false;
	ck_assert_int_eq(find(NULL), -ENOENT);
}
END_TEST

START_TEST(needs_the_function_of_old_versions)
{
	add_runtime(1464);
	add_text("3.8.18", false);
	refused("the interpreter's function");
	/* no unwind information: its end can't be told */
	memset(&elf, 0, sizeof(elf));
	add_runtime(1464);
	add_text("3.8.18", false);
	python_elf__add(&elf, "_PyEval_EvalFrameDefault", 100);
	refused("the interpreter's function");
}
END_TEST

START_TEST(survives_a_file_that_was_cut)
{
	for (int where = IN_GNU_HASH; where <= IN_SYMTAB; where++) {
		memset(&elf, 0, sizeof(elf));
		elf.where = where;
		elf.program = elf.section = where == IN_SYMTAB;
		add_debug(hex(13, 0, 0xf0), 0, 152);
		add_version(hex(13, 0, 0xf0));
		python_elf__finish(&elf);
		for (size_t len = 0; len < ELF_SIZE; len += len < 0x1100 ? 1 : 61) {
			char *why;
			int err = find_cut(len, &why);

			free(why);
			ck_assert_msg(!err || err == -ENOENT || err == -ENOTSUP, "%d at %zu", err, len);
			ck_assert(err || len >= ELF_RUNTIME);
		}
	}
}
END_TEST

/* A value that can't be in each word of what leads to symbols, one at a time. */
START_TEST(survives_wild_values)
{
	static const uint32_t wild[] = { 0, 1, 0x7fffffff, 0x80000000, 0xffffffff };

	for (int where = IN_GNU_HASH; where <= IN_SYMTAB; where++) {
		memset(&elf, 0, sizeof(elf));
		elf.where = where;
		elf.program = elf.section = where == IN_SYMTAB;
		add_runtime(672);
		add_text("3.10.13", false);
		python_elf__finish(&elf);
		for (size_t at = 16; at < ELF_DATA; at += 4) {
			uint32_t kept;

			memcpy(&kept, elf.image + at, 4);
			for (size_t i = 0; i < sizeof(wild) / sizeof(wild[0]); i++) {
				char *why;
				int err;

				memcpy(elf.image + at, &wild[i], 4);
				err = find_cut(ELF_SIZE, &why);
				free(why);
				ck_assert_msg(!err || err == -ENOENT || err == -ENOTSUP, "%d at %zu", err,
					      at);
			}
			memcpy(elf.image + at, &kept, 4);
		}
	}
}
END_TEST

START_TEST(knows_nine_layouts)
{
	struct python_offsets o;

	for (unsigned int minor = 0; minor < 20; minor++)
		for (int free_threaded = 0; free_threaded < 2; free_threaded++)
			ck_assert_int_eq(python_offsets__of(minor, free_threaded, &o),
					 minor >= (free_threaded ? 13 : 8) && minor <= 14 ? 0 : -ENOTSUP);
}
END_TEST

UNIT_MAIN("python_runtime", finds_by_either_hash_table, reads_the_version_from_code,
	  reads_the_version_from_the_name_of_the_library, does_not_guess_a_version,
	  refuses_other_versions, refuses_what_came_before_there_was_a_runtime,
	  believes_what_the_interpreter_tells, refuses_what_it_can_not_tell, refuses_two_versions,
	  is_not_taken_in_by_names, looks_at_all_symbols_where_it_is_worth_it,
	  finds_a_stripped_program_by_what_it_tells, needs_the_function_of_old_versions,
	  survives_a_file_that_was_cut, survives_wild_values, knows_nine_layouts)
