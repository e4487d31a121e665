/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Uprobes on several places of one file with one link, which the kernel takes down at once: singly,
 * each waits for a grace period of its own, tens of ms and on a loaded machine seconds. Linux 6.6;
 * libbpf knows it from 1.3 on, later than the one of Debian 12, so it is asked for directly.
 */
#ifndef LOADER_UPROBES_H
#define LOADER_UPROBES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* Attach type of programs for it, BPF_TRACE_UPROBE_MULTI of the kernel's uapi. */
#define UPROBES_ATTACH_TYPE 48

/* Whether this kernel has it, found out by trying. */
bool uprobes__supported(void);

/*
 * Whether it can be limited to a process. Where it can be limited to a thread only, as before Linux 6.10,
 * the kernel takes a thread's id.
 */
bool uprobes__per_process(void);

/*
 * In process `pid`, or with 0 in every process that maps the file, which must be a regular one. Cookies
 * may be NULL. A descriptor for uprobes__detach, or a negative errno; then none is attached.
 */
int uprobes__attach(int program_fd, const char *path, const uint64_t *offsets,
		    const uint64_t *cookies, size_t nr, pid_t pid);

/*
 * At one place and in process `pid` alone, as a perf event. It fires in all of its threads for as long as the
 * first one lives, and not in children, whom it costs one breakpoint each. A descriptor for uprobes__detach,
 * or a negative errno.
 */
int uprobes__attach_process(int program_fd, const char *path, uint64_t offset, uint64_t cookie,
			    pid_t pid);

/*
 * Closes it, in a process of its own that shares our descriptors: whoever is killed (SIGKILL) inside of
 * that leaves the breakpoints in all programs ("failed to unregister, leaking uprobe", Linux 6.18),
 * where they cost time at each launch until the program ends.
 */
void uprobes__detach(int fd);

#endif
