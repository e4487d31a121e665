// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Names of our own choice, and the file that saves a result which its place did not take. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "loader/base/text.h"
#include "loader/output/file.h"

#define MAX_NAME_BYTES 100

/* A byte that needs no quoting in a shell; the rest of UTF-8 is kept, too. */
static bool is_plain(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
	       (c && strchr("._+-", c)) || (unsigned char)c >= 0x80;
}

char *output_file__own_name(const char *command, long pid)
{
	const char *slash = strrchr(command, '/'), *name = slash ? slash + 1 : command;
	struct text t = { 0 };
	size_t len = strlen(name), i, start;

	if (!len) {
		name = "command";
		len = strlen(name);
	}
	text__add_string(&t, "gpucollect-");
	start = t.len;
	text__add_clean(&t, name, text__cut(name, len, MAX_NAME_BYTES));
	for (i = start; !t.failed && i < t.len; i++)
		if (!is_plain(t.data[i]))
			t.data[i] = '_';
	text__printf(&t, "-%ld.folded", pid);
	return text__take(&t);
}

static int save(const struct caller *caller, const char *path, output_writer write, void *arg,
		char **name, char **why)
{
	struct output_request request = {
		.path = path, .numbered = true, .caller = caller, .abort_fd = -1,
	};
	struct output_file *f = NULL;
	int err;

	err = output_file__new(&request, &f, why);
	if (err)
		return err;
	err = output_file__write(f, write, arg, why);
	if (!err) {
		*name = strdup(output_file__name(f));
		if (!*name)
			err = -ENOMEM;
	}
	output_file__free(f);
	return err;
}

int output_file__rescue(const struct caller *caller, const char *command, long pid,
			output_writer write, void *arg, char **name, char **why)
{
	char *own = output_file__own_name(command, pid), *elsewhere = NULL;
	char *here = NULL, *there = NULL;	/* why it can't be written there */
	struct text t = { 0 };
	int err = -ENOMEM;

	*why = NULL;
	text__printf(&t, "/tmp/%s", own ? own : "");
	elsewhere = text__take(&t);
	if (own && elsewhere)
		err = save(caller, own, write, arg, name, &here);
	if (err && err != -ENOMEM)
		err = save(caller, elsewhere, write, arg, name, &there);
	if (err && here && there) {
		text__printf(&t, "%s; %s", here, there);
		*why = text__take(&t);
	}
	free(here);
	free(there);
	free(elsewhere);
	free(own);
	return err;
}
