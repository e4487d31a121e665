// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "loader/jit.h"

#include <errno.h>
#include <linux/types.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "bpf/gpucollect.h"
#include "loader/base/array.h"
#include "loader/base/clock.h"
#include "loader/base/log.h"
#include "loader/base/proc.h"
#include "loader/base/table.h"
#include "loader/environment.h"
#include "loader/roots.h"
#include "symbols/debug_file.h"
#include "symbols/jit_map.h"

#define LOOK_NS 1000000000ull	/* at most this often for one process */
#define READ_BYTES (1ull << 20)	/* of a perf map, during the capture: some 10 ms */
#define READ_RECORDS 4096	/* of a jitdump file */
#define EXIT_BYTES (64ull << 20)	/* the same when the process exits: some 0.3 s */
#define EXIT_RECORDS (1u << 17)
#define ALL_BYTES (1ull << 30)	/* and when the capture is over: nobody can keep us reading */
#define ALL_RECORDS (1u << 21)
#define MAX_DUMPS 4		/* of one process */
#define MAX_AREAS 1024		/* mappings of memory files, of one process */
#define MAX_PARENTS 16
#define NO_PARENT UINT32_MAX

struct dump {
	int fd;			/* the registry's, always open */
	uint32_t file;
	struct jit_dump state;
};

/* Code in a file that is nothing but memory: stacks have its offset there, names have addresses. */
struct area {
	uint64_t start, size, offset;
	uint32_t file;
};

struct maker {
	uint32_t parent;	/* index of a process */
	pid_t tgid, inner;	/* as we and as it itself see it */
	uid_t uid;
	bool known;		/* the fields below */
	bool over;		/* nothing more will be told */
	uint32_t root;
	char *tmpdir;		/* NULL: none, or /tmp */
	time_t started;		/* CLOCK_REALTIME; 0: not known */
	uint64_t looked;	/* CLOCK_MONOTONIC, ns */
	int perf;		/* -1: none found so far */
	uint64_t perf_at;
	uint64_t perf_whole;	/* when it was last read to its end */
	struct dump dumps[MAX_DUMPS];
	unsigned int nr_dumps;
	struct area *areas;
	size_t nr_areas, areas_size;
	struct jit_map *map;
};

/* What is to be known of a file. */
enum special { SPECIAL_DUMP, SPECIAL_MEMORY };

struct jit {
	struct files *files;
	struct jit_budget budget;
	struct table *makers;		/* index of a process -> struct maker */
	struct table *stacks;		/* number of a stack -> when it was met first */
	uint32_t checked;		/* files up to this one */
	struct table *special;		/* number of a file -> enum special */
};

struct jit *jit__new(struct files *files)
{
	struct jit *j = calloc(1, sizeof(*j));

	if (!j)
		return NULL;
	j->files = files;
	j->budget.bytes = JIT_MAX_BYTES;
	j->makers = table__new();
	j->stacks = table__new();
	j->special = table__new();
	if (j->makers && j->stacks && j->special)
		return j;
	jit__free(j);
	return NULL;
}

static void close_files(struct maker *m)
{
	if (m->perf >= 0)
		close(m->perf);
	m->perf = -1;
	for (unsigned int i = 0; i < m->nr_dumps; i++)
		jit_dump__free(&m->dumps[i].state);
	m->nr_dumps = 0;
}

void jit__free(struct jit *j)
{
	uint64_t key, value;
	size_t pos = 0;

	if (!j)
		return;
	while (j->makers && table__next(j->makers, &pos, &key, &value)) {
		struct maker *m = (struct maker *)(uintptr_t)value;

		close_files(m);
		jit_map__free(m->map);
		free(m->areas);
		free(m->tmpdir);
		free(m);
	}
	table__free(j->makers);
	table__free(j->stacks);
	table__free(j->special);
	free(j);
}

static struct maker *find(const struct jit *j, uint32_t process)
{
	uint64_t value;

	return table__get(j->makers, process, &value) ? (struct maker *)(uintptr_t)value : NULL;
}

static struct maker *get(struct jit *j, const struct process *p)
{
	struct maker *m = find(j, p->index);

	if (m)
		return m;
	m = calloc(1, sizeof(*m));
	if (!m)
		return NULL;
	m->parent = NO_PARENT;
	m->tgid = p->tgid;
	m->perf = -1;
	m->map = jit_map__new(&j->budget);
	if (m->map && !table__set(j->makers, p->index, (uintptr_t)m))
		return m;
	jit_map__free(m->map);
	free(m);
	return NULL;
}

/* --- what there is to know of the process --- */

