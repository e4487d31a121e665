// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* What is learnt of the threads of a Python process whose memory is made up here. */
#include "tests/unit/unit.h"
#include "unwind/python_threads.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#define ARENA 0x10000000ull	/* address of the memory that there is */
#define ARENA_BYTES (4u << 20)
#define PTHREAD_BYTES 2304	/* glibc's struct pthread; the blocks are where 2.36 has them */
#define FIRST_BLOCK 0x310
#define BLOCKS 0x510
#define MUSL_TSD 0x80		/* musl's pointer to the values */

static uint8_t arena[ARENA_BYTES];
static size_t used;
static unsigned int reads;
static int failing;			/* what reading gives */
static struct python_runtime r;
static uint64_t runtime, type_code, type_str;
static struct python_layout learnt;
static char *why;

static int read_arena(void *ctx, uint64_t addr, void *buf, size_t len)
{
	(void)ctx;
	reads++;
	if (failing)
		return failing;
	if (addr < ARENA || addr > ARENA + used || len > ARENA + used - addr)
		return -EFAULT;
	memcpy(buf, arena + (addr - ARENA), len);
	return 0;
}

static const struct python_memory memory = { .read = read_arena };

static uint64_t make(size_t size)
{
	uint64_t addr = ARENA + used;

	used += (size + 15) / 16 * 16;
	ck_assert_uint_le(used, ARENA_BYTES);
	return addr;
}

static void put(uint64_t addr, uint64_t value)
{
	memcpy(arena + (addr - ARENA), &value, sizeof(value));
}

static void put_u8(uint64_t addr, uint8_t value)
{
	arena[addr - ARENA] = value;
}

static void put_u32(uint64_t addr, uint32_t value)
{
	memcpy(arena + (addr - ARENA), &value, sizeof(value));
}

static uint64_t make_type(const char *name)
{
	uint64_t type = make(416), text = make(16);

	memcpy(arena + (text - ARENA), name, strlen(name) + 1);
	put(type + r.offsets.type_name, text);
	put(type + r.offsets.type_name + 144, 1 << 12);		/* tp_flags: ready */
	return type;
}

static uint64_t make_object(uint64_t type, size_t size)
{
	uint64_t object = make(size);

	put(object + r.offsets.object_type, type);
	return object;
}

/* A process of 3.`minor` with no interpreter yet. */
static void begin(unsigned int minor)
{
	memset(arena, 0, used);
	memset(&r, 0, sizeof(r));
	memset(&learnt, 0xee, sizeof(learnt));
	used = 0;
	reads = 0;
	failing = 0;
	ck_assert_int_eq(python_offsets__of(minor, false, &r.offsets), 0);
	r.minor = minor;
	make(4096);
	runtime = make(16384);
	r.runtime = 0x1000;
	r.runtime_size = 16384;
	type_code = make_type("code");
	type_str = make_type("str");
	r.type_code = 0x1000 + type_code - runtime;
}

static void set_key(uint32_t at, uint32_t key)
{
	put_u32(runtime + at, 1);
	put_u32(runtime + at + 4, key);
}

static uint64_t make_interpreter(void)
{
	uint64_t interpreter = make(8192), head = runtime + r.offsets.runtime_interpreters, old;

	read_arena(NULL, head, &old, sizeof(old));
	put(interpreter + r.offsets.interpreter_next, old);
	put(head, interpreter);
	return interpreter;
}

static uint64_t make_state(uint64_t interpreter, uint64_t pointer)
{
	uint64_t state = make(512), head = interpreter + r.offsets.interpreter_threads, old;

	read_arena(NULL, head, &old, sizeof(old));
	put(state + r.offsets.thread_next, old);
	put(state + r.offsets.thread_interpreter, interpreter);
	put(state + r.offsets.layout.thread_id, pointer);
	put(head, state);
	if (r.offsets.layout.top == PYTHON_ABSENT)
		put(state + r.offsets.layout.cframe, make(32));
	return state;
}

