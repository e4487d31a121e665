// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Whose functions are known, and how many: the process that has them is this one. */
#include <errno.h>

#include "loader/python_names.h"
#include "tests/unit/python_self.h"
#include "unwind/python_code.h"

#define NOBODY 4194300		/* and below: no process has these numbers here */
#define FILE_NAME "/dir/file.py"
#define LINE 42
#define NAME_ROOM 70000

/* A function as it lies in memory. */
struct function {
	uint64_t code[PYTHON_CODE_BYTES / 8];
	uint8_t name[NAME_ROOM], file[128], table[128];
} __attribute__((aligned(16)));

static struct function function;
static struct python_names *names;
static struct process *self;
static struct {
	struct rec_code rec;
	uint8_t pieces[3][CODE_HUGE];
} record;

static void begin(void)
{
	self = self__begin();
	self__start();
	python__mapped(self_python, self);
	ck_assert_uint_ne(self->python.layout, 0);
	names = python_names__new(self_python, self_processes);
	ck_assert_ptr_nonnull(names);
}

static void end(void)
{
	python_names__free(names);
	self__end();
}

/* A child that has ended before anybody could look at it. */
static struct process *fork_child(pid_t parent, pid_t child)
{
	processes__forked(self_processes, parent, child, "child");
	ck_assert_ptr_nonnull(processes__find(self_processes, child));
	return processes__find(self_processes, child);
}

/* --- functions ---------------------------------------------------------------------------- */

static void put32(void *object, unsigned int at, uint32_t value)
{
	memcpy((char *)object + at, &value, sizeof(value));
}

/* Compact ASCII, with other bits of its state set around. */
static void make_str(uint8_t *object, const char *text)
{
	const struct python_offsets *o = &self_offsets;

	self__set(object, o->str_length, strlen(text));
	self__set(object, o->str_length + 8, UINT64_MAX);		/* no hash */
	put32(object, o->str_state, 1u << 2 | 1u << 5 | 1u << 6);
	memcpy(object + o->str_ascii, text, strlen(text) + 1);
}

/* All of the function is of line 42. */
static void make_function(const char *name)
{
	static const uint8_t lines[] = { 0x80 | 10 << 3, 0 };
	const struct python_layout *l = &self_offsets.layout;

	memset(&function, 0, sizeof(function));
	make_str(function.name, name);
	make_str(function.file, FILE_NAME);
	self__set(function.table, self_offsets.bytes_size, sizeof(lines));
	self__set(function.table, self_offsets.bytes_size + 8, UINT64_MAX);
	memcpy(function.table + self_offsets.bytes_data, lines, sizeof(lines));
	self__set(function.code, 0, 1);
	self__set(function.code, l->code_type, (uintptr_t)PyCode_Type);
	self__set(function.code, l->code_name, (uintptr_t)function.name);
	self__set(function.code, l->code_filename, (uintptr_t)function.file);
	self__set(function.code, l->code_table, (uintptr_t)function.table);
	self__set(function.code, self_offsets.code_qualname, (uintptr_t)function.name);
	put32(function.code, l->code_first_line, LINE);
}

static int read_own(void *ctx, uint64_t addr, void *buf, size_t len)
{
	(void)ctx;
	memcpy(buf, (const void *)(uintptr_t)addr, len);
	return 0;
}

static uint32_t check_of(void)
{
	const struct python_memory memory = { .read = read_own };
	__u64 words[PYTHON_CODE_BYTES / 8] = { 0 };

	memcpy(words, function.code, self_offsets.layout.code_bytes);
	return python_code__check(&self_offsets, &memory, words);
}

static void put_piece(unsigned int i, const void *from, size_t len)
{
	record.rec.address[i] = (uintptr_t)from;
	record.rec.len[i] = (uint32_t)len;
	memcpy(i == CODE_OBJECT ? record.rec.object : record.pieces[i - 1], from, len);
}

/* As if the function lay at `address`. */
static int tell(const struct process *p, uint64_t address)
{
	record.rec.head.size = sizeof(record.rec) + 3 * CODE_HUGE;
	record.rec.size = CODE_HUGE;
	record.rec.check = check_of();
	put_piece(CODE_OBJECT, function.code, PYTHON_CODE_BYTES);
	put_piece(CODE_NAME, function.name, sizeof(function.name));
	put_piece(CODE_FILE, function.file, sizeof(function.file));
	put_piece(CODE_TABLE, function.table, sizeof(function.table));
	record.rec.address[CODE_OBJECT] = address;
	return python_names__told(names, p, &record.rec);
}

