// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Reading perf maps and jitdump files. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "loader/base/table.h"
#include "symbols/jit_map.h"

#define CHUNK (256u << 10)

/* What there is of `len` bytes at `at`; -errno. */
static ssize_t read_at(int fd, uint64_t at, void *to, size_t len)
{
	size_t done = 0;
	ssize_t n;

	while (done < len) {
		n = pread(fd, (char *)to + done, len - done, (off_t)(at + done));
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		if (n == 0)
			break;
		done += (size_t)n;
	}
	return (ssize_t)done;
}

/* --- perf maps ------------------------------------------------------------------------------ */

/* A hexadecimal number and the blanks behind it. */
static bool take_hex(const char **at, const char *end, uint64_t *value)
{
	const char *s = *at, *first;

	if (end - s > 2 && s[0] == '0' && (s[1] | 32) == 'x')
		s += 2;
	*value = 0;
	for (first = s; s < end && s - first <= 16; s++) {
		char c = *s;

		if (c >= '0' && c <= '9')
			*value = *value << 4 | (uint64_t)(c - '0');
		else if ((c | 32) >= 'a' && (c | 32) <= 'f')
			*value = *value << 4 | (uint64_t)((c | 32) - 'a' + 10);
		else
			break;
	}
	if (s == first || s - first > 16 || s == end || *s != ' ')
		return false;
	while (s < end && *s == ' ')
		s++;
	*at = s;
	return true;
}

static int parse_line(const char *line, const char *end, uint64_t time, struct jit_map *m)
{
	uint64_t start, size;

	if (!take_hex(&line, end, &start) || !take_hex(&line, end, &size))
		return 0;
	while (end > line && (end[-1] == '\r' || end[-1] == ' '))
		end--;
	return jit_map__add(m, start, size, time, line, (size_t)(end - line));
}

/* Bytes of whole lines, of one that fills the room its part; negative errno. */
static ssize_t parse_lines(const char *text, size_t len, uint64_t time, struct jit_map *m)
{
	const char *line = text, *end = text + len, *eol;
	int err = 0;

	while (!err && (eol = memchr(line, '\n', (size_t)(end - line)))) {
		err = parse_line(line, eol, time, m);
		line = eol + 1;
	}
	if (!err && line == text && len == CHUNK)
		return (ssize_t)len;
	return err ? err : line - text;
}

int perf_map__read(int fd, uint64_t *at, uint64_t most, uint64_t time, struct jit_map *m)
{
	uint64_t begin;
	ssize_t len, used;
	struct stat st;
	char *chunk;

	if (fstat(fd, &st))
		return -errno;
	if ((uint64_t)st.st_size < *at)
		*at = 0;
	chunk = malloc(CHUNK);
	if (!chunk)
		return -ENOMEM;
	begin = *at;
	do {
		len = read_at(fd, *at, chunk, CHUNK);
		used = len > 0 ? parse_lines(chunk, (size_t)len, time, m) : len;
		if (used > 0)
			*at += (uint64_t)used;
	} while (used > 0 && len == CHUNK && *at - begin < most);
	free(chunk);
	return used < 0 ? (int)used : used == 0 || len < (ssize_t)CHUNK;
}

/* --- jitdump -------------------------------------------------------------------------------- */

#define MAGIC 0x4a695444u	/* "JiTD", in the order of the machine that wrote it */
#define ARCH_TIMESTAMP 1u	/* flag: times are those of a CPU's counter */

enum { CODE_LOAD = 0, CODE_MOVE = 1, CODE_CLOSE = 3 };

struct dump_header {
	uint32_t magic, version, total_size, elf_mach, pad, pid;
	uint64_t timestamp, flags;
};

struct record_header {
	uint32_t id, total_size;
	uint64_t timestamp;
};

struct code_load {
	uint32_t pid, tid;
	uint64_t vma, code_addr, code_size, code_index;
};

struct code_move {
	uint32_t pid, tid;
	uint64_t vma, old_code_addr, new_code_addr, code_size, code_index;
};

static int read_header(struct jit_dump *d, int fd)
{
	struct dump_header h;
	ssize_t len = read_at(fd, 0, &h, sizeof(h));

	if (len < 0)
		return (int)len;
	if (len < (ssize_t)sizeof(h))
		return 1;	/* not yet written */
	if (h.magic != MAGIC || h.version != 1 || h.total_size < sizeof(h)) {
		d->bad = true;
		return 1;
	}
	d->no_times = h.flags & ARCH_TIMESTAMP;
	d->at = h.total_size;
	return 0;
}

static int remember(struct jit_dump *d, const struct jit_map *m, size_t before, uint64_t index)
{
	if (jit_map__count(m) == before)
		return 0;
	d->by_index = d->by_index ?: table__new();
	return d->by_index ? table__set(d->by_index, index, before) : -ENOMEM;
}

/* The function's name stands behind the fixed part, then its code. */
static int load(struct jit_dump *d, const char *body, size_t len, uint64_t time, struct jit_map *m)
{
	size_t before = jit_map__count(m);
	struct code_load l;
	int err;

	if (len < sizeof(l))
		return 0;
	memcpy(&l, body, sizeof(l));
	err = jit_map__add(m, l.code_addr, l.code_size, time, body + sizeof(l), len - sizeof(l));
	return err ? err : remember(d, m, before, l.code_index);
}

static int move(struct jit_dump *d, const char *body, size_t len, uint64_t time, struct jit_map *m)
{
	size_t before = jit_map__count(m);
	char name[JIT_MAX_NAME + 1];
	struct code_move v;
	uint64_t entry;
	int err;

	if (len < sizeof(v))
		return 0;
	memcpy(&v, body, sizeof(v));
	if (!d->by_index || !table__get(d->by_index, v.code_index, &entry))
		return 0;
	/* Adding may move the names. */
	strcpy(name, jit_map__name(m, entry));
	err = jit_map__add(m, v.new_code_addr, v.code_size, time, name, strlen(name));
	return err ? err : remember(d, m, before, v.code_index);
}

static int read_record(struct jit_dump *d, int fd, struct jit_map *m)
{
	char bytes[sizeof(struct record_header) + sizeof(struct code_load) + JIT_MAX_NAME];
	ssize_t len = read_at(fd, d->at, bytes, sizeof(bytes));
	const char *body = bytes + sizeof(struct record_header);
	struct record_header h;
	struct stat st;
	uint64_t time;
	size_t size;
	int err = 0;

	if (len < 0)
		return (int)len;
	if (len < (ssize_t)sizeof(h))
		return 1;
	memcpy(&h, bytes, sizeof(h));
	if (h.total_size < sizeof(h)) {
		d->bad = true;
		return 1;
	}
	if (fstat(fd, &st))
		return -errno;
	if ((uint64_t)st.st_size < d->at + h.total_size)
		return 1;	/* half written */
	size = h.total_size < (size_t)len ? h.total_size - sizeof(h) : (size_t)len - sizeof(h);
	time = d->no_times ? 0 : h.timestamp;
	if (h.id == CODE_LOAD)
		err = load(d, body, size, time, m);
	else if (h.id == CODE_MOVE)
		err = move(d, body, size, time, m);
	d->at += h.total_size;
	return err;
}

int jit_dump__read(struct jit_dump *d, int fd, uint64_t most, struct jit_map *m)
{
	int ret = d->at || d->bad ? 0 : read_header(d, fd);

	while (!ret && !d->bad && most--)
		ret = read_record(d, fd, m);
	return ret ? ret : d->bad;
}

void jit_dump__free(struct jit_dump *d)
{
	table__free(d->by_index);
	*d = (struct jit_dump){};
}
