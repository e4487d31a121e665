// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The way in: the driver loads us during cuInit (CUDA_INJECTION64_PATH) and calls
 * InitializeInjection. No call into the driver is made here; only data is read, and, if all of it
 * is as expected, the slots are swapped.
 */
#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "gpu_timing/library/harvest.h"
#include "gpu_timing/library/library.h"
#include "gpu_timing/library/segment.h"
#include "gpu_timing/library/slot.h"

struct library lib __attribute__((visibility("hidden")));

static int make_memory(void)
{
	struct memory *m = mmap(NULL, sizeof(*m), PROT_READ | PROT_WRITE,
				MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (m == MAP_FAILED)
		return -errno;
	/* In a forked child all of it reads as 0: not active. No other way sees every fork. */
	if (madvise(m, sizeof(*m), MADV_WIPEONFORK)) {
		int err = -errno;

		munmap(m, sizeof(*m));
		return err;
	}
	lib.memory = m;
	thread__init();
	m->names.epoch = 1;
	m->guard.owner = 1;
	return 0;
}

static enum channel_reason arm(const void *caller, uint32_t *detail)
{
	enum channel_reason reason;
	int err = make_memory();

	if (err) {
		*detail = (uint32_t)-err;
		return REASON_NO_MEMORY;
	}
	reason = driver__find(&lib.driver, caller);
	if (!reason)
		reason = slot__prepare(detail);
	if (reason)
		return reason;
	/* Before the slots: from then on somebody has to watch the collector. */
	err = harvest__start();
	if (err) {
		*detail = (uint32_t)-err;
		return REASON_NO_THREAD;
	}
	store_release(&lib.memory->guard.active, 1u);
	reason = slot__arm(detail);
	if (reason)
		store_release(&lib.memory->guard.active, 0u);
	return reason;
}

__attribute__((visibility("default"))) int InitializeInjection(void);

int InitializeInjection(void)
{
	static uint32_t called;
	enum channel_reason reason;
	uint32_t detail = 0;
	int saved = errno, fd;

	if (__atomic_exchange_n(&called, 1u, __ATOMIC_ACQ_REL) || getenv("GPUCOLLECT_DISABLE"))
		return 1;
	fd = segment__create(&lib.segment);
	if (fd >= 0) {
		reason = arm(__builtin_return_address(0), &detail);
		lib.segment->reason = (uint32_t)reason;
		lib.segment->detail = reason ? detail : 0;
		segment__publish(lib.segment, reason ? CHANNEL_REFUSED : CHANNEL_ARMED);
		harvest__go(!reason);
	}
	gpucollect_site_nop1(0, (void *)(intptr_t)fd);
	errno = saved;
	return 1;
}
