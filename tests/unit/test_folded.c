// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "loader/output/folded.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "loader/base/text.h"
#include "tests/unit/refuse.h"
#include "tests/unit/unit.h"

static uint32_t frame(struct profile *p, enum profile_kind kind, const char *name)
{
	struct profile_frame f = { .kind = (uint8_t)kind, .name = name };
	uint32_t id;

	ck_assert_int_eq(profile__frame(p, &f, &id), 0);
	return id;
}

static uint32_t labels(struct profile *p, uint32_t pid, uint32_t tid)
{
	struct profile_labels l = { .pid = pid, .tid = tid, .device = PROFILE_NO_LABEL };
	uint32_t id;

	ck_assert_int_eq(profile__labels(p, &l, &id), 0);
	return id;
}

static void add(struct profile *p, const uint32_t *path, size_t nr, uint32_t label,
		enum profile_metric metric, uint64_t value)
{
	uint32_t node;

	ck_assert_int_eq(profile__path(p, PROFILE_ROOT, path, nr, &node), 0);
	ck_assert_int_eq(profile__add(p, node, label, metric, 0, value, 1), 0);
}

#define ADD(metric, value, ...) \
	add(p, (const uint32_t[]){ __VA_ARGS__ }, \
	    sizeof((const uint32_t[]){ __VA_ARGS__ }) / sizeof(uint32_t), l, metric, value)
#define NATIVE(name) frame(p, PROFILE_NATIVE, name)
#define GPU(name) frame(p, PROFILE_GPU, name)

static char *fold(const struct profile *p, struct folded_options o, struct folded_stats *stats)
{
	char *data = NULL;
	size_t len = 0;
	FILE *f = open_memstream(&data, &len);

	ck_assert_int_eq(folded__write(p, &o, f, stats), 0);
	fclose(f);
	ck_assert_uint_eq(strlen(data), len);
	return data;
}

static char *golden(const char *name)
{
	const char *top = getenv("TOP");
	char path[4096], *data = calloc(1, 65536);
	FILE *f;

	snprintf(path, sizeof(path), "%s/tests/golden/%s", top ? top : ".", name);
	f = fopen(path, "r");
	ck_assert_msg(f != NULL, "%s: %s", path, strerror(errno));
	ck_assert_uint_gt(fread(data, 1, 65535, f), 0);
	fclose(f);
	return data;
}

static uint32_t process(struct profile *p, uint32_t pid, const char *comm)
{
	uint32_t id;

	ck_assert_int_eq(profile__process(p, pid, comm, &id), 0);
	return id;
}

static uint32_t mark(struct profile *p, enum profile_mark m, const char *module)
{
	uint32_t id;

	ck_assert_int_eq(profile__mark(p, m, module, &id), 0);
	return id;
}

static uint32_t graph(struct profile *p)
{
	const struct profile_frame f = { .kind = PROFILE_GPU, .id = PROFILE_GRAPH };
	uint32_t id;

	ck_assert_int_eq(profile__frame(p, &f, &id), 0);
	return id;
}

static uint32_t unnamed(struct profile *p, const char *name)
{
	const struct profile_frame f = {
		.kind = PROFILE_NATIVE, .name = name, .unresolved = PROFILE_NO_SYMBOL,
	};
	uint32_t id;

	ck_assert_int_eq(profile__frame(p, &f, &id), 0);
	return id;
}

