// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The way in with a command that gpucollect starts: the driver loads us during cuInit
 * (CUDA_INJECTION64_PATH) and calls InitializeInjection. No call into the driver is made here; only
 * data is read, and, if all of it is as expected, the slots are swapped.
 */
#include <errno.h>
#include <stdlib.h>

#include "gpu_timing/library/attach.h"
#include "gpu_timing/library/keeper.h"
#include "gpu_timing/library/session.h"

__attribute__((visibility("default"))) int InitializeInjection(void);

/* At once, since launches follow: the collector comes later. */
static void begin(const void *caller)
{
	enum channel_reason reason;
	uint32_t detail;
	int err;

	reason = session__begin(caller, &detail);
	if (!reason)
		reason = session__arm(&detail);
	if (!reason) {
		/* From now on somebody has to watch the collector. */
		err = keeper__start_armed();
		if (err) {
			session__retire(REASON_NO_THREAD);
			reason = REASON_NO_THREAD;
			detail = (uint32_t)-err;
		}
	}
	session__publish(reason ? CHANNEL_REFUSED : CHANNEL_ARMED, reason, detail);
}

int InitializeInjection(void)
{
	static uint32_t called;
	int saved = errno, err;

	if (__atomic_exchange_n(&called, 1u, __ATOMIC_ACQ_REL) || getenv("GPUCOLLECT_DISABLE") ||
	    !way_in__enter())
		return 1;
	/* Else a collector came by the other way before the program had started the driver. */
	if (!lib.memory) {
		err = session__open();
		if (!err)
			begin(__builtin_return_address(0));
		else
			gpucollect_site_nop1(0, (void *)(intptr_t)err);
	}
	way_in__leave();
	errno = saved;
	return 1;
}
