/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What the timing library (in the target), its reader (in the collector) and, of the first half, the BPF
 * programs share. Include after the fixed-width types (vmlinux.h or <linux/types.h>). Layouts are append-only
 * within one CHANNEL_ABI; records are multiples of 8 bytes without holes, in the machine's byte order.
 *
 * --- The probe contract ------------------------------------------------------------------------
 *
 * The library holds leaf functions in assembly that touch no stack, one for each kind of
 * instruction that a uprobe can sit on: gpucollect_site_nop1 (a one-byte nop, then ret) and
 * gpucollect_site_nop5 (0f 1f 44 00 00, then ret). A probe belongs on the first byte. Each is a
 * FUNC symbol of .symtab with its size, 16-aligned, with nothing else within 16 bytes. At a site:
 *
 *	rdi = 0		the library says hello: a session begins. rsi = number of its memfd in this
 *			process (struct channel_segment inside), or a negative errno where it could
 *			not make one. Always through nop1, which works on every kernel.
 *	rdi = id	a launch, a copy or set of memory, or a wait follows: id != 0, unique in the
 *			process. rsi = struct channel_launch. Through the site that the collector chose.
 *	CFA = rsp + 8, as at every function's first instruction.
 *
 * The frames above a site: the library's own (the hook), the driver's exported entry point, its
 * caller. Every launch that fires a site gets exactly one RESULT record of the ring, with a time
 * or with the cause why there is none, unless the process dies or the ring is full (counted). A wait gets
 * its own when it is over; `waiting` of its thread names it until then. Where only some launches fire one,
 * each stands for others, too; its stratum counts them all.
 */
#ifndef GPUCOLLECT_CHANNEL_H
#define GPUCOLLECT_CHANNEL_H

#ifndef __VMLINUX_H__
#include <linux/types.h>
#endif

#include "gpu_timing/channel_slots.h"

/* What a copy or set of memory moves, as far as its entry, arguments or the driver tell. */
enum copy_kind {
	COPY_UNKNOWN = 0,	/* a copy whose direction isn't known (yet: at its probe) */
	COPY_HTOD = 1,
	COPY_DTOH = 2,
	COPY_DTOD = 3,
	COPY_PTOP = 4,		/* between devices or contexts */
	COPY_HTOH = 5,
	COPY_SET = 6,
	COPY_HTOA = 7,		/* A: an array, memory of a device that isn't addressed */
	COPY_ATOH = 8,
	COPY_ATOD = 9,
	COPY_DTOA = 10,
	COPY_ATOA = 11,
	NR_COPY_KINDS,
};

/* Flags of a launch, 16 bits. Those known before the call are set at the probe already. */
#define LAUNCH_CAPTURED		0x0001	/* goes into a graph that is being captured: not executed */
#define LAUNCH_PDL		0x0002	/* programmatic dependent launch: may overlap the one before */
#define LAUNCH_GRAPH		0x0004	/* function is a CUgraphExec */
#define LAUNCH_TIMED		0x0008	/* a bracket is (probe: is meant to be) around it */
#define LAUNCH_COOPERATIVE	0x0010
#define LAUNCH_FAILED		0x0020	/* RESULT only: the driver returned an error, nothing ran */
#define LAUNCH_PTSZ		0x0040	/* stream 0 is the thread's default stream, not the legacy one */
#define LAUNCH_NO_BLOCK		0x0080	/* block shape and shared memory not known: all 0 */
#define LAUNCH_STREAM_UNKNOWN	0x0100	/* the driver would not say whether the stream captures */
#define LAUNCH_COPY		0x0200	/* no launch: a copy or set of memory; it has no function */
#define LAUNCH_WAIT		0x0400	/* no work: the thread waits for some; no function, no shape */