/* The golden file was written from docs/output.md; tests/system checks it as other readers do. */
START_TEST(hostile_names_give_the_golden_file)
{
	struct profile *p = profile__new();
	uint32_t l = labels(p, 42, 42), train = process(p, 42, "train");
	uint32_t start = NATIVE("_start"), main_ = NATIVE("main"), step = NATIVE("step");
	uint32_t launch = NATIVE("cuLaunchKernel");
	char *want = golden("hostile.folded"), *got;
	struct folded_stats stats;

	ADD(PROFILE_GPU_NS, 640, train, start, main_, step, launch, GPU("stream 7"));
	ADD(PROFILE_GPU_NS, 1000000, train, start, main_, step, launch, GPU("scale"));
	ADD(PROFILE_GPU_NS, 11, process(p, 43, "k) R 1 2\n(z"), NATIVE("a;b"), NATIVE("\xff\r x"));
	ADD(PROFILE_GPU_NS, 7, train, start, main_, step, launch, graph(p));
	ADD(PROFILE_GPU_NS, 5, train, start, main_, NATIVE("step a"), NATIVE("x"));
	ADD(PROFILE_GPU_NS, 4, train, start, main_, NATIVE("step a"));
	ADD(PROFILE_GPU_NS, 3, train, start, main_, step);
	ADD(PROFILE_GPU_NS, 0, train, start, main_, NATIVE("no weight"));
	ADD(PROFILE_LAUNCHES, 99, train, start, main_, NATIVE("other metric"));
	ADD(PROFILE_GPU_NS, 6, train, start, main_, NATIVE("[u8; 32]"), NATIVE("operator<<"),
	    NATIVE("<lambda>"));
	ADD(PROFILE_GPU_NS, 8, train, mark(p, PROFILE_MARK_TRUNCATED, NULL), NATIVE("f\x1b" "g"),
	    NATIVE("caf\xc3\xa9"));
	ADD(PROFILE_GPU_NS, 9, train, mark(p, PROFILE_MARK_NO_UNWIND_INFO, "/opt/libfoo.so"),
	    unnamed(p, "libfoo.so+0x1234"));
	ADD(PROFILE_GPU_NS, UINT64_MAX, train, mark(p, PROFILE_MARK_NO_STACK, NULL));
	ADD(PROFILE_GPU_NS, 1, train, mark(p, PROFILE_MARK_NO_STACK, NULL));
	ADD(PROFILE_GPU_NS, 12, process(p, 44, "#x"), main_, NATIVE("f 12.5"));
	/* What reads like ours, or turns the rest of the line. */
	ADD(PROFILE_GPU_NS, 2, process(p, 45, "[no name]"), NATIVE("[GPU] matmul"), NATIVE("memcpy_[k]"),
	    NATIVE("train (train.py:17)"), NATIVE("\xe2\x80\xae" "gnp.exe"), GPU("[graph]"));
	l = labels(p, 42, 43);
	ADD(PROFILE_GPU_NS, 500000, train, start, main_, step, launch, GPU("scale"));
	got = fold(p, (struct folded_options){ .metric = PROFILE_GPU_NS }, &stats);
	ck_assert_str_eq(got, want);
	ck_assert_uint_eq(stats.lines, 13);
	ck_assert_uint_eq(stats.bytes, strlen(want));
	ck_assert_uint_eq(stats.total, UINT64_MAX);
	free(got);
	got = fold(p, (struct folded_options){ .metric = PROFILE_LAUNCHES }, &stats);
	ck_assert_str_eq(got, "train (pid 42);_start;main;other metric 99\n");
	ck_assert_uint_eq(stats.total, 99);
	free(got);
	got = fold(p, (struct folded_options){ .metric = PROFILE_CPU_NS }, &stats);
	ck_assert_str_eq(got, "");
	ck_assert_uint_eq(stats.lines, 0);
	free(got);
	free(want);
	profile__free(p);
}
END_TEST

START_TEST(an_empty_profile_is_an_empty_file)
{
	struct profile *p = profile__new();
	char *got = fold(p, (struct folded_options){ .metric = PROFILE_CPU_NS }, NULL);

	ck_assert_str_eq(got, "");
	free(got);
	profile__free(p);
}
END_TEST

