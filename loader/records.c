// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "loader/records.h"

#include <linux/types.h>

#include "bpf/gpucollect.h"

/* Sizes are the kernel side's; they are checked all the same, since a mismatch would be silent. */
size_t records__least(uint16_t type)
{
	switch (type) {
	case REC_STACK: return sizeof(struct rec_stack);
	case REC_SAMPLE: return sizeof(struct rec_sample);
	case REC_LAUNCH: return sizeof(struct rec_launch);
	case REC_RAW: return sizeof(struct rec_raw);
	case REC_FORK:
	case REC_EXEC:
	case REC_EXIT: return sizeof(struct rec_process);
	case REC_LIBRARY: return sizeof(struct rec_library);
	case REC_CODE: return sizeof(struct rec_code);
	default: return SIZE_MAX;
	}
}
