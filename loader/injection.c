// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "loader/injection.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define MAX_BYTES (8u << 20)	/* the kernel allows some 6 MB of arguments and environment */

enum found { NOTHING_TO_READ, NOT_SET, SET_OTHERWISE, SET };

static enum found look(FILE *f, const char *library)
{
	static const char name[] = INJECTION_VARIABLE "=";
	enum found found = NOTHING_TO_READ;
	size_t room = 0, read = 0;
	char *line = NULL;
	ssize_t n;

	while (read < MAX_BYTES && (n = getdelim(&line, &room, '\0', f)) > 0) {
		read += (size_t)n;
		if (found == NOTHING_TO_READ)
			found = NOT_SET;
		if (strncmp(line, name, sizeof(name) - 1))
			continue;
		/* Of two the first is what getenv finds. */
		found = strcmp(line + sizeof(name) - 1, library) ? SET_OTHERWISE : SET;
		break;
	}
	free(line);
	return found;
}

/* An environment without any variable looks like that of a process that is over: nothing to read. */
static bool has_ended(pid_t tgid)
{
	char path[64];
	struct stat st;

	snprintf(path, sizeof(path), "/proc/%d/exe", (int)tgid);
	return stat(path, &st) && errno == ENOENT;
}

static bool sees(pid_t tgid, const char *library)
{
	char path[512];
	struct stat st, own;

	if (snprintf(path, sizeof(path), "/proc/%d/root%s", (int)tgid, library) >= (int)sizeof(path))
		return true;
	if (stat(library, &own))
		return true;
	if (!stat(path, &st))
		return st.st_ino == own.st_ino && st.st_dev == own.st_dev;
	return errno != ENOENT || has_ended(tgid);
}

bool injection__reaches(pid_t tgid, const char *library, const char **why)
{
	enum found found;
	char path[64];
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/environ", (int)tgid);
	f = fopen(path, "re");
	if (!f)
		return true;
	found = look(f, library);
	fclose(f);
	if (found == NOTHING_TO_READ && !has_ended(tgid))
		found = NOT_SET;
	if (found == NOT_SET)
		*why = INJECTION_VARIABLE " is not in its environment";
	else if (found == SET_OTHERWISE)
		*why = "its " INJECTION_VARIABLE " is another";
	else if (found == SET && !sees(tgid, library))
		*why = "it does not see the library's file";
	else
		return true;
	return false;
}
