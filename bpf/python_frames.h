/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * How the Python frames of a process are found and read: filled in by user space
 * (unwind/python_*), applied by the BPF programs, which share the pure functions below. Offsets are
 * bytes from the start of a structure of that CPython. Include after the fixed-width types.
 */
#ifndef GPUCOLLECT_PYTHON_FRAMES_H
#define GPUCOLLECT_PYTHON_FRAMES_H

#define GPUCOLLECT_MAX_PYTHONS 256	/* layouts in force at a time; 0 stands for none */

/* How the list of Python frames is cut into runs: each is of one C call of the interpreter. */
enum python_style {
	PYTHON_NONE = 0,
	PYTHON_FRAME_OBJECTS = 1,	/* 3.8, 3.9: each frame is a run; its call is told by its code */
	PYTHON_CFRAMES = 2,		/* 3.10: each frame is a run; the list of CFrames lies in the calls */
	PYTHON_ENTRY_FRAMES = 3,	/* 3.11: a run ends at is_entry; the k-th CFrame lies in its call */
	PYTHON_SHIMS = 4,		/* 3.12 on: a run ends at a frame that lies in the call itself */
};

/* What a frame's position is. */
enum python_position {
	PYTHON_POSITION_BYTES = 0,	/* s32 from the start of the bytecode; < 0: not begun */
	PYTHON_POSITION_UNITS = 1,	/* the same in units of two bytes */
	PYTHON_POSITION_POINTER = 2,	/* address of an instruction */
};

#define PYTHON_ABSENT 0xffffu	/* this version has no such member */
#define PYTHON_TSD_DIRECT 0xffffffffu
#define PYTHON_FRAME_BYTES 128u	/* of a frame that are looked at, at most */
#define PYTHON_CODE_BYTES 256u	/* the same of a code object */
#define PYTHON_STATE_BYTES 512u	/* of a PyThreadState */

enum python_versions_of {
	PYTHON_VERSIONS_NONE = 0,	/* not known, or there are no versions */
	PYTHON_VERSIONS_INTERPRETER = 1,
	PYTHON_VERSIONS_RUNTIME = 2,	/* a variable, so far from _PyRuntime */
};

struct python_layout {
	__u32 tsd_at;		/* from the thread pointer: where the thread's state is, or a pointer... */
	__u32 tsd_then;		/* ...from which it is this far; PYTHON_TSD_DIRECT: it is there itself */
	__u8 style;		/* enum python_style */
	__u8 position;		/* enum python_position */
	__u8 owner_shim;	/* frames with an owner from this on are no Python frames: 3 */
	__u8 owner_generator;	/* owner of a generator's frame: 1 */
	__u16 code_tag;		/* low bits of a frame's pointer to its code that are none of it */
	__u16 frame_bytes;	/* to be read of a frame: all members below, multiple of 8 */
	__u16 code_bytes;	/* the same of a code object, from its start */
	__u16 state_bytes;	/* of a PyThreadState: thread_id, top, cframe, thread_chunk */
	/* PyThreadState */
	__u16 thread_id;	/* must hold the thread pointer */
	__u16 top;		/* innermost frame; PYTHON_ABSENT: the CFrame has it */
	__u16 cframe;		/* innermost CFrame, or PYTHON_ABSENT */
	__u16 cframe_top;	/* CFrame: innermost frame */
	__u16 cframe_previous;
	/* PyFrameObject or _PyInterpreterFrame */
	__u16 frame_code;
	__u16 frame_back;
	__u16 frame_position;
	__u16 frame_entry;	/* u8 is_entry: 3.11 */
	__u16 frame_owner;	/* u8: 3.11 on */
	/* PyCodeObject */
	__u16 code_type;	/* ob_type: must be PyCode_Type */
	__u16 code_name;
	__u16 code_filename;
	__u16 code_table;	/* bytes object with the lines */
	__u16 code_first_line;	/* int */
	__u16 code_flags;	/* int */
	__u16 code_version;	/* u32, or PYTHON_ABSENT */
	__u16 code_traceable;	/* int _co_firsttraceable, or PYTHON_ABSENT */
	__u16 code_start;	/* bytecode in the object itself, or PYTHON_ABSENT */
	__u16 code_qualname;	/* or PYTHON_ABSENT */
	__u16 str_length;	/* PyASCIIObject: characters */
	__u16 bytes_size;	/* PyBytesObject: ob_size */
	/* other interpreters of the process */
	__u16 runtime_interpreters;	/* _PyRuntimeState: the newest */
	__u16 interpreter_next;
	__u16 interpreter_threads;	/* its first PyThreadState */
	__u16 thread_next;
	__u16 thread_interpreter;
	__u16 thread_chunk;	/* where its frames are: a chunk, what is free of it, its end; 3.11, 3.12 */
	/* where the version is that the next code object will have, u32; see unwind/python_versions.h */
	__u16 versions_of;	/* enum python_versions_of */
	__u16 unused[3];
	__s32 versions_at;
	__u64 type_code;	/* address of PyCode_Type, 0: not known; each struct proc has its own */
};
_Static_assert(sizeof(struct python_layout) == 96, "elements of a map that is mapped");

