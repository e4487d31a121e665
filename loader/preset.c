// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "loader/preset.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "loader/environment.h"

static bool sees(pid_t tgid, const char *library)
{
	struct stat seen, own;
	int err = environment__stat(tgid, library, &seen);

	if (err || stat(library, &own))
		return err != -ENOENT;
	return seen.st_ino == own.st_ino && seen.st_dev == own.st_dev;
}

bool preset__reaches(pid_t tgid, const char *library, const char **why)
{
	bool reaches = false;
	char *value;

	if (environment__get(tgid, PRESET_VARIABLE, &value))
		return true;
	if (!value)
		*why = PRESET_VARIABLE " is not in its environment";
	else if (strcmp(value, library))
		*why = "its " PRESET_VARIABLE " is another";
	else if (!sees(tgid, library))
		*why = "it does not see the library's file";
	else
		reaches = true;
	free(value);
	return reaches;
}
