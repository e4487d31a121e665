// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Compiled from the headers of 3.8.18, 3.9.18, 3.10.13, 3.11.7, 3.12.1, 3.13.0 with and without the
 * GIL; 3.14 from its sources. Within one minor version only what lies behind large structures moves:
 * runtime_key and, before 3.13, interpreter_threads, which whoever reads a process looks for itself.
 */
#include "unwind/python_offsets.h"

#include <errno.h>
#include <string.h>

#define NONE PYTHON_ABSENT
#define ARRAY_SIZE(a) (sizeof(a) / sizeof((a)[0]))

/* 3.8 and 3.9; 3.10 differs from them in a few members. */
#define FRAME_OBJECT_LAYOUT \
	.owner_shim = 3, .owner_generator = 1, .thread_id = 176, .top = 24, .cframe = NONE, \
	.cframe_top = NONE, .cframe_previous = NONE, .frame_code = 32, .frame_back = 24, \
	.frame_entry = NONE, .frame_owner = NONE, .code_type = 8, .code_name = 112, \
	.code_filename = 104, .code_table = 120, .code_first_line = 40, .code_flags = 36, \
	.code_version = NONE, .code_traceable = NONE, .code_start = NONE

/* From 3.11 on the bytecode is the end of its object. */
#define CODE_LAYOUT(shift) \
	.code_type = 8 + (shift), .code_name = 120 + (shift), .code_filename = 112 + (shift), \
	.code_table = 136 + (shift), .code_flags = 48 + (shift)

#define CODE_312_LAYOUT(shift) \
	CODE_LAYOUT(shift), .code_first_line = 68 + (shift), .code_version = 92 + (shift)

#define SHIM_LAYOUT \
	.style = PYTHON_SHIMS, .position = PYTHON_POSITION_POINTER, .owner_shim = 3, \
	.owner_generator = 1, .frame_code = 0, .frame_back = 8, .frame_position = 56, \
	.frame_entry = NONE

#define NO_CFRAME_LAYOUT \
	SHIM_LAYOUT, .thread_id = 152, .top = 72, .cframe = NONE, .cframe_top = NONE, \
	.cframe_previous = NONE

/* Objects with the GIL, but for the places of a str's characters. */
#define OBJECTS \
	.thread_next = 8, .thread_interpreter = 16, .object_type = 8, .type_name = 24, \
	.bytes_size = 16, .bytes_data = 32, .str_length = 16, .str_state = 32, .str_kind_shift = 2
#define FREE_THREADED_OBJECTS \
	.thread_next = 8, .thread_interpreter = 16, .object_type = 24, .type_name = 40, \
	.bytes_size = 32, .bytes_data = 48, .str_length = 32, .str_state = 48, .str_ascii = 56, \
	.str_compact = 72, .code_qualname = 144
#define STR_OLD .str_ascii = 48, .str_compact = 72
#define STR_312 .str_ascii = 40, .str_compact = 56

