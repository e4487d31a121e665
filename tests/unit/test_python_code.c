// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "unwind/python_code.h"

#include "tests/unit/python_memory.h"
#include "tests/unit/unit.h"

static struct fake f;

static void setup(void)
{
	fake__init(&f);
}

static int read_code(struct python_code **c)
{
	uint32_t check = fake__check(&f);

	f.reads = 0;
	return python_code__read(&f.offsets, &f.memory, f.code, check, c);
}

/* Reads it and compares. NULL: not there. */
static void check_code(const char *name, const char *file)
{
	struct python_code *c = NULL;

	ck_assert_int_eq(read_code(&c), 0);
	ck_assert_ptr_nonnull(c);
	ck_assert_str_eq(c->name, name);
	if (file)
		ck_assert_str_eq(c->file, file);
	else
		ck_assert_ptr_null(c->file);
	ck_assert_uint_eq(c->first_line, FAKE_LINE);
	ck_assert_uint_ge(python_code__memory(c), sizeof(*c) + strlen(name) + 1 + c->table_len);
	python_code__free(c);
}

static void check_fails(int err)
{
	struct python_code *c = (struct python_code *)&f;

	ck_assert_int_eq(read_code(&c), err);
	ck_assert_ptr_null(c);
}

START_TEST(all_of_it)
{
	struct python_code *c;

	setup();
	ck_assert_int_eq(read_code(&c), 0);
	ck_assert_str_eq(c->name, "Outer.name");
	ck_assert_str_eq(c->file, "/dir/file.py");
	ck_assert_uint_eq(c->first_line, FAKE_LINE);
	ck_assert_uint_eq(c->table_len, 6);
	ck_assert_uint_eq(python_code__line(c, &f.offsets, 0), FAKE_LINE);
	ck_assert_uint_eq(python_code__line(c, &f.offsets, 2), FAKE_LINE + 1);
	ck_assert_uint_eq(python_code__line(c, &f.offsets, 4), 0);
	ck_assert_uint_eq(python_code__line(c, &f.offsets, PYTHON_OFFSET_START), FAKE_LINE);
	ck_assert_uint_eq(python_code__line(c, &f.offsets, PYTHON_OFFSET_NONE), 0);
	ck_assert_uint_eq(f.reads, 5);		/* head, name, file, table, head */
	python_code__free(c);
	python_code__free(NULL);
	fake__free(&f);
}
END_TEST

START_TEST(versions_without_qualified_names)
{
	setup();
	f.offsets.code_qualname = 0;
	check_code("name", "/dir/file.py");
	fake__free(&f);
}
END_TEST

/* The other name is better than none. */
START_TEST(qualified_names_that_are_none)
{
	setup();
	f.qualname = 0;
	fake__write_code(&f);
	check_code("name", "/dir/file.py");
	f.qualname = 12345;
	fake__write_code(&f);
	check_code("name", "/dir/file.py");
	f.qualname = f.table;
	fake__write_code(&f);
	check_code("name", "/dir/file.py");
	fake__free(&f);
}
END_TEST

START_TEST(characters_of_each_width)
{
	static const uint16_t two[] = { 'x', 0x7f, 0x80, 0x7ff, 0x800, 0xd7ff, 0xe000, 0xffff };
	static const uint32_t four[] = { 'x', 0x7ff, 0x800, 0xffff, 0x10000, 0x10ffff };

	setup();
	f.qualname = fake__str(&f, "caf\xe9\x80\xff", 6, 1, false);
	f.file = fake__str(&f, two, 8, 2, false);
	fake__write_code(&f);
	check_code("caf\u00e9\xc2\x80\u00ff", "x\x7f\xc2\x80\u07ff\u0800\ud7ff\ue000\uffff");
	f.qualname = fake__str(&f, four, 6, 4, false);
	f.file = fake__str(&f, "", 0, 1, true);
	fake__write_code(&f);
	check_code("x\u07ff\u0800\uffff\U00010000\U0010ffff", "");
	fake__free(&f);
}
END_TEST

