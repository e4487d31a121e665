// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "loader/precheck.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "loader/base/text.h"
#include "loader/driver.h"
#include "loader/kept_out.h"

#define WAY_OUT "--no-inject --metric launches counts launches without it"

int precheck__environment(const struct variables *v, bool library, char **why)
{
	const char *other = variables__get(v, "CUDA_INJECTION64_PATH");
	const char *off = variables__get(v, KEPT_OUT_VARIABLE);

	*why = NULL;
	if (off || !access(KEPT_OUT_FILE, F_OK))
		return text__why(why, -ECANCELED, "%s keeps library and probes out of the command, so its "
				 "GPU work can't be seen; %s, or take --metric cpu",
				 off ? KEPT_OUT_VARIABLE : KEPT_OUT_FILE, off ? "unset it" : "remove it");
	if (library && other && *other)
		return text__why(why, -EBUSY, "CUDA_INJECTION64_PATH is set to %s: the driver loads one such "
				 "library only, so GPU work can't be timed; unset it, or " WAY_OUT, other);
	return 0;
}

bool precheck__refuses(const struct options *o, int err)
{
	return err == -ECANCELED ? options__needs_library(o) || o->metric == METRIC_LAUNCHES :
	       err && options__needs_library(o);
}

/* The path is the caller's choice, so it is opened with the caller's rights. */
static int check_file(const char *path, const struct caller *caller, const char **entry)
{
	struct caller_saved saved;
	int fd, err;

	err = caller__enter(caller, &saved);
	if (err)
		return err;
	fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
	err = fd < 0 ? -errno : 0;
	caller__leave(&saved);
	if (!err)
		err = driver__check(fd, entry);
	if (fd >= 0)
		close(fd);
	return err;
}

int precheck__driver(const struct variables *v, const struct caller *caller, char **why)
{
	char **paths = driver__candidates(variables__get(v, "LD_LIBRARY_PATH"));
	const char *entry = NULL;
	int err;

	*why = NULL;
	if (!paths)
		return -ENOMEM;
	if (!paths[0]) {
		err = text__why(why, -ENOENT, "no %s is found where programs look for it "
				"(LD_LIBRARY_PATH, /etc/ld.so.cache, the default directories): unless the "
				"command brings its own there will be no GPU time; --metric cpu shows its "
				"CPU time", DRIVER_NAME);
	} else {
		err = check_file(paths[0], caller, &entry);
		if (err)
			err = text__why(why, err == -ENOMEM ? err : -EOPNOTSUPP, "the driver %s can't be "
					"timed: %s%s%s; a program that loads it will have no GPU time; "
					WAY_OUT, paths[0], entry ? entry : "", entry ? ": " : "",
					driver__error(err));
	}
	driver__free_candidates(paths);
	return err;
}
