/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Reading Python's frames and code objects. What a read costs hardly depends on how many bytes it is
 * of, so as few are made as may be: frames of one run lie one behind the other from 3.11 on, the
 * callers below, and a function that is in a stack often is read once.
 */
#ifndef GPUCOLLECT_PYTHON_READ_BPF_H
#define GPUCOLLECT_PYTHON_READ_BPF_H

#include "bpf/python_code.bpf.h"

#define PYTHON_PAGE 4096ull
#define NEAR_BYTES (16ull << 10)	/* of a chunk of frames */
#define STACK_BYTES (8ull << 20)	/* CFrames of a thread are no further apart */
#define NO_STATE (~0ull)

/* 0 also where it can't be read. */
static ALWAYS_INLINE __u64 python__pointer(__u64 addr)
{
	__u64 value = 0;

	return bpf_probe_read_user(&value, sizeof(value), (void *)addr) ? 0 : value;
}

/* Reads what is needed of a thread's state. 0, or negative: it can't be read. */
static ALWAYS_INLINE long state__read(struct scratch *s, const struct python_layout *l, __u64 state)
{
	__u32 bytes = l->state_bytes;

	if (s->python.state == state)
		return 0;
	s->python.state = NO_STATE;
	if (bytes > PYTHON_STATE_BYTES || bpf_probe_read_user(s->python.members, bytes, (void *)state))
		return -1;
	s->python.state = state;
	return 0;
}

static ALWAYS_INLINE __u64 state__u64(const struct scratch *s, __u16 at)
{
	return python__u64(s->python.members, at, PYTHON_STATE_BYTES);
}

/* Nothing that was read before holds any more. */
static ALWAYS_INLINE void frames__start(struct scratch *s)
{
	s->python.walk++;
	s->python.len = 0;
	s->python.before = 0;
}

/* The frame at hand; the mask is for the verifier, which is spared many states by few branches. */
static ALWAYS_INLINE const __u64 *frame__words(const struct scratch *s)
{
	return &s->python.block[s->python.at & (PYTHON_BLOCK_WORDS - 1)];
}

/* Reads it with what lies before it in the same page, which is memory of the same kind. */
static ALWAYS_INLINE long frame__read_block(struct scratch *s, __u64 frame, __u32 bytes)
{
	__u64 start = frame + bytes - PYTHON_BLOCK_BYTES, page = frame & ~(PYTHON_PAGE - 1), len;

	if (start < page)
		start = page;
	len = frame + bytes - start;
	s->python.len = 0;
	if (len > PYTHON_BLOCK_BYTES || bpf_probe_read_user(s->python.block, len, (void *)start))
		return -1;
	s->python.from = start;
	s->python.len = len;
	s->python.at = (frame - start) / 8;
	return 0;
}

/*
 * Whether the callers of a frame may lie before it. Up to 3.10 each frame is an object of its own:
 * where the function that it called has one a little behind, they were made one after the other.
 */
static ALWAYS_INLINE bool frame__has_neighbours(const struct scratch *s, __u64 frame, __u32 style)
{
	if (style >= PYTHON_ENTRY_FRAMES)
		return !s->python.len || frame - s->python.from + NEAR_BYTES < 2 * NEAR_BYTES;
	return s->python.before - frame < PYTHON_BLOCK_BYTES;
}

/*
 * Reads the frame s->python.next. One that lies elsewhere than those before, a shim for one, leaves them
 * where they are.
 */
static __noinline long frame__read(struct scratch *s, __u32 bytes, __u32 style)
{
	__u64 frame = s->python.next, at = frame - s->python.from;

	if (bytes > PYTHON_FRAME_BYTES)
		return -1;
	if (!(frame & 7)) {
		bool near = frame__has_neighbours(s, frame, style);

		s->python.before = frame;
		if (at < s->python.len && s->python.len - at >= bytes) {
			s->python.at = at / 8;
			return 0;
		}
		if (near && !frame__read_block(s, frame, bytes))
			return 0;
	}
	s->python.at = PYTHON_BLOCK_BYTES / 8;
	return bpf_probe_read_user(&s->python.block[PYTHON_BLOCK_BYTES / 8], bytes, (void *)frame);
}

