// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "loader/precheck.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "loader/driver.h"

#define WAY_OUT "--no-inject --metric launches counts launches without it"

int precheck__environment(char **why)
{
	const char *other = getenv("CUDA_INJECTION64_PATH"), *off = getenv("GPUCOLLECT_DISABLE");
	int n = 0, err = 0;

	*why = NULL;
	if (other && *other) {
		err = -EBUSY;
		n = asprintf(why, "CUDA_INJECTION64_PATH is set to %s: the driver loads one such "
			     "library only, so GPU work can't be timed; unset it, or " WAY_OUT, other);
	} else if (off) {
		err = -ECANCELED;
		n = asprintf(why, "GPUCOLLECT_DISABLE is set ('%s'): it keeps the timing library out, so "
			     "GPU work can't be timed; unset it, or " WAY_OUT, off);
	}
	if (n < 0)
		*why = NULL;
	return err;
}

int precheck__driver(char **why)
{
	char **paths = driver__candidates();
	const char *entry = NULL;
	int fd, n = 0, err;

	*why = NULL;
	if (!paths)
		return -ENOMEM;
	if (!paths[0]) {
		n = asprintf(why, "no %s is found where the command would look for it "
			     "(LD_LIBRARY_PATH, /etc/ld.so.cache, the default directories): GPU work "
			     "can't be timed; set LD_LIBRARY_PATH, or take --metric cpu", DRIVER_NAME);
		err = -EOPNOTSUPP;
		goto out;
	}
	fd = open(paths[0], O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
	err = fd < 0 ? -errno : driver__check(fd, &entry);
	if (fd >= 0)
		close(fd);
	if (err)
		n = asprintf(why, "the driver %s can't be timed: %s%s%s; " WAY_OUT, paths[0],
			     entry ? entry : "", entry ? ": " : "", driver__error(err));
	err = err ? -EOPNOTSUPP : 0;
out:
	if (n < 0)
		*why = NULL;
	driver__free_candidates(paths);
	return err;
}
