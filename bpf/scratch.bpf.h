/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What a walk works with: the registers of the frame at hand and the words so far. One walk at a time
 * uses an element; programs of different kinds have scratch of their own, since one interrupts the
 * other.
 */
#ifndef GPUCOLLECT_SCRATCH_BPF_H
#define GPUCOLLECT_SCRATCH_BPF_H

#include "bpf/common.bpf.h"

#define SCRATCH_LEVELS 4

#define PYTHON_BLOCK_WORDS 256
#define PYTHON_BLOCK_BYTES (8 * PYTHON_BLOCK_WORDS - PYTHON_FRAME_BYTES)	/* that are read at a time */
#define PYTHON_CODES 32		/* code objects that are kept during a walk */

struct known_code {
	__u64 address;
	__u64 walk;
	__u32 check;
	__u32 traceable;	/* first instruction that is shown */
	__u64 stays;		/* bool: the stamp tells when it is another's address */
};

/* A frame as it was when it was met last, in any walk, and the second of its words. */
#define PYTHON_MEMO_SHIFT 7
#define PYTHON_MEMOS (1u << PYTHON_MEMO_SHIFT)
struct frame_memo {
	__u64 key;		/* its code and its owner, under struct python_walk.tag */
	__u64 position;
	__u64 word;
};

#define PYTHON_STATES 4		/* of one thread: one for each interpreter that runs in it */

/* Runs of one state, in the order of the stack; their native frames are looked for. */
struct python_list {
	__u64 state;		/* PyThreadState */
	__u64 marker;		/* in the native frame that the next run belongs to; 0: no run is left */
	__u32 run;		/* index of the word that begins it */
	__u32 end;		/* index behind the last of its words */
};

/* The Python frames of a thread. */
struct python_walk {
	__u32 layout;		/* index into pythons; 0: there is no Python */
	__u32 end;		/* words of Python frames; the native ones follow */
	__u32 nr_lists;
	struct python_list list[PYTHON_STATES];
	__u64 marks;		/* hash of all markers */
	/* the list that is being read */
	__u32 start;		/* index of its first word */
	__u32 run;		/* index of the word that begins the run at hand */
	__u32 again;		/* bool: the innermost call was not linked yet */
	__u32 full;		/* bool: there are more frames than words for them */
	__u64 start_hash;
	__u64 type;		/* of code objects, or 0 */
	__u64 image;		/* which program in which process it is */
	__u64 stamp;		/* of what is known of its code objects; 0: nothing is to be taken as known */
	__u64 tag;		/* of stamp and image */
	__u64 state;		/* PyThreadState */
	__u64 next;		/* frame to be read */
	__u64 cframe;		/* of the run at hand */
	/* the search for the call before one that isn't linked */
	__u64 link;
	__u64 found;
	/* the search for other states of the thread */
	__u64 thread;
	__u64 own;
	__u64 interpreter;
	__u64 walk;		/* number of this walk: what others left in `codes` is not used */
	__u64 from;		/* address of block[0] */
	__u32 len;		/* bytes in block */
	__u32 at;		/* index of the frame at hand in block */
	__u64 before;		/* address of the one that it called; 0: none */
	/* Frames; at PYTHON_BLOCK_BYTES one that lies elsewhere; then what a wrong layout may reach. */
	__u64 block[PYTHON_BLOCK_WORDS + PYTHON_FRAME_BYTES / 8];
	__u64 members[PYTHON_STATE_BYTES / 8];	/* of state */
	__u64 code[PYTHON_CODE_BYTES / 8];
	struct known_code codes[PYTHON_CODES];
	struct frame_memo memos[PYTHON_MEMOS];	/* a frame's place is told by its address */
};