static bool read_status(struct maker *m)
{
	char path[64], line[1024], *last;
	bool uid = false, inner = false;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/status", (int)m->tgid);
	f = fopen(path, "re");
	while (f && fgets(line, sizeof(line), f)) {
		if (!strncmp(line, "Uid:", 4))
			uid = sscanf(line, "Uid: %*u %u", &m->uid) == 1;
		if (!strncmp(line, "NSpid:", 6)) {	/* innermost last */
			last = strrchr(line, '\t');
			inner = last && sscanf(last, "%d", &m->inner) == 1;
		}
	}
	if (f)
		fclose(f);
	return uid && inner;
}

static time_t start_time(pid_t tgid)
{
	struct timespec boot, now;
	struct proc_stat stat;

	if (proc__stat(tgid, 0, &stat))
		return 0;
	clock_gettime(CLOCK_BOOTTIME, &boot);
	clock_gettime(CLOCK_REALTIME, &now);
	return now.tv_sec - boot.tv_sec + (time_t)(stat.started / (uint64_t)sysconf(_SC_CLK_TCK));
}

static void get_to_know(struct jit *j, struct maker *m)
{
	m->known = read_status(m);
	m->root = roots__of(files__roots(j->files), m->tgid);
	m->started = start_time(m->tgid);
	free(m->tmpdir);	/* it is tried again until the rest is known */
	environment__get(m->tgid, "TMPDIR", &m->tmpdir);
	if (m->tmpdir && (m->tmpdir[0] != '/' || !strcmp(m->tmpdir, "/tmp"))) {
		free(m->tmpdir);
		m->tmpdir = NULL;
	}
}

/*
 * Anybody can write into /tmp: a map counts if it belongs to the process's user or to root. One that was
 * not written since the process began is of another one that had its number.
 */
static int open_map(struct jit *j, const struct maker *m, const char *dir)
{
	int root = roots__fd(files__roots(j->files), m->root), fd;
	struct stat st;
	char *path;

	if (root < 0 || asprintf(&path, "%s/perf-%d.map", dir, (int)m->inner) < 0)
		return -1;
	fd = debug_file__open_below(root, path);
	if (fd >= 0 && (fstat(fd, &st) || (st.st_uid && st.st_uid != m->uid) ||
			st.st_mtime + 1 < m->started)) {
		log_debug("%s of process %d is not its own", path, (int)m->tgid);
		close(fd);
		fd = -1;
	}
	free(path);
	return fd < 0 ? -1 : fd;
}

static void look_for_map(struct jit *j, struct maker *m)
{
	if (m->perf >= 0 || !m->known)
		return;
	if (m->tmpdir)
		m->perf = open_map(j, m, m->tmpdir);
	if (m->perf < 0)
		m->perf = open_map(j, m, "/tmp");
}

/* --- reading --- */

/* Whether that was all. */
static bool read_map(struct maker *m, uint64_t most, uint64_t now)
{
	int ret;

	if (m->perf < 0)
		return true;
	ret = perf_map__read(m->perf, &m->perf_at, most, m->perf_whole, m->map);
	if (ret == 1)
		m->perf_whole = now;
	else if (ret < 0)
		log_debug("perf map of process %d: %s", (int)m->tgid, strerror(-ret));
	return ret;
}

static bool read_dumps(struct maker *m, uint64_t most)
{
	bool all = true;

	for (unsigned int i = 0; i < m->nr_dumps; i++) {
		int ret = jit_dump__read(&m->dumps[i].state, m->dumps[i].fd, most, m->map);

		if (ret < 0)
			log_debug("jitdump of process %d: %s", (int)m->tgid, strerror(-ret));
		all &= ret != 0;
	}
	return all;
}

static bool read_files(struct jit *j, struct maker *m, uint64_t bytes, uint64_t records)
{
	bool map, dumps;

	look_for_map(j, m);
	map = read_map(m, bytes, clock__now_ns());
	dumps = read_dumps(m, records);
	return map && dumps;
}

/* --- events --- */

static void look(struct jit *j, struct maker *m)
{
	uint64_t now = clock__now_ns();

	if (m->over || (m->looked && now < m->looked + LOOK_NS))
		return;
	m->looked = now;
	if (!m->known)
		get_to_know(j, m);
	read_files(j, m, READ_BYTES, READ_RECORDS);
}

void jit__met(struct jit *j, const struct process *p, uint32_t stack, uint64_t time)
{
	struct maker *m = get(j, p);
	uint64_t before;

	if (!m)
		return;
	if (!table__get(j->stacks, stack, &before))
		table__set(j->stacks, stack, time);
	look(j, m);
}