/* Its callers are next to it, and not to those before. */
static ALWAYS_INLINE void frame__goes_on(struct scratch *s)
{
	if (s->python.at == PYTHON_BLOCK_BYTES / 8)
		s->python.len = 0;
}

/* A word of a CFrame: they lie in calls of the interpreter, on the stack, or in the thread's state. */
static ALWAYS_INLINE __u64 cframe__u64(struct scratch *s, __u64 cframe, __u16 at)
{
	__u64 value = 0;

	if (!unwind_read(&s->mem, &value, sizeof(value), cframe + at))
		return value;
	return python__pointer(cframe + at);
}

/* What tells a text from another that had its address before; see python_frames.h. */
static __noinline __u64 text__mark(__u64 address, __u64 h, bool is_str, bool newer)
{
	__u64 head[PYTHON_TEXT_WORDS] = {}, tail[PYTHON_TEXT_TAIL / 8] = {}, at;
	__u32 n;

	if (bpf_probe_read_user(head, sizeof(head), (void *)(address + PYTHON_TEXT)))
		return h;
	if (head[1] == ~0ull) {
		n = python__tail(head, is_str, newer, address, &at);
		barrier_var(n);
		if (n > sizeof(tail) || (n && bpf_probe_read_user(tail, n, (void *)at)))
			return h;
	}
	return python__text(h, head, tail);
}

static ALWAYS_INLINE __u32 code__check(struct scratch *s, const struct python_layout *l)
{
	__u32 check = python__check(l, s->python.code);
	__u16 name = l->code_qualname == PYTHON_ABSENT ? l->code_name : l->code_qualname;
	bool newer = l->code_version != PYTHON_ABSENT;
	__u64 h = check;

	if (!python__needs_texts(l))
		return check;
	h = text__mark(python__u64(s->python.code, name, PYTHON_CODE_BYTES), h, true, newer);
	h = text__mark(python__u64(s->python.code, l->code_filename, PYTHON_CODE_BYTES), h, true, newer);
	h = text__mark(python__u64(s->python.code, l->code_table, PYTHON_CODE_BYTES), h, false, newer);
	return (__u32)(h >> 32);
}

/* All that is needed of it, into `c`. 1: user space knows it; -1: can't be read. */
static ALWAYS_INLINE long code__read_whole(struct scratch *s, const struct python_layout *l, __u64 code,
					   struct known_code *c)
{
	__u32 bytes = l->code_bytes;

	if (bytes > PYTHON_CODE_BYTES || bpf_probe_read_user(s->python.code, bytes, (void *)code))
		return -1;
	if (s->python.type &&
	    python__u64(s->python.code, l->code_type, PYTHON_CODE_BYTES) != s->python.type)
		return 0;
	c->address = code;
	c->walk = s->python.walk;
	c->check = code__check(s, l);
	c->stays = s->python.stamp && code__stays(s, l);
	c->traceable = l->code_traceable == PYTHON_ABSENT ? 0 :
		       python__u32(s->python.code, l->code_traceable, PYTHON_CODE_BYTES);
	return code__tell(s, code, c->check);
}

/*
 * A code object; its frames keep it from being freed during the walk. NULL: can't be read. One that is no
 * code object has no address.
 */
static __noinline const struct known_code *code__read(struct scratch *s, const struct python_layout *l,
						      __u64 code)
{
	struct known_code *c = &s->python.codes[(code >> 4 ^ code >> 9) & (PYTHON_CODES - 1)];
	struct recalled_code *recalled;
	__u64 key;
	long told;

	if (!code)
		return NULL;
	if (!((c->address ^ code) | (c->walk ^ s->python.walk)))
		return c;
	c->address = 0;
	recalled = code__recall(s, code, &key);
	if (recalled__take(recalled, key, s->python.stamp, c)) {
		c->address = code;
		c->walk = s->python.walk;
		c->stays = 1;
		return c;
	}
	told = code__read_whole(s, l, code, c);
	if (told < 0)
		return NULL;
	if (told && c->stays)
		recalled__put(recalled, key, s->python.stamp, c);
	c->stays &= told;
	return c;
}

#endif
