/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What a session is made of; for session.c, session_setup.c and session_end.c alone. */
#ifndef LOADER_SESSION_STATE_H
#define LOADER_SESSION_STATE_H

#include <linux/types.h>
#include <stdbool.h>
#include <stdint.h>

#include "gpu_timing/calibrations.h"
#include "loader/attach.h"
#include "loader/collect.h"
#include "loader/command.h"
#include "loader/debuginfod.h"
#include "loader/inherited.h"
#include "loader/library.h"
#include "loader/output/caller.h"
#include "loader/probes.h"
#include "loader/python_frees.h"
#include "loader/python_names.h"
#include "loader/result.h"
#include "loader/recent.h"
#include "loader/sampling.h"
#include "loader/sites.h"
#include "loader/variables.h"

#define TICK_MS 20		/* channels are read this often */
#define TICKS_PER_SECOND (1000 / TICK_MS)

enum { EVENT_RING, EVENT_MAPPED, EVENT_SIGNAL, EVENT_TICK, EVENT_COMMAND, EVENT_END, EVENT_ATTACH };

struct session {
	const struct options *options;
	struct caller caller;
	struct inherited inherited;
	struct variables variables;	/* what a command gets */
	struct result *result;
	struct probes *probes;
	struct files *files;
	struct processes *processes;
	struct stacks *stacks;
	struct jit *jit;
	struct python *python;
	struct python_names *python_names;
	struct python_frees *python_frees;	/* NULL: none are counted */
	struct debuginfod *debuginfod;	/* NULL: not wanted */
	struct tally *tally;
	struct launches *launches;
	struct calibrations calibrations;
	struct thread_names *threads;
	struct library *library;
	struct sites *sites;
	struct attach *attach;
	struct attach_counts reached;	/* when `attach` is gone */
	struct collect *collect;
	struct sampling *sampling;
	struct recent *recent;
	struct command *command;
	int epoll_fd, signal_fd, tick_fd, end_fd;
	int cgroup_fd;		/* -1: none was asked for */
	bool inject;		/* processes get the timing library */
	int nice;		/* ours, but for the capture */
	unsigned int ticks;
	unsigned int signals;
	unsigned int unheard;	/* of those, while nothing but the command's end is waited for: its own */
	uint64_t started, stopped;	/* CLOCK_MONOTONIC, ns; stopped 0: still running */
	uint64_t cpu_started, cpu_stopped;	/* the same in our CPU time */
	uint64_t mappings_lost;
	uint64_t cpus_came;	/* CPUs that came up, and were not watched for up to a second */
	bool mappings_missed;	/* since the last second: some process may have others than we know */
	bool stop;		/* the capture is over */
	bool ended_early;	/* all targets ended before the time given */
	bool write_now;		/* SIGUSR1: write what there is and go on */
	uint64_t write_after;	/* but not before this time */
	bool time_over;		/* it was -d that ended it */
	bool waiting;		/* all is written, but the command goes on */
	bool aborted;
	bool command_ended;
	int status;		/* of the command, wait(2) */
};

/* Prints `why` (freed), or what the errno says, and turns it into an exit code. */
int session__fail(int err, char *why, const char *doing);
bool session__wants_launches(const struct options *o);

/* session.c: waits for events and handles them, 0 or negative errno; parts of that. */
int session__wait(struct session *s);
void session__on_signal(struct session *s);

/* session_targets.c: callbacks of the parts; ctx is the session. */
void session__on_mapping(void *ctx, const struct sampling_event *event);
void session__read_mappings(struct session *s);
void session__catch_up(void *ctx);
void session__on_process_mapped(void *ctx, struct process *p);
void session__on_armed(void *ctx, struct process *p);
void session__on_taken(void *ctx, struct process *p, pid_t holder);
void session__on_unreached(void *ctx, struct process *p, int err);
void session__on_refused(void *ctx, struct process *p, enum channel_reason reason, uint32_t detail);
/* Targets known, the command held: 0, -ESRCH (said) or another negative errno. */
int session__setup_targets(struct session *s);
/* The library in those that run already: 0 or an exit code. */
int session__enter_targets(struct session *s);
/* Those that nothing told of; to be called every second. */
void session__look_for_targets(struct session *s);

/* session_setup.c: everything in place; then the capture starts. 0 or an exit code. */
int session__setup(struct session *s);
int session__start(struct session *s);
int session__watch(struct session *s, int fd, uint64_t what);	/* 0 or negative errno */
/* Which signals are told by signal_fd: those that end, and with `requests` SIGUSR1. 0 or negative errno. */
int session__watch_signals(struct session *s, bool requests);

/* session_end.c: all that is on its way; the result, as an exit code; the exit code of the whole. */
void session__drain(struct session *s);
int session__write(struct session *s, bool last);
int session__exit_code(const struct session *s, int code);

#endif