static const struct python_offsets known[] = {
	{
		.minor = 8, .lines = PYTHON_LINES_LNOTAB, .runtime_key = 1392,
		.runtime_interpreters = 32, .interpreter_threads = 8, OBJECTS, STR_OLD,
		.layout = { FRAME_OBJECT_LAYOUT, .style = PYTHON_FRAME_OBJECTS,
			    .position = PYTHON_POSITION_BYTES, .frame_position = 104 },
	}, {
		.minor = 9, .lines = PYTHON_LINES_LNOTAB, .runtime_key = 584,
		.runtime_interpreters = 32, .interpreter_threads = 8, OBJECTS, STR_OLD,
		.layout = { FRAME_OBJECT_LAYOUT, .style = PYTHON_FRAME_OBJECTS,
			    .position = PYTHON_POSITION_BYTES, .frame_position = 104 },
	}, {
		.minor = 10, .lines = PYTHON_LINES_310, .runtime_key = 584,
		.runtime_interpreters = 32, .interpreter_threads = 8, OBJECTS, STR_OLD,
		.layout = { .style = PYTHON_CFRAMES, .position = PYTHON_POSITION_UNITS,
			    .owner_shim = 3, .owner_generator = 1, .thread_id = 176, .top = 24,
			    .cframe = 48, .cframe_top = NONE, .cframe_previous = 8,
			    .frame_code = 32, .frame_back = 24, .frame_position = 96,
			    .frame_entry = NONE, .frame_owner = NONE, .code_type = 8,
			    .code_name = 112, .code_filename = 104, .code_table = 120,
			    .code_first_line = 40, .code_flags = 36, .code_version = NONE,
			    .code_traceable = NONE, .code_start = NONE },
	}, {
		.minor = 11, .lines = PYTHON_LINES_311, .runtime_key = 592,
		.runtime_interpreters = 40, .interpreter_threads = 16, OBJECTS, STR_OLD,
		.code_qualname = 128,
		.layout = { CODE_LAYOUT(0), .style = PYTHON_ENTRY_FRAMES,
			    .position = PYTHON_POSITION_POINTER, .owner_shim = 3,
			    .owner_generator = 1, .thread_id = 152, .thread_chunk = 296,
			    .top = NONE, .cframe = 56,
			    .cframe_top = 8, .cframe_previous = 16, .frame_code = 32,
			    .frame_back = 48, .frame_position = 56, .frame_entry = 68,
			    .frame_owner = 69, .code_first_line = 72, .code_version = NONE,
			    .code_traceable = 168, .code_start = 184 },
	}, {
		.minor = 12, .lines = PYTHON_LINES_311, .runtime_key = 1544,
		.runtime_interpreters = 40, .interpreter_threads = 72, OBJECTS, STR_312,
		.code_qualname = 128,
		.layout = { SHIM_LAYOUT, CODE_312_LAYOUT(0), .thread_id = 136, .thread_chunk = 232,
			    .top = NONE,
			    .cframe = 56, .cframe_top = 0, .cframe_previous = 8,
			    .frame_owner = 70, .code_traceable = 176, .code_start = 192 },
	}, {
		.minor = 13, .lines = PYTHON_LINES_311, .runtime_key = 2160,
		.runtime_interpreters = 632, .interpreter_next = 7264,
		.interpreter_threads = 7344, OBJECTS, STR_312, .code_qualname = 128,
		.layout = { NO_CFRAME_LAYOUT, CODE_312_LAYOUT(0), .frame_owner = 70,
			    .code_traceable = 184, .code_start = 200 },
	}, {
		.minor = 13, .free_threaded = true, .lines = PYTHON_LINES_311,
		.runtime_key = 2160, .runtime_interpreters = 632, .interpreter_next = 7264,
		.interpreter_threads = 7344, FREE_THREADED_OBJECTS, .str_kind_shift = 2,
		.layout = { NO_CFRAME_LAYOUT, CODE_312_LAYOUT(16), .frame_owner = 70,
			    .code_traceable = 200, .code_start = 216 },
	}, {
		.minor = 14, .lines = PYTHON_LINES_311, .runtime_key = 2336,
		.runtime_interpreters = 808, .interpreter_next = 7272,
		.interpreter_threads = 7344, OBJECTS, STR_312, .code_qualname = 128,
		.layout = { NO_CFRAME_LAYOUT, CODE_312_LAYOUT(0), .code_tag = 3,
			    .frame_owner = 74, .code_traceable = 192, .code_start = 208 },
	}, {
		.minor = 14, .free_threaded = true, .lines = PYTHON_LINES_311,
		.runtime_key = 2336, .runtime_interpreters = 808, .interpreter_next = 7272,
		.interpreter_threads = 7344, FREE_THREADED_OBJECTS, .str_kind_shift = 8,
		.layout = { NO_CFRAME_LAYOUT, CODE_312_LAYOUT(16), .code_tag = 3,
			    .frame_owner = 78, .code_traceable = 208, .code_start = 232 },
	},
};

/* End of the member at `at`, if it is there and farther than `end`. */
static uint16_t farther(uint16_t end, uint16_t at, uint16_t size)
{
	return at != NONE && at + size > end ? (uint16_t)(at + size) : end;
}

