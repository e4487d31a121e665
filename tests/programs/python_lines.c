// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * What unwind/python_lines.c and unwind/python_code.c make of real Pythons.
 *
 *   python_lines compare                    stdin: code objects with the interpreter's account of their
 *                                           lines, from python_lines.py; prints how many agree
 *   python_lines read PID MINOR THREADED TYPE [ADDRESS UNITS]…
 *                                           prints each code object of a process: a line of C escapes
 *                                           and figures, see print_code()
 *   python_lines torn PID MINOR THREADED TYPE TIMES READY ADDRESS…
 *                                           reads what lies there until TIMES were read whole, a minute at
 *                                           most, while the process puts code after code there: see
 *                                           python_names.py
 *   python_lines versions FILE              prints where the version of the next code object is: from
 *                                           what ("interpreter", "runtime"), and how far
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#include "unwind/python_code.h"
#include "unwind/python_lines.h"
#include "unwind/python_runtime.h"

#define FEW 10		/* differences that are shown */

struct code_head {
	uint32_t kind, first_line, table_len, units;
};

static void *take(void *buf, size_t len, FILE *f)
{
	buf = realloc(buf, len + 1);
	if (!buf || fread(buf, 1, len, f) != len) {
		fprintf(stderr, "the input is cut off\n");
		exit(1);
	}
	return buf;
}

/* Differences in one code object. */
static unsigned int compare_one(const struct code_head *h, const uint8_t *table, const uint32_t *lines,
				unsigned int shown)
{
	unsigned int differ = 0;

	for (uint32_t i = 0; i < h->units; i++) {
		uint32_t line = python_lines__at((enum python_lines_kind)h->kind, table, h->table_len,
						 h->first_line, 2 * i);

		if (line != lines[i] && shown + differ++ < FEW)
			printf("kind %u, first line %u, at %u: %u, should be %u\n", h->kind,
			       h->first_line, 2 * i, line, lines[i]);
	}
	return differ;
}

static int compare(void)
{
	unsigned long units = 0, codes = 0, differ = 0;
	struct code_head h;
	uint8_t *table = NULL;
	uint32_t *lines = NULL;

	while (fread(&h, sizeof(h), 1, stdin) == 1) {
		table = take(table, h.table_len, stdin);
		lines = take(lines, h.units * sizeof(*lines), stdin);
		differ += compare_one(&h, table, lines, differ < FEW ? (unsigned int)differ : FEW);
		units += h.units;
		codes++;
	}
	free(table);
	free(lines);
	printf("%lu compared, %lu differ, %lu codes\n", units, differ, codes);
	return differ ? 1 : 0;
}

struct target {
	struct python_offsets offsets;
	struct python_memory memory;
	pid_t pid;
	unsigned long reads;
};

static int read_process(void *ctx, uint64_t addr, void *buf, size_t len)
{
	struct target *t = ctx;
	struct iovec to = { buf, len }, from = { (void *)(uintptr_t)addr, len };
	ssize_t n = process_vm_readv(t->pid, &to, 1, &from, 1, 0);

	t->reads++;
	return n < 0 ? -errno : (size_t)n == len ? 0 : -EFAULT;
}

static int target__check(struct target *t, uint64_t code, uint32_t *check)
{
	__u64 words[PYTHON_CODE_BYTES / 8] = { 0 };
	int err = read_process(t, code, words, t->offsets.layout.code_bytes);

	*check = err ? 0 : python_code__check(&t->offsets, &t->memory, words);
	return err;
}

/* All but printable ASCII as \ooo, and the backslash itself. */
static void print_text(const char *s)
{
	for (; s && *s; s++)
		if (*s > ' ' && *s < 0x7f && *s != '\\')
			putchar(*s);
		else
			printf("\\%03o", (unsigned char)*s);
	putchar(s ? ' ' : '!');
}

/* NAME FILE FIRST-LINE READS LINE… of each two bytes of code, and of one that is not begun. */
static int print_code(struct target *t, uint64_t addr, uint32_t units)
{
	struct python_code *c;
	uint32_t check;
	int err = target__check(t, addr, &check);

	t->reads = 0;
	if (!err)
		err = python_code__read(&t->offsets, &t->memory, addr, check, &c);
	if (err) {
		printf("error %d\n", -err);
		return 1;
	}
	print_text(c->name);
	print_text(c->file);
	printf("%u %lu", c->first_line, t->reads);
	for (uint32_t i = 0; i < units; i++)
		printf(" %u", python_code__line(c, &t->offsets, 2 * i));
	printf(" %u\n", python_code__line(c, &t->offsets, PYTHON_OFFSET_START));
	python_code__free(c);
	return 0;
}