/* "jit-PID.dump", as the specification has it. */
static bool is_dump(const char *path)
{
	const char *name = strrchr(path, '/');
	size_t digits;

	if (!name || strncmp(name + 1, "jit-", 4))
		return false;
	digits = strspn(name + 5, "0123456789");
	/* " (deleted)" may follow */
	return digits && !strncmp(name + 5 + digits, ".dump", 5);
}

static void add_dump(struct jit *j, const struct process *p, uint32_t file)
{
	struct maker *m = get(j, p);

	if (!m || m->over || m->nr_dumps == MAX_DUMPS || files__fd(j->files, file) < 0)
		return;
	for (unsigned int i = 0; i < m->nr_dumps; i++)
		if (m->dumps[i].file == file)
			return;
	m->dumps[m->nr_dumps++] = (struct dump){ .fd = files__fd(j->files, file), .file = file };
}

static bool is_memory(const char *path)
{
	return !strncmp(path, "/memfd:", 7) || !strncmp(path, "/dev/shm/", 9);
}

static void add_area(struct jit *j, const struct process *p, const struct mapping *mapping)
{
	const struct area new = {
		mapping->start, mapping->end - mapping->start, mapping->offset, mapping->file,
	};
	struct maker *m = get(j, p);

	if (!m || m->over || m->nr_areas == MAX_AREAS)
		return;
	for (size_t i = 0; i < m->nr_areas; i++)
		if (!memcmp(&m->areas[i], &new, sizeof(new)))
			return;
	if (!array__reserve((void **)&m->areas, &m->areas_size, m->nr_areas, sizeof(new)))
		m->areas[m->nr_areas++] = new;
	look(j, m);
}

static void check_files(struct jit *j)
{
	for (; j->checked < files__count(j->files); j->checked++) {
		const char *path = files__path(j->files, j->checked + 1);

		if (is_dump(path))
			table__set(j->special, j->checked + 1, SPECIAL_DUMP);
		else if (is_memory(path))
			table__set(j->special, j->checked + 1, SPECIAL_MEMORY);
	}
}

void jit__mapped(struct jit *j, const struct process *p)
{
	uint64_t special;

	check_files(j);
	for (uint32_t i = 0; table__count(j->special) && i < p->nr_mappings; i++) {
		if (!table__get(j->special, p->mappings[i].file, &special))
			continue;
		if (special == SPECIAL_DUMP)
			add_dump(j, p, p->mappings[i].file);
		else
			add_area(j, p, &p->mappings[i]);
	}
}

void jit__forked(struct jit *j, const struct process *parent, const struct process *child)
{
	struct maker *m = find(j, parent->index) ? get(j, child) : NULL;

	if (m)
		m->parent = parent->index;
}

void jit__exited(struct jit *j, const struct process *p)
{
	struct maker *m = find(j, p->index);

	/* What is too much for now is read when the capture is over. */
	if (!m || m->over || !read_files(j, m, EXIT_BYTES, EXIT_RECORDS))
		return;
	close_files(m);
	m->over = true;
}

void jit__read(struct jit *j)
{
	uint64_t key, value;
	size_t pos = 0;

	while (table__next(j->makers, &pos, &key, &value)) {
		struct maker *m = (struct maker *)(uintptr_t)value;

		if (!m->over)
			read_files(j, m, ALL_BYTES, ALL_RECORDS);
	}
}

/* Where in the process the code of a word was; false: not known. A later mapping may be in its place. */
static bool address_of(const struct maker *m, uint64_t word, uint64_t *address)
{
	uint64_t offset = FRAME_OFFSET(word);

	switch (FRAME_KIND(word)) {
	case FRAME_ANON:
	case FRAME_ANON_GUESS:
		*address = FRAME_ADDRESS(word);
		return true;
	case FRAME_FILE:
	case FRAME_FILE_GUESS:
		for (size_t i = m->nr_areas; i > 0; i--) {
			const struct area *a = &m->areas[i - 1];

			if (a->file == FRAME_FILE_ID(word) && offset >= a->offset &&
			    offset - a->offset < a->size) {
				*address = a->start + (offset - a->offset);
				return true;
			}
		}
	}
	return false;
}

const char *jit__name(struct jit *j, const struct process *p, uint32_t stack, uint64_t word)
{
	struct maker *m = find(j, p->index);
	const char *name = NULL;
	uint64_t time, address;

	if (!m || !address_of(m, word, &address))
		return NULL;
	if (!table__get(j->stacks, stack, &time))
		time = UINT64_MAX;
	for (int i = 0; m && !name && i < MAX_PARENTS; i++) {
		name = jit_map__find(m->map, address, time);
		m = m->parent == NO_PARENT ? NULL : find(j, m->parent);
	}
	return name;
}

bool jit__overflowed(const struct jit *j)
{
	return j->budget.exhausted;
}
