// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "loader/mappings.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "loader/base/array.h"
#include "loader/maps.h"
#include "loader/recent.h"
#include "unwind/elf_view.h"
#include "unwind/file.h"

#define PAGE 4096ull
#define MAX_OFFSET (1ull << FRAME_OFFSET_BITS)

/* A piece of a file, as a line tells it. */
struct place {
	uint64_t start, end, offset;
	uint64_t inode;
	uint32_t dev_major, dev_minor;
};

struct gather {
	struct files *files;
	pid_t tgid;
	const struct mappings *before;
	struct mappings *out;
	size_t room;
	uint32_t at;		/* in the list from before */
	struct place last;	/* of a file; inode 0: none */
	uint32_t hole;		/* what follows it without a gap, from this one of the list on */
	uint64_t hole_end;
};

/* Of the list from before, whose files need not be asked for their numbers again; 0: none. */
static uint32_t known_file(struct gather *g, const struct maps_line *line)
{
	const struct mapping *list = g->before->list;

	while (g->at < g->before->nr && list[g->at].start < line->start)
		g->at++;
	if (g->at == g->before->nr || list[g->at].start != line->start ||
	    list[g->at].end != line->end || list[g->at].offset != line->offset ||
	    !files__is(g->files, list[g->at].file, line))
		return 0;
	return list[g->at].file;
}

static int add(struct gather *g, const struct maps_line *line)
{
	struct mappings *out = g->out;
	struct mapping *m;

	if (out->nr == GPUCOLLECT_MAX_PROC_MAPPINGS) {
		out->cut = true;
		return 0;
	}
	if (array__reserve((void **)&out->list, &g->room, out->nr, sizeof(*m)))
		return -ENOMEM;
	m = &out->list[out->nr++];
	m->start = line->start;
	m->end = line->end;
	m->offset = line->offset;
	m->file = known_file(g, line);
	if (!m->file)
		m->file = files__of_mapping(g->files, g->tgid, line);
	if (line->offset >= MAX_OFFSET || line->end - line->start > MAX_OFFSET - line->offset)
		m->file = 0;		/* a word can't hold it */
	m->kind = m->file ? MAPPING_FILE :
		  strcmp(line->path, "[uprobes-trampoline]") ? MAPPING_ANON : MAPPING_TRAMPOLINE;
	return 0;
}

/* --- code that was copied into memory ---------------------------------------------------------- */

/* The segment whose pages hold `at`, an offset in the file or an address as the file has them. */
static const struct elf_segment *segment_of(const struct elf_view *view, uint64_t at, bool by_address,
					    bool executable)
{
	const struct elf_segment *s;
	size_t nr, i;

	s = elf_view__segments(view, &nr);
	for (i = 0; i < nr; i++) {
		uint64_t first = (by_address ? s[i].vaddr : s[i].offset) & ~(PAGE - 1);

		if (at >= first && at - first < s[i].size + PAGE && (s[i].executable || !executable))
			return &s[i];
	}
	return NULL;
}

/* Where in the file the code is that belongs at `start`; false: none of it does. */
static bool text_at(const struct elf_view *view, const struct place *near, uint64_t start, uint64_t *offset)
{
	const struct elf_segment *s = segment_of(view, near->offset, false, false);
	uint64_t vaddr;

	if (!s)
		return false;
	vaddr = s->vaddr + (near->offset - s->offset) + (start - near->start);
	s = segment_of(view, vaddr, true, true);
	if (!s)
		return false;
	*offset = s->offset + (vaddr - s->vaddr);
	return *offset < MAX_OFFSET / 2;
}

/* The memory between two parts of one file takes the place of what lies between them in the file. */
static void fill_hole(struct gather *g, const struct maps_line *next)
{
	uint32_t file = files__of_mapping(g->files, g->tgid, next), i;
	struct unwind_file *unwind = files__unwind(g->files, file);
	struct mapping *m;
	uint64_t offset;

	for (i = g->hole; unwind && i < g->out->nr; i++) {
		m = &g->out->list[i];
		if (m->kind != MAPPING_ANON || m->end - m->start > MAX_OFFSET / 2 ||
		    !text_at(unwind_file__view(unwind), &g->last, m->start, &offset))
			continue;
		m->kind = MAPPING_FILE;
		m->file = file;
		m->offset = offset;
	}
}

static bool is_of_last(const struct gather *g, const struct maps_line *line)
{
	return line->inode && g->last.inode == line->inode && g->last.dev_major == line->dev_major &&
	       g->last.dev_minor == line->dev_minor;
}

static int on_line(const struct maps_line *line, void *arg)
{
	struct gather *g = arg;
	uint32_t nr = g->out->nr;
	int err = line->executable ? add(g, line) : 0;
	bool memory = line->executable && g->out->nr > nr && g->out->list[nr].kind == MAPPING_ANON;

	if (err)
		return err;
	if (memory && line->start == g->hole_end) {
		g->hole_end = line->end;
		return 0;
	}
	if (is_of_last(g, line) && line->start == g->hole_end && g->hole < nr)
		fill_hole(g, line);
	g->last = (struct place){
		line->start, line->end, line->offset, memory ? 0 : line->inode, line->dev_major,
		line->dev_minor,
	};
	g->hole = g->out->nr;
	g->hole_end = line->end;
	return 0;
}

static int finish(struct mappings *out, int err)
{
	if (!err)
		return 0;
	free(out->list);
	*out = (struct mappings){};
	return err;
}

int mappings__read(struct files *files, pid_t tgid, const struct mappings *before,
		   struct mappings *out)
{
	struct gather g = { .files = files, .tgid = tgid, .before = before, .out = out };

	*out = (struct mappings){};
	return finish(out, maps__read_all(tgid, on_line, &g));
}

int mappings__recall(struct files *files, pid_t tgid, const struct recent *recent, uint64_t time,
		     struct mappings *out)
{
	const struct mappings none = {};
	struct gather g = { .files = files, .tgid = tgid, .before = &none, .out = out };

	*out = (struct mappings){};
	return finish(out, recent__each(recent, tgid, time, on_line, &g));
}
