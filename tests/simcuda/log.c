// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The driver's error log, as far as a guest can leave marks in it: the stubs put in every result
 * but 0, 3, 4 and 600. Counted (STANDIN_STATS: logged) and given to the registered callback.
 */
#include "sim.h"
#include <stdio.h>
#include <string.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static CUlogsCallback callback;
static void *callback_data;
static char handle;			/* its address is the handle of the one callback */

void sim__log(const char *text)
{
	enum { LEVEL_ERROR = 0 };
	char copy[160];
	CUlogsCallback call;
	void *data;

	count(thread__self(), C_logged);
	pthread_mutex_lock(&lock);
	call = callback;
	data = callback_data;
	pthread_mutex_unlock(&lock);
	if (!call)
		return;
	snprintf(copy, sizeof(copy), "%s", text);
	call(data, LEVEL_ERROR, copy, strlen(copy));
}

void simcuda_log_result(const char *entry, CUresult r)
{
	const char *name = sim__error_name(r);
	char text[160];

	snprintf(text, sizeof(text), "Returning %d (%s) from %s", r, name ? name : "unknown",
		 entry);
	sim__log(text);
}

API(cuLogsRegisterCallback, CUlogsCallback call, void *data, void **out)
{
	ENTER();
	if (!call)
		RET(CU_INVALID_VALUE);
	pthread_mutex_lock(&lock);
	callback = call;
	callback_data = data;
	pthread_mutex_unlock(&lock);
	if (out)
		*out = &handle;
	RET(CU_OK);
}

API(cuLogsUnregisterCallback, void *which)
{
	ENTER();
	if (which != &handle)
		RET(CU_INVALID_HANDLE);
	pthread_mutex_lock(&lock);
	callback = NULL;
	pthread_mutex_unlock(&lock);
	RET(CU_OK);
}
