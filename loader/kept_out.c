// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "loader/kept_out.h"

#include <stdlib.h>
#include <unistd.h>

#include "loader/environment.h"

const char *kept_out__why(pid_t tgid)
{
	struct stat st;
	char *value;

	if (!access(KEPT_OUT_FILE, F_OK))
		return KEPT_OUT_FILE " is there";
	environment__get(tgid, KEPT_OUT_VARIABLE, &value);
	if (value) {
		free(value);
		return KEPT_OUT_VARIABLE " is in its environment";
	}
	if (!environment__stat(tgid, KEPT_OUT_FILE, &st))
		return KEPT_OUT_FILE " is in its root directory";
	return NULL;
}
