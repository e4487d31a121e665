/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The one model in memory: interned frames, stacks as a prefix tree, weighted values with labels,
 * and what is to be known about the run. Every output format is a pure function of it.
 *
 * All ids are dense u32, given out in the order of first use; iterating by id or with
 * profile__next() is therefore the same for the same input. Memory is bounded by the machine
 * alone. Functions that add return 0 or -ENOMEM (and -EINVAL for an id that was never given out);
 * a failed one leaves the model as it was. Not thread-safe.
 */
#ifndef PROFILE_H
#define PROFILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct profile;

struct profile *profile__new(void);		/* NULL: out of memory */
void profile__free(struct profile *p);		/* NULL is fine */

/* --- frames ------------------------------------------------------------------------------ */

enum profile_kind {
	PROFILE_PROCESS = 0,	/* name: comm of the leader, id: pid; shown "comm (pid N)" */
	PROFILE_THREAD = 1,	/* name: thread name, id: tid; shown "[thread name]" */
	PROFILE_NATIVE = 2,
	PROFILE_KERNEL = 3,
	PROFILE_GPU = 4,	/* work on the device; id: enum profile_work; shown "[GPU] name"; a leaf, or a
				 * graph above what it runs */
	PROFILE_MARK = 5,	/* id: enum profile_mark: a place where something isn't known */
	PROFILE_PYTHON = 6,	/* name: qualified where known; file: as in a traceback */
	NR_PROFILE_KINDS,
};

enum profile_frame_flags {
	PROFILE_GUESS = 1,	/* reached by the frame pointer, not by unwind information */
	PROFILE_INLINED = 2,
	PROFILE_JIT = 4,	/* code made at run time */
};

/* What a frame of the GPU's work is. */
enum profile_work {
	PROFILE_KERNEL_LAUNCH = 0,	/* name: of the kernel; NULL: not known */
	PROFILE_KERNEL_NAMELESS = 1,	/* of a kernel that has no name */
	PROFILE_GRAPH = 2,		/* of a graph, as a whole: as far as it isn't split */
	PROFILE_COPY = 3,		/* name: what a copy or set of memory is called */
};

/* Why a frame has no function name; the name is then module+offset or a text of ours in brackets. */
enum profile_unresolved {
	PROFILE_RESOLVED = 0,
	PROFILE_NO_SYMBOL = 1,		/* the file has symbols, none covers the address */
	PROFILE_NO_SYMBOLS = 2,		/* the file has no symbols */
	PROFILE_FILE_UNREADABLE = 3,	/* gone, not permitted, damaged */
	PROFILE_GENERATED = 4,		/* anonymous memory without a map of its functions */
	PROFILE_KERNEL_HIDDEN = 5,	/* kernel addresses are hidden (kptr_restrict) */
	PROFILE_MAPPING_GONE = 6,	/* no mapping known for the address any more */
	NR_PROFILE_UNRESOLVED,
};

/* Where a stack is not what it should be. The mark stands where the missing part would be. */
enum profile_mark {
	PROFILE_MARK_UNKNOWN = 0,	/* code of which nothing is known */
	PROFILE_MARK_TRUNCATED = 1,	/* deeper than the limit: outermost frames missing */
	PROFILE_MARK_NO_UNWIND_INFO = 2,	/* module: the file that has none there */
	PROFILE_MARK_NO_UNWIND_RULE = 3,	/* module: its rule there can't be applied */
	PROFILE_MARK_STACK_UNREADABLE = 4,
	PROFILE_MARK_STACK_LOOPS = 5,
	PROFILE_MARK_NOT_CODE = 6,	/* the return address lies outside executable memory */
	PROFILE_MARK_GENERATED = 7,	/* generated code without a frame pointer */
	PROFILE_MARK_NO_STACK = 8,	/* nothing is known of the stack */
	PROFILE_MARK_PYTHON_UNKNOWN = 9,	/* a Python function that was gone before it was read */
	PROFILE_MARK_PYTHON_CUT = 10,	/* more Python frames than fit, or unreadable ones */
	PROFILE_MARK_PYTHON_PLACE = 11,	/* the Python frames inside of this have no known place */
	NR_PROFILE_MARKS,
};

/*
 * Two frames are one if all fields are equal. Strings are bytes from targets: any content, not
 * necessarily UTF-8; NULL and "" differ. They are copied; those handed back live as long as the
 * profile.
 */
