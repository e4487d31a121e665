// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "loader/calibrate/driver.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#define LIBRARY "libcuda.so.1"

const char *calibrate_driver__error(const struct calibrate_driver *d, CUresult error)
{
	const char *text = NULL;

	return !d->error_string(error, &text) && text ? text : "unknown error";
}

static int find(void *library, const char *name, void *call, char *why)
{
	void *p = dlsym(library, name);

	/* Between pointers to data and to functions POSIX allows this way only. */
	memcpy(call, &p, sizeof(p));
	if (p)
		return 0;
	snprintf(why, CALIBRATE_DRIVER_WHY, LIBRARY " has no %s: this driver is too old", name);
	return -ENOENT;
}

int calibrate_driver__load(struct calibrate_driver *d, char *why)
{
	void *library = dlopen(LIBRARY, RTLD_NOW | RTLD_LOCAL), *newer;
	CUresult r;

	memset(d, 0, sizeof(*d));
	if (!library) {
		snprintf(why, CALIBRATE_DRIVER_WHY, "no driver: %s; install NVIDIA's, or see that "
			 "the loader finds it", dlerror());
		return -ENOENT;
	}
#define X(member, name, parameters)						\
	if (find(library, name, &d->member, why))				\
		return -ENOENT;
	CALIBRATE_DRIVER_CALLS(X)
#undef X
	newer = dlsym(library, "cuEventElapsedTime_v2");
	d->elapsed = d->elapsed_1;
	if (newer)
		memcpy(&d->elapsed, &newer, sizeof(newer));
	r = d->init(0);
	if (!r)
		r = d->get_version(&d->version);
	if (!r && d->version > 0)
		return 0;
	snprintf(why, CALIBRATE_DRIVER_WHY, "the driver doesn't start: %s (%d); nvidia-smi shows whether "
		 "it sees a device", calibrate_driver__error(d, r), (int)r);
	return -ENOENT;
}
