// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "gpu_timing/reader.h"

#include <stdio.h>
#include <string.h>

#define MAX_ERRNO 4096

const char *channel__cause_text(enum launch_cause cause)
{
	static const char *const text[NR_LAUNCH_CAUSES] = {
		[CAUSE_NONE] = "timed",
		[CAUSE_CAPTURED] = "captured into a graph",
		[CAUSE_PDL] = "in a chain of programmatic dependent launches",
		[CAUSE_POOL_EMPTY] = "no event free",
		[CAUSE_OUTSTANDING] = "too many brackets under way in the stream",
		[CAUSE_OTHER_CONTEXT] = "context not current or not known",
		[CAUSE_RECORD_FAILED] = "event could not be recorded",
		[CAUSE_LAUNCH_FAILED] = "launch failed",
		[CAUSE_CONTEXT_GONE] = "context destroyed before the end",
		[CAUSE_CONTEXT_ERROR] = "context in error",
		[CAUSE_NO_END] = "no end seen",
		[CAUSE_DISTURBED] = "another thread used the stream at the same time",
		[CAUSE_NO_STREAM] = "too many streams",
		[CAUSE_ENTRY] = "entry point that is never timed",
		[CAUSE_BAD_TIME] = "impossible time from the driver",
	};

	return (unsigned int)cause < NR_LAUNCH_CAUSES ? text[cause] : "unknown cause";
}

const char *channel__copy_text(enum copy_kind kind)
{
	static const char *const text[NR_COPY_KINDS] = {
		[COPY_UNKNOWN] = "memcpy",
		[COPY_HTOD] = "memcpy HtoD",
		[COPY_DTOH] = "memcpy DtoH",
		[COPY_DTOD] = "memcpy DtoD",
		[COPY_PTOP] = "memcpy PtoP",
		[COPY_HTOH] = "memcpy HtoH",
		[COPY_SET] = "memset",
		[COPY_HTOA] = "memcpy HtoA",
		[COPY_ATOH] = "memcpy AtoH",
		[COPY_ATOD] = "memcpy AtoD",
		[COPY_DTOA] = "memcpy DtoA",
		[COPY_ATOA] = "memcpy AtoA",
	};

	return text[(unsigned int)kind < NR_COPY_KINDS ? kind : COPY_UNKNOWN];
}

const char *channel__reason_text(enum channel_reason reason)
{
	static const char *const text[NR_CHANNEL_REASONS] = {
		[REASON_NONE] = "none",
		[REASON_NO_DRIVER] = "the driver that loaded the timing library could not be found",
		[REASON_TWO_DRIVERS] = "two different libcuda are loaded",
		[REASON_NO_SYMBOL] = "the driver lacks an entry point",
		[REASON_SHAPE] = "an entry point of the driver has an unknown shape",
		[REASON_EXITING] = "the driver is shut down already",
		[REASON_SLOT_PLACE] = "a dispatch slot is not where it should be",
		[REASON_SLOT_SHARED] = "two entry points share a dispatch slot",
		[REASON_SLOT_FOREIGN] = "another tool has taken over the driver's entry points",
		[REASON_SLOT_WRITE] = "a dispatch slot could not be written",
		[REASON_NO_MEMORY] = "no memory",
		[REASON_NO_THREAD] = "no thread could be started",
		[REASON_NO_CALL] = "the driver lacks a call that timing needs",
		[REASON_STOPPED] = "stopped",
		[REASON_SILENT] = "the collector fell silent",
		[REASON_NO_COLLECTOR] = "no collector came",
		[REASON_EXIT] = "the program ended",
		[REASON_SUPERSEDED] = "attached anew",
		[REASON_STRAGGLER] = "a thread is still inside the recording before",
	};

	return (unsigned int)reason < NR_CHANNEL_REASONS ? text[reason] : "unknown reason";
}

const char *channel__refusal(char *buf, enum channel_reason reason, uint32_t detail)
{
	const char *more = "";

	if (reason == REASON_NONE || (unsigned int)reason >= NR_CHANNEL_REASONS)
		return "the timing library gives no reason that is known";
	if (reason >= REASON_NO_SYMBOL && reason <= REASON_SLOT_FOREIGN &&
	    detail != ENTRY_UNKNOWN && detail < NR_CHANNEL_SLOTS)
		more = channel__slot_name(detail);
	else if (reason >= REASON_SLOT_WRITE && reason <= REASON_NO_THREAD && detail && detail < MAX_ERRNO)
		more = strerror((int)detail);
	snprintf(buf, CHANNEL_REFUSAL, "%s%s%s", channel__reason_text(reason), *more ? ": " : "", more);
	return buf;
}

const char *channel__slot_name(uint32_t slot)
{
	static const char *const name[NR_CHANNEL_SLOTS] = {
		[ENTRY_UNKNOWN] = "none",
#define CHANNEL_SLOT_NAME(slot, symbol) [slot] = symbol,
		CHANNEL_SLOT_LIST(CHANNEL_SLOT_NAME)
#undef CHANNEL_SLOT_NAME
	};

	return slot < NR_CHANNEL_SLOTS ? name[slot] : "unknown";
}
