/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What the BPF programs and the collector share: frames as 64-bit words, the records of the
 * ring buffer and the contents of the maps that the collector fills. Include after the
 * fixed-width types (vmlinux.h or <linux/types.h>). Layouts are append-only; every record is a
 * multiple of 8 bytes without holes.
 */
#ifndef GPUCOLLECT_H
#define GPUCOLLECT_H

#ifndef __VMLINUX_H__
#include <linux/types.h>
#endif

#define GPUCOLLECT_MAX_FRAMES 1024	/* native words of one user stack in BPF, its end mark included */
#define GPUCOLLECT_MAX_PYTHON_WORDS 1536	/* before them: 512 Python frames, or more in long runs */
#define GPUCOLLECT_MAX_WORDS (GPUCOLLECT_MAX_PYTHON_WORDS + GPUCOLLECT_MAX_FRAMES)
#define GPUCOLLECT_MAX_KERNEL_FRAMES 127
#define GPUCOLLECT_PAGE_SHIFT 12	/* rows are kept by 4 KiB pages of a file */
#define GPUCOLLECT_MAX_PAGE_ROWS 4096
#define GPUCOLLECT_MAX_ROWS (1u << 20)
#define GPUCOLLECT_MAX_RULES (1u << 16)
#define GPUCOLLECT_MAX_PAGES (1u << 16)
#define GPUCOLLECT_MAX_PROCS (1u << 14)
#define GPUCOLLECT_MAX_MAPPINGS (1u << 17)	/* of all processes */
#define GPUCOLLECT_MAX_PROC_MAPPINGS (1u << 12)	/* executable ones of one process */
#define GPUCOLLECT_SEEN_STACKS (1u << 16)
#define GPUCOLLECT_COMM_LEN 16

/*
 * A frame is one word: bits 60-63 the kind, the rest by kind. For callers the address is that of
 * the byte before the return address, i.e. inside the call; for the frame that was hit (and for
 * one interrupted by a signal) it is exact.
 */
enum gpucollect_frame {
	FRAME_NONE = 0,
	FRAME_FILE = 1,		/* bits 36-59 file id, bits 0-35 offset in the file */
	FRAME_FILE_GUESS = 2,	/* the same, found by the frame pointer: a guess */
	FRAME_ANON = 3,		/* bits 0-59 address in executable memory without a file */
	FRAME_ANON_GUESS = 4,
	FRAME_KERNEL = 5,	/* bits 0-59 of a kernel address */
	FRAME_END = 6,		/* last word: bits 52-59 enum gpucollect_end, 0-23 file id */
	/* A Python frame is two words: */
	FRAME_PYTHON = 7,	/* bits 0-59 address of the code object; 0: it could not be read */
	FRAME_PYTHON_AT = 8,	/* bits 32-59 offset in bytecode, 0-31 which code it was: python_frames.h */
	/*
	 * In records the Python frames stand before the native ones, in runs, each begun by one of
	 * these: in the place of which native word (a call of the interpreter) its frames belong.
	 */
	FRAME_RUN = 9,		/* bits 0-59 index among the native words; FRAME_NOWHERE: it has ended */
	FRAME_RUN_AT = 10,	/* bits 0-47 an address in that call's stack frame, which was not met */
	FRAME_RUN_EACH = 11,	/* every frame is a run, and its place is told by the native word's code */
	FRAME_RUN_CUT = 12,	/* the list goes on; bits 0-59 how many more frames there are, or 0 */
	FRAME_RUN_MORE = 13,	/* there is one call more than frames: each is of the next run's call */
};

#define FRAME_NOWHERE ((1ull << 60) - 1)
#define FRAME_MARKER(w) ((w) & ((1ull << 48) - 1))	/* of FRAME_RUN_AT */

#define FRAME_KIND(w) ((__u32)((w) >> 60))
#define FRAME_FILE_BITS 24
#define FRAME_OFFSET_BITS 36
#define FRAME_FILE_ID(w) ((__u32)((w) >> FRAME_OFFSET_BITS) & ((1u << FRAME_FILE_BITS) - 1))
#define FRAME_OFFSET(w) ((w) & ((1ull << FRAME_OFFSET_BITS) - 1))
#define FRAME_ADDRESS(w) ((w) & ((1ull << 60) - 1))
#define FRAME_KERNEL_ADDRESS(w) ((w) | (0xfull << 60))
#define FRAME_MAKE_FILE(kind, file, off) \
	((__u64)(kind) << 60 | (__u64)(file) << FRAME_OFFSET_BITS | (off))
#define FRAME_MAKE_ADDRESS(kind, addr) ((__u64)(kind) << 60 | FRAME_ADDRESS(addr))
#define FRAME_MAKE_END(why, file) ((__u64)FRAME_END << 60 | (__u64)(why) << 52 | (file))
#define FRAME_END_WHY(w) ((__u32)((w) >> 52) & 0xff)
#define FRAME_END_FILE(w) ((__u32)(w) & ((1u << FRAME_FILE_BITS) - 1))

