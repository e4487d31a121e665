/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Sending what a walk found: the words of a stack once, or a copy of the stack for user space. */
#ifndef GPUCOLLECT_SEND_BPF_H
#define GPUCOLLECT_SEND_BPF_H

#include "bpf/unwind.bpf.h"

/*
 * Sends the words in s->words unless they are known to have been sent, and returns their hash; 0
 * if they could not be sent. Known is what was submitted: the mark comes after the submit.
 */
static ALWAYS_INLINE __u64 stack__send(struct scratch *s)
{
	__u64 *slot, hash;
	__u32 index, size;

	hash = s->hash + s->nr;
	if (s->anon)
		hash ^= hash__mix((__u64)s->tgid << 32 | s->generation);
	hash = hash__mix(hash);
	if (!hash)
		hash = 1;
	index = (__u32)hash & (GPUCOLLECT_SEEN_STACKS - 1);
	slot = bpf_map_lookup_elem(&seen, &index);
	if (!slot || *(volatile __u64 *)slot == hash)
		return hash;
	size = s->nr * sizeof(__u64);
	if (size > sizeof(s->words))
		size = sizeof(s->words);
	size += sizeof(s->rec);
	head__init(&s->rec.head, REC_STACK, size);
	s->rec.hash = hash;
	s->rec.tgid = s->tgid;
	s->rec.nr = s->nr;
	if (bpf_ringbuf_output(&ring, &s->rec, size, ring__lazy())) {
		count(LOST_STACK);
		return 0;
	}
	*(volatile __u64 *)slot = hash;
	return hash;
}

/* The words of a stack that is not whole: where its Python frames belong may not be known yet. */
static ALWAYS_INLINE __u64 stack__send_part(struct scratch *s)
{
	if (s->python.end)
		s->hash = hash__add(s->hash, s->python.marks);
	return stack__send(s);
}

#define RAW_SMALL 4096
#define RAW_MIDDLE 16384
#define RAW_LARGE 65536
#define RAW_HUGE 262144

struct raw_copy {
	struct rec_raw *raw;
	__u64 nr;		/* chunks in a record, whose size the verifier knows */
};

static long raw__chunk(__u64 i, struct raw_copy *c)
{
	struct rec_raw *raw = c->raw;
	long err;

	if (i >= c->nr)
		return 1;
	err = bpf_probe_read_user((__u8 *)(raw + 1) + i * RAW_CHUNK, RAW_CHUNK,
				  (void *)(raw->start + i * RAW_CHUNK));
	raw->holes[i / 64 % (RAW_MAX / RAW_CHUNK / 64)] |= (__u64)err >> 63 << (i % 64);
	return 0;
}

/* Copies the stack by whole pages: large frames have some that were never touched. */
static ALWAYS_INLINE void raw__copy(struct rec_raw *raw, __u32 len, const __u32 size)
{
	struct raw_copy copy = { .raw = raw, .nr = size / RAW_CHUNK };

	raw->len = len < size ? len : size;
	bpf_loop((len + RAW_CHUNK - 1) / RAW_CHUNK, raw__chunk, &copy, 0);
}

/* The frame at which the walk stopped; rbx lies below the copy and is fetched here. */
static ALWAYS_INLINE void raw__frame(struct rec_raw *raw, struct scratch *s, __u64 prefix,
				       __u64 start)
{
	__u64 rbx = s->regs.r[UNWIND_RBX];
	int i;

	raw->prefix = prefix;
	raw->start = start;
	raw->pc = s->regs.pc;
	__builtin_memset(raw->holes, 0, sizeof(raw->holes));
	raw->flags = (s->later ? RAW_LATER : 0) | (s->lookup_less ? 0 : RAW_EXACT) |
		     (s->regs.full ? RAW_FULL : 0) | (s->regs.lost_rbp ? RAW_LOST_RBP : 0) |
		     (s->guess ? RAW_GUESS : 0);
#pragma unroll
	for (i = 0; i < UNWIND_NR_REGS; i++)
		raw->regs[i] = s->regs.r[i];
	if (!s->regs.full && s->regs.rbx_at != UNWIND_RBX_LIVE &&
	    (s->regs.rbx_at == UNWIND_RBX_LOST ||
	     unwind_read(&s->mem, &rbx, sizeof(rbx), s->regs.rbx_at)))
		raw->flags |= RAW_LOST_RBX;
	raw->regs[UNWIND_RBX] = rbx;
}

/*
 * Sends `what` (a sample or a launch) with the frame at hand and a copy of the stack above it, in
 * a record of one of five sizes, or, where the ring has no room for the largest, in a smaller one.
 * False if there is no room for that, or for the words before.
 */
#define RAW_SEND(s, what, member) ({ \
	__u64 sp_ = (s)->regs.r[UNWIND_RSP], from_ = (sp_ - RED_ZONE) & ~(RAW_CHUNK - 1ull); \
	__u64 prefix_ = (s)->nr ? stack__send_part(s) : 0; \
	__u32 len_ = sp_ < (s)->mem.lo || sp_ >= (s)->mem.hi ? 0 : \
		     (s)->mem.hi - from_ > RAW_MAX ? RAW_MAX : (s)->mem.hi - from_; \
	bool sent_ = (!(s)->nr || prefix_) && \
		     (len_ <= RAW_SMALL ? RAW_SEND_SIZE(s, what, member, RAW_SMALL) : \
		      len_ <= RAW_MIDDLE ? RAW_SEND_SIZE(s, what, member, RAW_MIDDLE) : \
		      len_ <= RAW_LARGE ? RAW_SEND_SIZE(s, what, member, RAW_LARGE) : \
		      (len_ > RAW_HUGE && RAW_SEND_SIZE(s, what, member, RAW_MAX)) || \
		      RAW_SEND_SIZE(s, what, member, RAW_HUGE) || \
		      RAW_SEND_SIZE(s, what, member, RAW_SMALL)); \
	count(sent_ ? SEEN_RAW : LOST_RAW); \
	sent_; \
})
#define RAW_SEND_SIZE(s, what, mem, bytes) ({ \
	struct rec_raw *raw_ = bpf_ringbuf_reserve(&ring, sizeof(*raw_) + (bytes), 0); \
	if (raw_) { \
		raw_->mem = *(what); \
		head__init(&raw_->head, REC_RAW, sizeof(*raw_) + (bytes)); \
		raw__frame(raw_, s, prefix_, from_); \
		raw__copy(raw_, len_, bytes); \
		bpf_ringbuf_submit(raw_, BPF_RB_FORCE_WAKEUP); \
	} \
	raw_ != NULL; \
})

#endif
