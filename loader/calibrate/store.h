/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Where the constants that were measured on this machine are kept. */
#ifndef CALIBRATE_STORE_H
#define CALIBRATE_STORE_H

#include "gpu_timing/calibrations.h"

#define CALIBRATION_STORE_FOLDER "/var/lib/gpucollect"
#define CALIBRATION_STORE_NAME "calibration"
#define CALIBRATION_STORE_FILE CALIBRATION_STORE_FOLDER "/" CALIBRATION_STORE_NAME

/*
 * 0, also where there is no such file: then there are no entries. Else a negative errno, no entries, and
 * *why says what is wrong and how it is mended (malloc'd; NULL: no memory): -EPERM: somebody else than
 * root could have written it, or it is no plain file; -EINVAL: it isn't whole; or what reading gave.
 */
int calibration_store__read(const char *path, struct calibrations *c, char **why);

/*
 * Puts these entries in, beside those of other devices and versions, and replaces the file in `folder` in
 * one step; the folder (0755) is made if it is missing. What is there and can't be believed goes: *why
 * then says so, though the result is 0. Else a negative errno and *why.
 */
int calibration_store__save(const char *folder, const struct calibrations *more, char **why);

#endif