static uint64_t word_of(uint64_t address)
{
	return FRAME_MAKE_ADDRESS(FRAME_PYTHON, address);
}

static uint64_t place_of(uint32_t check)
{
	return (uint64_t)FRAME_PYTHON_AT << 60 | check;
}

/* It was in a stack, but no record told of it. */
static void meet(const struct process *p, uint64_t address, uint32_t check)
{
	const uint64_t words[] = { word_of(address), place_of(check) };

	ck_assert_int_eq(python_names__met(names, p, words, 2), 0);
}

/* NULL: unknown. */
static const char *name_of(const struct process *p, uint64_t address)
{
	struct python_name name;

	if (!python_names__of(names, p, word_of(address), place_of(check_of()), &name))
		return NULL;
	ck_assert_str_eq(name.file, FILE_NAME);
	ck_assert_uint_eq(name.line, LINE);
	return name.function;
}

#define OBJECT ((uintptr_t)function.code)

START_TEST(by_records_and_by_memory)
{
	begin();
	make_function("by_record");
	ck_assert_int_eq(tell(self, 0x1000), 0);
	ck_assert_str_eq(name_of(self, 0x1000), "by_record");
	ck_assert_ptr_null(name_of(self, 0x1008));
	make_function("by_memory");
	ck_assert_ptr_null(name_of(self, 0x1000));
	meet(self, OBJECT, check_of());
	ck_assert_str_eq(name_of(self, OBJECT), "by_memory");
	end();
}
END_TEST

/* A freed one lies there as it was, but for its type; or another object has its place. */
START_TEST(objects_of_another_type_are_no_code)
{
	const uint64_t types[] = { 0, (uintptr_t)PyCode_Type + 8, (uintptr_t)self_interpreter };

	begin();
	make_function("freed");
	for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++) {
		self__set(function.code, self_offsets.layout.code_type, types[i]);
		ck_assert_int_eq(tell(self, 0x1000 + i), 0);
		ck_assert_ptr_null(name_of(self, 0x1000 + i));
		meet(self, OBJECT, check_of());
		ck_assert_ptr_null(name_of(self, OBJECT));
	}
	end();
}
END_TEST

/* --- parents and children ----------------------------------------------------------------- */

START_TEST(a_child_has_what_its_parent_had)
{
	struct process *child, *sibling, *grandchild;

	begin();
	make_function("f");
	ck_assert_int_eq(tell(self, 0x1000), 0);
	child = fork_child(getpid(), NOBODY);
	ck_assert_int_eq(tell(self, 0x2000), 0);
	sibling = fork_child(getpid(), NOBODY - 1);
	ck_assert_int_eq(tell(child, 0x3000), 0);
	grandchild = fork_child(NOBODY, NOBODY - 2);
	ck_assert_int_eq(tell(self, 0x4000), 0);
	ck_assert_int_eq(tell(child, 0x5000), 0);
	ck_assert_int_eq(tell(sibling, 0x6000), 0);
	const struct {
		uint64_t address;
		bool self, child, sibling, grandchild;
	} has[] = {
		{ 0x1000, true, true, true, true },
		{ 0x2000, true, false, true, false },
		{ 0x3000, false, true, false, true },
		{ 0x4000, true, false, false, false },
		{ 0x5000, false, true, false, false },
		{ 0x6000, false, false, true, false },
	};

	for (size_t i = 0; i < sizeof(has) / sizeof(has[0]); i++) {
		ck_assert_int_eq(name_of(self, has[i].address) != NULL, has[i].self);
		ck_assert_int_eq(name_of(child, has[i].address) != NULL, has[i].child);
		ck_assert_int_eq(name_of(sibling, has[i].address) != NULL, has[i].sibling);
		ck_assert_int_eq(name_of(grandchild, has[i].address) != NULL, has[i].grandchild);
	}
	/* What it has made itself since is its own. */
	ck_assert_int_eq(tell(grandchild, 0x2000), 0);
	ck_assert_str_eq(name_of(grandchild, 0x2000), "f");
	end();
}
END_TEST

/* --- how many are kept -------------------------------------------------------------------- */

/* 64 KiB each: what an entry costs, struct python_code, three texts and what ends them. */
#define UNIT 65536u
#define UNIT_NAME (UNIT - 256 - 40 - (sizeof(FILE_NAME) - 1) - 2 - 3)