/* The struct pthread of a thread, at the end of its memory. */
static uint64_t make_glibc(void)
{
	uint64_t pointer = make(PTHREAD_BYTES);

	put(pointer + BLOCKS, pointer + FIRST_BLOCK);
	return pointer;
}

static void set_glibc(uint64_t pointer, uint32_t key, uint64_t value)
{
	uint64_t block = pointer + FIRST_BLOCK;

	if (key >= 32) {
		block = make(512);
		put(pointer + BLOCKS + key / 32 * 8, block);
	}
	put(block + 16 * (key % 32), 1);	/* the sequence number */
	put(block + 16 * (key % 32) + 8, value);
}

/* `nr` frames, of which the outermost is the interpreter's own where there are such. */
static void make_frames(uint64_t state, unsigned int nr)
{
	const struct python_layout *l = &r.offsets.layout;
	uint64_t top = state + l->top, previous = 0;

	if (l->top == PYTHON_ABSENT) {
		read_arena(NULL, state + l->cframe, &top, sizeof(top));
		top += l->cframe_top;
	}
	for (unsigned int i = 0; i < nr; i++) {
		uint64_t frame = make(128), code = make_object(type_code, 256);

		put(code + l->code_name, make_object(type_str, 64));
		put(code + l->code_filename, make_object(type_str, 64));
		put(frame + l->frame_back, previous);
		put(frame + l->frame_code, code | (l->code_tag ? 1 : 0));
		if (l->style == PYTHON_SHIMS && !i) {
			put(frame + l->frame_code, make_object(type_str, 64));
			put_u8(frame + l->frame_owner, 3);
		}
		previous = frame;
	}
	put(top, previous);
}

static int learn(void)
{
	free(why);
	why = NULL;
	return python_threads__learn(&r, runtime, &memory, &learnt, &why);
}

static void learns(uint32_t at, uint32_t then)
{
	ck_assert_int_eq(learn(), 0);
	ck_assert_uint_eq(learnt.tsd_at, at);
	ck_assert_uint_eq(learnt.tsd_then, then);
	ck_assert_uint_eq(learnt.type_code, type_code);
	ck_assert_uint_eq(learnt.thread_id, r.offsets.layout.thread_id);
}

static void refuses(const char *text)
{
	ck_assert_int_eq(learn(), -ENOTSUP);
	ck_assert_ptr_nonnull(why);
	ck_assert_msg(strstr(why, text), "said: %s", why);
}

/* One thread that runs Python, with its state under `key`. */
static uint64_t make_running(uint64_t interpreter, uint32_t key)
{
	uint64_t pointer = make_glibc(), state = make_state(interpreter, pointer);

	set_glibc(pointer, key, state);
	make_frames(state, 3);
	return state;
}

START_TEST(learns_all_versions)
{
	for (unsigned int minor = 8; minor <= 14; minor++) {
		begin(minor);
		set_key(r.offsets.runtime_key, 3);
		make_running(make_interpreter(), 3);
		learns(FIRST_BLOCK + 3 * 16 + 8, PYTHON_TSD_DIRECT);
	}
}
END_TEST

START_TEST(finds_late_keys)
{
	static const uint32_t keys[] = { 31, 32, 33, 63, 64, 1023 };

	for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++) {
		uint32_t key = keys[i];

		begin(11);
		set_key(r.offsets.runtime_key, key);
		make_running(make_interpreter(), key);
		if (key < 32)
			learns(FIRST_BLOCK + key * 16 + 8, PYTHON_TSD_DIRECT);
		else
			learns(BLOCKS + key / 32 * 8, key % 32 * 16 + 8);
	}
}
END_TEST

/* musl's struct is shorter and holds a pointer to values without sequence numbers. */
START_TEST(finds_values_of_musl)
{
	uint64_t interpreter, pointer, values, state;

	begin(12);
	set_key(r.offsets.runtime_key, 5);
	interpreter = make_interpreter();
	for (int i = 0; i < 3; i++) {
		values = make(1024);
		pointer = make(256);
		state = make_state(interpreter, pointer);
		put(pointer, pointer);
		put(pointer + MUSL_TSD, values);
		put(values + 5 * 8, state);
		make_frames(state, 2);
	}
	learns(MUSL_TSD, 5 * 8);
}
END_TEST