static int print_codes(struct target *t, char **args)
{
	int failed = 0;

	for (; args[0] && args[1]; args += 2)
		failed |= print_code(t, strtoull(args[0], NULL, 0), (uint32_t)strtoul(args[1], NULL, 0));
	return failed;
}

/* The program calls its functions fN, in line N of the file fN. */
static int is_whole(const struct python_code *c)
{
	char text[32];

	snprintf(text, sizeof(text), "f%u", c->first_line);
	return c->file && !strcmp(c->name, text) && !strcmp(c->file, text);
}

struct tally {
	unsigned long whole, torn, stale, other, again;
};

/* The check of what is whole and alive now, as if it had been seen running. */
static bool is_ready(struct target *t, uint64_t ready, uint64_t addr, uint32_t *check)
{
	uint32_t now, first_line;

	return !target__check(t, addr, check) &&
	       !read_process(t, addr + t->offsets.layout.code_first_line, &first_line, 4) &&
	       !read_process(t, ready, &now, sizeof(now)) && now == first_line;
}

static void read_torn(struct target *t, uint64_t ready, uint64_t addr, struct tally *n)
{
	static uint32_t last;
	struct python_code *c;
	uint32_t check;
	int err;

	if (!is_ready(t, ready, addr, &check))
		return;
	err = python_code__read(&t->offsets, &t->memory, addr, check, &c);
	n->stale += err == -ESTALE;
	n->other += err && err != -ESTALE;
	if (err)
		return;
	if (!is_whole(c)) {
		if (n->torn++ < FEW) {
			print_text(c->name);
			print_text(c->file);
			printf("%u\n", c->first_line);
		}
	} else if (c->first_line == last) {
		n->again++;
	} else {
		n->whole++;
		last = c->first_line;
	}
	python_code__free(c);
}

static int read_torns(struct target *t, char **args)
{
	unsigned long times = strtoul(args[0], NULL, 0);
	uint64_t ready = args[1] ? strtoull(args[1], NULL, 0) : 0;
	time_t end = time(NULL) + 60;
	struct tally n = { 0 };

	while (n.whole + n.torn < times && time(NULL) < end)
		for (char **a = args + 2; ready && *a; a++)
			read_torn(t, ready, strtoull(*a, NULL, 0), &n);
	printf("%lu whole, %lu torn, %lu stale, %lu other, %lu again\n", n.whole, n.torn, n.stale,
	       n.other, n.again);
	return n.torn || !n.whole;
}

static int print_versions(const char *path)
{
	static const char *const of[] = { "nothing", "interpreter", "runtime" };
	struct python_runtime runtime;
	int fd = open(path, O_RDONLY | O_CLOEXEC), err = fd < 0 ? -errno : 0;

	if (!err)
		err = python_runtime__find(fd, &runtime, NULL);
	if (err)
		printf("%s: %s\n", path, strerror(-err));
	else
		printf("%s %d\n", of[runtime.offsets.layout.versions_of], runtime.offsets.layout.versions_at);
	if (fd >= 0)
		close(fd);
	return err != 0;
}

int main(int argc, char **argv)
{
	struct target t = { .memory = { read_process, &t } };

	if (argc == 2 && !strcmp(argv[1], "compare"))
		return compare();
	if (argc == 3 && !strcmp(argv[1], "versions"))
		return print_versions(argv[2]);
	if (argc < 7)
		return 64;
	t.pid = (pid_t)strtol(argv[2], NULL, 10);
	if (python_offsets__of((unsigned int)strtoul(argv[3], NULL, 10), atoi(argv[4]), &t.offsets)) {
		printf("offsets of 3.%s are not known\n", argv[3]);
		return 77;
	}
	t.offsets.layout.type_code = strtoull(argv[5], NULL, 0);
	if (!strcmp(argv[1], "read"))
		return print_codes(&t, argv + 6);
	if (!strcmp(argv[1], "torn"))
		return read_torns(&t, argv + 6);
	return 64;
}
