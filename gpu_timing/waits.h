/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Which of the entries in channel.h are calls that do nothing but wait for the device. */
#ifndef GPU_TIMING_WAITS_H
#define GPU_TIMING_WAITS_H

#include <linux/types.h>
#include <stdbool.h>
#include <stdint.h>

#include "gpu_timing/channel.h"

static inline bool slot__waits(uint32_t slot)
{
	return (slot >= SLOT_STREAM_SYNC && slot <= SLOT_EVENT_SYNC) || slot == SLOT_CTX_SYNC_V2;
}

#endif