/*
 * Code objects of a process that were freed, as a probe counts them (before 3.12): while the number stays, no
 * address has become another function's. Elements of map python_freed, of which 0 is nobody's. Few: the
 * kernel lets such probes go one after the other, some 80 ms each.
 */
#define GPUCOLLECT_MAX_FREED 9
struct python_freed {
	__u64 in_force;		/* 0: some may not be counted. Else each probe's own, in bits 40 to 63 */
	__u64 nr;		/* grows, whoever has the element */
	__u32 tgid;
	__u32 execs;		/* struct proc_slot.map_seq of the image that it is about */
};

/* The second word of a Python frame (FRAME_PYTHON_AT): where in the code, and which code it was. */
#define PYTHON_OFFSET_BITS 28
#define PYTHON_OFFSET_START ((1u << PYTHON_OFFSET_BITS) - 2)	/* not begun: the line of its head */
#define PYTHON_OFFSET_NONE ((1u << PYTHON_OFFSET_BITS) - 1)	/* not known: no line */
#define PYTHON_OFFSET(w) ((__u32)((w) >> 32) & PYTHON_OFFSET_NONE)
#define PYTHON_CHECK(w) ((__u32)(w))

/* Word `at` of what was read of a structure; the mask is for the verifier. */
#define PYTHON_WORD(words, at, bytes) ((words)[(at) / 8u & ((bytes) / 8u - 1)])

static inline __u64 python__u64(const __u64 *words, __u16 at, const __u32 bytes)
{
	return PYTHON_WORD(words, at, bytes);
}

static inline __u32 python__u32(const __u64 *words, __u16 at, const __u32 bytes)
{
	return (__u32)(PYTHON_WORD(words, at, bytes) >> (at & 4 ? 32 : 0));
}

static inline __u8 python__u8(const __u64 *words, __u16 at, const __u32 bytes)
{
	return (__u8)(PYTHON_WORD(words, at, bytes) >> (at & 7) * 8);
}

/*
 * Tells code objects apart that had the same address one after the other. `code`: the first
 * l->code_bytes of the object, in an array of PYTHON_CODE_BYTES.
 */