START_TEST(what_utf8_cannot_hold_is_replaced)
{
	static const uint16_t two[] = { 0xd83d, 0xde00, 0, 0xdfff };
	static const uint32_t four[] = { 0xd800, 0x110000, UINT32_MAX, 0, 'x', 0x80000041 };

	setup();
	f.qualname = fake__str(&f, two, 4, 2, false);
	f.file = fake__str(&f, four, 6, 4, false);
	fake__write_code(&f);
	check_code("\ufffd\ufffd\u2400\ufffd", "\ufffd\ufffd\ufffd\u2400x\ufffd");
	f.qualname = fake__str(&f, "a\0b\0", 4, 1, true);
	f.file = fake__str(&f, "\xff\n;\"", 4, 1, true);	/* ASCII, it says */
	fake__write_code(&f);
	check_code("a\u2400b\u2400", "\u00ff\n;\"");
	fake__free(&f);
}
END_TEST

static char *repeated(const char *s, size_t n, const char *end)
{
	size_t len = strlen(s);
	char *text = malloc(n * len + strlen(end) + 1);

	for (size_t i = 0; i < n; i++)
		memcpy(text + i * len, s, len);
	strcpy(text + n * len, end);
	return text;
}

/* Around what is read together with the head, and around what is read at all. */
START_TEST(names_of_every_length)
{
	static const size_t lengths[] = { 0, 1, 100, 183, 184, 185, 207, 208, 209, 5000, 65535, 65536 };

	setup();
	for (size_t i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++) {
		char *narrow = repeated("n", lengths[i], ""), *wide = repeated("\u20ac", lengths[i], "");
		uint16_t *two = malloc(2 * lengths[i] + 2);

		for (size_t k = 0; k < lengths[i]; k++)
			two[k] = 0x20ac;
		f.qualname = fake__ascii(&f, narrow);
		f.file = fake__str(&f, two, lengths[i], 2, false);
		fake__write_code(&f);
		check_code(narrow, wide);
		ck_assert_uint_le(f.reads, 7);
		free(narrow);
		free(wide);
		free(two);
	}
	fake__free(&f);
}
END_TEST

START_TEST(long_names_are_shortened)
{
	char *name = repeated("n", 65537, ""), *cut = repeated("n", 65536, "\u2026");

	setup();
	f.qualname = fake__ascii(&f, name);
	fake__write_code(&f);
	check_code(cut, "/dir/file.py");
	/* Longer than memory: what is there of it is a name. */
	fake__put64(&f, f.qualname + f.offsets.str_length, INT64_MAX);
	fake__new(&f, 70000);
	check_code(cut, "/dir/file.py");
	free(name);
	free(cut);
	fake__free(&f);
}
END_TEST

START_TEST(lengths_that_lie)
{
	setup();
	f.offsets.code_qualname = 0;
	f.name = fake__ascii(&f, "last");
	fake__write_code(&f);
	fake__put64(&f, f.name + f.offsets.str_length, 60000);
	check_fails(-EFAULT);
	fake__put64(&f, f.name + f.offsets.str_length, UINT64_MAX);
	check_fails(-EINVAL);
	fake__put64(&f, f.name + f.offsets.str_length, 1ull << 63);
	check_fails(-EINVAL);
	fake__put64(&f, f.name + f.offsets.str_length, 2);
	check_code("la", "/dir/file.py");
	fake__free(&f);
}
END_TEST