START_TEST(waits_for_an_interpreter)
{
	uint64_t interpreter, state, pointer;

	begin(11);
	ck_assert_int_eq(learn(), -EAGAIN);		/* no interpreter */
	interpreter = make_interpreter();
	ck_assert_int_eq(learn(), -EAGAIN);		/* no thread */
	pointer = make_glibc();
	state = make_state(interpreter, 0);
	ck_assert_int_eq(learn(), -EAGAIN);		/* bound to none */
	put(state + r.offsets.layout.thread_id, pointer);
	ck_assert_int_eq(learn(), -EAGAIN);		/* no key */
	set_key(r.offsets.runtime_key, 0);
	ck_assert_int_eq(learn(), -EAGAIN);		/* no value, nor frames */
	set_glibc(pointer, 0, state);
	learns(FIRST_BLOCK + 8, PYTHON_TSD_DIRECT);	/* no frames: an embedding program at rest */
}
END_TEST

/* Extension modules keep the same pointer under keys of their own. */
START_TEST(tells_two_keys_apart)
{
	uint64_t interpreter, state;

	begin(12);
	interpreter = make_interpreter();
	set_key(r.offsets.runtime_key, 7);
	for (int i = 0; i < 3; i++) {
		state = make_running(interpreter, 7);
		read_arena(NULL, state + r.offsets.layout.thread_id, &state, sizeof(state));
		set_glibc(state, 2, interpreter);
		put(state + FIRST_BLOCK + 5 * 16 + 8, state);
	}
	learns(FIRST_BLOCK + 7 * 16 + 8, PYTHON_TSD_DIRECT);
}
END_TEST

/* From 3.12 on the key's place differs between builds. */
START_TEST(finds_a_key_that_has_moved)
{
	uint64_t interpreter, state, pointer;

	begin(12);
	interpreter = make_interpreter();
	state = make_running(interpreter, 7);
	set_key(r.offsets.runtime_key + 64, 7);
	set_key(r.offsets.runtime_key - 400, 9);	/* leads nowhere */
	learns(FIRST_BLOCK + 7 * 16 + 8, PYTHON_TSD_DIRECT);
	/* Two that lead to the state: what holds for all threads wins, then what is near. */
	read_arena(NULL, state + r.offsets.layout.thread_id, &pointer, sizeof(pointer));
	set_glibc(pointer, 4, state);
	set_key(r.offsets.runtime_key + 16, 4);
	learns(FIRST_BLOCK + 4 * 16 + 8, PYTHON_TSD_DIRECT);
	make_running(interpreter, 7);
	learns(FIRST_BLOCK + 7 * 16 + 8, PYTHON_TSD_DIRECT);
	/* Before, it is where the headers have it. */
	begin(11);
	make_running(make_interpreter(), 7);
	set_key(r.offsets.runtime_key + 64, 7);
	ck_assert_int_eq(learn(), -EAGAIN);
}
END_TEST

START_TEST(finds_threads_that_have_moved)
{
	begin(12);
	r.offsets.interpreter_threads += 24;
	set_key(r.offsets.runtime_key, 1);
	make_running(make_interpreter(), 1);
	r.offsets.interpreter_threads -= 24;
	learns(FIRST_BLOCK + 16 + 8, PYTHON_TSD_DIRECT);
	ck_assert_uint_eq(learnt.interpreter_threads, r.offsets.interpreter_threads + 24);
}
END_TEST

/* The key leads to whichever state of the thread is in use. */
START_TEST(knows_subinterpreters)
{
	uint64_t first, second, pointer, states[2];

	for (int active = 0; active < 2; active++) {
		begin(12);
		set_key(r.offsets.runtime_key, 1);
		first = make_interpreter();
		second = make_interpreter();
		pointer = make_glibc();
		states[0] = make_state(first, pointer);
		states[1] = make_state(second, pointer);
		make_frames(states[0], 2);
		make_frames(states[1], 2);
		set_glibc(pointer, 1, states[active]);
		learns(FIRST_BLOCK + 16 + 8, PYTHON_TSD_DIRECT);
	}
}
END_TEST