/* What rsi points to at a launch's probe: in the target's memory, valid during the probe. */
struct channel_launch {
	__u64 id;
	__u64 function;		/* CUfunction, CUkernel or CUgraphExec */
	__u64 stream;		/* as the program gave it: 0, 1 and 2 are default streams */
	__u32 grid[3];		/* of a graph: all 0; of a copy: see copy__bytes() */
	__u32 block[3];		/* of a batch of copies: their number first */
	__u32 shared_bytes;	/* dynamic shared memory */
	__u16 entry;		/* enum launch_entry; of a copy or wait: enum channel_slot */
	__u16 flags;		/* LAUNCH_* */
	__u32 weight;		/* launches that this probe stands for, this one included */
	__u32 stratum;		/* it was chosen from, and the block's number; 0: all are probed */
};
_Static_assert(sizeof(struct channel_launch) == 64, "copied by one read");

/* Of a copy `grid` has its bytes, low half first, and its enum copy_kind: both 0 as long as not known. */
static inline __u64 copy__bytes(const __u32 grid[3])
{
	return (__u64)grid[1] << 32 | grid[0];
}

/* --- The segment ------------------------------------------------------------------------------
 *
 * A memfd of exactly CHANNEL_SIZE bytes, sealed against shrinking, growing and further seals:
 * page 0 written by the library, page 1 by the collector, then the threads' counters, then the
 * ring. To the collector everything but page 1 is hostile, and of page 1 it reads nothing back.
 */
#define CHANNEL_MAGIC 0x6c6e6368636c6770ull
#define CHANNEL_ABI 10
#define CHANNEL_THREADS 2048		/* the first is shared by threads that found none free */
#define CHANNEL_RING_SIZE (16u << 20)	/* a power of two */
#define CHANNEL_MAX_NAME (64u << 10)	/* bytes of a kernel's name that travel */
#define CHANNEL_SESSION_SHIFT 51	/* a launch id's bits from here on: `session`, cut to 13 */
/*
 * Brackets under way in one stream. A stream holds some 1,020 entries, a timed record is one, and a
 * program that queues more behind work that it releases itself would hang in our record: with P brackets
 * it may queue 1,020 - 2 P launches. So there are few behind a wait that the program ends (known ones:
 * enum channel_slot), and not many after the last end that was seen, for a kernel may wait for the
 * program, too. Where a stream moves there may be more: a full queue only means to wait, as ever.
 */
#define CHANNEL_MAX_HELD 24
#define CHANNEL_MAX_STANDING 100
#define CHANNEL_MAX_OUTSTANDING 400
#define CHANNEL_MAX_WEIGHT 1024	/* 1 / the smallest chance that a launch has to be timed */
/*
 * Where not every launch is probed: strata of launches that are alike, by shape and place of the stack,
 * then one for each thread, which takes what finds no room. Two of each block of a stratum are probed.
 */
#define CHANNEL_SHAPES 16384
#define CHANNEL_STRATA (CHANNEL_SHAPES + CHANNEL_THREADS)
#define CHANNEL_BLOCK_SHIFT 16	/* of the block's number, cut, above the stratum's index */
#define CHANNEL_STRATUM(word) ((word) & ((1u << CHANNEL_BLOCK_SHIFT) - 1))
#define CHANNEL_MAX_STANDS_FOR (1u << 20)	/* the most launches that one probe stands for */

enum channel_state {
	/*
	 * All is prepared and nothing touched. After gpucollect_attach the slots are swapped at the
	 * collector's first sign of life; without one within 5 s the session is over.
	 */
	CHANNEL_STARTING = 0,
	CHANNEL_ARMED = 1,	/* slots swapped, no launch yet */
	CHANNEL_RUNNING = 2,	/* the first launch was seen; at exit still, with REASON_EXIT */
	CHANNEL_PASSIVE = 3,	/* over: slots restored where they were still ours, thread gone */
	CHANNEL_REFUSED = 4,	/* nothing was swapped: `reason` */
	NR_CHANNEL_STATES,
};

