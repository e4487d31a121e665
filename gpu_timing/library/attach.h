/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The way into a process that runs: what the collector finds and calls (channel.h). */
#ifndef LIBRARY_ATTACH_H
#define LIBRARY_ATTACH_H

#include <linux/types.h>
#include <stdbool.h>
#include <stdint.h>

/* For gpucollect_identity: what the segment is in this process, and how many sessions it had. */
void identity__set(const uint32_t *owner, int segment_fd, uint32_t sessions);
void identity__count(uint32_t sessions);

/* One way in at a time. False: another thread is on its way. */
bool way_in__enter(void);
void way_in__leave(void);

#endif
