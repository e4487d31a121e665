/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* How gpu_attach lets the library in: what a tracer would make one of its threads do. */
#ifndef TESTS_PROGRAMS_WAY_IN_H
#define TESTS_PROGRAMS_WAY_IN_H

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/types.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "gpu_timing/channel.h"

static const char *library_path;
static void *handle;

static int library_copy(void)
{
	int from = open(library_path, O_RDONLY | O_CLOEXEC);
	int fd = memfd_create("gpucollect-library", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	char buf[65536];
	ssize_t n;

	if (from < 0 || fd < 0)
		exit(8);
	while ((n = read(from, buf, sizeof(buf))) > 0)
		if (write(fd, buf, (size_t)n) != n)
			exit(8);
	close(from);
	fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE | F_SEAL_SEAL);
	return fd;
}

static struct channel_attach *under_way;

static void *dlopen_and_cancel(const char *path, int flags)
{
	void *p = dlopen(path, flags);

	under_way->cancelled = 1;
	return p;
}

static const struct channel_identity *identity(void)
{
	return handle ? dlsym(handle, "gpucollect_identity") : NULL;
}

static unsigned int sessions(void)
{
	const struct channel_identity *id = identity();

	return id && id->owner && *(const volatile __u32 *)id->owner ?
		       __atomic_load_n(&id->sessions, __ATOMIC_ACQUIRE) : 0;
}

/* The hello comes from the library's own thread; `before`: sessions before it. */
static void answer(const struct channel_attach *args, unsigned int before, bool kept, bool page)
{
	for (int i = 0; !args->status && sessions() == before && i < 10000; i++)
		usleep(1000);
	printf("attached %d %u %u %d %d %s\n", args->status, args->stage, sessions(), kept, page,
	       args->error[0] ? args->error : "-");
}

static void prepare(struct channel_attach *args)
{
	memset(args, 0, sizeof(*args));
	args->size = sizeof(*args);
	args->status = -EINPROGRESS;
	args->dlopen = (uint64_t)dlopen;
	args->dlsym = (uint64_t)dlsym;
	args->dlerror = (uint64_t)dlerror;
	args->errno_location = (uint64_t)__errno_location;
}

static void attach_directly(void)
{
	int (*attach)(struct channel_attach *);
	struct channel_attach args;
	unsigned int before;
	void *found;
	bool kept;

	if (!handle)
		handle = dlopen(library_path, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
	found = handle ? dlsym(handle, "gpucollect_attach") : NULL;
	if (!found) {
		printf("attached %d 0 0 0 0 %s\n", -ENOENT, dlerror());
		return;
	}
	memcpy(&attach, &found, sizeof(attach));
	prepare(&args);
	before = sessions();
	errno = 77;
	attach(&args);
	kept = errno == 77;
	answer(&args, before, kept, false);
}

static void attach_by_stub(const char *how, unsigned long offset)
{
	static int fd = -1;
	struct channel_attach args;
	int (*stub)(struct channel_attach *);
	unsigned char resident;
	unsigned int before;
	bool kept, page;
	void *at;

	if (fd < 0)
		fd = library_copy();
	at = mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, (off_t)offset);
	if (at == MAP_FAILED)
		exit(8);
	prepare(&args);
	args.stub = (uint64_t)at;
	args.stub_size = 4096;
	snprintf(args.path, sizeof(args.path), "/proc/self/fd/%d", fd);
	if (!strcmp(how, "nofile"))
		snprintf(args.path, sizeof(args.path), "/proc/self/fd/%d", 9999);
	else if (!strcmp(how, "nosymbol"))
		snprintf(args.path, sizeof(args.path), "libm.so.6");
	else if (!strcmp(how, "cancelled"))
		args.cancelled = 1;
	else if (!strcmp(how, "late"))
		args.dlopen = (uint64_t)dlopen_and_cancel;
	else if (!strcmp(how, "wrong"))
		args.size--;
	under_way = &args;
	before = sessions();
	memcpy(&stub, &at, sizeof(stub));
	errno = 77;
	stub(&args);
	kept = errno == 77;
	page = !mincore(at, 4096, &resident);
	if (page)
		munmap(at, 4096);
	if (!handle && args.stage >= ATTACH_FOUND)
		handle = dlopen(args.path, RTLD_NOW | RTLD_NOLOAD);
	answer(&args, before, kept, page);
}

#endif