/* Why the library refused, or why it went passive. `detail` is explained at each. */
enum channel_reason {
	REASON_NONE = 0,
	REASON_NO_DRIVER = 1,	/* the libcuda that loaded us could not be told or read */
	REASON_TWO_DRIVERS = 2,	/* two different libcuda are mapped */
	REASON_NO_SYMBOL = 3,	/* an entry that must be there isn't: enum channel_slot */
	REASON_SHAPE = 4,	/* an entry's code isn't a stub that we know: enum channel_slot */
	REASON_EXITING = 5,	/* the driver is shut down already: enum channel_slot */
	REASON_SLOT_PLACE = 6,	/* a slot isn't in the driver's own data: enum channel_slot */
	REASON_SLOT_SHARED = 7,	/* two entries leave by the same slot: enum channel_slot */
	REASON_SLOT_FOREIGN = 8, /* a slot points out of the driver: enum channel_slot */
	REASON_SLOT_WRITE = 9,	/* the slot's page could not be written: errno */
	REASON_NO_MEMORY = 10,	/* mmap, madvise: errno */
	REASON_NO_THREAD = 11,	/* pthread_create: errno */
	REASON_NO_CALL = 12,	/* a driver call that timing needs is missing */
	REASON_STOPPED = 13,	/* passive: the collector said so */
	REASON_SILENT = 14,	/* passive: no sign of life from the collector */
	REASON_NO_COLLECTOR = 15, /* passive: none ever came */
	REASON_EXIT = 16,	/* running: the program ends, no launch is timed any more */
	REASON_SUPERSEDED = 17,	/* passive: gpucollect_attach was called again */
	REASON_STRAGGLER = 18,	/* a thread has not come out of the session before: its tid */
	NR_CHANNEL_REASONS,
};

enum channel_command {
	CHANNEL_RUN = 0,
	CHANNEL_STOP = 1,
};

enum channel_site {
	SITE_NONE = 0,		/* launches are only counted */
	SITE_NOP1 = 1,		/* where a segment starts */
	SITE_NOP5 = 2,
	NR_CHANNEL_SITES,
};

/* Why a launch has no time. Also the index of `results` below: NONE counts those with a time. */
enum launch_cause {
	CAUSE_NONE = 0,
	CAUSE_CAPTURED = 1,	/* the stream captures (or would not say) */
	CAUSE_PDL = 2,		/* in a chain of programmatic dependent launches that has no time */
	CAUSE_POOL_EMPTY = 3,
	CAUSE_OUTSTANDING = 4,	/* enough brackets under way in that stream */
	CAUSE_OTHER_CONTEXT = 5, /* of a context that isn't current, or that can't be had */
	CAUSE_RECORD_FAILED = 6,
	CAUSE_LAUNCH_FAILED = 7,
	CAUSE_CONTEXT_GONE = 8,	/* destroyed or reset before the end was known */
	CAUSE_CONTEXT_ERROR = 9, /* the driver reports an error for everything in that context */
	CAUSE_NO_END = 10,	/* capture or program ended first */
	CAUSE_DISTURBED = 11,	/* another thread put work into the same stream meanwhile */
	CAUSE_NO_STREAM = 12,	/* more streams than the table holds */
	CAUSE_ENTRY = 13,	/* an entry point that is never bracketed */
	CAUSE_BAD_TIME = 14,	/* the driver gave a time that can't be one */
	NR_LAUNCH_CAUSES,
};

#define CHANNEL_SLOT_WORDS 4
_Static_assert(NR_CHANNEL_SLOTS <= 64 * CHANNEL_SLOT_WORDS, "`slots` below is a bit set");
#define CHANNEL_CAUSE_ROOM 24
#define CHANNEL_ENTRY_ROOM 16

/* Counters of a thread (or of several, one after the other: they only grow). Own cache lines. */
struct channel_thread {
	__u32 in_use;
	__u32 tid;		/* in the target's innermost pid namespace */
	__u64 probes;		/* launches and copies that fired a site */
	__u64 nested;		/* launches made from inside a launch (by a signal handler, say) */
	__u64 brackets;		/* taken; each ends in one of results[] */
	__u64 names_lost;	/* no room in the table of handles */
	__u64 copies;		/* copies and sets of memory, exact */
	__u64 waits;		/* calls that do nothing but wait, exact */
	__u64 waiting;		/* id of the one that it is in; 0: none. Stays when the session ends */
	__u64 launches[CHANNEL_ENTRY_ROOM];	/* by enum launch_entry, exact */
	__u64 results[CHANNEL_CAUSE_ROOM];	/* RESULTs made, by enum launch_cause */
	__u64 spare[16];
};
_Static_assert(sizeof(struct channel_thread) == 512, "whole cache lines");