static inline __u32 python__check(const struct python_layout *l, const __u64 *code)
{
	__u64 h = python__u64(code, l->code_name, PYTHON_CODE_BYTES);

	h = (h ^ h >> 32) * 0x9fb21c651e98df25ull ^ python__u64(code, l->code_filename, PYTHON_CODE_BYTES);
	h = (h ^ h >> 35) * 0x9fb21c651e98df25ull ^ python__u64(code, l->code_table, PYTHON_CODE_BYTES);
	h = (h ^ h >> 35) * 0x9fb21c651e98df25ull ^
	    ((__u64)python__u32(code, l->code_first_line, PYTHON_CODE_BYTES) << 32 |
	     python__u32(code, l->code_flags, PYTHON_CODE_BYTES));
	if (l->code_version != PYTHON_ABSENT)
		h = (h ^ h >> 35) * 0x9fb21c651e98df25ull ^
		    python__u32(code, l->code_version, PYTHON_CODE_BYTES);
	h = (h ^ h >> 35) * 0xd6e8feb86659fd93ull;
	return (__u32)(h >> 32);
}

/*
 * Before 3.12 code objects have no version of their own, and when one dies its texts die with it: another
 * may have texts at the same addresses. So they may where interpreters count versions for themselves, and one
 * that is begun again begins anew. There the texts count, too: length and hash, which a str that is a name
 * has; else the last bytes. Members of str and bytes objects of builds with the GIL, from PYTHON_TEXT on.
 */
static inline bool python__needs_texts(const struct python_layout *l)
{
	return l->code_version == PYTHON_ABSENT ||
	       (l->versions_of != PYTHON_VERSIONS_RUNTIME && l->code_type == 8);
}

#define PYTHON_TEXT 16
#define PYTHON_TEXT_WORDS 4	/* length; hash, or -1; of a str: its state */
#define PYTHON_TEXT_TAIL 32	/* bytes, at most */

static inline __u64 python__mix(__u64 h, __u64 word)
{
	h = (h ^ word) * 0x9fb21c651e98df25ull;
	return h ^ h >> 35;
}

/* Where the last bytes of the object at `address` are; their number. `newer`: of 3.12 or later. */
static inline __u32 python__tail(const __u64 *head, bool is_str, bool newer, __u64 address, __u64 *at)
{
	__u64 kind = head[2] >> 2 & 7, size = is_str ? head[0] * kind : head[0];
	__u64 data = !is_str ? 32 : (head[2] >> 6 & 1 ? 48 : 72) - (newer ? (head[2] >> 6 & 1 ? 8 : 16) : 0);

	*at = address + data + (size > PYTHON_TEXT_TAIL ? size - PYTHON_TEXT_TAIL : 0);
	return size > PYTHON_TEXT_TAIL ? PYTHON_TEXT_TAIL : (__u32)size;
}

/* `tail`: those bytes with zeroes behind; not asked for where there is a hash. */
static inline __u64 python__text(__u64 h, const __u64 *head, const __u64 *tail)
{
	h = python__mix(h, head[0]);
	if (head[1] != ~0ull)
		return python__mix(h, head[1]);
	return python__mix(python__mix(python__mix(python__mix(h, tail[0]), tail[1]), tail[2]), tail[3]);
}

/*
 * Bytes from the start of the bytecode, or PYTHON_OFFSET_START or PYTHON_OFFSET_NONE. `frame`: its
 * first l->frame_bytes, in an array of PYTHON_FRAME_BYTES; `code`: the address of its code object.
 */
static inline __u32 python__offset(const struct python_layout *l, const __u64 *frame, __u64 code)
{
	__u64 offset;

	if (l->position == PYTHON_POSITION_POINTER) {
		offset = python__u64(frame, l->frame_position, PYTHON_FRAME_BYTES);
		if (offset + 2 == code + l->code_start)
			return PYTHON_OFFSET_START;	/* prev_instr, one unit before the first */
		offset -= code + l->code_start;
	} else {
		offset = python__u32(frame, l->frame_position, PYTHON_FRAME_BYTES);
		if ((__s32)offset < 0)
			return PYTHON_OFFSET_START;
		if (l->position == PYTHON_POSITION_UNITS)
			offset *= 2;
	}
	return offset < PYTHON_OFFSET_START ? (__u32)offset : PYTHON_OFFSET_NONE;
}

#endif