/* What of a layout follows from the rest. */
static void layout__complete(struct python_offsets *o)
{
	struct python_layout *l = &o->layout;
	uint16_t frame = farther(0, l->frame_code, 8);
	uint16_t code = farther(0, l->code_type, 8);
	uint16_t state = farther(0, l->thread_id, 8);

	frame = farther(frame, l->frame_back, 8);
	frame = farther(frame, l->frame_position, l->position == PYTHON_POSITION_POINTER ? 8 : 4);
	frame = farther(frame, l->frame_entry, 1);
	frame = farther(frame, l->frame_owner, 1);
	l->frame_bytes = (uint16_t)((frame + 7) / 8 * 8);
	code = farther(code, l->code_name, 8);
	code = farther(code, l->code_filename, 8);
	code = farther(code, l->code_table, 8);
	code = farther(code, l->code_first_line, 4);
	code = farther(code, l->code_flags, 4);
	code = farther(code, l->code_version, 4);
	code = farther(code, l->code_traceable, 4);
	l->code_bytes = (uint16_t)((code + 7) / 8 * 8);
	if (!l->thread_chunk)
		l->thread_chunk = NONE;
	state = farther(state, l->top, 8);
	state = farther(state, l->cframe, 8);
	l->state_bytes = farther(state, l->thread_chunk, 24);
	l->code_qualname = o->code_qualname ? (uint16_t)o->code_qualname : NONE;
	l->str_length = (uint16_t)o->str_length;
	l->bytes_size = (uint16_t)o->bytes_size;
	l->runtime_interpreters = (uint16_t)o->runtime_interpreters;
	l->interpreter_next = (uint16_t)o->interpreter_next;
	l->interpreter_threads = (uint16_t)o->interpreter_threads;
	l->thread_next = (uint16_t)o->thread_next;
	l->thread_interpreter = (uint16_t)o->thread_interpreter;
}

int python_offsets__of(unsigned int minor, bool free_threaded, struct python_offsets *out)
{
	for (size_t i = 0; i < ARRAY_SIZE(known); i++) {
		if (known[i].minor != minor || known[i].free_threaded != free_threaded)
			continue;
		*out = known[i];
		layout__complete(out);
		return 0;
	}
	return -ENOTSUP;
}

/* Where struct _Py_DebugOffsets of a minor version has what; each is a u64. */
struct debug_fields {
	uint16_t size;
	uint16_t runtime_interpreters, interpreter_next, interpreter_threads;
	uint16_t thread_next, thread_interpreter, top, thread_id;
	uint16_t frame_back, frame_code, frame_position, frame_owner;
	uint16_t code_filename, code_name, code_qualname, code_table, code_first_line;
	uint16_t code_arguments, code_start;
	uint16_t object_type, type_name, bytes_size, bytes_data;
	uint16_t str_state, str_length, str_ascii;
};

static const struct debug_fields debug_313 = {
	.size = 584, .runtime_interpreters = 40, .interpreter_next = 64, .interpreter_threads = 72,
	.thread_next = 168, .thread_interpreter = 176, .top = 184, .thread_id = 192,
	.frame_back = 232, .frame_code = 240, .frame_position = 248, .frame_owner = 264,
	.code_filename = 280, .code_name = 288, .code_qualname = 296, .code_table = 304,
	.code_first_line = 312, .code_arguments = 320, .code_start = 344,
	.object_type = 360, .type_name = 376, .bytes_size = 520, .bytes_data = 528,
	.str_state = 544, .str_length = 552, .str_ascii = 560,
};

static const struct debug_fields debug_314 = {
	.size = 760, .runtime_interpreters = 40, .interpreter_next = 64, .interpreter_threads = 72,
	.thread_next = 192, .thread_interpreter = 200, .top = 208, .thread_id = 216,
	.frame_back = 256, .frame_code = 264, .frame_position = 272, .frame_owner = 288,
	.code_filename = 320, .code_name = 328, .code_qualname = 336, .code_table = 344,
	.code_first_line = 352, .code_arguments = 360, .code_start = 384,
	.object_type = 408, .type_name = 424, .bytes_size = 600, .bytes_data = 608,
	.str_state = 624, .str_length = 632, .str_ascii = 640,
};

/* Reads offsets; the first that can't be one stops it. */
struct debug_reader {
	const uint8_t *bytes;
	bool bad;
};

/* Of a member of `len` bytes, aligned to its length, that ends by `end`. */
static uint32_t debug__at(struct debug_reader *r, uint16_t field, uint32_t len, uint32_t end)
{
	uint64_t value;

	memcpy(&value, r->bytes + field, sizeof(value));
	if (value % len || value > end - len) {
		r->bad = true;
		return 0;
	}
	return (uint32_t)value;
}

static uint16_t debug__frame(struct debug_reader *r, uint16_t field, uint32_t len)
{
	return (uint16_t)debug__at(r, field, len, PYTHON_FRAME_BYTES);
}