struct channel_segment {
	/* page 0: the library's */
	__u64 magic;		/* written last, when all else stands */
	__u32 abi;
	__u32 reserved0;
	__u64 size;		/* CHANNEL_SIZE */
	__u32 state;		/* enum channel_state */
	__u32 reason;		/* enum channel_reason */
	__u32 detail;
	__u32 reserved1;
	__u32 nr_threads;	/* elements of `threads` ever used */
	__u32 session;		/* from 1 */
	__u64 session_head;	/* position in the ring at which the session begins */
	__u64 slots[CHANNEL_SLOT_WORDS];	/* bit set of enum channel_slot: those that hold our hooks */
	__u64 head __attribute__((aligned(64)));	/* bytes ever reserved in the ring */
	__u64 lost_results __attribute__((aligned(64)));	/* the ring was full */
	__u64 lost_names;
	__u64 lost_devices;
	__u64 lost_graphs;	/* so, or there was no room for the handle, or it has too many nodes */
	/* page 1: the collector's */
	__u64 heartbeat __attribute__((aligned(4096)));	/* any value that changes: a sign of life */
	__u32 command;		/* enum channel_command */
	__u32 site;		/* enum channel_site; the library writes the first value */
	__u32 confined;		/* bool: the target is under a system-call filter: no unusual call */
	__u32 wake;		/* futex of the library's thread */
	__u32 every;		/* launches that fire a site: 1 all, at first; N one of N; 0 by `budget` */
	__u32 budget;		/* CPU time of a launching thread, and time of a device, in millionths */
	/*
	 * Who is at work: pid in the collector's own namespace, above it 32 bits of its start time (field 22
	 * of /proc/PID/stat). 0: nobody. By compare and swap from 0 or a dead one; the library clears it
	 * when it has gone passive by silence.
	 */
	__u64 collector;
	__u64 tail __attribute__((aligned(64)));	/* bytes ever consumed */
	/* then */
	struct channel_thread threads[CHANNEL_THREADS] __attribute__((aligned(4096)));
	__u64 strata[CHANNEL_STRATA];	/* launches of each in this session, exact */
	__u8 ring[CHANNEL_RING_SIZE] __attribute__((aligned(4096)));
};

#define CHANNEL_SIZE sizeof(struct channel_segment)

/* --- The ring ---------------------------------------------------------------------------------
 *
 * Records of many producers for one consumer. A producer reserves by moving head, and commits by storing
 * the head word (size, type, flags: 8 bytes at once) with release order; until then that is 0, as the
 * consumer leaves zeroes behind. No record wraps: a PAD fills the rest. Positions are stored unmasked.
 */
enum channel_type {
	CHANNEL_PAD = 1,	/* struct channel_head alone counts */
	CHANNEL_RESULT = 2,	/* struct channel_result */
	CHANNEL_NAME = 3,	/* struct channel_name */
	CHANNEL_DEVICE = 4,	/* struct channel_device */
	CHANNEL_GRAPH = 5,	/* struct channel_graph */
	NR_CHANNEL_TYPES,
};

struct channel_head {
	__u32 size;		/* of the whole record: a multiple of 8 */
	__u16 type;		/* enum channel_type */
	__u16 reserved;
};

/* Whether the bracket's first event was over when its second had been recorded. */
enum launch_load {
	LOAD_UNKNOWN = 0,
	LOAD_BUSY = 1,		/* no: the stream still had earlier work */
	LOAD_IDLE = 2,		/* yes: the bracket also holds the launch's way to the device */
};

/* A further launch of a run (library/run.h). */
struct channel_member {
	__u64 launch;		/* id */
	__u32 name, reserved;	/* generation of the NAME that holds for it; 0: none known */
};

