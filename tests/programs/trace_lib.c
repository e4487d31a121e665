// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Stands in for the timing library where tests borrow threads: the same way in (gpu_timing/channel.h)
 * by the same stub, nothing behind it. What it is told to be by the program that it gets into, by a symbol:
 *
 *	int trace_lib_mode	0 (or no such symbol) starts a thread that ends at once
 *				1 refuses with -EPERM
 *				2 needs a second and a half
 *				3 waits until trace_lib_go is set
 *
 * trace_lib_calls counts in the program how often it came.
 */
#include <errno.h>
#include <linux/types.h>
#include <pthread.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "gpu_timing/channel.h"

#define EXPORTED __attribute__((visibility("default")))

extern int trace_lib_mode __attribute__((weak));
extern int trace_lib_calls __attribute__((weak));
extern int trace_lib_go __attribute__((weak));

EXPORTED struct channel_identity gpucollect_identity = {
	.magic = CHANNEL_IDENTITY_MAGIC,
	.abi = CHANNEL_ABI,
	.size = sizeof(gpucollect_identity),
	.segment_fd = -1,
};

EXPORTED int gpucollect_attach(struct channel_attach *a);

static void *nothing(void *arg)
{
	return arg;
}

static int start(void)
{
	pthread_attr_t attr;
	pthread_t thread;
	int err;

	pthread_attr_init(&attr);
	pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
	err = pthread_create(&thread, &attr, nothing, NULL);
	pthread_attr_destroy(&attr);
	return -err;
}

int gpucollect_attach(struct channel_attach *a)
{
	const struct timespec tick = { .tv_nsec = 1000000 };
	int mode = &trace_lib_mode ? trace_lib_mode : 0, kept = errno;

	__atomic_store_n(&a->stage, ATTACH_CALLED, __ATOMIC_RELEASE);
	for (int i = 0; i < 1500 && mode == 2; i++)
		nanosleep(&tick, NULL);
	while (mode == 3 && !__atomic_load_n(&trace_lib_go, __ATOMIC_ACQUIRE))
		nanosleep(&tick, NULL);
	free(malloc(100000));
	if (a->cancelled)
		a->status = -ECANCELED;
	else
		a->status = mode == 1 ? -EPERM : start();
	if (!a->status) {
		gpucollect_identity.sessions++;
		if (&trace_lib_calls)
			__atomic_add_fetch(&trace_lib_calls, 1, __ATOMIC_SEQ_CST);
	}
	errno = kept;
	__atomic_store_n(&a->stage, ATTACH_DONE, __ATOMIC_RELEASE);
	return 0;
}
