// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "loader/base/log.h"
#include "loader/calibrate/calibrate.h"
#include "loader/dry_run.h"
#include "loader/exit_codes.h"
#include "loader/options.h"
#include "loader/session.h"

static int usage(int err, char *message)
{
	if (err == -EINVAL && message)
		log_error("%s", message);
	else
		log_error("reading the command line: %s", strerror(-err));
	free(message);
	return err == -EINVAL ? EXIT_USAGE : EXIT_OWN_FAILURE;
}

/*
 * What is opened next would become standard output where that is closed, and get our messages or the
 * result. What holds its place is there in any root and takes nothing: that a result can't be written
 * is to be noticed.
 */
static void hold_standard_descriptors(void)
{
	int fd;

	for (fd = 0; fd <= 2; fd++)
		if (fcntl(fd, F_GETFD) < 0 && open("/", O_PATH | O_CLOEXEC) < 0)
			return;
}

int main(int argc, char **argv)
{
	struct options options;
	char *message = NULL;
	int code, err;

	hold_standard_descriptors();
	err = options__parse(argc, argv, &options, &message);
	log__set_json(options.json);
	if (err)
		return usage(err, message);
	if (options.quiet)
		log__set_level(LOG_WARN);
	if (options.verbose)
		log__set_level(LOG_DEBUG);
	switch (options.action) {
	case ACTION_HELP:
		code = options__print_help() ? EXIT_PARTIAL : EXIT_COMPLETE;
		break;
	case ACTION_VERSION:
		code = options__print_version() ? EXIT_PARTIAL : EXIT_COMPLETE;
		break;
	case ACTION_CALIBRATE:
		code = calibrate__run(&options);
		break;
	default:
		code = options.dry_run ? dry_run(&options) : session__run(&options);
	}
	options__free(&options);
	return code;
}
