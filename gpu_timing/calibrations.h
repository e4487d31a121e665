/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Constants that were measured on this machine, as the text of a file (docs/output.md has its format).
 * Pure: where that file is, and whether it is to be believed, is not known here.
 */
#ifndef GPU_TIMING_CALIBRATIONS_H
#define GPU_TIMING_CALIBRATIONS_H

#include <stddef.h>
#include <stdint.h>

#include "gpu_timing/calibration.h"
#include "loader/base/text.h"

#define CALIBRATIONS_MAX_NS 20000u	/* a constant: what exceeds this is none */
#define CALIBRATIONS_MAX_NAME 255	/* bytes of a device's name */
#define CALIBRATIONS_MAX_FILE (64u << 10)

/* What is measured by itself. */
enum calibration_work {
	CALIBRATION_KERNEL,
	CALIBRATION_HTOD,
	CALIBRATION_DTOH,
	CALIBRATION_DTOD,
	CALIBRATION_SET,
	NR_CALIBRATION_WORKS,
};

struct calibrations_entry {
	char device[CALIBRATIONS_MAX_NAME + 1];
	uint32_t version;		/* cuDriverGetVersion: 13000 */
	enum calibration_work work;
	uint32_t busy_ns, idle_ns;
};

/* All zero: none. */
struct calibrations {
	struct calibrations_entry *entry;
	size_t nr, size;
};

void calibrations__free(struct calibrations *c);

/* What can stand in such a file as a device's name: blanks and other visible ASCII. */
bool calibrations__is_name(const char *name, size_t len);

/* The entry of this device, version and work, replaced or added: 0, or -ENOMEM. */
int calibrations__set(struct calibrations *c, const struct calibrations_entry *entry);

/*
 * A whole file of any content: 0, -ENOMEM, or -EINVAL, with *line the number of the first line that is
 * wrong, or missing. On an error there are no entries.
 */
int calibrations__parse(struct calibrations *c, const char *text, size_t len, unsigned int *line);
void calibrations__print(const struct calibrations *c, struct text *t);

/* The constants of a device: those of `c`, NULL for none, and the built-in ones where that has none. */
void calibrations__find(const struct calibrations *c, const char *device, size_t len, uint32_t version,
			struct calibration *out);

#endif