START_TEST(strings_that_are_none)
{
	static const uint32_t states[] = {
		FAKE_STATE(0u, 1u, 0u), FAKE_STATE(3u, 1u, 0u), FAKE_STATE(5u, 1u, 0u),
		FAKE_STATE(7u, 1u, 1u), FAKE_STATE(1u, 0u, 0u), FAKE_STATE(1u, 0u, 1u),
		FAKE_STATE(2u, 1u, 1u), FAKE_STATE(4u, 1u, 1u), 0,
	};

	setup();
	f.offsets.code_qualname = 0;
	for (size_t i = 0; i < sizeof(states) / sizeof(states[0]); i++) {
		fake__put32(&f, f.name + f.offsets.str_state, states[i]);
		check_fails(-EINVAL);
		fake__put32(&f, f.name + f.offsets.str_state, FAKE_STATE(1u, 1u, 1u));
		fake__put32(&f, f.file + f.offsets.str_state, states[i]);
		check_code("name", NULL);
		fake__put32(&f, f.file + f.offsets.str_state, FAKE_STATE(1u, 1u, 1u));
	}
	fake__free(&f);
}
END_TEST

START_TEST(places_that_cannot_be_read)
{
	static const uint64_t places[] = { 0, 1, FAKE_BASE - 1, FAKE_BASE + FAKE_SIZE, UINT64_MAX,
					   UINT64_MAX - 255, UINT64_MAX - 40, 1ull << 63 };
	struct python_code *c;

	for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
		setup();
		ck_assert_int_eq(python_code__read(&f.offsets, &f.memory, places[i], 0, &c), -EFAULT);
		f.offsets.code_qualname = 0;
		f.file = places[i];
		fake__write_code(&f);
		check_code("name", NULL);
		f.name = places[i];
		fake__write_code(&f);
		check_fails(-EFAULT);
		fake__free(&f);
	}
}
END_TEST

/* Nothing is there past a page; what is asked for ahead must not fail for that. */
START_TEST(objects_at_the_end_of_memory)
{
	setup();
	f.offsets.code_qualname = 0;
	f.used = 4096 - 64;
	f.name = fake__ascii(&f, "at the end");
	ck_assert_uint_eq(f.used, 4096);
	fake__write_code(&f);
	check_code("at the end", "/dir/file.py");
	f.used = 8192 - 48;
	f.name = fake__ascii(&f, "");
	ck_assert_uint_eq(f.used, 8192);
	fake__write_code(&f);
	check_code("", "/dir/file.py");
	f.used = 12288 - 32;			/* a head across the border */
	f.name = fake__ascii(&f, "across");
	fake__write_code(&f);
	check_code("across", "/dir/file.py");
	fake__free(&f);
}
END_TEST

/* A copy of a process's memory isn't made of pages. */
START_TEST(memory_that_ends_with_the_object)
{
	setup();
	f.exact = true;
	f.offsets.code_qualname = 0;
	f.name = fake__ascii(&f, "sixteen letters.");
	fake__write_code(&f);
	check_code("sixteen letters.", "/dir/file.py");
	f.used -= 1;
	check_fails(-EFAULT);
	fake__free(&f);
}
END_TEST

static void check_table(size_t len, bool there)
{
	struct python_code *c;

	ck_assert_int_eq(read_code(&c), 0);
	ck_assert(there == !!c->table);
	if (there) {
		ck_assert_uint_eq(c->table_len, len);
		ck_assert(!memcmp(c->table, fake__at(&f, f.table + f.offsets.bytes_data), len));
	} else {
		ck_assert_uint_eq(python_code__line(c, &f.offsets, 0), 0);
		ck_assert_uint_eq(python_code__line(c, &f.offsets, PYTHON_OFFSET_START), FAKE_LINE);
		ck_assert_uint_eq(c->table_len, 0);
	}
	python_code__free(c);
}

START_TEST(tables_of_every_length)
{
	static const size_t lengths[] = { 0, 1, 215, 216, 217, 5000, PYTHON_CODE_TABLE,
					  PYTHON_CODE_TABLE + 1 };
	uint8_t *table = malloc(PYTHON_CODE_TABLE + 1);

	for (size_t i = 0; i < PYTHON_CODE_TABLE + 1; i++)
		table[i] = (uint8_t)(i * 7 + (i >> 8));
	for (size_t i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++) {
		setup();
		f.table = fake__bytes(&f, table, lengths[i]);
		fake__write_code(&f);
		check_table(lengths[i], lengths[i] <= PYTHON_CODE_TABLE);
		fake__free(&f);
	}
	free(table);
}
END_TEST