struct scratch {
	__u32 busy;
	__u32 tgid;
	struct unwind_regs regs;
	__u64 mm;
	__u64 env_end;		/* top of the main thread's stack */
	struct readable mem;
	struct mapping map;	/* the one hit last; end 0: none */
	__u32 slot;
	__u32 first, nr_maps;
	__u32 generation;
	__u64 tag;		/* of known pcs: process, its mappings, the rows in force */
	__u64 hash;		/* of the words so far */
	__u32 nr;		/* words so far */
	__u32 missing;		/* bool: user space must unwind this one */
	__u32 guess;		/* bool: the frame in regs was guessed */
	__u32 lookup_less;	/* 1: pc is a return address (or behind a syscall) */
	__u32 later;		/* bool: not the first frame */
	__u32 anon;		/* bool: a word depends on the process */
	__u32 deep;		/* bool: user space goes on where `words` is full */
	struct python_walk python;
	struct rec_stack rec;
	__u64 words[GPUCOLLECT_MAX_WORDS];
};

/*
 * A free element of a per-CPU array of SCRATCH_LEVELS; NULL: none. A program may be interrupted
 * on its CPU by another of its kind, or, on preemptible kernels, lose the CPU to a task that
 * runs one; they release in any order, hence a flag for each element and no depth counter.
 */
static ALWAYS_INLINE struct scratch *scratch__get(void *map)
{
	__u32 i;

#pragma unroll
	for (i = 0; i < SCRATCH_LEVELS; i++) {
		__u32 key = i;
		struct scratch *s = bpf_map_lookup_elem(map, &key);

		if (s && !__sync_lock_test_and_set(&s->busy, 1))
			return s;
	}
	count(LOST_NESTED);
	return NULL;
}

static ALWAYS_INLINE void scratch__put(struct scratch *s)
{
	*(volatile __u32 *)&s->busy = 0;
}

/* --- words and their hash ------------------------------------------------------------------ */

static ALWAYS_INLINE __u64 hash__mix(__u64 x)
{
	x ^= x >> 32;
	x *= 0xd6e8feb86659fd93ull;
	x ^= x >> 29;
	return x;
}

static ALWAYS_INLINE __u64 hash__add(__u64 hash, __u64 word)
{
	hash = (hash ^ word) * 0x9fb21c651e98df25ull;
	return hash ^ (hash >> 35);
}

/* Of an entry whose fields are written and read without a lock: torn ones don't pass. */
static ALWAYS_INLINE __u64 entry__check(__u64 key, __u64 word, __u64 rest)
{
	return (key ^ word * 0x9fb21c651e98df25ull) * 0xd6e8feb86659fd93ull + rest;
}

/* The index is checked as it is used: a bound that the verifier sees. */
static ALWAYS_INLINE void word__put(struct scratch *s, __u32 at, __u64 word)
{
	barrier_var(at);
	if (at < GPUCOLLECT_MAX_WORDS)
		s->words[at] = word;
}

static ALWAYS_INLINE __u64 word__get(const struct scratch *s, __u32 at)
{
	barrier_var(at);
	return at < GPUCOLLECT_MAX_WORDS ? s->words[at] : 0;
}

static ALWAYS_INLINE void word__add(struct scratch *s, __u64 word)
{
	if (s->nr >= GPUCOLLECT_MAX_WORDS)
		return;
	word__put(s, s->nr, word);
	s->nr++;
	s->hash = hash__add(s->hash, word);
}

/* Of both words of a Python frame: one step. */
static ALWAYS_INLINE __u64 hash__add_python(__u64 hash, __u64 first, __u64 second)
{
	return hash__add(hash, first ^ second * 0xd6e8feb86659fd93ull);
}

static ALWAYS_INLINE void words__add_python(struct scratch *s, __u64 first, __u64 second)
{
	if (s->nr >= GPUCOLLECT_MAX_WORDS - 1)
		return;
	word__put(s, s->nr, first);
	word__put(s, s->nr + 1, second);
	s->nr += 2;
	s->hash = hash__add_python(s->hash, first, second);
}

static ALWAYS_INLINE void words__start(struct scratch *s)
{
	s->nr = 0;
	s->anon = 0;
	s->hash = settings.seed;
	s->python.end = 0;
	s->python.nr_lists = 0;
}

#endif
