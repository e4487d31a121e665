// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "tests/bpf/warm.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

#include <bpf/bpf.h>

static void *map_array(const struct warm *w, const char *name, size_t bytes)
{
	void *at = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED,
			bpf_object__find_map_fd_by_name(w->obj, name), 0);

	return at == MAP_FAILED ? NULL : at;
}

int warm__init(struct warm *w, struct bpf_object *obj)
{
	*w = (struct warm){ .obj = obj };
	w->rows = map_array(w, "rows", sizeof(*w->rows) * GPUCOLLECT_MAX_ROWS);
	w->rules = map_array(w, "rules", sizeof(*w->rules) * GPUCOLLECT_MAX_RULES);
	w->pythons = map_array(w, "pythons", sizeof(*w->pythons) * GPUCOLLECT_MAX_PYTHONS);
	w->freed = map_array(w, "python_freed", sizeof(*w->freed) * GPUCOLLECT_MAX_FREED);
	w->maps.procs_fd = bpf_object__find_map_fd_by_name(obj, "procs");
	w->maps.slots = map_array(w, "slots", sizeof(*w->maps.slots) * GPUCOLLECT_MAX_PROCS);
	w->maps.mappings = map_array(w, "mappings", sizeof(*w->maps.mappings) * GPUCOLLECT_MAX_MAPPINGS);
	if (!w->rows || !w->rules || !w->pythons || !w->freed || !w->maps.slots || !w->maps.mappings)
		return -ENOMEM;
	w->files = files__new();
	w->processes = w->files ? processes__new(&w->maps, w->files) : NULL;
	return w->processes ? 0 : -ENOMEM;
}

/* What is mapped stays so: the program ends soon. */
void warm__free(struct warm *w)
{
	unwind_store__free(w->store);
	processes__free(w->processes);
	files__free(w->files);
}

static int publish_page(void *ctx, const struct page_key *key, const struct page_rows *rows)
{
	const struct warm *w = ctx;

	return bpf_map_update_elem(bpf_object__find_map_fd_by_name(w->obj, "pages"), key, rows, BPF_ANY);
}

static int compile(struct warm *w, const struct mapping *m)
{
	struct page_rows rows;
	int err = 0;
	__u64 at;

	if (m->kind != MAPPING_FILE)
		return 0;
	for (at = m->offset; at < m->offset + m->end - m->start && !err; at += 4096)
		err = unwind_store__page(w->store, m->file, files__unwind(w->files, m->file),
					 at >> GPUCOLLECT_PAGE_SHIFT, &rows);
	return err;
}

struct process *warm__process(struct warm *w, pid_t tgid)
{
	const struct unwind_store_config config = {
		.rules = w->rules,
		.rows = w->rows,
		.max_rules = GPUCOLLECT_MAX_RULES - 1,
		.max_rows = GPUCOLLECT_MAX_ROWS,
		.max_pages = GPUCOLLECT_MAX_PAGES,
		.publish = publish_page,
		.ctx = w,
	};
	struct process *p = processes__get(w->processes, tgid, true);
	int err = !p ? -ENOMEM : w->store ? 0 : unwind_store__new(&w->store, &config);
	uint32_t i;

	for (i = 0; !err && i < p->nr_mappings; i++)
		err = compile(w, &p->mappings[i]);
	errno = -err;
	return err ? NULL : p;
}

int warm__compare(const void *a, const void *b)
{
	const double *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

double warm__median(double *values, size_t nr)
{
	qsort(values, nr, sizeof(*values), warm__compare);
	return values[nr / 2];
}

void warm__row(const char *what, double value, const char *first, const char *goal)
{
	printf("%-64s %12.1f %10s %10s\n", what, value, first, goal);
}
