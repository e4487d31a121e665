/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Dispatch slots of the mapped libcuda: find, show, swap, count. Linked into probe_slots, and
 * built as a library for CUDA_INJECTION64_PATH and for ctypes.
 */
#ifndef PROBE_HOOK_H
#define PROBE_HOOK_H

#include <stdint.h>
#include <stdio.h>

struct probe_stub {
	char name[64];
	uintptr_t entry;
	uint32_t size;
	int kind;		/* 5: call through slot, 25: jump through slot, 0: not a stub */
	int calls;		/* how many indirect calls or jumps through data it holds */
	int checks;		/* how many compares with the exit value it holds */
	uint32_t slot_at;	/* offset of the indirect call in the symbol */
	uintptr_t magic;	/* address compared at entry */
	uint32_t magic_value;
	uintptr_t slot;
	uintptr_t last;		/* the slot's value at the last dump */
	uintptr_t original;	/* what a swap replaced, 0: not swapped */
	int hook;		/* index of the hook, -1: none */
};

/* 0, or negative: no libcuda mapped, no symbols. Can be called again. */
int probe_hook_init(void);
struct probe_stub *probe_hook_stubs(int *n);
/* "libcuda+0x1234" or "libfoo.so+0x10"; the buffer is static. */
const char *probe_hook_where(uintptr_t addr);
/* Protection of the page as in maps, and the mapping's file offset; the buffer is static. */
const char *probe_hook_prot(uintptr_t addr);
/* Prints what changed in any slot since the last dump. */
void probe_hook_dump(const char *tag);
/* Swaps all slots on the list (launch entries only if launches), returns how many. */
int probe_hook_swap(int launches);
/* Restores slots that still hold our pointer, returns how many; prints those that do not. */
int probe_hook_unswap(void);
/* Calls seen in all hooks, at depth 0, since the last time this was asked. */
long probe_hook_hits(void);
/* Prints counts by entry, nesting, kernels, launch attributes. */
void probe_hook_report(const char *tag);
/* Swap and restore without a line each. */
void probe_hook_quiet(int on);
/* PROBE_OUT as given when probe_hook_init was called, else stdout. */
FILE *probe_hook_out(void);

/* Between probe_swap.c and probe_hook.c: hooks 0 to PROBE_LAUNCHES - 1 are launch entries. */
#define PROBE_LAUNCHES 12
int probe_hook_index(const char *name);
uintptr_t probe_hook_function(int hook);
void probe_hook_set_original(int hook, uintptr_t original);

#endif
