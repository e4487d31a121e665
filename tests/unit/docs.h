/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* A document of the project, for tests that compare it with the program. */
#ifndef TESTS_DOCS_H
#define TESTS_DOCS_H

#include <stdio.h>
#include <stdlib.h>

static char *read_document(const char *name)
{
	const char *top = getenv("TOP");
	char path[4096], *text = calloc(1, 1 << 18);
	FILE *f;

	snprintf(path, sizeof(path), "%s/%s", top ? top : ".", name);
	f = fopen(path, "r");
	if (!f || !text || !fread(text, 1, (1 << 18) - 1, f)) {
		perror(path);
		abort();
	}
	fclose(f);
	return text;
}

#endif