/* A thread that has ended without saying so, one whose memory is another's now, and one at its start. */
START_TEST(bears_threads_that_are_no_more)
{
	uint64_t interpreter;

	begin(11);
	set_key(r.offsets.runtime_key, 1);
	interpreter = make_interpreter();
	make_running(interpreter, 1);
	make_state(interpreter, 0x123456789000);
	make_state(interpreter, make_glibc());
	make_frames(make_state(interpreter, 0), 1);
	learns(FIRST_BLOCK + 16 + 8, PYTHON_TSD_DIRECT);
}
END_TEST

START_TEST(refuses_structures_of_another_version)
{
	uint64_t state, interpreter;

	begin(11);
	set_key(r.offsets.runtime_key, 1);
	state = make_running(make_interpreter(), 1);
	put(state + r.offsets.thread_interpreter, 0x1234);
	refuses("threads of CPython 3.11.0 aren't");
	begin(11);
	set_key(r.offsets.runtime_key, 1);
	interpreter = make_interpreter();
	type_code = make_type("tuple");
	make_running(interpreter, 1);
	refuses("frames of CPython 3.11.0 aren't");
	begin(11);
	set_key(r.offsets.runtime_key, 1);
	make_running(make_interpreter(), 2);
	refuses("don't lead to their state");
	begin(11);
	put(runtime + r.offsets.runtime_interpreters, 0x10);
	refuses("threads of CPython");
}
END_TEST

START_TEST(says_when_there_is_no_process)
{
	begin(11);
	set_key(r.offsets.runtime_key, 1);
	make_running(make_interpreter(), 1);
	failing = -ESRCH;
	ck_assert_int_eq(learn(), -ESRCH);
	failing = -EFAULT;
	ck_assert_int_eq(learn(), -EAGAIN);
	ck_assert_ptr_null(why);
}
END_TEST

/* Programs that aren't position independent have a copy of the type; the file's is never made ready. */
START_TEST(takes_the_type_that_is_in_use)
{
	uint64_t pointer;

	begin(11);
	set_key(r.offsets.runtime_key, 1);
	type_code = make_type("code");
	make_running(make_interpreter(), 1);
	learns(FIRST_BLOCK + 16 + 8, PYTHON_TSD_DIRECT);
	begin(11);
	set_key(r.offsets.runtime_key, 1);
	pointer = make_glibc();
	set_glibc(pointer, 1, make_state(make_interpreter(), pointer));
	put(type_code + r.offsets.type_name + 144, 0);
	type_code = 0;		/* no frames to tell, and not ready */
	learns(FIRST_BLOCK + 16 + 8, PYTHON_TSD_DIRECT);
}
END_TEST

#define LIST_HAS_NO_END "the list of threads or interpreters of CPython 3.13.0 has no end"

/* A list of `nr` threads, bound or not, of which the last leads back to the `back`th. */
static void make_circle(unsigned int nr, unsigned int back, bool bound)
{
	uint64_t interpreter, first = 0, state = 0, pointer;

	begin(13);
	interpreter = make_interpreter();
	pointer = bound ? make_glibc() : 0;
	/* each new one goes to the front */
	for (unsigned int i = nr; i--; ) {
		state = make_state(interpreter, pointer);
		first = first ? first : state;
		if (i == back)
			put(first + r.offsets.thread_next, state);
	}
	reads = 0;
}