START_TEST(threads_and_suffixes_on_request)
{
	struct profile *p = profile__new();
	uint32_t l = labels(p, 7, 7), train = process(p, 7, "train"), main_ = NATIVE("main");
	uint32_t sys = frame(p, PROFILE_KERNEL, "do_syscall_64");
	char *got;

	profile__name_thread(p, 7, 7, "train");
	profile__name_thread(p, 7, 9, "worker 3");
	profile__name_thread(p, 7, 10, "[no name]");
	profile__name_thread(p, 7, 11, "x_[k]");
	ADD(PROFILE_CPU_NS, 10, train, main_);
	ADD(PROFILE_CPU_NS, 1, train);
	l = labels(p, 7, 9);
	ADD(PROFILE_CPU_NS, 20, train, main_);
	ADD(PROFILE_CPU_NS, 30, train, main_, sys);
	l = labels(p, 7, 8);
	ADD(PROFILE_CPU_NS, 40, train, main_, sys);
	ADD(PROFILE_CPU_NS, 50, NATIVE("without process"));
	l = labels(p, 7, 10);
	ADD(PROFILE_CPU_NS, 60, train);
	l = labels(p, 7, 11);
	ADD(PROFILE_CPU_NS, 70, train);
	got = fold(p, (struct folded_options){ .metric = PROFILE_CPU_NS, .per_thread = true },
		   NULL);
	ck_assert_str_eq(got, "tid 8 [no name];without process 50\n"
			      "train (pid 7);tid 10 ?no name] 60\n"
			      "train (pid 7);tid 11 x_?k] 70\n"
			      "train (pid 7);tid 7 train 1\n"
			      "train (pid 7);tid 7 train;main 10\n"
			      "train (pid 7);tid 8 [no name];main;do_syscall_64 40\n"
			      "train (pid 7);tid 9 worker #3;main 20\n"
			      "train (pid 7);tid 9 worker #3;main;do_syscall_64 30\n");
	free(got);
	got = fold(p, (struct folded_options){ .metric = PROFILE_CPU_NS, .annotate = true }, NULL);
	ck_assert_str_eq(got, "train (pid 7) 131\ntrain (pid 7);main 30\n"
			      "train (pid 7);main;do_syscall_64_[k] 70\nwithout process 50\n");
	free(got);
	profile__free(p);
}
END_TEST

/* --- against a plain way to do the same: one text a value, sorted, neighbours added --- */

struct line {
	char *stack;
	uint64_t weight;
};

static int line_cmp(const void *a, const void *b)
{
	return strcmp(((const struct line *)a)->stack, ((const struct line *)b)->stack);
}

/* Frames that differ, some of which read the same; order and texts are made to be awkward. */
static const struct {
	const char *name, *text;
} awkward[] = {
	{ "a", "a" }, { "a b", "a b" }, { "a;", "a:" }, { "a:", "a:" }, { "a\n", "a?" },
	{ "a\t", "a?" }, { "a 1", "a #1" }, { "ab", "ab" }, { "a!", "a!" },
	{ "\xc3\xa9", "\xc3\xa9" },
	{ "\xff", "?" }, { "?", "?" }, { "A", "A" }, { "a<b>", "a<b>" },
};
#define NR_AWKWARD (sizeof(awkward) / sizeof(awkward[0]))
#define VALUES 5000

