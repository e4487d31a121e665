// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Addresses by name and version, error names. */
#include "sim.h"
#include <stdio.h>
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

API(cuGetErrorName, CUresult e, const char **name)
{
	static __thread char text[32] __attribute__((tls_model("global-dynamic")));

	snprintf(text, sizeof(text), "STANDIN_ERROR_%d", e);
	*name = text;
	return CU_OK;
}

API(cuGetErrorString, CUresult e, const char **text)
{
	return sim_cuGetErrorName(e, text);
}

API(cuGetExportTable, const void **table, const void *id)
{
	(void)id;
	*table = NULL;
	RET(CU_NOT_FOUND);
}