START_TEST(knows_lists_that_lead_back)
{
	uint64_t first, second;

	for (unsigned int nr = 1; nr <= 40; nr++) {
		for (unsigned int back = 0; back < nr; back++) {
			make_circle(nr, back, false);
			refuses(LIST_HAS_NO_END);
			/* no thread is met more than three times, with three reads each */
			ck_assert_uint_le(reads, 4 + 9 * nr);
		}
	}
	make_circle(16, 0, true);
	refuses(LIST_HAS_NO_END);
	make_circle(1500, 1499, false);
	refuses(LIST_HAS_NO_END);
	ck_assert_uint_le(reads, 4 + 9 * 1500);
	/* or so long that nobody knows */
	make_circle(5000, 5000, false);
	refuses(LIST_HAS_NO_END);
	ck_assert_uint_le(reads, 4 + 3 * 4096);
	/* interpreters */
	begin(13);
	first = make_interpreter();
	second = make_interpreter();
	put(first + r.offsets.interpreter_next, second);
	reads = 0;
	refuses(LIST_HAS_NO_END);
	ck_assert_uint_le(reads, 7);
	begin(13);
	first = make_interpreter();
	put(first + r.offsets.interpreter_next, first);
	set_key(r.offsets.runtime_key, 1);
	make_running(first, 1);
	refuses(LIST_HAS_NO_END);
}
END_TEST

/* None that ends is taken for such a one. */
START_TEST(knows_long_lists)
{
	uint64_t interpreter;

	begin(12);
	set_key(r.offsets.runtime_key, 1);
	interpreter = make_interpreter();
	make_running(interpreter, 1);
	for (int i = 0; i < 1000; i++)
		make_state(interpreter, 0);
	learns(FIRST_BLOCK + 16 + 8, PYTHON_TSD_DIRECT);
	begin(12);
	set_key(r.offsets.runtime_key, 1);
	interpreter = make_interpreter();
	make_running(interpreter, 1);
	for (int i = 0; i < 100; i++)
		make_interpreter();
	learns(FIRST_BLOCK + 16 + 8, PYTHON_TSD_DIRECT);
}
END_TEST

START_TEST(does_not_follow_pointers_for_ever)
{
	uint64_t interpreter, state, pointer;

	/* Frames that are their own caller, and keys that are as many as can be. */
	begin(12);
	interpreter = make_interpreter();
	pointer = make(4096);
	state = make_state(interpreter, pointer);
	make_frames(state, 1);
	for (uint32_t at = 64; at < 8192; at += 8)
		set_key(at, at / 8);
	put(runtime + r.offsets.runtime_interpreters, interpreter);
	for (uint32_t at = 0; at < 4096; at += 8)
		put(pointer + at, pointer);
	ck_assert_int_lt(learn(), 0);
	ck_assert_uint_lt(reads, 200000);
}
END_TEST

/* Words of all that there is, led astray one at a time. */
START_TEST(survives_wild_memory)
{
	uint64_t wild[] = { 0, 1, ARENA, ARENA + 8, UINT64_MAX, UINT64_MAX - 7, 1ull << 63 };
	uint64_t interpreter;

	for (unsigned int minor = 8; minor <= 14; minor += 3) {
		begin(minor);
		set_key(r.offsets.runtime_key, 40);
		interpreter = make_interpreter();
		make_running(interpreter, 40);
		make_running(interpreter, 40);
		for (size_t at = 0; at < used; at += 8) {
			uint64_t kept;

			memcpy(&kept, arena + at, 8);
			if (!kept)
				continue;
			for (size_t i = 0; i < sizeof(wild) / sizeof(wild[0]); i++) {
				int err;

				memcpy(arena + at, &wild[i], 8);
				err = learn();
				ck_assert_msg(!err || err == -EAGAIN || err == -ENOTSUP || err == -EFAULT,
					      "%d", err);
				ck_assert(err || learnt.tsd_at < 4096);
			}
			memcpy(arena + at, &kept, 8);
		}
	}
}
END_TEST

UNIT_MAIN("python_threads", learns_all_versions, finds_late_keys, finds_values_of_musl,
	  waits_for_an_interpreter, tells_two_keys_apart, finds_a_key_that_has_moved,
	  finds_threads_that_have_moved, knows_subinterpreters, bears_threads_that_are_no_more,
	  refuses_structures_of_another_version, says_when_there_is_no_process,
	  takes_the_type_that_is_in_use, knows_lists_that_lead_back, knows_long_lists,
	  does_not_follow_pointers_for_ever, survives_wild_memory)
