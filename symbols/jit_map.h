/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Functions that one process made at run time, as it told: address -> name, over time. Filled from
 * perf maps (Linux, tools/perf/Documentation/jit-interface.txt) and jitdump files (the same place,
 * jitdump-specification.txt). Both grow while the process runs, and are read on from where
 * reading ended. Nothing in them is believed; what they may take is bounded.
 */
#ifndef SYMBOLS_JIT_MAP_H
#define SYMBOLS_JIT_MAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define JIT_MAX_NAME 4096u		/* bytes; longer names are cut */
#define JIT_MAX_ENTRIES (1u << 20)	/* of one map */
#define JIT_MAX_BYTES (256ull << 20)	/* of all maps with one budget */
#define JIT_MAX_CODE (1ull << 32)	/* bytes of one function */

/* What all maps together may still take. */
struct jit_budget {
	uint64_t bytes;
	bool exhausted;		/* something was left out */
};

struct jit_map;

struct jit_map *jit_map__new(struct jit_budget *budget);	/* NULL: out of memory */
void jit_map__free(struct jit_map *m);				/* NULL is fine */

/*
 * From `time` (CLOCK_MONOTONIC, ns; 0: for ever) on there is a function of that name. Silently left out:
 * one of no size or beyond a limit. 0 or -ENOMEM.
 */
int jit_map__add(struct jit_map *m, uint64_t start, uint64_t size, uint64_t time, const char *name,
		 size_t len);
size_t jit_map__count(const struct jit_map *m);

/*
 * The name of what was at the address at that time: the latest that came before, of several at one
 * time the last one told; where all came later, the first. NULL: nothing was.
 */
const char *jit_map__find(struct jit_map *m, uint64_t address, uint64_t time);

/*
 * Lines "START SIZE NAME", hexadecimal. Reads on from *at, `most` bytes at most, and sets *at behind the
 * last whole line; from the start again where the file has become shorter. `time`: since when
 * what is read may be there. 1: that was all there is; 0: there is more; negative errno.
 */
int perf_map__read(int fd, uint64_t *at, uint64_t most, uint64_t time, struct jit_map *m);

/* State of reading a jitdump file; all zero at first. */
struct jit_dump {
	uint64_t at;		/* how far it was read */
	bool bad;		/* it is none, or damaged */
	bool no_times;		/* its times are of another clock */
	struct table *by_index;	/* code_index -> the function's latest entry */
};

/* Reads on, to the last whole record but not more than `most` of them. 1, 0 or negative as above. */
int jit_dump__read(struct jit_dump *d, int fd, uint64_t most, struct jit_map *m);
void jit_dump__free(struct jit_dump *d);

/* The name of entry `i`, in the order of adding; for jit_dump__read. */
const char *jit_map__name(const struct jit_map *m, size_t i);

#endif
