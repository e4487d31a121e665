// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "loader/jit_maker.h"

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
#include "loader/environment.h"
#include "loader/roots.h"
#include "symbols/debug_file.h"

#define LOOK_NS 1000000000ull	/* at most this often for one process */
#define READ_BYTES (1ull << 20)	/* of a perf map, during the capture: some 10 ms */
#define READ_RECORDS 4096	/* of a jitdump file */
#define EXIT_BYTES (64ull << 20)	/* the same when the process exits: some 0.3 s */
#define EXIT_RECORDS (1u << 17)
#define ALL_BYTES (1ull << 30)	/* and when the capture is over: nobody can keep us reading */
#define ALL_RECORDS (1u << 21)
#define MAX_DUMPS 4		/* of one process */
#define MAX_AREAS 1024		/* mappings of memory files, of one process */

struct dump {
	int fd;			/* the registry's, always open */
	uint32_t file;
	struct jit_dump state;
};

struct area {
	uint64_t start, size, offset;
	uint32_t file;
};

struct jit_maker {
	struct files *registry;
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

struct jit_maker *jit_maker__new(struct files *files, struct jit_budget *budget, pid_t tgid)
{
	struct jit_maker *m = calloc(1, sizeof(*m));

	if (!m)
		return NULL;
	m->registry = files;
	m->tgid = tgid;
	m->perf = -1;
	m->map = jit_map__new(budget);
	if (m->map)
		return m;
	free(m);
	return NULL;
}

static void close_files(struct jit_maker *m)
{
	if (m->perf >= 0)
		close(m->perf);
	m->perf = -1;
	for (unsigned int i = 0; i < m->nr_dumps; i++)
		jit_dump__free(&m->dumps[i].state);
	m->nr_dumps = 0;
}

void jit_maker__free(struct jit_maker *m)
{
	if (!m)
		return;
	close_files(m);
	jit_map__free(m->map);
	free(m->areas);
	free(m->tmpdir);
	free(m);
}

/* --- what there is to know of the process --- */

static bool read_status(struct jit_maker *m)
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

static void get_to_know(struct jit_maker *m)
{
	m->known = read_status(m);
	m->root = roots__of(files__roots(m->registry), m->tgid);
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
static int open_map(const struct jit_maker *m, const char *dir)
{
	int root = roots__fd(files__roots(m->registry), m->root), fd;
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

static void look_for_map(struct jit_maker *m)
{
	if (m->perf >= 0 || !m->known)
		return;
	if (m->tmpdir)
		m->perf = open_map(m, m->tmpdir);
	if (m->perf < 0)
		m->perf = open_map(m, "/tmp");
}

/* --- reading --- */

/* Whether that was all. */
static bool read_map(struct jit_maker *m, uint64_t most, uint64_t now)
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

static bool read_dumps(struct jit_maker *m, uint64_t most)
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

static bool read_files(struct jit_maker *m, uint64_t bytes, uint64_t records)
{
	bool map, dumps;

	look_for_map(m);
	map = read_map(m, bytes, clock__now_ns());
	dumps = read_dumps(m, records);
	return map && dumps;
}

void jit_maker__look(struct jit_maker *m)
{
	uint64_t now = clock__now_ns();

	if (m->over || (m->looked && now < m->looked + LOOK_NS))
		return;
	m->looked = now;
	if (!m->known)
		get_to_know(m);
	read_files(m, READ_BYTES, READ_RECORDS);
}

void jit_maker__exited(struct jit_maker *m)
{
	if (m->over || !read_files(m, EXIT_BYTES, EXIT_RECORDS))
		return;
	close_files(m);
	m->over = true;
}

void jit_maker__read(struct jit_maker *m)
{
	if (!m->over)
		read_files(m, ALL_BYTES, ALL_RECORDS);
}

/* --- what it maps --- */

void jit_maker__add_dump(struct jit_maker *m, uint32_t file)
{
	int fd = files__fd(m->registry, file);

	if (m->over || m->nr_dumps == MAX_DUMPS || fd < 0)
		return;
	for (unsigned int i = 0; i < m->nr_dumps; i++)
		if (m->dumps[i].file == file)
			return;
	m->dumps[m->nr_dumps++] = (struct dump){ .fd = fd, .file = file };
}

void jit_maker__add_area(struct jit_maker *m, const struct mapping *mapping)
{
	const struct area new = {
		mapping->start, mapping->end - mapping->start, mapping->offset, mapping->file,
	};

	if (m->over || m->nr_areas == MAX_AREAS)
		return;
	for (size_t i = 0; i < m->nr_areas; i++)
		if (!memcmp(&m->areas[i], &new, sizeof(new)))
			return;
	if (!array__reserve((void **)&m->areas, &m->areas_size, m->nr_areas, sizeof(new)))
		m->areas[m->nr_areas++] = new;
	jit_maker__look(m);
}

bool jit_maker__address(const struct jit_maker *m, uint64_t word, uint64_t *address)
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

const char *jit_maker__name(struct jit_maker *m, uint64_t address, uint64_t time)
{
	return jit_map__find(m->map, address, time);
}