struct channel_result {
	struct channel_head head;
	__u64 launch;		/* id of the (first) launch */
	__u64 function;
	__u64 stream;
	__u64 duration;		/* ns, the raw bracket, nothing subtracted; or a wait; 0 with a cause */
	__u32 name;		/* generation of the NAME or, of a graph, GRAPH that holds; 0: none known */
	__u32 context;		/* index, from 1; never used twice in a process; 0: unknown */
	__s32 device;		/* ordinal as the target sees it; -1: unknown */
	__u32 launches;		/* k >= 1 in this bracket, a run; the k - 1 further ones follow the record */
	/*
	 * 1 / the chance that this launch had of being timed. Where a program queues more work
	 * than there may be brackets, only a random share is timed, the rest has
	 * CAUSE_OUTSTANDING; likewise, by itself, of launches that overlap (CAUSE_PDL). For means of
	 * durations; never to be multiplied into counts, which are exact.
	 */
	__u32 weight;
	__u16 entry;		/* enum launch_entry; of a copy or wait: enum channel_slot */
	__u16 flags;		/* LAUNCH_* */
	__u16 cause;		/* enum launch_cause; of a wait: NONE */
	__u16 load;		/* enum launch_load */
	__u32 error;		/* CUresult behind a cause; 0: none */
	/*
	 * ns of the program's own time from the first record to the return of the launch, for which
	 * an idle stream's bracket had waited: milliseconds where a kernel's code is loaded. 0 of a
	 * copy that may have been made by the call itself.
	 */
	__u32 gap;
	__u32 copy;		/* enum copy_kind; else 0, as are its bytes */
	__u32 stands_for;	/* weight of its probe, and its stratum and block */
	__u32 stratum;
	__u64 bytes;
	__u64 waited;		/* ns: of a copy whose call waits for it, how long the call took; else 0 */
	struct channel_member more[];
};
_Static_assert(sizeof(struct channel_result) == 104, "no holes");

enum channel_name_status {
	NAME_KNOWN = 0,		/* possibly empty */
	NAME_NULL = 1,		/* the driver has none */
	NAME_ERROR = 2,		/* the driver would not tell */
	NAME_CUT = 3,		/* the first CHANNEL_MAX_NAME bytes */
};

/* Handles are used again after an unload: a later NAME of the same function supersedes. */
struct channel_name {
	struct channel_head head;
	__u64 function;
	__u32 generation;	/* from 1, one for each NAME of the process */
	__u32 len;		/* bytes of the mangled name, without a final 0 */
	__u32 status;		/* enum channel_name_status */
	__u32 registers;	/* of each thread; 0: not known, and nor are shared_bytes */
	__u32 shared_bytes;	/* static shared memory of each block */
	__u32 reserved;
	char text[];
};

/* At least once for each device, before its first RESULT with a time. */
struct channel_device {
	struct channel_head head;
	__s32 device;
	__u32 version;		/* cuDriverGetVersion: 13000 */
	__u32 len;
	__u32 reserved;
	char text[];
};

/* Nodes of a graph that are alike and follow each other, and take some of the device's time. */
struct channel_node {
	__u64 function;		/* of a kernel: CUfunction or CUkernel */
	__u64 launch;		/* id of the launch, or copy, that was captured as this one; 0: not known */
	__u32 name;		/* generation of its NAME; 0: none known */
	__u32 count;
	__u32 grid[3];
	__u32 block[3];
	__u32 shared_bytes;
	__u32 copy;		/* 0: a kernel; else a copy or set: its enum copy_kind + 1 */
};
_Static_assert(sizeof(struct channel_node) == 56, "no holes");

#define CHANNEL_GRAPH_NODES 65536	/* of a graph that has more nothing is told */
#define CHANNEL_GRAPH_PART 1024		/* in one record */

/*
 * What an executable graph runs from now on: in so many records of one generation, in their order, that
 * all its members come.
 */
struct channel_graph {
	struct channel_head head;
	__u64 exec;
	__u32 generation;	/* from 1, one for each GRAPH of the process */
	__u32 nodes;		/* all that the graph has, those of graphs inside of it included */
	__u32 members;		/* in all records of this generation */
	__u32 first;		/* that this record begins with */
	struct channel_node member[];
};
_Static_assert(sizeof(struct channel_graph) == 32, "no holes");

