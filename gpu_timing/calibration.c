// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "gpu_timing/calibration.h"

#include <string.h>

/*
 * Measured on one device and driver. Other drivers of the same device are taken to be alike only
 * within the same major CUDA version, since nothing says that the constant is the device's alone.
 */
static const struct known {
	const char *device;
	uint32_t major;		/* of the CUDA version that cuDriverGetVersion gives */
	bool numbered;		/* the name is followed by a blank and a number */
	struct calibration constant;
} table[] = {
	/*
	 * Driver 580.159.04. Busy 2.05 to 2.35 with nothing more queued behind, 2.8 to 3.2 with
	 * more; idle, less the gap, 1.15 to 1.55.
	 */
	{ "NVIDIA H200", 13, false, { 2870, 1450, false, false } },
	/* tests/simcuda: its events take the very times at which the work begins and ends. */
	{ "Stand-in", 13, true, { 0, 0, true, true } },
};

static bool same_device(const struct known *k, const char *device, size_t len)
{
	size_t n = strlen(k->device);

	if (len < n || memcmp(k->device, device, n))
		return false;
	return k->numbered ? len > n && device[n] == ' ' : len == n;
}

bool calibration__find(const char *device, size_t len, uint32_t version, struct calibration *out)
{
	size_t i;

	for (i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		if (!same_device(&table[i], device, len) || version / 1000 != table[i].major)
			continue;
		*out = table[i].constant;
		return true;
	}
	return false;
}

uint64_t calibration__apply(const struct calibration *c, uint64_t bracket_ns, uint64_t gap_ns,
			    enum launch_load load)
{
	uint64_t less = 0;

	/* Of an unknown situation the smaller constant is certain to be in the bracket. */
	if (c)
		less = load == LOAD_IDLE ? c->idle_ns : c->busy_ns;
	if (load == LOAD_IDLE && !(c && c->no_gap))
		less += gap_ns;
	return bracket_ns > less ? bracket_ns - less : 0;
}