START_TEST(tables_that_are_not_there)
{
	setup();
	fake__put64(&f, f.table + f.offsets.bytes_size, PYTHON_CODE_TABLE);
	check_table(0, false);
	fake__put64(&f, f.table + f.offsets.bytes_size, UINT64_MAX);
	check_table(0, false);
	f.table = 0;
	fake__write_code(&f);
	check_table(0, false);
	f.table = 0x1000;
	fake__write_code(&f);
	check_table(0, false);
	fake__free(&f);
}
END_TEST

/* Code on one line has an empty table in 3.8, which is not the same as none. */
START_TEST(empty_lnotab)
{
	struct python_code *c;

	setup();
	f.offsets.lines = PYTHON_LINES_LNOTAB;
	f.table = fake__bytes(&f, "", 0);
	fake__write_code(&f);
	ck_assert_int_eq(read_code(&c), 0);
	ck_assert_uint_eq(python_code__line(c, &f.offsets, 20), FAKE_LINE);
	python_code__free(c);
	fake__free(&f);
}
END_TEST

START_TEST(another_code_object)
{
	struct python_code *c;
	uint32_t check;

	setup();
	check = fake__check(&f);
	ck_assert_int_eq(python_code__read(&f.offsets, &f.memory, f.code, check + 1, &c), -ESTALE);
	ck_assert_uint_eq(f.reads, 1);
	fake__put32(&f, f.code + f.offsets.layout.code_first_line, FAKE_LINE + 1);
	ck_assert_int_eq(python_code__read(&f.offsets, &f.memory, f.code, check, &c), -ESTALE);
	fake__write_code(&f);
	ck_assert_int_eq(python_code__read(&f.offsets, &f.memory, f.code, check, &c), 0);
	python_code__free(c);
	fake__free(&f);
}
END_TEST

/* What a freed object looks like: its first word leads to the next free one, or nowhere. */
START_TEST(freed_code_objects)
{
	static const uint64_t dead[] = { 0, FAKE_BASE, 0x7f1200001230, 0x560012345670, 1ull << 32 };
	static const uint64_t live[] = { 1, 2, 70000, UINT32_MAX, 3ull << 30, 1ull << 48 | 5 };

	setup();
	for (size_t i = 0; i < sizeof(dead) / sizeof(dead[0]); i++) {
		fake__put64(&f, f.code, dead[i]);
		check_fails(-ESTALE);
	}
	for (size_t i = 0; i < sizeof(live) / sizeof(live[0]); i++) {
		fake__put64(&f, f.code, live[i]);
		check_code("Outer.name", "/dir/file.py");
	}
	fake__put64(&f, f.code + 8, FAKE_TYPE + 8);
	check_fails(-ESTALE);
	f.offsets.layout.type_code = 0;
	check_code("Outer.name", "/dir/file.py");
	fake__free(&f);
}
END_TEST

START_TEST(freed_code_objects_without_the_gil)
{
	static const struct {
		uint32_t own;
		int64_t others;
		bool live;
	} rows[] = {
		{ 0, 0, false }, { 0, 3, false }, { 0, -4, false }, { 1, 0, true }, { 0, 4, true },
		{ 0, 7, true }, { 2, -4, true }, { 1, -4, false }, { UINT32_MAX, 0, true },
		{ 0, INT64_MAX, true }, { 0, INT64_MIN, false },
	};

	setup();
	f.offsets.free_threaded = true;
	f.offsets.layout.code_type = 24;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		fake__write_code(&f);
		fake__put64(&f, f.code, 0x7f1200001230);	/* id of its thread */
		fake__put32(&f, f.code + 12, rows[i].own);
		fake__put64(&f, f.code + 16, (uint64_t)rows[i].others);
		if (rows[i].live)
			check_code("Outer.name", "/dir/file.py");
		else
			check_fails(-ESTALE);
	}
	fake__free(&f);
}
END_TEST