struct profile_frame {
	uint8_t kind;		/* enum profile_kind */
	uint8_t flags;		/* enum profile_frame_flags */
	uint8_t unresolved;	/* enum profile_unresolved */
	uint8_t reserved;	/* 0 */
	uint32_t id;		/* by kind, see there; else 0 */
	uint32_t line;		/* of file; 0: not known */
	uint32_t registers;	/* of a launched kernel's threads; 0: not known, and nor is the next */
	uint32_t shared_bytes;	/* static shared memory of each of its blocks */
	const char *name;	/* readable, without parameters; NULL: none */
	const char *raw;	/* the name in the object (mangled) if it differs, or NULL */
	const char *module;	/* file that holds the code, shown by its last part; NULL: none */
	const char *file;	/* source file, NULL: not known */
};

int profile__frame(struct profile *p, const struct profile_frame *frame, uint32_t *id);
/* The frame of a mark; `module` for those that name one, else NULL. */
int profile__mark(struct profile *p, enum profile_mark mark, const char *module, uint32_t *id);
int profile__process(struct profile *p, uint32_t pid, const char *comm, uint32_t *id);

uint32_t profile__nr_frames(const struct profile *p);
/* Valid until the next frame is added (its strings: for ever). */
const struct profile_frame *profile__frame_at(const struct profile *p, uint32_t id);

/* "[truncated]", "[no unwind info: %s]": with %s for the module where the mark has one. */
const char *profile__mark_text(enum profile_mark mark);
const char *profile__unresolved_text(enum profile_unresolved why);

/* --- stacks ------------------------------------------------------------------------------ */

#define PROFILE_ROOT 0u		/* the node above all others; has no frame */

/* The child of `parent` with this frame, made if there is none. */
int profile__node(struct profile *p, uint32_t parent, uint32_t frame, uint32_t *node);
/* The same for a whole path below `parent`, outermost frame first; nr may be 0. */
int profile__path(struct profile *p, uint32_t parent, const uint32_t *frames, size_t nr,
		  uint32_t *node);

uint32_t profile__nr_nodes(const struct profile *p);	/* PROFILE_ROOT included */
uint32_t profile__node_parent(const struct profile *p, uint32_t node);	/* always < node */
uint32_t profile__node_frame(const struct profile *p, uint32_t node);

/* --- values ------------------------------------------------------------------------------ */

enum profile_metric {
	PROFILE_GPU_NS = 0,	/* device time attributed to the path; count: timed launches or copies */
	PROFILE_CPU_NS = 1,	/* samples x period; count: samples */
	PROFILE_LAUNCHES = 2,	/* launches; count: the same */
	PROFILE_CPU_SAMPLES = 3,	/* samples, where they have no period; count: the same */
	PROFILE_BYTES = 4,	/* copied or set in memory; count: copies */
	PROFILE_WAIT_NS = 5,	/* time in which the host waited for a device; count: waits */
	NR_PROFILE_METRICS,
};

enum profile_value_flags {
	PROFILE_MEASURED = 0,
	PROFILE_ESTIMATED = 1,		/* shared out or scaled up, not measured by itself */
	PROFILE_UNCALIBRATED = 2,	/* a duration whose bracket's constant isn't known */
	PROFILE_OF_COPIES = 4,		/* device time of copies, not of launches */
	PROFILE_SHARED = 8,		/* a graph's, split among what it runs; count 0: that's the graph's */
};

#define PROFILE_NO_LABEL UINT32_MAX

struct profile_labels {
	uint32_t pid;
	uint32_t tid;
	uint32_t device;	/* PROFILE_NO_LABEL: none, not known */
	uint32_t rank;		/* the same: of the process among those of its task */
	uint64_t stream;	/* handle; 0: default stream, or none where device is none */
};

int profile__labels(struct profile *p, const struct profile_labels *labels, uint32_t *id);
const struct profile_labels *profile__labels_at(const struct profile *p, uint32_t id);

/* The name of a thread, for formats that show threads; the last one given holds. */
int profile__name_thread(struct profile *p, uint32_t pid, uint32_t tid, const char *name);
const char *profile__thread_name(const struct profile *p, uint32_t pid, uint32_t tid); /* or NULL */

