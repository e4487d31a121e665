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

/* The first bytes of an object; fewer where it lies at the end of what is mapped. */
static ALWAYS_INLINE __u32 piece__read(void *to, const __u32 size, __u64 from)
{
	if (!bpf_probe_read_user(to, size, (void *)from))
		return size;
	if (!bpf_probe_read_user(to, size / 4, (void *)from))
		return size / 4;
	return bpf_probe_read_user(to, 64, (void *)from) ? 0 : 64;
}

static __noinline long code__send(struct scratch *s, __u64 code, __u32 check)
{
	struct python_layout *l = python__layout(s->python.layout);
	struct rec_code *rec = l ? bpf_ringbuf_reserve(&ring, sizeof(*rec), 0) : NULL;

	if (!rec)
		return -1;
	head__init(&rec->head, REC_CODE, sizeof(*rec));
	rec->tgid = s->tgid;
	rec->check = check;
	rec->address[CODE_OBJECT] = code;
	rec->len[CODE_OBJECT] = l->code_bytes;
	__builtin_memcpy(rec->object, s->python.code, sizeof(rec->object));
	rec->address[CODE_NAME] = python__u64(s->python.code, l->code_qualname == PYTHON_ABSENT ?
					      l->code_name : l->code_qualname, PYTHON_CODE_BYTES);
	rec->len[CODE_NAME] = piece__read(rec->name, CODE_TEXT_BYTES, rec->address[CODE_NAME]);
	rec->address[CODE_FILE] = python__u64(s->python.code, l->code_filename, PYTHON_CODE_BYTES);
	rec->len[CODE_FILE] = piece__read(rec->file, CODE_TEXT_BYTES, rec->address[CODE_FILE]);
	rec->address[CODE_TABLE] = python__u64(s->python.code, l->code_table, PYTHON_CODE_BYTES);
	rec->len[CODE_TABLE] = piece__read(rec->table, CODE_TABLE_BYTES, rec->address[CODE_TABLE]);
	bpf_ringbuf_submit(rec, ring__lazy());
	return 0;
}

/* Once for each function of each process, or again where another took its place in the table. */
static ALWAYS_INLINE void code__tell(struct scratch *s, __u64 code, __u32 check)
{
	__u64 hash = hash__mix(hash__mix(code ^ (__u64)check << 48) ^ s->python.image ^ check), *told;
	__u32 index = (__u32)hash & (TOLD_CODES - 1);

	told = bpf_map_lookup_elem(&told_codes, &index);
	if (told && *(volatile __u64 *)told != hash && !code__send(s, code, check))
		*(volatile __u64 *)told = hash;
}

#endif
