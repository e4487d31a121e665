/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Where the result goes: a file under its final name only when it is whole, or something that is
 * written directly (stdout, a device, a pipe). Checked before the capture, written after it (and
 * as often as wanted in between).
 */
#ifndef OUTPUT_FILE_H
#define OUTPUT_FILE_H

#include <stdbool.h>
#include <stdio.h>

#include "loader/output/caller.h"

struct output_file;

struct output_request {
	const char *path;	/* "-": stdout */
	bool force;		/* replace a file that exists */
	bool numbered;		/* where the name is taken: NAME-2, NAME-3, … before the suffix */
	bool look_only;		/* to be freed, not written: not even a temporary file shows that it can be */
	const struct caller *caller;	/* must outlive the output_file */
	int abort_fd;		/* gets readable: writing ends with -ECANCELED; -1: none */
};

/*
 * Checks that the file can be written, without leaving anything behind. 0 or a negative errno;
 * *why is then a sentence for the user (malloc'd, may be NULL where memory is short): name, cause
 * and mend.
 */
int output_file__new(const struct output_request *request, struct output_file **out, char **why);
void output_file__free(struct output_file *f);	/* NULL is fine */

/* Writes everything to `f`: 0 or a negative errno. Errors of `f` itself are found by the caller. */
typedef int (*output_writer)(FILE *f, void *arg);

/*
 * Lets `write` produce the content; on success the file stands under its name, whole and
 * flushed. On failure a regular file is as before. 0 or a negative errno, *why as above: -EPIPE:
 * the reader of stdout has gone; -EEXIST: the name was taken since output_file__new. May be
 * called again: replaces what it wrote before. SIGPIPE must be ignored by the process.
 */
int output_file__write(struct output_file *f, output_writer write, void *arg, char **why);

/* The name under which it stands or will stand; "standard output" for stdout. */
const char *output_file__name(const struct output_file *f);
bool output_file__is_stdout(const struct output_file *f);
bool output_file__is_regular(const struct output_file *f);

/* "gpucollect-NAME-PID.folded", by the last part of the command's path; malloc'd or NULL. */
char *output_file__own_name(const char *command, long pid);

/*
 * Saves to a file after all (output_file__own_name, numbered), in the current directory or, if
 * that can't be, in /tmp. 0 and *name (malloc'd), or a negative errno and *why, which says it of both.
 */
int output_file__rescue(const struct caller *caller, const char *command, long pid,
			output_writer write, void *arg, char **name, char **why);

#endif
