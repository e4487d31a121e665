/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* gpucollect calibrate: measures by how much brackets are too long here, shows it and keeps it. */
#ifndef CALIBRATE_CALIBRATE_H
#define CALIBRATE_CALIBRATE_H

#include "loader/options.h"

/* An exit code; all that failed is said. */
int calibrate__run(const struct options *options);

#endif
