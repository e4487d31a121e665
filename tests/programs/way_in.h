/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* How gpu_attach lets the library in: what a tracer would make one of its threads do. */
#ifndef TESTS_PROGRAMS_WAY_IN_H
#define TESTS_PROGRAMS_WAY_IN_H

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/types.h>
#include <pthread.h>
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

static int no_thread(pthread_t *thread, const pthread_attr_t *attr, void *(*start)(void *), void *arg)
{
	(void)thread, (void)attr, (void)start, (void)arg;
	errno = ENOMEM;
	return EAGAIN;
}

static int large_thread(pthread_t *thread, const pthread_attr_t *attr, void *(*start)(void *),
			void *arg)
{
	size_t size = 0;
	int state = -1;

	pthread_attr_getstacksize(attr, &size);
	pthread_attr_getdetachstate(attr, &state);
	if (state != PTHREAD_CREATE_DETACHED)
		exit(9);
	return size < 1 << 20 ? EINVAL : pthread_create(thread, attr, start, arg);
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

static void *stub_pages(int fd, off_t offset)
{
	char *at = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (at == MAP_FAILED || mmap(at, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_FIXED, fd,
				     offset) == MAP_FAILED)
		exit(8);
	return at;
}

static void prepare_stub(struct channel_stub *stub, const char *how, int fd)
{
	*stub = (struct channel_stub){
		.created = -EINPROGRESS,
		.pages = (uint64_t)stub - 4096,
		.pages_size = 8192,
		.attr_init = (uint64_t)pthread_attr_init,
		.attr_setdetachstate = (uint64_t)pthread_attr_setdetachstate,
		.attr_setstacksize = (uint64_t)pthread_attr_setstacksize,
		.pthread_create = (uint64_t)pthread_create,
		.errno_location = (uint64_t)__errno_location,
		.munmap = (uint64_t)munmap,
		.dlopen = (uint64_t)dlopen,
		.dlsym = (uint64_t)dlsym,
		.dlerror = (uint64_t)dlerror,
	};
	prepare(&stub->attach);
	snprintf(stub->path, sizeof(stub->path), "/proc/self/fd/%d", fd);
	if (!strcmp(how, "nofile"))
		snprintf(stub->path, sizeof(stub->path), "/proc/self/fd/%d", 9999);
	else if (!strcmp(how, "nosymbol"))
		snprintf(stub->path, sizeof(stub->path), "libm.so.6");
	else if (!strcmp(how, "cancelled"))
		stub->attach.cancelled = 1;
	else if (!strcmp(how, "late"))
		stub->dlopen = (uint64_t)dlopen_and_cancel;
	else if (!strcmp(how, "wrong"))
		stub->attach.size--;
	else if (!strcmp(how, "nothread"))
		stub->pthread_create = (uint64_t)no_thread;
	else if (!strcmp(how, "large"))
		stub->pthread_create = (uint64_t)large_thread;
}

/* Until the thread is over with it, or, where it never says so, a while. */
static void wait_for_stub(const struct channel_attach *a)
{
	for (int i = 0; i < 2000; i++) {
		uint32_t stage = __atomic_load_n(&a->stage, __ATOMIC_ACQUIRE);

		if (stage == ATTACH_DONE || (stage < ATTACH_CALLED &&
		    __atomic_load_n(&a->status, __ATOMIC_ACQUIRE) != -EINPROGRESS))
			return;
		usleep(1000);
	}
}

static bool is_mapped(void *page)
{
	unsigned char resident;

	return !mincore(page, 4096, &resident);
}

static void attach_by_stub(const char *how, unsigned long offset)
{
	static int fd = -1;
	int (*call)(struct channel_stub *);
	struct channel_attach came_back;
	struct channel_stub *stub;
	unsigned int before = sessions();
	char path[sizeof(stub->path)];
	void *pages;
	int created;
	bool kept;

	if (fd < 0)
		fd = library_copy();
	pages = stub_pages(fd, (off_t)offset);
	stub = (void *)((char *)pages + 4096);
	prepare_stub(stub, how, fd);
	under_way = &stub->attach;
	memcpy(&call, &pages, sizeof(call));
	errno = 77;
	call(stub);
	kept = errno == 77;
	if (!stub->created)
		wait_for_stub(&stub->attach);
	usleep(5000);
	came_back = stub->attach;
	created = stub->created;
	if (created)
		came_back.status = created;
	if (!is_mapped(pages))
		exit(9);
	memcpy(path, stub->path, sizeof(path));
	__atomic_store_n(&stub->released, 1, __ATOMIC_RELEASE);
	for (int i = 0; !created && is_mapped(pages) && i < 10000; i++)
		usleep(1000);
	if (!handle && came_back.stage >= ATTACH_FOUND)
		handle = dlopen(path, RTLD_NOW | RTLD_NOLOAD);
	answer(&came_back, before, kept, is_mapped(pages));
	if (is_mapped(pages))
		munmap(pages, 8192);
}

#endif