/*
 * Adds to the value of (node, labels, metric, flags). Sums stop at UINT64_MAX. Values with
 * different flags are kept apart, so that the measured part stays known. Not at PROFILE_ROOT: a
 * value without any frame could not be shown.
 */
int profile__add(struct profile *p, uint32_t node, uint32_t labels, enum profile_metric metric,
		 unsigned int flags, uint64_t value, uint64_t count);

struct profile_value {
	uint32_t node;
	uint32_t labels;
	uint8_t metric;		/* enum profile_metric */
	uint8_t flags;		/* enum profile_value_flags */
	uint64_t value;
	uint64_t count;
	double variance;	/* of value, where it was estimated from samples; square of its unit */
};

/* Adds to the variance of a value that is there (else -EINVAL): values are taken for independent. */
int profile__add_variance(struct profile *p, uint32_t node, uint32_t labels, enum profile_metric metric,
			  unsigned int flags, double variance);

/* Start with *pos = 0; false when there are no more. In the order of first addition. */
bool profile__next(const struct profile *p, size_t *pos, struct profile_value *value);
/* Sum of a metric over everything. */
uint64_t profile__total(const struct profile *p, enum profile_metric metric);
uint64_t profile__total_count(const struct profile *p, enum profile_metric metric);
/* CPU samples: each is counted under PROFILE_CPU_NS or under PROFILE_CPU_SAMPLES, not both. */
uint64_t profile__nr_samples(const struct profile *p);

/* --- the run ----------------------------------------------------------------------------- */

struct profile_run {
	uint64_t started_ns;	/* CLOCK_REALTIME; 0: not known */
	uint64_t duration_ns;	/* of the capture */
	uint32_t frequency;	/* of CPU samples, Hz; 0: none taken */
	uint32_t metrics;	/* bit 1 << enum profile_metric: what this run records */
	uint64_t gpu_busy_ns;	/* union of device time; only where gpu_busy_known */
	bool gpu_busy_known;	/* every piece of work was timed */
	uint64_t looked_at;	/* launches and copies that were looked at, where not all were; else 0 */
	uint64_t made;		/* of so many */
	double gpu_variance;	/* of all GPU time, ns^2: what sampling leaves open; 0: nothing */
	bool driver_seen;	/* a process had libcuda mapped */
	bool all_left_alone;	/* all that had want no look at their launches, or are recorded by another */
	uint64_t own_cpu_ns;	/* CPU time of the collector while it captured; 0: not known */
	uint64_t own_rest_ns;	/* the same before and after; 0: not known */
	uint64_t own_bpf_ns;	/* CPU time of its BPF programs; 0: not known */
	uint64_t own_memory;	/* peak: anonymous memory and BPF maps, bytes; 0: not known */
};

struct profile_run *profile__run(struct profile *p);
const struct profile_run *profile__run_const(const struct profile *p);

/* What a counter means for the reader of the profile. */
enum profile_counter_kind {
	PROFILE_LOST_SAMPLES = 0,	/* CPU samples that stand in no stack */
	PROFILE_LOST_LAUNCHES = 1,	/* launches that stand in no stack */
	PROFILE_LOST_OTHER = 2,		/* records without a width of their own */
	PROFILE_UNTIMED = 3,		/* launches that are counted but have no time */
	PROFILE_INFO = 4,		/* no loss */
	PROFILE_INFO_GPU = 5,		/* none either, of launches, copies or waits */
	NR_PROFILE_COUNTER_KINDS,
};

struct profile_counter {
	const char *what;	/* "ring buffer full", "launched in a stream capture", … */
	enum profile_counter_kind kind;
	uint64_t value;
};

/* Adds to the counter of that kind and text. n may be 0: then it is listed with 0. */
int profile__count(struct profile *p, enum profile_counter_kind kind, const char *what,
		   uint64_t n);
size_t profile__nr_counters(const struct profile *p);
const struct profile_counter *profile__counter_at(const struct profile *p, size_t i);

/* The larger of lost samples and lost launches, as a share (0 to 1) of what there was. */
double profile__lost_share(const struct profile *p);

/* A line to show at the end; the same text is kept once. */
int profile__note(struct profile *p, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
size_t profile__nr_notes(const struct profile *p);
const char *profile__note_at(const struct profile *p, size_t i);

#endif
