// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * libFuzzer target: the file of constants. What is read is within bounds, and is read again from what is
 * printed of it.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "gpu_timing/calibrations.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(bool good)
{
	if (!good)
		abort();
}

static void check_entry(const struct calibrations *c, const struct calibrations_entry *e)
{
	const size_t len = strnlen(e->device, sizeof(e->device));
	struct calibration found;

	check(len < sizeof(e->device) && calibrations__is_name(e->device, len));
	check(e->work < NR_CALIBRATION_WORKS && e->version <= INT32_MAX);
	check(e->busy_ns <= CALIBRATIONS_MAX_NS && e->idle_ns <= CALIBRATIONS_MAX_NS);
	calibrations__find(c, e->device, len, e->version, &found);
	check(e->work != CALIBRATION_KERNEL ||
	      (found.kernels.known && found.kernels.busy_ns == e->busy_ns));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct calibrations c, again;
	struct text t = { 0 };
	unsigned int line = 0;

	if (calibrations__parse(&c, (const char *)data, size, &line)) {
		check(!c.nr && !c.entry && line);
		return 0;
	}
	for (size_t i = 0; i < c.nr; i++)
		check_entry(&c, &c.entry[i]);
	calibrations__print(&c, &t);
	check(!t.failed && !calibrations__parse(&again, t.data, t.len, &line) && again.nr == c.nr);
	calibrations__free(&again);
	calibrations__free(&c);
	text__free(&t);
	return 0;
}