/* Why a user stack ends: its last word always says it. */
enum gpucollect_end {
	END_ROOT = 0,		/* outermost frame reached: complete */
	END_TRUNCATED = 1,	/* more frames than fit: of a launch in BPF, of a sample in a copy */
	END_NO_INFO = 2,	/* file has no unwind information there, no frame pointer to follow */
	END_NO_RULE = 3,	/* unwind information that can't be applied */
	END_UNREADABLE = 4,	/* stack memory could not be read */
	END_NO_PROGRESS = 5,	/* a loop */
	END_NOT_CODE = 6,	/* return address outside executable memory */
	END_ANON = 7,		/* anonymous code, no frame pointer to follow */
	END_NO_STACK = 8,	/* nothing known: no user registers, or the copy was lost */
	END_KERNEL_THREAD = 9,	/* has no user stack */
	NR_END,
};

enum gpucollect_rec {
	REC_STACK = 1,		/* struct rec_stack */
	REC_SAMPLE = 2,		/* struct rec_sample */
	REC_LAUNCH = 3,		/* struct rec_launch */
	REC_RAW = 4,		/* struct rec_raw */
	REC_FORK = 5,		/* struct rec_process */
	REC_EXEC = 6,		/* struct rec_process */
	REC_EXIT = 7,		/* struct rec_process */
	REC_LIBRARY = 8,	/* struct rec_library: the timing library says where its channel is */
	REC_CODE = 9,		/* struct rec_code: before the first stack with it */
};

struct rec_head {
	__u32 size;		/* of the whole record, bytes */
	__u16 type;		/* enum gpucollect_rec */
	__u16 cpu;
	__u64 time;		/* CLOCK_MONOTONIC, ns */
};

/*
 * The frames of a stack, sent once; later records carry only its hash. User stacks: leaf first,
 * ended by a FRAME_END word. Kernel stacks: leaf first, FRAME_KERNEL words only. The hash covers
 * all words; with ANON words also the process and its generation.
 */
struct rec_stack {
	struct rec_head head;
	__u64 hash;
	__u32 tgid;		/* process it was seen in first */
	__u32 nr;		/* 64-bit words that follow */
};

struct rec_sample {
	struct rec_head head;
	__u32 tgid;
	__u32 tid;
	__u64 user;		/* hash of the user stack; 0: [no stack] (in a rec_raw: not yet known) */
	__u64 kernel;		/* hash of the kernel stack; 0: the sample hit user code */
};

/* 96 bytes at most, by design: one for every launch. */
struct rec_launch {
	struct rec_head head;
	__u32 tgid;
	__u32 tid;
	__u64 user;		/* hash of the stack at the launch; 0 as above */
	__u64 id;		/* launch id of the timing library; 0: seen by a uprobe on the driver */
	__u64 function;		/* CUfunction, CUkernel or CUgraphExec */
	__u64 stream;
	__u32 grid[3];		/* as in struct channel_launch (gpu_timing/channel.h) */
	__u32 block[3];
	__u32 shared_bytes;	/* dynamic shared memory */
	__u16 entry;		/* enum launch_entry or channel_slot (gpu_timing/channel.h), by its flags */
	__u16 flags;		/* LAUNCH_* (gpu_timing/channel.h) */
	__u32 weight;		/* launches that it stands for (struct channel_launch), and their stratum */
	__u32 stratum;
};
_Static_assert(sizeof(struct rec_launch) == 96, "the most that a launch may take in the ring");

#define RAW_CHUNK 4096u
#define RAW_MAX (1u << 20)	/* rustc has one frame of 540 KiB */

/*
 * A stack that met code without rows, a process whose mappings aren't known, or a sample with more
 * than GPUCOLLECT_MAX_FRAMES: user space goes on from there, with the registers of the frame at hand
 * and a copy of the stack, from the start of a page (RAW_CHUNK) on: the one that holds the red zone
 * below its rsp.
 * One of `sample` and `launch` is set, by its head.type.
 */
struct rec_raw {
	struct rec_head head;
	union {
		struct rec_sample sample;
		struct rec_launch launch;
	};
	__u64 prefix;		/* hash of the words before this frame; 0: it is the first one */
	__u64 regs[16];		/* DWARF numbers, see unwind_step.h; which of them hold: RAW_* */
	__u64 pc;
	__u64 start;		/* address of the first byte of the copy */
	__u64 holes[RAW_MAX / RAW_CHUNK / 64];	/* a bit for each RAW_CHUNK that wasn't readable */
	__u32 flags;		/* RAW_* */
	__u32 len;		/* bytes of the stack that follow */
};

#define RAW_LATER	0x01	/* not the first frame: only rsp, rbp and rbx hold */
#define RAW_EXACT	0x02	/* pc itself is to be looked up, not the byte before it */
#define RAW_FULL	0x04	/* all registers hold */
#define RAW_LOST_RBP	0x08
#define RAW_LOST_RBX	0x10
#define RAW_GUESS	0x20	/* this frame was found by the frame pointer */

struct rec_process {
	struct rec_head head;
	__u32 tgid;
	__u32 parent;		/* fork: the parent's tgid */
	char comm[GPUCOLLECT_COMM_LEN];
};

