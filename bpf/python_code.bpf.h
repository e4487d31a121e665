/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Telling user space of Python functions that were not met before. */
#ifndef GPUCOLLECT_PYTHON_CODE_BPF_H
#define GPUCOLLECT_PYTHON_CODE_BPF_H

#include "bpf/scratch.bpf.h"

_Static_assert(CODE_OBJECT_BYTES == PYTHON_CODE_BYTES, "a record holds what is read of a code object");

static ALWAYS_INLINE struct python_layout *python__layout(__u32 index)
{
	return index ? bpf_map_lookup_elem(&pythons, &index) : NULL;
}

#define OBJECT_HEAD 80		/* bytes before the contents of a str or bytes object, at most */
#define WIDEST 4		/* bytes of a character */

/*
 * The first bytes of an object, `want` if there is room; 0: they are not all readable. Few branches: the
 * verifier would follow each in each of the tries below.
 */
static ALWAYS_INLINE __u32 piece__read(void *to, const __u32 size, __u64 from, __u64 want)
{
	__u64 over = (__s64)(size - want) >> 63;	/* all ones, or 0 */
	__u32 n = (want & ~over) | (size & over);
	long err;

	barrier_var(n);
	if (n > size)
		return 0;
	err = bpf_probe_read_user(to, n, (void *)from);
	return n & ~(__u32)(err >> 63);
}

/*
 * How wide the characters are, and how long the head is, isn't asked. The page behind an object may not be
 * there, or not be touched yet: the last tries are for no byte more than the object has.
 */
static ALWAYS_INLINE __u32 text__read(void *to, const __u32 size, __u64 from, __u64 length)
{
	__u32 n = piece__read(to, size, from, OBJECT_HEAD + WIDEST * length);

	if (!n)
		n = piece__read(to, size, from, 56 + 2 * length);	/* from 3.12 on */
	if (!n)
		n = piece__read(to, size, from, 48 + length);
	return n ? n : piece__read(to, size, from, 40 + length);	/* from 3.12 on, ASCII */
}

static ALWAYS_INLINE __u32 table__read(void *to, const __u32 size, __u64 from, __u64 length)
{
	__u32 n = piece__read(to, size, from, 48 + length);		/* without the GIL */

	return n ? n : piece__read(to, size, from, 32 + length);
}

static ALWAYS_INLINE __u64 object__length(__u64 object, __u16 at)
{
	__u64 length = 0;

	return bpf_probe_read_user(&length, sizeof(length), (void *)(object + at)) ? 0 : length;
}

static ALWAYS_INLINE bool code__fits(const __u64 *length, const __u32 size)
{
	return length[CODE_NAME] <= (size - OBJECT_HEAD) / WIDEST &&
	       length[CODE_FILE] <= (size - OBJECT_HEAD) / WIDEST &&
	       length[CODE_TABLE] <= size - OBJECT_HEAD;
}

static ALWAYS_INLINE long code__fill(struct scratch *s, const struct python_layout *l, const __u64 *address,
				     const __u64 *length, __u32 check, const __u32 size)
{
	struct rec_code *rec = bpf_ringbuf_reserve(&ring, sizeof(*rec) + 3 * size, 0);
	__u8 *to = (__u8 *)(rec + 1);

	if (!rec) {
		count(LOST_CODE);
		return -1;
	}
	head__init(&rec->head, REC_CODE, sizeof(*rec) + 3 * size);
	rec->tgid = s->tgid;
	rec->check = check;
	rec->size = size;
	rec->reserved = 0;
	bpf_probe_read_kernel(rec->address, sizeof(rec->address), address);
	rec->len[CODE_OBJECT] = l->code_bytes;
	bpf_probe_read_kernel(rec->object, sizeof(rec->object), s->python.code);
	rec->len[CODE_NAME] = text__read(to, size, address[CODE_NAME], length[CODE_NAME]);
	rec->len[CODE_FILE] = text__read(to + size, size, address[CODE_FILE], length[CODE_FILE]);
	rec->len[CODE_TABLE] = table__read(to + 2 * size, size, address[CODE_TABLE], length[CODE_TABLE]);
	bpf_ringbuf_submit(rec, ring__lazy());
	return 0;
}