static void make_unit(void)
{
	static char name[UNIT];

	memset(name, 'n', UNIT_NAME);
	make_function(name);
}

/* Functions of UNIT bytes that are kept of a process that has `nr`, and has more than are kept. */
static unsigned int fill(const struct process *p, unsigned int nr)
{
	unsigned int kept = 0;

	for (unsigned int i = 0; i < nr; i++)
		ck_assert_int_eq(tell(p, 0x1000 + i), 0);
	for (unsigned int i = 0; i < nr; i++)
		kept += name_of(p, 0x1000 + i) != NULL;
	return kept;
}

START_TEST(a_process_has_its_share)
{
	struct process *child;

	begin();
	make_unit();
	child = fork_child(getpid(), NOBODY);
	ck_assert_uint_eq(fill(self, 512), 512);		/* 32 MiB */
	ck_assert_uint_eq(python_names__full(names), 0);
	ck_assert_int_eq(tell(self, 0x9000), 0);
	ck_assert_ptr_null(name_of(self, 0x9000));
	ck_assert_uint_eq(python_names__full(names), 1);
	ck_assert_int_eq(tell(self, 0x9001), 0);
	ck_assert_uint_eq(python_names__full(names), 1);
	ck_assert_int_eq(tell(child, 0x9000), 0);
	ck_assert_int_eq(strlen(name_of(child, 0x9000)), UNIT_NAME);
	end();
}
END_TEST

/* Who comes when all others have taken what they may gets half of what is left: 256 MiB are 4096. */
START_TEST(something_is_left_for_each)
{
	static const unsigned int expected[] = {
		512, 512, 512, 512, 512, 512, 512, 256, 128, 64, 32, 16, 8, 4, 2, 1,
	};
	struct process *p;

	begin();
	make_unit();
	for (size_t i = 0; i < sizeof(expected) / sizeof(expected[0]); i++) {
		p = fork_child(getpid(), NOBODY - (pid_t)i);
		ck_assert_uint_eq(fill(p, 513), expected[i]);
		ck_assert_uint_eq(python_names__full(names), i + 1);
	}
	/* What is left is too little for such a one, but not for others. */
	p = fork_child(getpid(), NOBODY - 100);
	make_function("small");
	ck_assert_int_eq(tell(p, 0x1000), 0);
	ck_assert_str_eq(name_of(p, 0x1000), "small");
	end();
}
END_TEST

/* They cost 256 bytes each. One that is refused may have been met before. */
START_TEST(functions_without_code_count)
{
	struct process *child;

	begin();
	make_function("f");
	child = fork_child(getpid(), NOBODY);
	for (uint64_t i = 0; i < (32u << 20) / 256; i++)
		meet(child, 0x1000 + i, 1);
	ck_assert_uint_eq(python_names__full(names), 0);
	ck_assert_int_eq(tell(child, 0x900000), 0);
	ck_assert_ptr_null(name_of(child, 0x900000));
	ck_assert_uint_eq(python_names__full(names), 1);
	ck_assert_int_eq(tell(self, 0x900000), 0);
	ck_assert_str_eq(name_of(self, 0x900000), "f");
	end();
}
END_TEST

/* There was room for the entry, but not for its code. */
START_TEST(code_that_does_not_fit)
{
	struct process *child;

	begin();
	make_unit();
	child = fork_child(getpid(), NOBODY);
	ck_assert_uint_eq(fill(child, 511), 511);
	make_function("small");
	for (unsigned int i = 0; i < 20; i++)
		ck_assert_int_eq(tell(child, 0x5000 + i), 0);
	ck_assert_uint_eq(python_names__full(names), 0);
	make_unit();
	ck_assert_int_eq(tell(child, 0x9000), 0);
	ck_assert_ptr_null(name_of(child, 0x9000));
	ck_assert_uint_eq(python_names__full(names), 1);
	make_function("small");
	ck_assert_int_eq(tell(child, 0x6000), 0);
	ck_assert_str_eq(name_of(child, 0x6000), "small");
	end();
}
END_TEST

UNIT_MAIN("python_names", by_records_and_by_memory, objects_of_another_type_are_no_code,
	  a_child_has_what_its_parent_had, a_process_has_its_share, something_is_left_for_each,
	  functions_without_code_count, code_that_does_not_fit)