START_TEST(whatever_comes_is_added_up_and_sorted)
{
	static struct line lines[VALUES];
	struct profile *p = profile__new();
	uint32_t root = process(p, 1, "x"), l = labels(p, 1, 1), ids[NR_AWKWARD], path[10];
	struct folded_stats stats;
	char *got, *want = NULL;
	size_t len, distinct = 0;
	uint64_t total = 0;
	FILE *f;

	for (size_t i = 0; i < NR_AWKWARD; i++)
		ids[i] = NATIVE(awkward[i].name);
	srandom(2);
	for (size_t i = 0; i < VALUES; i++) {
		size_t depth = (size_t)random() % 9;
		char text[200] = "x (pid 1)";

		path[0] = root;
		for (size_t j = 0; j < depth; j++) {
			/* Few names near the root, so that stacks share it. */
			size_t k = (size_t)random() % (j < 2 ? 4 : NR_AWKWARD);

			path[j + 1] = ids[k];
			strcat(strcat(text, ";"), awkward[k].text);
		}
		lines[i] = (struct line){ strdup(text), (uint64_t)random() };
		total += lines[i].weight;
		add(p, path, depth + 1, l, PROFILE_GPU_NS, lines[i].weight);
	}
	qsort(lines, VALUES, sizeof(lines[0]), line_cmp);
	f = open_memstream(&want, &len);
	for (size_t i = 0; i < VALUES; i++) {
		if (i + 1 < VALUES && !strcmp(lines[i].stack, lines[i + 1].stack)) {
			lines[i + 1].weight += lines[i].weight;
			continue;
		}
		fprintf(f, "%s %llu\n", lines[i].stack, (unsigned long long)lines[i].weight);
		distinct++;
	}
	fclose(f);
	got = fold(p, (struct folded_options){ .metric = PROFILE_GPU_NS }, &stats);
	ck_assert_msg(!strcmp(got, want), "lines differ");
	ck_assert_uint_eq(stats.lines, distinct);
	ck_assert_uint_eq(stats.total, total);
	ck_assert_uint_eq(stats.total, profile__total(p, PROFILE_GPU_NS));
	ck_assert_uint_gt(distinct, 2000);
	for (size_t i = 0; i < VALUES; i++)
		free(lines[i].stack);
	free(got);
	free(want);
	profile__free(p);
}
END_TEST

static bool is_stack(const char *line)
{
	const char *word = strrchr(line, ' ') + 1;	/* of the last frame, or of "(pid N)" */
	size_t i, n, len = strlen(line);

	for (i = 0; i < len; i += n) {
		n = text__utf8(line + i, len - i);
		if (!n || (unsigned char)line[i] < 0x20 || line[i] == 0x7f)
			return false;
	}
	if (strstr(line, ";;") || strchr(";# ", line[0]) || strchr("; ", line[len - 1]))
		return false;
	if (!strstr(line, " (pid "))
		return false;
	/* No second number at the end: digits, at most one point, a digit first. */
	n = strspn(word, "0123456789");
	return !n || word[n + (word[n] == '.') + strspn(word + n + (word[n] == '.'), "0123456789")];
}

/* Names of any bytes, mostly those that mean something: each line must still be one stack. */
START_TEST(random_bytes_never_break_a_line)
{
	static const char spice[] = ";; \n\r\t\x1b#0123456789.\xc2\x9b\xe2\x80\xa8\xff<>[]_";
	struct profile *p = profile__new();
	uint32_t l = labels(p, 1, 1);
	struct folded_stats stats;
	uint64_t total = 0;
	char *got, *line;

	srandom(3);
	for (int i = 0; i < 20000; i++) {
		uint32_t path[5];
		size_t depth = 1 + (size_t)random() % 4;
		char comm[16];

		for (size_t j = 0; j <= depth; j++) {
			char name[24];
			size_t len = (size_t)random() % sizeof(name);

			for (size_t k = 0; k < len; k++)
				name[k] = random() % 4 ? spice[random() % (long)strlen(spice)] :
							 (char)random();
			name[len ? len - 1 : 0] = '\0';
			memcpy(comm, name, sizeof(comm));
			comm[sizeof(comm) - 1] = '\0';
			path[j] = !j ? process(p, (uint32_t)random() % 3, comm) :
				  random() % 5 ? NATIVE(name) : GPU(name);
		}
		add(p, path, depth + 1, l, PROFILE_GPU_NS, 1 + (uint64_t)random() % 9);
	}
	got = fold(p, (struct folded_options){ .metric = PROFILE_GPU_NS }, &stats);
	for (line = strtok(got, "\n"); line; line = strtok(NULL, "\n"), stats.lines--) {
		char *space = strrchr(line, ' '), *end;

		ck_assert_ptr_nonnull(space);
		*space = '\0';
		total += strtoull(space + 1, &end, 10);
		ck_assert_msg(!*end && end > space + 1 && is_stack(line), "%s", line);
	}
	ck_assert_uint_eq(stats.lines, 0);
	ck_assert_uint_eq(total, stats.total);
	ck_assert_uint_eq(total, profile__total(p, PROFILE_GPU_NS));
	free(got);
	profile__free(p);
}
END_TEST

