/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Python frames that were met before. Most of a stack's are where they were at the launch before, and as they
 * were: while the stamp stays, the same code at the same position makes the same words. A third of the
 * cost of looking the code up.
 */
#ifndef GPUCOLLECT_PYTHON_MEMO_BPF_H
#define GPUCOLLECT_PYTHON_MEMO_BPF_H

#include "bpf/python_read.bpf.h"

/* That a frame adds at most: itself, two starts of runs, what ends its list and those after it. */
#define FRAME_WORDS (6 + 4 * (PYTHON_STATES - 1))
#define KNOWN_FRAMES 32		/* that are taken at a time */

/* Of what is known of this process's functions at present; no other process can aim at it. */
static ALWAYS_INLINE void memos__start(struct scratch *s)
{
	s->python.tag = hash__mix(hash__mix(s->python.stamp ^ settings.seed) ^ s->python.image);
}

/* Of frames that have no owner, or whose owner is Python: whether the run ends with this one. */
static ALWAYS_INLINE bool python__ends_run(const struct python_layout *l, const __u64 *frame)
{
	if (l->style == PYTHON_CFRAMES)
		return true;
	return l->style == PYTHON_ENTRY_FRAMES &&
	       python__u8(frame, l->frame_entry, PYTHON_FRAME_BYTES);
}

/* The frame's address only chooses the place: its words do not depend on it. */
static ALWAYS_INLINE struct frame_memo *memo__of(struct scratch *s, __u64 frame)
{
	__u32 at = frame * 0x9e3779b97f4a7c15ull >> (64 - PYTHON_MEMO_SHIFT);

	return &s->python.memos[at & (PYTHON_MEMOS - 1)];
}

/* All that a frame's words depend on but its position. */
static ALWAYS_INLINE __u64 memo__key(const struct scratch *s, const struct python_layout *l,
				     const __u64 *frame)
{
	__u64 owner = l->frame_owner == PYTHON_ABSENT ? 0 :
		      python__u8(frame, l->frame_owner, PYTHON_FRAME_BYTES);

	return (python__u64(frame, l->frame_code, PYTHON_FRAME_BYTES) ^ s->python.tag) + (owner << 48);
}

static ALWAYS_INLINE bool memo__is_of(const struct frame_memo *m, const struct scratch *s,
				      const struct python_layout *l, const __u64 *frame)
{
	return !((m->key ^ memo__key(s, l, frame)) |
		 (m->position ^ python__u64(frame, l->frame_position, PYTHON_FRAME_BYTES)));
}

static ALWAYS_INLINE __u64 memo__first_word(const struct python_layout *l, const __u64 *frame)
{
	__u64 code = python__u64(frame, l->frame_code, PYTHON_FRAME_BYTES) & ~(__u64)l->code_tag;

	return FRAME_MAKE_ADDRESS(FRAME_PYTHON, code);
}

/* `frame`, which is at s->python.next, makes `word`. To be called only if its code stays known. */
static ALWAYS_INLINE void memo__put(struct scratch *s, const struct python_layout *l, const __u64 *frame,
				    __u64 word)
{
	struct frame_memo *m = memo__of(s, s->python.next);

	m->key = memo__key(s, l, frame);
	m->position = python__u64(frame, l->frame_position, PYTHON_FRAME_BYTES);
	m->word = word;
}

/* Adds the words of the frame at s->python.next, if it is known. */
static ALWAYS_INLINE bool memo__take(struct scratch *s, const struct python_layout *l, const __u64 *frame)
{
	const struct frame_memo *m = memo__of(s, s->python.next);

	if (!s->python.stamp || !memo__is_of(m, s, l, frame))
		return false;
	words__add_python(s, memo__first_word(l, frame), m->word);
	return true;
}

/*
 * Adds frames from s->python.next on, as long as they are known and in what was read already. The first of a
 * list is not for this, of which it is asked whether it is left over, nor is the last of a run.
 */
static ALWAYS_INLINE void memos__take(struct scratch *s, const struct python_layout *l)
{
	__u64 next = s->python.next, hash = s->hash;
	__u32 nr = s->nr, i;

	if (nr <= s->python.start + 1 || !s->python.stamp || l->style == PYTHON_CFRAMES)
		return;
	for (i = 0; i < KNOWN_FRAMES; i++) {
		__u64 at = next - s->python.from, back, first;
		const __u64 *frame = &s->python.block[at / 8 & (PYTHON_BLOCK_WORDS - 1)];
		const struct frame_memo *m = memo__of(s, next);
		__u32 to = nr;

		barrier_var(to);	/* a bound that the verifier sees */
		if (at >= s->python.len || s->python.len - at < l->frame_bytes || at & 7 ||
		    to > GPUCOLLECT_MAX_PYTHON_WORDS - FRAME_WORDS)
			break;
		back = python__u64(frame, l->frame_back, PYTHON_FRAME_BYTES);
		if (python__ends_run(l, frame) || !memo__is_of(m, s, l, frame) || !back)
			break;
		first = memo__first_word(l, frame);
		s->words[to] = first;
		s->words[to + 1] = m->word;
		hash = hash__add_python(hash, first, m->word);
		nr = to + 2;
		s->python.before = next;
		next = back;
	}
	s->python.next = next;
	s->hash = hash;
	s->nr = nr;
}

#endif