struct rec_library {
	struct rec_head head;
	__u32 tgid;
	__s32 fd;		/* number of the memfd in that process: a hint, not a proof */
};

/*
 * A Python function that was met for the first time: eval() makes some that are gone before anybody else
 * could look. Its code object and the first bytes of the objects that it names, as far as they were
 * readable; what doesn't fit is to be read from the process.
 */
enum { CODE_OBJECT, CODE_NAME, CODE_FILE, CODE_TABLE, NR_CODE_PIECES };

#define CODE_OBJECT_BYTES 256u	/* PYTHON_CODE_BYTES */
#define CODE_SMALL 1024u	/* of the other three, each */
#define CODE_LARGE 16384u
#define CODE_HUGE 131072u

struct rec_code {
	struct rec_head head;
	__u32 tgid;
	__u32 check;		/* which code it was: python_frames.h */
	__u64 address[NR_CODE_PIECES];
	__u32 len[NR_CODE_PIECES];	/* bytes of each that are there */
	__u32 size;		/* CODE_SMALL, _LARGE or _HUGE: room of each of the three that follow */
	__u32 reserved;
	__u8 object[CODE_OBJECT_BYTES];
};

/* Losses, one counter for each cause; per CPU in BPF, summed by the collector. */
enum gpucollect_lost {
	LOST_SAMPLE = 0,	/* ring full: a CPU sample */
	LOST_LAUNCH = 1,	/* ring full: a launch */
	LOST_STACK = 2,		/* ring full: frames of a stack (its samples show [no stack]) */
	LOST_RAW = 3,		/* ring full: the copy of a stack that needed user space */
	LOST_PROCESS = 4,	/* ring full: fork, exec, exit, library */
	LOST_NESTED = 5,	/* no scratch left: probes interrupted each other too deeply */
	LOST_PROCS_FULL = 6,	/* more processes than GPUCOLLECT_MAX_PROCS */
	LOST_ARGS = 7,		/* launch arguments unreadable (the launch is counted) */
	SEEN_SAMPLE = 8,	/* not losses: what the programs saw in all */
	SEEN_LAUNCH = 9,
	SEEN_RAW = 10,
	LOST_CODE = 11,		/* ring full: a Python function; told of again when it is next met */
	LOST_STATES = 12,	/* not all states of a Python thread were looked for */
	LOST_COPY = 13,		/* ring full: a copy or set of memory */
	LOST_WAIT = 14,		/* ring full: a wait for the device */
	NR_COUNTERS,
};

/* --- settings and maps filled by the collector -------------------------------------------- */

/* Written by the collector before load. */
struct gpucollect_settings {
	__u64 seed;		/* of the stack hashes: a target must not be able to aim at another's */
	__u32 pidns_inum;	/* PID namespace of the collector; 0: the initial one */
	__u32 all;		/* bool: every process is a target */
	__u32 self;		/* tgid of the collector, never sampled */
	__u32 library;		/* bool: launches are the timing library's, but for PROC_PROBED */
	__u32 cgroup;		/* bool: every process in or below the one of map cgroups is a target */
	__u32 reserved;
};
struct page_key {
	__u32 file;
	__u32 page;		/* offset in the file >> GPUCOLLECT_PAGE_SHIFT */
};

struct page_rows {
	__u32 first;		/* index of the page's first row; that row has pc 0 */
	__u32 nr;		/* >= 1 */
};

enum mapping_kind {
	MAPPING_FILE = 0,
	MAPPING_ANON = 1,	/* executable, no file: JIT code */
	MAPPING_TRAMPOLINE = 2,	/* where optimised uprobes go: [uprobes-trampoline] */
};

/* Executable mappings of a process, sorted by start, without overlap. */
struct mapping {
	__u64 start;
	__u64 end;
	__u64 offset;		/* in the file, of start */
	__u32 file;
	__u32 kind;		/* enum mapping_kind */
};

#define PROC_NO_SLOT (~0u)

enum proc_flags {
	PROC_TARGET = 1,	/* samples and launches of this process are wanted */
	PROC_PROBED = 2,	/* has no use of the library: its launches are counted at the driver */
};

/* Map procs: tgid -> this. The BPF side adds children of targets itself. */
struct proc {
	__u32 slot;		/* index into slots; PROC_NO_SLOT: mappings not read yet */
	__u32 flags;
	__u32 python;		/* index into pythons; 0: none, or not known */
	__u32 python_freed;	/* index into python_freed; 0: none */
	__u64 python_code;	/* address of PyCode_Type; 0: not known, not checked */
	__u64 python_runtime;	/* address of _PyRuntime */
};

/* Map slots. BPF writes map_seq and counts unknown_budget down; the collector writes the rest. */
struct proc_slot {
	__u64 mappings;		/* first index << 32 | number: one store, so always consistent */
	__u32 map_seq;		/* bumped by BPF at exec: the mappings are those of another image */
	__u32 read_seq;		/* map_seq before the collector read the mappings in force */
	__u32 generation;	/* of the address space: changed by exec */
	__s32 unknown_budget;	/* stacks with code in no known mapping that user space will look at */
	__u32 tgid;
	__u32 mappings_seq;	/* a new one for each list of mappings published */
};

#endif
