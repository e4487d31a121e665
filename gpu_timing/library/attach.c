// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "gpu_timing/library/attach.h"

#include <errno.h>
#include <pthread.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "gpu_timing/library/keeper.h"
#include "gpu_timing/library/session.h"

#define EXPORTED __attribute__((visibility("default")))

extern struct channel_identity gpucollect_identity;
EXPORTED struct channel_identity gpucollect_identity = {
	.magic = CHANNEL_IDENTITY_MAGIC,
	.abi = CHANNEL_ABI,
	.size = sizeof(struct channel_identity),
	.segment_fd = -1,
};

EXPORTED int gpucollect_attach(struct channel_attach *args);

/* What attach_stub.S takes for granted. */
#define OFFSET(field, at) _Static_assert(offsetof(struct channel_stub, field) == (at), "attach_stub.S")
OFFSET(attach.cancelled, 4);
OFFSET(attach.status, 8);
OFFSET(attach.stage, 12);
OFFSET(attach.error, 16);
OFFSET(created, 144);
OFFSET(released, 148);
OFFSET(pages, 152);
OFFSET(pages_size, 160);
OFFSET(attr_init, 168);
OFFSET(attr_setdetachstate, 176);
OFFSET(attr_setstacksize, 184);
OFFSET(pthread_create, 192);
OFFSET(errno_location, 200);
OFFSET(munmap, 208);
OFFSET(dlopen, 216);
OFFSET(dlsym, 224);
OFFSET(dlerror, 232);
OFFSET(thread, 240);
OFFSET(attr, 248);
OFFSET(path, 312);
_Static_assert(sizeof(((struct channel_attach *)0)->error) == 128 && ATTACH_STUB == 1 &&
	       ATTACH_LOADED == 2 && ATTACH_FOUND == 3, "attach_stub.S");
_Static_assert(sizeof(pthread_attr_t) <= sizeof(((struct channel_stub *)0)->attr) &&
	       sizeof(pthread_t) == 8 && PTHREAD_CREATE_DETACHED == 1, "attach_stub.S");

static uint32_t on_its_way;	/* pid of the process whose thread it is: a fork inherits it */

void identity__set(const uint32_t *owner, int segment_fd, uint32_t sessions)
{
	gpucollect_identity.sessions = sessions;
	gpucollect_identity.segment_fd = segment_fd;
	store_release(&gpucollect_identity.owner, (uint64_t)owner);
}

void identity__count(uint32_t sessions)
{
	store_relaxed(&gpucollect_identity.sessions, sessions);
}

bool way_in__enter(void)
{
	uint32_t own = (uint32_t)getpid(), other = 0;

	while (!__atomic_compare_exchange_n(&on_its_way, &other, own, false, __ATOMIC_ACQUIRE,
					    __ATOMIC_RELAXED))
		if (other == own)
			return false;
	return true;
}

void way_in__leave(void)
{
	store_release(&on_its_way, 0u);
}

static int refuse(struct channel_attach *args, int err, const char *why)
{
	strncpy(args->error, why, sizeof(args->error) - 1);
	return err;
}

static int attach(struct channel_attach *args)
{
	int err;

	if (load_acquire(&args->cancelled))
		return -ECANCELED;
	if (getenv("GPUCOLLECT_DISABLE"))
		return refuse(args, -EPERM, "GPUCOLLECT_DISABLE is set");
	if (!way_in__enter())
		return refuse(args, -EBUSY, "another thread attaches at this moment");
	err = session__open();
	if (err) {
		refuse(args, err, "the memory of the recording cannot be made");
	} else if (session__is_hidden()) {
		err = refuse(args, -EALREADY, "gpucollect records it already");
	} else {
		err = keeper__request();
		if (err)
			refuse(args, err, "no thread can be started");
	}
	way_in__leave();
	return err;
}

/*
 * Perhaps on a thread that the collector has borrowed: all that takes time is done by a thread of our
 * own, so that this one goes home.
 */
int gpucollect_attach(struct channel_attach *args)
{
	int saved = errno, err;

	/* Of a collector that means another struct. */
	if (args->size < sizeof(*args))
		return -EPROTO;
	store_release(&args->stage, (uint32_t)ATTACH_CALLED);
	err = attach(args);
	args->status = err;
	store_release(&args->stage, (uint32_t)ATTACH_DONE);
	errno = saved;
	return err;
}