static uint16_t debug__code(struct debug_reader *r, uint16_t field, uint32_t len)
{
	return (uint16_t)debug__at(r, field, len, PYTHON_CODE_BYTES);
}

#define STATE_END 4096u		/* of a thread's state or an object: more than any has before what we need */
#define STRUCT_END 0xffffu	/* the same of the runtime and of an interpreter: a layout has 16 bits */

static void debug__structures(struct debug_reader *r, const struct debug_fields *f,
			      struct python_offsets *out)
{
	out->runtime_interpreters = debug__at(r, f->runtime_interpreters, 8, STRUCT_END);
	out->interpreter_next = debug__at(r, f->interpreter_next, 8, STRUCT_END);
	out->interpreter_threads = debug__at(r, f->interpreter_threads, 8, STRUCT_END);
	out->thread_next = debug__at(r, f->thread_next, 8, STATE_END);
	out->thread_interpreter = debug__at(r, f->thread_interpreter, 8, STATE_END);
	out->object_type = debug__at(r, f->object_type, 8, 256);
	out->type_name = debug__at(r, f->type_name, 8, STATE_END);
	out->bytes_size = debug__at(r, f->bytes_size, 8, 256);
	out->bytes_data = debug__at(r, f->bytes_data, 1, 256);
	out->str_length = debug__at(r, f->str_length, 8, 256);
	out->str_state = debug__at(r, f->str_state, 4, 256);
	/* What follows the state of an ASCII str is its text; else two words come first. */
	out->str_ascii = debug__at(r, f->str_ascii, 8, 256);
	out->str_compact = out->str_ascii + 16;
	out->code_qualname = debug__code(r, f->code_qualname, 8);
}

/* The flags, the version and the first line that is traced aren't told: they lie beside what is. */
static void debug__layout(struct debug_reader *r, const struct debug_fields *f, struct python_layout *l)
{
	const struct python_layout table = *l;
	uint16_t arguments = debug__code(r, f->code_arguments, 4);

	l->top = (uint16_t)debug__at(r, f->top, 8, PYTHON_STATE_BYTES);
	l->thread_id = (uint16_t)debug__at(r, f->thread_id, 8, PYTHON_STATE_BYTES);
	l->frame_back = debug__frame(r, f->frame_back, 8);
	l->frame_code = debug__frame(r, f->frame_code, 8);
	l->frame_position = debug__frame(r, f->frame_position, 8);
	l->frame_owner = debug__frame(r, f->frame_owner, 1);
	l->code_filename = debug__code(r, f->code_filename, 8);
	l->code_name = debug__code(r, f->code_name, 8);
	l->code_table = debug__code(r, f->code_table, 8);
	l->code_first_line = debug__code(r, f->code_first_line, 4);
	l->code_start = debug__code(r, f->code_start, 8);
	if (arguments < 4 || l->code_first_line > PYTHON_CODE_BYTES - 28 ||
	    l->code_start < table.code_start - table.code_traceable) {
		r->bad = true;
		return;
	}
	l->code_flags = arguments - 4;
	l->code_version = l->code_first_line + (table.code_version - table.code_first_line);
	l->code_traceable = l->code_start - (table.code_start - table.code_traceable);
}

int python_offsets__from_debug(const void *bytes, size_t size, struct python_offsets *out)
{
	struct debug_reader r = { .bytes = bytes };
	const struct debug_fields *fields;
	struct python_offsets told;
	uint64_t version, free_threaded;
	int err;

	if (size < 24 || memcmp(bytes, PYTHON_DEBUG_COOKIE, 8))
		return -ENOENT;
	memcpy(&version, r.bytes + 8, sizeof(version));
	memcpy(&free_threaded, r.bytes + 16, sizeof(free_threaded));
	fields = version >> 16 == 0x30d ? &debug_313 : version >> 16 == 0x30e ? &debug_314 : NULL;
	if (!fields || (version & 0xff) < 0xc0 || free_threaded > 1)
		return -ENOTSUP;	/* what precedes a release candidate may differ */
	if (size < fields->size)
		return -ENOENT;
	err = python_offsets__of((unsigned int)(version >> 16 & 0xff), free_threaded, &told);
	if (err)
		return err;
	debug__structures(&r, fields, &told);
	debug__layout(&r, fields, &told.layout);
	told.layout.code_type = (uint16_t)told.object_type;
	if (r.bad)
		return -ENOTSUP;
	layout__complete(&told);
	*out = told;
	return 0;
}