static void end_it(struct fake *at)
{
	if (at->reads == at->at_read)
		at->error = -ESRCH;
}

static void become_another(struct fake *at)
{
	if (at->reads == at->at_read)
		fake__put32(at, at->code + at->offsets.layout.code_version, FAKE_VERSION + 1);
}

static void change_qualname(struct fake *at)
{
	if (at->reads == at->at_read)
		fake__put64(at, at->code + at->offsets.code_qualname, at->name);
}

static void die(struct fake *at)
{
	if (at->reads == at->at_read)
		fake__put64(at, at->code, 0);
}

/* Whichever read it happens before, what comes of it is no name. */
START_TEST(changes_in_between)
{
	static void (*const changes[])(struct fake *) = { become_another, change_qualname, die, end_it };

	for (size_t i = 0; i < sizeof(changes) / sizeof(changes[0]); i++)
		for (unsigned int at = 2; at <= 5; at++) {
			setup();
			f.meanwhile = changes[i];
			f.at_read = at;
			check_fails(-ESTALE);
			fake__free(&f);
		}
	setup();
	f.error = -ESRCH;
	check_fails(-ESRCH);
	fake__free(&f);
}
END_TEST

/* It is being made when we look the first time, and is another the second time. */
START_TEST(one_that_is_being_made)
{
	setup();
	fake__put64(&f, f.code, 1);
	check_code("Outer.name", "/dir/file.py");
	ck_assert_uint_eq(f.reads, 6);
	f.meanwhile = become_another;
	f.at_read = 6;
	check_fails(-ESTALE);
	fake__free(&f);
}
END_TEST

/* Where the name's memory is another's before we come to it, the code is gone; its name isn't odd. */
START_TEST(strings_die_with_their_code)
{
	setup();
	f.offsets.code_qualname = 0;
	fake__put32(&f, f.name + f.offsets.str_state, 0);
	f.meanwhile = die;
	f.at_read = 4;
	check_fails(-EINVAL);
	f.at_read = 3;
	check_fails(-ESTALE);
	fake__free(&f);
}
END_TEST

START_TEST(offsets_that_cannot_be)
{
	setup();
	f.offsets.code_qualname = 0;
	f.offsets.str_length = 250;
	check_fails(-EINVAL);
	f.offsets.str_length = UINT32_MAX;
	check_fails(-EINVAL);
	f.offsets.str_length = 24;
	f.offsets.str_state = UINT32_MAX;
	check_fails(-EINVAL);
	f.offsets.str_state = 36;
	f.offsets.str_ascii = UINT32_MAX;
	check_fails(-EFAULT);
	f.offsets.str_ascii = 48;
	f.offsets.bytes_size = UINT32_MAX;
	check_table(0, false);
	f.offsets.bytes_size = 24;
	f.offsets.bytes_data = UINT32_MAX;
	check_table(0, false);
	f.offsets.layout.code_bytes = PYTHON_CODE_BYTES + 8;
	ck_assert_int_eq(python_code__read(&f.offsets, &f.memory, f.code, 0, &(struct python_code *){ 0 }),
			 -EINVAL);
	fake__free(&f);
}
END_TEST

UNIT_MAIN("python_code", all_of_it, versions_without_qualified_names, qualified_names_that_are_none,
	  characters_of_each_width, what_utf8_cannot_hold_is_replaced, names_of_every_length,
	  long_names_are_shortened, lengths_that_lie, strings_that_are_none, places_that_cannot_be_read,
	  objects_at_the_end_of_memory, memory_that_ends_with_the_object,
	  tables_of_every_length, tables_that_are_not_there, empty_lnotab,
	  another_code_object, freed_code_objects, freed_code_objects_without_the_gil, changes_in_between,
	  one_that_is_being_made, strings_die_with_their_code, offsets_that_cannot_be)
