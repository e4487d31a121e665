/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The collector's end of the channel (channel.h). The other end belongs to the target, which may
 * be hostile: whatever is read is copied once, checked, and only then handed on.
 *
 * Use: the library's hello gives a descriptor number; pidfd_getfd fetches it; channel__open checks
 * and maps it; then at least every 200 ms channel__heartbeat and channel__poll. At the end
 * channel__stop, and poll until the state is CHANNEL_PASSIVE (bounded: the target may be stopped)
 * or the process is gone; then poll until it returns 0.
 */
#ifndef GPU_TIMING_READER_H
#define GPU_TIMING_READER_H

#include <linux/types.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "gpu_timing/channel.h"

struct channel;

/*
 * Callbacks of channel__poll, all optional. What they get is checked: enumerations are in range,
 * lengths fit, launches >= 1, weight >= 1, a duration is below 2^53 ns and 0 where there is a
 * cause; what isn't flagged as a copy has neither its kind nor bytes nor `waited`; a wait has no cause.
 * Names are the target's bytes and may hold anything. The memory is gone when the callback returns.
 */
struct channel_handler {
	void (*result)(void *ctx, const struct channel_result *result);
	void (*name)(void *ctx, const struct channel_name *name);
	void (*device)(void *ctx, const struct channel_device *device);
	/* `nr` members from `first` on, of those that it has. */
	void (*graph)(void *ctx, const struct channel_graph *graph, uint32_t nr);
};

struct channel_status {
	enum channel_state state;
	enum channel_reason reason;
	uint32_t detail;
	uint64_t slots[CHANNEL_SLOT_WORDS];	/* bit set of enum channel_slot that hold hooks */
};

/*
 * Sums over all threads, and the losses, of this session. A snapshot: the target goes on counting.
 */
struct channel_counters {
	uint64_t launches[NR_LAUNCH_ENTRIES];
	uint64_t results[NR_LAUNCH_CAUSES];
	uint64_t launched;	/* sum of launches */
	uint64_t copies;
	uint64_t waits;
	uint64_t probes;
	uint64_t nested;
	uint64_t brackets;
	uint64_t names_lost;
	uint64_t lost_results;
	uint64_t lost_names;
	uint64_t lost_devices;
	uint64_t lost_graphs;
};

/*
 * Maps the segment behind fd (which stays the caller's and may be closed at once). Errors: -EINVAL
 * not a sealed memfd of the right size; -EPROTO not ours, or of another ABI; -EAGAIN: the library
 * has not finished it; else mmap's. The library's first value of `site` stays. To be called at the
 * session's hello, before any sign of life: what the segment counts then is the base line. When the
 * target has begun another session, this one reads as CHANNEL_PASSIVE and holds no more records.
 */
int channel__open(int fd, struct channel **channel);
void channel__close(struct channel *channel);	/* NULL is fine */

/*
 * Takes the segment for this process, before anything else is done with it (also before the library
 * is called to begin a session). 0, also where it is ours already; -EBUSY: a living process has it,
 * *holder is its pid as it sees itself.
 */
int channel__claim(struct channel *channel, pid_t *holder);
/* The same, only looked at: 0, it could be taken; or -EBUSY. */
int channel__holder(const struct channel *channel, pid_t *holder);
/* Gives it back, if it is still ours. */
void channel__release(struct channel *channel);

/*
 * Hands on at most max records. Returns how many were consumed (also those without a callback), or
 * -EBADMSG: the ring holds nonsense; then it is never read again and always answers so.
 */
int channel__poll(struct channel *channel, const struct channel_handler *handler, void *ctx,
		  unsigned int max);
/* A record was reserved and never committed: bytes behind it, 0 if none. */
uint64_t channel__stalled(const struct channel *channel);

void channel__heartbeat(struct channel *channel);
void channel__set_site(struct channel *channel, enum channel_site site);
/* Says that the target is under a seccomp filter: the library then makes no unusual system call. */
void channel__set_confined(struct channel *channel, bool confined);
/*
 * Launches that fire a probe: 1: all; N: one of N; 0: as many as `budget_ppm` allows, millionths of a
 * thread's and of a device's time.
 */
void channel__set_sampling(struct channel *channel, uint32_t every, uint32_t budget_ppm);
/* Launches of a stratum (struct channel_result) in this session so far, exact; 0: not known. */
uint64_t channel__launches_of(const struct channel *channel, uint32_t stratum);

/* Whether a thread is in the wait with that id, or was when the session, or the process, ended. */
bool channel__is_waiting(const struct channel *channel, uint64_t id);

void channel__stop(struct channel *channel);

/* A state or reason out of range reads as CHANNEL_REFUSED or REASON_NONE. */
void channel__status(const struct channel *channel, struct channel_status *status);
void channel__counters(struct channel *channel, struct channel_counters *sum);

/* For messages and frames; never NULL. */
const char *channel__cause_text(enum launch_cause cause);
const char *channel__copy_text(enum copy_kind kind);	/* "memcpy HtoD" */
const char *channel__reason_text(enum channel_reason reason);
#define CHANNEL_REFUSAL 256
/* A reason with its detail, where that says something; both may be nonsense. buf: CHANNEL_REFUSAL bytes. */
const char *channel__refusal(char *buf, enum channel_reason reason, uint32_t detail);
const char *channel__slot_name(uint32_t slot);	/* also of an enum launch_entry */

#endif
