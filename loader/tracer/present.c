// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "loader/tracer/present.h"

#include <errno.h>
#include <stdio.h>

#include "loader/tracer/exports.h"
#include "loader/tracer/space.h"

/* Whether this mapping is the library's. -ENOENT: not; -ENOTSUP and why: it can't be used. */
static int take(struct present *p, const struct space *s, const struct mapping *m,
		const struct exports *e, char *why, size_t size)
{
	struct present found = { .file = files__fd(s->files, m->file) };
	uint64_t link;

	if (!elf_image__to_address(&e->image, m->offset, &link) ||
	    exports__find(e, "gpucollect_identity", &found.identity) ||
	    exports__find(e, "gpucollect_attach", &found.attach))
		return -ENOENT;
	found.identity += m->start - link;
	found.attach += m->start - link;
	/* A stub's page that was left behind is of that file, too, and lies anywhere. */
	if (space__peek(s->pid, found.identity, &found.found, sizeof(found.found)) ||
	    found.found.magic != CHANNEL_IDENTITY_MAGIC)
		return -ENOENT;
	if (found.found.abi != CHANNEL_ABI || found.found.size != sizeof(found.found)) {
		snprintf(why, size, "it holds the timing library of another version of gpucollect: "
			 "use that one, or start the process anew");
		return -ENOTSUP;
	}
	*p = found;
	return 0;
}

int present__find(struct present *p, const struct space *s, char *why, size_t size)
{
	uint32_t other = 0;	/* a file that is no such library */
	int err = -ENOENT;

	*p = (struct present){ .file = -1 };
	for (size_t i = 0; i < s->nr_code && err == -ENOENT; i++) {
		const struct mapping *m = &s->code[i];
		struct exports e;
		uint64_t address;

		if (m->kind != MAPPING_FILE || m->file == other ||
		    exports__open(&e, files__fd(s->files, m->file)))
			continue;
		if (exports__find(&e, "gpucollect_identity", &address))
			other = m->file;
		else
			err = take(p, s, m, &e, why, size);
		exports__close(&e);
	}
	return err == -ENOENT ? 0 : err;
}

bool present__is_there(const struct present *p, pid_t pid)
{
	struct channel_identity now;

	return !space__peek(pid, p->identity, &now, sizeof(now)) &&
	       now.magic == CHANNEL_IDENTITY_MAGIC && now.abi == CHANNEL_ABI;
}
