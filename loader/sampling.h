/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Perf events on every CPU that is on: the clock that fires the sampling program, and records of
 * new executable mappings. CPUs that come and go are followed by sampling__rescan.
 */
#ifndef LOADER_SAMPLING_H
#define LOADER_SAMPLING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct sampling;

struct sampling_config {
	int program_fd;		/* BPF program for samples; -1: no samples, mappings only */
	unsigned int frequency;	/* Hz */
	int epoll_fd;		/* the mapping rings are added here */
	uint64_t epoll_data;	/* with this as their data, */
	bool lazy;		/* readable when half full: of mappings somebody else is reminded in time */
};

/* A process mapped code (PERF_RECORD_MMAP2), or began to execute another program (PERF_RECORD_COMM). */
struct sampling_event {
	pid_t tgid;
	bool exec;			/* what follows is of the new program; the rest is not set */
	uint32_t dev_major, dev_minor;
	uint64_t time;			/* CLOCK_MONOTONIC, ns */
	uint64_t start, size, offset, inode;
	const char *path;		/* as the kernel shows it, valid during the call */
};
typedef void (*sampling_event_fn)(void *ctx, const struct sampling_event *event);

/* 0 or a negative errno with *why (malloc'd sentence or NULL). */
int sampling__new(const struct sampling_config *config, struct sampling **out, char **why);
void sampling__free(struct sampling *s);	/* NULL is fine */

/*
 * Reads the records that are there. Returns how many the kernel says that it had to drop; before Linux 6.0 it
 * says so with the next record of that CPU only. `*missed` is set where some may have been.
 */
uint64_t sampling__read(struct sampling *s, sampling_event_fn fn, void *ctx, bool *missed);

/*
 * Opens events on CPUs that came up, closes those of CPUs that went; also where a CPU did both since the
 * last time. To be called every second. Number of CPUs that came up: they have not been watched for up
 * to a second.
 */
unsigned int sampling__rescan(struct sampling *s);

#endif