#define CHANNEL_MAX_RECORD (CHANNEL_MAX_NAME + 64u)

/* --- The way into a running process -----------------------------------------------------------
 *
 * Exported by the library (.dynsym), beside the driver's InitializeInjection:
 *
 *	struct channel_identity gpucollect_identity	is a library there already?
 *	int gpucollect_attach(struct channel_attach *)	begins a session, says so by the hello
 *
 * and, of .symtab, gpucollect_stub: one page of position-independent code, alone in a page of the
 * file. Mapped r-x anywhere and called with rdi = struct channel_stub it starts a thread and returns;
 * errno is as before. That thread loads `path` and calls gpucollect_attach. Whoever called the stub
 * thus waits neither for the dynamic loader's locks nor for anything that is done under them. As its
 * last act, once `released` says that nobody else is in the stub or reads the struct, the thread
 * unmaps both. A library that is there is attached to by a mere call of its gpucollect_attach, which
 * itself takes no longer than to start a thread.
 */
enum channel_attach_stage {
	ATTACH_NOT_BEGUN = 0,
	ATTACH_STUB = 1,	/* the stub's thread runs: it loads */
	ATTACH_LOADED = 2,	/* dlopen has returned a handle */
	ATTACH_FOUND = 3,	/* dlsym has found gpucollect_attach, which is entered now */
	ATTACH_CALLED = 4,	/* it has been entered */
	ATTACH_DONE = 5,	/* it returns: `status` stands */
};

/*
 * Written by the collector; status, stage and error by the stub's thread and the library, which
 * forget it when gpucollect_attach has returned. Who reads it meanwhile reads it again once it is over.
 */
struct channel_attach {
	__u32 size;		/* sizeof(struct channel_attach), or more if it has grown */
	__u32 cancelled;	/* do nothing any more: looked at before each step */
	/*
	 * -EINPROGRESS; then 0 (a hello follows) or negative errno: -ECANCELED; -ELIBACC dlopen failed,
	 * -ENOENT dlsym failed (error: dlerror's text); -EPERM GPUCOLLECT_DISABLE is set; -EBUSY another
	 * thread attaches now; -EALREADY somebody records, and the program has closed the descriptor that
	 * would show it; else no memory, descriptor or thread. Returned, too; -EPROTO: `size` too small.
	 */
	__s32 status;
	__u32 stage;		/* enum channel_attach_stage */
	char error[128];	/* why, "" where status says all; cut, ends with 0 */
};

/* On a page beside the stub's, which outlives the call. */
struct channel_stub {
	struct channel_attach attach;
	__s32 created;		/* -EINPROGRESS; then, by the call, 0: the thread has been started */
	__u32 released;		/* by the collector: the call has returned, all has been read */
	__u64 pages, pages_size;	/* what the thread unmaps then */
	/* Addresses in the target: pthread_attr_… first. */
	__u64 attr_init, attr_setdetachstate, attr_setstacksize, pthread_create;
	__u64 errno_location, munmap;
	__u64 dlopen, dlsym, dlerror;
	__u64 thread;		/* pthread_t */
	__u64 attr[8];		/* pthread_attr_t */
	char path[40];		/* "/proc/thread-self/fd/N" */
};

_Static_assert(sizeof(struct channel_attach) == 144, "the stub's offsets");
_Static_assert(sizeof(struct channel_stub) == 352, "the stub's offsets");

#define CHANNEL_IDENTITY_MAGIC 0x7974746e65646963ull

/* Read in the target's memory, which may hold anything. */
struct channel_identity {
	__u64 magic;
	__u32 abi;		/* CHANNEL_ABI */
	__u32 size;		/* sizeof(struct channel_identity) */
	/*
	 * Address of a __u32: 1 in the process that the rest speaks of, 0 in a child forked from
	 * it, which has no segment yet. 0: there has been no session.
	 */
	__u64 owner;
	__s32 segment_fd;	/* negative: none */
	__u32 sessions;		/* begun so far */
};

_Static_assert(sizeof(struct channel_identity) == 32, "no holes");

#endif
