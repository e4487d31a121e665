// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Addresses by name and version, error names. */
#include "sim.h"
#include <string.h>

enum { PER_THREAD = 2 };		/* flag of cuGetProcAddress */
enum { FOUND = 0, NOT_FOUND = 1, TOO_NEW = 2 };

#define ENTRY(symbol, base, since, ...) extern char stub_##symbol[];
#include "entries.def"
#undef ENTRY

static const struct entry {
	const char *symbol, *base;
	int since;
	char *stub;
} entries[] = {
#define ENTRY(symbol, base, since, ...) { #symbol, #base, since, stub_##symbol },
#include "entries.def"
#undef ENTRY
};

static bool per_thread(const char *symbol)
{
	size_t n = strlen(symbol);

	return n > 5 && (!strcmp(symbol + n - 5, "_ptsz") || !strcmp(symbol + n - 5, "_ptds"));
}

/* The newest form that the version has; a per-thread form only if asked for, then before others. */
static const struct entry *find(const char *name, int version, bool own, bool *known)
{
	const struct entry *best = NULL;

	for (size_t i = 0; i < sizeof(entries) / sizeof(*entries); i++) {
		const struct entry *e = &entries[i];

		if (!strcmp(e->symbol, name) && strcmp(e->base, name))
			return e;	/* asked for by its full name */
		if (strcmp(e->base, name))
			continue;
		*known = true;
		if (e->since > version || (per_thread(e->symbol) && !own))
			continue;
		if (!best || per_thread(e->symbol) > per_thread(best->symbol) ||
		    (per_thread(e->symbol) == per_thread(best->symbol) && e->since >= best->since))
			best = e;
	}
	return best;
}

static CUresult address_of(const char *name, void **p, int version, unsigned long long flags,
			   int *status)
{
	const struct entry *e;
	bool known = false;

	if (status)
		*status = NOT_FOUND;
	if (!name || !*name || !p)
		return CU_INVALID_VALUE;
	*p = NULL;
	e = find(name, version, flags & PER_THREAD, &known);
	if (status)
		*status = e ? FOUND : known ? TOO_NEW : NOT_FOUND;
	if (!e)
		return CU_NOT_FOUND;
	*p = e->stub;
	return CU_OK;
}

API(cuGetProcAddress_v2, const char *name, void **p, int version, unsigned long long flags,
    int *status)
{
	RET(address_of(name, p, version, flags, status));
}

API(cuGetProcAddress, const char *name, void **p, int version, unsigned long long flags)
{
	RET(address_of(name, p, version, flags, NULL));
}

static const struct {
	CUresult result;
	const char *name;
} error_names[] = {
	{ CU_OK, "CUDA_SUCCESS" },
	{ CU_INVALID_VALUE, "CUDA_ERROR_INVALID_VALUE" },
	{ CU_NOT_INITIALIZED, "CUDA_ERROR_NOT_INITIALIZED" },
	{ CU_DEINITIALIZED, "CUDA_ERROR_DEINITIALIZED" },
	{ CU_INVALID_DEVICE, "CUDA_ERROR_INVALID_DEVICE" },
	{ CU_INVALID_IMAGE, "CUDA_ERROR_INVALID_IMAGE" },
	{ CU_INVALID_CONTEXT, "CUDA_ERROR_INVALID_CONTEXT" },
	{ CU_INVALID_HANDLE, "CUDA_ERROR_INVALID_HANDLE" },
	{ CU_ILLEGAL_STATE, "CUDA_ERROR_ILLEGAL_STATE" },
	{ CU_NOT_FOUND, "CUDA_ERROR_NOT_FOUND" },
	{ CU_NOT_READY, "CUDA_ERROR_NOT_READY" },
	{ CU_ILLEGAL_ADDRESS, "CUDA_ERROR_ILLEGAL_ADDRESS" },
	{ CU_CONTEXT_IS_DESTROYED, "CUDA_ERROR_CONTEXT_IS_DESTROYED" },
	{ CU_LAUNCH_FAILED, "CUDA_ERROR_LAUNCH_FAILED" },
	{ CU_NOT_SUPPORTED, "CUDA_ERROR_NOT_SUPPORTED" },
	{ CU_CAPTURE_UNSUPPORTED, "CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED" },
	{ CU_CAPTURE_INVALIDATED, "CUDA_ERROR_STREAM_CAPTURE_INVALIDATED" },
	{ CU_CAPTURE_MERGE, "CUDA_ERROR_STREAM_CAPTURE_MERGE" },
	{ CU_CAPTURE_UNMATCHED, "CUDA_ERROR_STREAM_CAPTURE_UNMATCHED" },
	{ CU_CAPTURE_UNJOINED, "CUDA_ERROR_STREAM_CAPTURE_UNJOINED" },
	{ CU_CAPTURE_ISOLATION, "CUDA_ERROR_STREAM_CAPTURE_ISOLATION" },
	{ CU_CAPTURE_IMPLICIT, "CUDA_ERROR_STREAM_CAPTURE_IMPLICIT" },
	{ CU_CAPTURED_EVENT, "CUDA_ERROR_CAPTURED_EVENT" },
	{ CU_CAPTURE_WRONG_THREAD, "CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD" },
	{ CU_GRAPH_EXEC_UPDATE_FAILURE, "CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE" },
};

const char *sim__error_name(CUresult r)
{
	for (size_t i = 0; i < sizeof(error_names) / sizeof(*error_names); i++)
		if (error_names[i].result == r)
			return error_names[i].name;
	return NULL;
}

API(cuGetErrorName, CUresult e, const char **name)
{
	*name = sim__error_name(e);
	return *name ? CU_OK : CU_INVALID_VALUE;
}

API(cuGetErrorString, CUresult e, const char **text)
{
	*text = sim__error_name(e);
	return *text ? CU_OK : CU_INVALID_VALUE;
}

API(cuGetExportTable, const void **table, const void *id)
{
	(void)id;
	*table = NULL;
	RET(CU_NOT_FOUND);
}