/* Not static: the verifier looks at it once, not at each way to it. */
__weak __noinline long code__send(struct scratch *s, __u64 code, __u32 check)
{
	__u64 address[NR_CODE_PIECES], length[NR_CODE_PIECES] = {};
	struct python_layout *l;
	__u16 name;

	if (!s)
		return -1;
	l = python__layout(s->python.layout);
	if (!l)
		return -1;
	name = l->code_qualname == PYTHON_ABSENT ? l->code_name : l->code_qualname;
	address[CODE_OBJECT] = code;
	address[CODE_NAME] = python__u64(s->python.code, name, PYTHON_CODE_BYTES);
	address[CODE_FILE] = python__u64(s->python.code, l->code_filename, PYTHON_CODE_BYTES);
	address[CODE_TABLE] = python__u64(s->python.code, l->code_table, PYTHON_CODE_BYTES);
	length[CODE_NAME] = object__length(address[CODE_NAME], l->str_length);
	length[CODE_FILE] = object__length(address[CODE_FILE], l->str_length);
	length[CODE_TABLE] = object__length(address[CODE_TABLE], l->bytes_size);
	if (code__fits(length, CODE_SMALL))
		return code__fill(s, l, address, length, check, CODE_SMALL);
	if (code__fits(length, CODE_LARGE))
		return code__fill(s, l, address, length, check, CODE_LARGE);
	return code__fill(s, l, address, length, check, CODE_HUGE);
}

/* Puts it where there is room, or where its hash says. */
static __noinline long told__put(__u32 set, __u64 hash)
{
	volatile __u64 *told = bpf_map_lookup_elem(&told_codes, &set);
	__u32 way = hash >> 62, i;

	if (!told)
		return 0;
	for (i = 0; i < TOLD_WAYS; i++)
		if (!told[i])
			way = i;
	told[way & (TOLD_WAYS - 1)] = hash;
	return 0;
}

/*
 * Once for each function of each process, or again where others took its place in the table. False: user
 * space does not know it.
 */
static ALWAYS_INLINE bool code__tell(struct scratch *s, __u64 code, __u32 check)
{
	__u64 hash = hash__mix(hash__mix(code ^ (__u64)check << 48) ^ s->python.image ^ check);
	__u64 unlike = 1, other;
	__u32 set = (__u32)hash & (TOLD_SETS - 1), i;
	const volatile __u64 *told = bpf_map_lookup_elem(&told_codes, &set);

	if (!told)
		return false;
#pragma unroll
	for (i = 0; i < TOLD_WAYS; i++) {
		other = told[i] ^ hash;
		barrier_var(other);	/* no branch: the verifier would follow both sides */
		unlike &= (other | -other) >> 63;
	}
	if (!unlike)
		return true;
	if (code__send(s, code, check))
		return false;
	told__put(set, hash);
	return true;
}

/* --- functions that were told of ---------------------------------------------------------- */

/*
 * Where a function is, or may be put: in the place of one of another process, or of before, if that can
 * be. No branches, for the verifier.
 */
static ALWAYS_INLINE struct recalled_code *code__recall(const struct scratch *s, __u64 code, __u64 *key)
{
	struct recalled_code *set;
	__u64 first, second, old;
	__u32 index;

	*key = hash__mix(code ^ s->python.image * 0x9e3779b97f4a7c15ull);
	index = *key >> (64 - RECALLED_SHIFT);
	if (!s->python.stamp)
		return NULL;
	set = bpf_map_lookup_elem(&recalled_codes, &index);
	if (!set)
		return NULL;
	/* Bit 63 is set where they differ. */
	first = *(volatile __u64 *)&set[0].key ^ *key;
	second = *(volatile __u64 *)&set[1].key ^ *key;
	old = *(volatile __u64 *)&set[0].stamp ^ s->python.stamp;
	first |= -first;
	second |= -second;
	old |= -old;
	first &= ~(second & old);	/* the second has it, or the first is worth keeping */
	first >>= 63;
	barrier_var(first);
	return &set[first & (RECALLED_WAYS - 1)];
}

/* Fills `c` in; false: this function was not met yet, or is another by now. */
static ALWAYS_INLINE bool recalled__take(const struct recalled_code *r, __u64 key, __u64 stamp,
					 struct known_code *c)
{
	__u64 value;

	if (!r || r->key != key || r->stamp != stamp)
		return false;
	value = *(volatile __u64 *)&r->value;
	if (r->sum != entry__check(key, value, stamp))
		return false;
	c->check = (__u32)value;
	c->traceable = value >> 32;
	return true;
}

/*
 * What is known of it may be remembered. A function with a version that is still to come would show
 * that it is not the next one that was read. One that is being freed was counted already: nothing tells
 * of its end. Its memory may be free by now: then there is no number, but an address, where the number of
 * references was.
 */
static ALWAYS_INLINE bool code__stays(const struct scratch *s, const struct python_layout *l)
{
	__u64 references = s->python.code[0];

	if (l->code_version == PYTHON_ABSENT)
		return references - 1 < ~0u;
	return python__u32(s->python.code, l->code_version, PYTHON_CODE_BYTES) < (__u32)s->python.stamp;
}

static ALWAYS_INLINE void recalled__put(struct recalled_code *r, __u64 key, __u64 stamp,
					const struct known_code *c)
{
	__u64 value = (__u64)c->traceable << 32 | c->check;

	if (!r)
		return;
	r->key = key;
	r->stamp = stamp;
	r->value = value;
	r->sum = entry__check(key, value, stamp);
}

#endif