START_TEST(deep_stacks_are_lines_like_others)
{
	struct profile *p = profile__new();
	uint32_t l = labels(p, 1, 1), f = NATIVE("recurse"), *path = calloc(100000, sizeof(*path));
	struct folded_stats stats;
	char *got;

	for (int i = 0; i < 100000; i++)
		path[i] = f;
	path[0] = process(p, 1, "deep");
	add(p, path, 100000, l, PROFILE_CPU_NS, 5);
	add(p, path, 99999, l, PROFILE_CPU_NS, 6);
	got = fold(p, (struct folded_options){ .metric = PROFILE_CPU_NS }, &stats);
	ck_assert_uint_eq(stats.lines, 2);
	/* "deep (pid 1)" + n x ";recurse" + " 6\n" */
	ck_assert_uint_eq(stats.bytes, 2 * (12 + 3) + (99999 + 99998) * 8);
	free(got);
	free(path);
	profile__free(p);
}
END_TEST

static struct profile *wide(int stacks)
{
	struct profile *p = profile__new();
	uint32_t l = labels(p, 1, 1), root = process(p, 1, "wide");
	char name[64];

	for (int i = 0; i < stacks; i++) {
		snprintf(name, sizeof(name), "function_with_a_name_%d", i);
		ADD(PROFILE_GPU_NS, 1, root, NATIVE(name), NATIVE("leaf"));
	}
	return p;
}

START_TEST(errors_of_the_file_come_back)
{
	struct folded_options o = { .metric = PROFILE_GPU_NS };
	struct folded_stats stats = { .lines = 4242 };
	struct profile *p = wide(3000), *small = profile__new();
	uint32_t l = labels(small, 1, 1), root = process(small, 1, "small");
	int fds[2];
	FILE *f;

	f = fopen("/dev/full", "w");
	ck_assert_int_eq(folded__write(p, &o, f, &stats), -ENOSPC);
	fclose(f);
	add(small, &root, 1, l, PROFILE_GPU_NS, 1);	/* fails only when flushed */
	f = fopen("/dev/full", "w");
	ck_assert_int_eq(folded__write(small, &o, f, &stats), -ENOSPC);
	fclose(f);
	signal(SIGPIPE, SIG_IGN);
	ck_assert_int_eq(pipe(fds), 0);
	close(fds[0]);
	f = fdopen(fds[1], "w");
	ck_assert_int_eq(folded__write(p, &o, f, &stats), -EPIPE);
	fclose(f);
	f = fopen("/dev/null", "r");
	ck_assert_int_lt(folded__write(p, &o, f, &stats), 0);
	fclose(f);
	ck_assert_uint_eq(stats.lines, 4242);
	profile__free(p);
	profile__free(small);
}
END_TEST

START_TEST(no_memory_is_an_error)
{
	struct folded_options o = { .metric = PROFILE_GPU_NS, .per_thread = true };
	struct profile *p = wide(300);
	FILE *f = fopen("/dev/null", "w");
	char buf[BUFSIZ];
	int err = -ENOMEM;
	long n;

	setvbuf(f, buf, _IOFBF, sizeof(buf));
	for (n = 0; CAN_REFUSE && err; n++) {
		allocations_left = n;
		err = folded__write(p, &o, f, NULL);
		allocations_left = -1;
		ck_assert(!err || err == -ENOMEM);
	}
	if (CAN_REFUSE)
		ck_assert_int_gt(n, 600);	/* two at least for each frame */
	fclose(f);
	profile__free(p);
}
END_TEST

UNIT_MAIN("folded", hostile_names_give_the_golden_file, an_empty_profile_is_an_empty_file,
	  threads_and_suffixes_on_request, whatever_comes_is_added_up_and_sorted,
	  random_bytes_never_break_a_line, deep_stacks_are_lines_like_others,
	  errors_of_the_file_come_back, no_memory_is_an_error)
