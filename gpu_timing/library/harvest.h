/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Reading brackets back, with cuEventElapsedTime alone: it is cheap, says "not ready" where the end
 * is still to come, and is harmless in every capture mode. The launching thread does most of it;
 * the library's own thread takes the tails and watches the collector.
 */
#ifndef LIBRARY_HARVEST_H
#define LIBRARY_HARVEST_H

#include <linux/types.h>
#include <stdbool.h>
#include <stdint.h>

#include "gpu_timing/channel.h"
#include "gpu_timing/cuda_types.h"

struct bracket;
struct stream;

/*
 * What an error of the elapsed call about this bracket means; if it is the whole context's, nobody
 * asks there any more. *forget: the events are of no more use.
 */
enum launch_cause harvest__meaning(const struct bracket *b, CUresult r, bool *forget);
/* One RESULT, or that of a run, ns between its events if it has no cause. */
void harvest__report(const struct bracket *b, enum launch_cause cause, CUresult error, uint64_t ns);
/* Is what was published last over? False also if nobody can say so cheaply. */
bool harvest__is_drained(struct stream *s);
/* Reports what is complete, oldest first; the caller holds the stream's lock. */
void harvest__locked(struct stream *s, bool suspended);
/* The same, at most max, if nobody else is at it. Whether there was one. */
bool harvest__own(struct stream *s, unsigned int max);
/* The same in all streams; returns the brackets still under way. */
uint64_t harvest__all(void);
/*
 * Reports all that is published with a cause; the caller holds the lock. `forget`: the events are
 * of no more use.
 */
void harvest__give_up(struct stream *s, enum launch_cause cause, CUresult error, bool forget);
/* After the end of harvesting: whatever is still there has no end. Waits for whoever is at it. */
void harvest__last(struct stream *s, uint64_t deadline);

#endif
