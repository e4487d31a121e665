/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Every map and the settings; defined in maps.bpf.c, declared for the other objects. */
#ifndef GPUCOLLECT_MAPS_BPF_H
#define GPUCOLLECT_MAPS_BPF_H

#ifdef GPUCOLLECT_DEFINE_MAPS
#define MAP
#else
#define MAP extern
#endif

MAP const volatile struct gpucollect_settings settings;

MAP struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 32 << 20);
} ring SEC(".maps");

MAP struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, GPUCOLLECT_MAX_ROWS);
	__type(key, __u32);
	__type(value, struct unwind_row[2]);
} rows SEC(".maps");

MAP struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, GPUCOLLECT_MAX_RULES);
	__type(key, __u32);
	__type(value, struct unwind_rule);
} rules SEC(".maps");

MAP struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, GPUCOLLECT_MAX_PAGES);
	__type(key, struct page_key);
	__type(value, struct page_rows);
} pages SEC(".maps");

MAP struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, GPUCOLLECT_MAX_MAPPINGS);
	__type(key, __u32);
	__type(value, struct mapping);
} mappings SEC(".maps");

MAP struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, GPUCOLLECT_MAX_PROCS);
	__type(key, __u32);
	__type(value, struct proc);
} procs SEC(".maps");

MAP struct {
	__uint(type, BPF_MAP_TYPE_CGROUP_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, __u32);
} cgroups SEC(".maps");

MAP struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, GPUCOLLECT_MAX_PROCS);
	__type(key, __u32);
	__type(value, struct proc_slot);
} slots SEC(".maps");

/* How Python frames are read; element 0 is none. */
MAP struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, GPUCOLLECT_MAX_PYTHONS);
	__type(key, __u32);
	__type(value, struct python_layout);
} pythons SEC(".maps");

MAP struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, GPUCOLLECT_MAX_FREED);
	__type(key, __u32);
	__type(value, struct python_freed);
} python_freed SEC(".maps");

/*
 * Hashes of Python functions that were told of: where each is looked for is a set, so that those of one stack
 * don't push each other out for ever.
 */
#define TOLD_SETS (1u << 13)
#define TOLD_WAYS 4
MAP struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, TOLD_SETS);
	__type(key, __u32);
	__type(value, __u64[TOLD_WAYS]);
} told_codes SEC(".maps");

/*
 * In sets of two: functions that were told of, for as long as no code object is made, or none is freed. Saves
 * reading the object, and the search above: two thirds of a frame's cost.
 */
#define RECALLED_SHIFT 12
#define RECALLED_WAYS 2
struct recalled_code {
	__u64 key;		/* of process and address */
	__u64 stamp;		/* struct python_walk's */
	__u64 value;		/* struct known_code: check, and traceable above it */
	__u64 sum;		/* of these: written and read without a lock */
};
MAP struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1 << RECALLED_SHIFT);
	__type(key, __u32);
	__type(value, struct recalled_code[RECALLED_WAYS]);
} recalled_codes SEC(".maps");

/* Direct-mapped: hashes of stacks that are in the ring already. */
MAP struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, GPUCOLLECT_SEEN_STACKS);
	__type(key, __u32);
	__type(value, __u64);
} seen SEC(".maps");

/*
 * Direct-mapped: what was found for a pc under one state of mappings and rows. Saves the searches
 * in the mappings, the pages and the page's rows: three quarters of a frame's cost.
 */
#define KNOWN_PCS_SHIFT 15
struct known_pc {
	__u64 key;		/* pc ^ tag of the state */
	__u64 word;
	__u64 check;
	__u32 rule;
	__u32 pad;
};
MAP struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1 << KNOWN_PCS_SHIFT);
	__type(key, __u32);
	__type(value, struct known_pc);
} known_pcs SEC(".maps");

/* Raised by the collector when rows or rules are about to be overwritten. */
MAP __u32 rows_epoch;

/* Stack range of threads whose stack isn't the main one. */
struct thread_stack {
	__u64 mm;
	__u64 start;
	__u64 end;
};
MAP struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 1 << 14);
	__type(key, __u32);
	__type(value, struct thread_stack);
} thread_stacks SEC(".maps");

MAP struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, NR_COUNTERS);
	__type(key, __u32);
	__type(value, __u64);
} counters SEC(".maps");

#endif
