// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The table on a terminal, the closing lines on stderr, and what they know of the stacks. */
#include <errno.h>

#include "loader/base/text.h"
#include "loader/output/quality.h"
#include "tests/unit/docs.h"
#include "tests/unit/refuse.h"
#include "tests/unit/summary_maker.h"

START_TEST(the_table_adds_up_by_what_ends_the_stack)
{
	struct profile *p = profile__new();
	char *s;

	ADD(PROFILE_GPU_NS, 0, 60000000, 60, NATIVE("main"), NATIVE("a"), GPU("big"));
	ADD(PROFILE_GPU_NS, 0, 15000000, 40, NATIVE("main"), NATIVE("b"), GPU("big"));
	ADD(PROFILE_GPU_NS, PROFILE_UNCALIBRATED, 25000000, 1000, NATIVE("main"), GPU("small"));
	ADD(PROFILE_LAUNCHES, 0, 5000, 5000, NATIVE("main"), GPU("not shown where time is known"));
	SAMPLES(30, NATIVE("main"), NATIVE("spin"));
	SAMPLES(10, NATIVE("main"), { .kind = PROFILE_KERNEL, .name = "do_syscall_64" });
	profile__run(p)->metrics = 1u << PROFILE_GPU_NS | 1u << PROFILE_CPU_NS;
	s = summary(p, (struct summary_options){ .again = "gpucollect -p 42 | speedscope -" });
	ck_assert_str_eq(s,
		"GPU time by kernel: 100 ms in 1,100 launches\n"
		"    share       time     launches      mean  kernel\n"
		"   75.0 %    75.0 ms          100    750 us  big\n"
		"   25.0 %    25.0 ms        1,000   25.0 us  small\n"
		"Kernels that overlap each count in full: the sum may exceed wall time.\n"
		"\n"
		"CPU time by function: 2.00 s in 40 samples\n"
		"    share       time      samples  function\n"
		"   75.0 %     1.50 s           30  spin\n"
		"   25.0 %     500 ms           10  do_syscall_64\n"
		"\n"
		"All stacks: gpucollect -p 42 | speedscope -\n");
	free(s);
	profile__free(p);
}
END_TEST

/* GPU time was to be recorded, and there was none: what holds for kernels is no matter of functions. */
START_TEST(what_kernels_do_is_said_of_kernels)
{
	struct profile *p = profile__new();
	char *s;

	SAMPLES(1, NATIVE("main"), NATIVE("spin"));
	profile__run(p)->metrics = 1u << PROFILE_GPU_NS | 1u << PROFILE_LAUNCHES | 1u << PROFILE_CPU_NS;
	s = summary(p, (struct summary_options){ 0 });
	ck_assert_str_eq(s, "CPU time by function: 50.0 ms in 1 sample\n"
			    "    share       time      samples  function\n"
			    "  100.0 %    50.0 ms            1  spin\n\n");
	free(s);
	ADD(PROFILE_LAUNCHES, 0, 1, 1, NATIVE("main"), GPU("k"));
	s = summary(p, (struct summary_options){ 0 });
	lacks(s, "overlap");
	free(s);
	profile__free(p);
}
END_TEST

START_TEST(without_times_launches_are_shown)
{
	struct profile *p = profile__new();
	char *s;

	ADD(PROFILE_LAUNCHES, 0, 3, 3, NATIVE("main"), GPU("a"));
	ADD(PROFILE_LAUNCHES, 0, 1, 1, NATIVE("other"), GPU("a"));
	profile__run(p)->metrics = 1u << PROFILE_LAUNCHES;
	s = summary(p, (struct summary_options){ 0 });
	ck_assert_str_eq(s, "Launches by kernel: 4\n"
			    "    share     launches  kernel\n"
			    "  100.0 %            4  a\n\n");
	free(s);
	profile__free(p);
	p = profile__new();
	s = summary(p, (struct summary_options){ 0 });
	ck_assert_str_eq(s, "Nothing was captured.\n");
	free(s);
	profile__free(p);
}
END_TEST

START_TEST(rows_and_columns_have_limits)
{
	struct profile *p = profile__new();
	char name[600], *s, *line;
	size_t longest = 0;

	for (int i = 0; i < 25; i++) {
		memset(name, 'x', sizeof(name));
		snprintf(name + 500, 64, "\xc3\xa4%d", i);
		ADD(PROFILE_GPU_NS, 0, 1000 + (uint64_t)i, 1, NATIVE("main"), GPU(name));
	}
	s = summary(p, (struct summary_options){ .rows = 3, .columns = 100 });
	has(s, "and 22 more kernels\n");
	for (line = strtok(s, "\n"); line; line = strtok(NULL, "\n"))
		if (text__columns(line, strlen(line)) > longest)
			longest = text__columns(line, strlen(line));
	ck_assert_uint_eq(longest, 100);
	free(s);
	s = summary(p, (struct summary_options){ .columns = 1 });	/* still readable */
	has(s, "xxxxxxxxxxxxxxxxxxx\xe2\x80\xa6\n");
	has(s, "and 15 more kernels\n");
	free(s);
	profile__free(p);
}
END_TEST

/* No byte but printable ones and line ends, whatever the target calls its functions. */
static void check_harmless(const char *s)
{
	ck_assert_uint_eq(text__columns(s, strlen(s)) > 0, 1);
	for (size_t i = 0, n; s[i]; i += n) {
		n = text__utf8(s + i, strlen(s + i));
		ck_assert_msg(n, "not UTF-8 at %zu: %s", i, s);
		ck_assert(s[i] == '\n' || (unsigned char)s[i] >= 0x20);
		ck_assert(s[i] != 0x7f && strncmp(s + i, "\xc2\x9b", 2));
		ck_assert(strncmp(s + i, "\xe2\x80\xae", 3));
	}
}

#define NASTY "\x1b]0;title\x07\x9b\xff\xc2\x9b\xe2\x80\xae\n\r\t\x7f"

START_TEST(names_do_not_steer_the_terminal)
{
	struct profile *p = profile__new();
	struct folded_stats stats = { .lines = 1 };
	char *s;

	ADD(PROFILE_GPU_NS, 0, 1, 1, NATIVE("main"), GPU(NASTY));
	ADD(PROFILE_LAUNCHES, 0, 1, 1, NATIVE("main"), GPU(NASTY));
	SAMPLES(1, NATIVE(NASTY), UNNAMED("x", "/" NASTY, PROFILE_NO_SYMBOLS));
	SAMPLES(1, MARK(PROFILE_MARK_NO_UNWIND_INFO, NASTY), NATIVE(NASTY));
	profile__run(p)->metrics = 7;
	profile__note(p, "%s", NASTY);
	profile__count(p, PROFILE_INFO, NASTY, 1);
	profile__count(p, PROFILE_LOST_SAMPLES, NASTY, 1);
	s = summary(p, (struct summary_options){ .again = NASTY });
	check_harmless(s);
	free(s);
	s = closing(p, (struct closing_options){ .written = NASTY, .stats = &stats });
	check_harmless(s);
	for (char *line = strtok(s, "\n"); line; line = strtok(NULL, "\n"))
		ck_assert_msg(!strncmp(line, "gpucollect: ", 12), "%s", line);
	free(s);
	profile__free(p);
}
END_TEST

/* Ten kinds of stacks with different numbers, so that no sum can come out right by accident. */
static struct profile *spoiled(void)
{
	struct profile *p = profile__new();

	SAMPLES(1, NATIVE("main"), NATIVE("f"));
	SAMPLES(2, NATIVE("main"), UNNAMED("a.so+1", "/x/a.so", PROFILE_NO_SYMBOL));
	SAMPLES(4, MARK(PROFILE_MARK_TRUNCATED, NULL), NATIVE("f"));
	SAMPLES(8, MARK(PROFILE_MARK_NO_UNWIND_INFO, "/x/a.so"),
		UNNAMED("a.so+1", "/x/a.so", PROFILE_NO_SYMBOL),
		UNNAMED("a.so+2", "/x/a.so", PROFILE_NO_SYMBOLS));
	/* main was found by the frame pointer because b.so, inside of it, has no information. */
	SAMPLES(16, GUESSED("main"), { .kind = PROFILE_NATIVE, .name = "g", .module = "b.so" },
		NATIVE("h"));
	SAMPLES(32, MARK(PROFILE_MARK_NO_STACK, NULL));
	SAMPLES(64, GUESSED("main"), GUESSED("f"), UNNAMED("[anon]", NULL, PROFILE_GENERATED));
	SAMPLES(128, NATIVE("main"), NATIVE("f"));
	ADD(PROFILE_LAUNCHES, 0, 1000, 1000, MARK(PROFILE_MARK_STACK_LOOPS, NULL), GPU("k"));
	ADD(PROFILE_LAUNCHES, 0, 3000, 3000, NATIVE("main"), GPU("k"));
	profile__run(p)->metrics = 1u << PROFILE_CPU_NS | 1u << PROFILE_LAUNCHES;
	return p;
}

START_TEST(quality_is_counted_by_event)
{
	struct profile *p = spoiled();
	struct quality q;

	ck_assert_int_eq(quality__new(p, false, &q), 0);
	ck_assert_uint_eq(q.events, 255);
	ck_assert_uint_eq(q.complete, 1 + 2 + 128);
	ck_assert_uint_eq(q.guessed, 16 + 64);
	ck_assert_uint_eq(q.marks[PROFILE_MARK_TRUNCATED], 4);
	ck_assert_uint_eq(q.marks[PROFILE_MARK_NO_UNWIND_INFO], 8);
	ck_assert_uint_eq(q.marks[PROFILE_MARK_NO_STACK], 32);
	ck_assert_uint_eq(q.marks[PROFILE_MARK_STACK_LOOPS], 0);
	/* Names are judged by frames: two each, but one of the 4, none of the 32, three of 16 and 64. */
	ck_assert_uint_eq(q.frames, 2 * 1 + 2 * 2 + 4 + 2 * 8 + 3 * 16 + 3 * 64 + 2 * 128);
	ck_assert_uint_eq(q.unresolved[PROFILE_NO_SYMBOL], 2 + 8);
	ck_assert_uint_eq(q.unresolved[PROFILE_NO_SYMBOLS], 8);
	ck_assert_uint_eq(q.unresolved[PROFILE_GENERATED], 64);
	ck_assert_uint_eq(q.unresolved[PROFILE_RESOLVED], 522 - 2 - 8 - 8 - 64);
	/* main of the 64: the frame inside it is a guess itself, in /bin/train. */
	ck_assert_uint_eq(q.nr_files, 3);
	ck_assert_str_eq(q.files[0].module, "/bin/train");
	ck_assert_uint_eq(q.files[0].no_unwind_info, 64);
	ck_assert_uint_eq(q.files[0].no_symbols, 0);
	ck_assert_str_eq(q.files[1].module, "b.so");
	ck_assert_uint_eq(q.files[1].no_unwind_info, 16);
	ck_assert_str_eq(q.files[2].module, "/x/a.so");
	ck_assert_uint_eq(q.files[2].no_unwind_info, 8);
	ck_assert_uint_eq(q.files[2].no_symbols, 2 + 8 + 8);
	quality__free(&q);
	ck_assert_int_eq(quality__new(p, true, &q), 0);
	ck_assert_uint_eq(q.events, 4000);
	ck_assert_uint_eq(q.complete, 3000);
	ck_assert_uint_eq(q.marks[PROFILE_MARK_STACK_LOOPS], 1000);
	ck_assert_uint_eq(q.nr_files, 0);
	quality__free(&q);
	profile__free(p);
}
END_TEST

/* The golden file's numbers were worked out by hand from spoiled() and the counters below. */
START_TEST(the_end_says_what_is_missing_and_why)
{
	struct folded_stats stats = { .lines = 1234, .bytes = 2048 };
	struct profile *p = spoiled();
	struct profile_run *run = profile__run(p);
	char *s, *want;

	profile__count(p, PROFILE_LOST_SAMPLES, "ring buffer full", 40);
	profile__count(p, PROFILE_LOST_SAMPLES, "nested", 5);
	profile__count(p, PROFILE_LOST_LAUNCHES, "ring buffer full", 0);
	profile__count(p, PROFILE_LOST_OTHER, "stacks lost", 7);
	profile__count(p, PROFILE_UNTIMED, "in a capture", 4000);
	profile__count(p, PROFILE_INFO, "graph launches, each timed as a whole", 12);
	profile__note(p, "a note");
	run->duration_ns = 10000000000;
	run->frequency = 20;
	run->own_cpu_ns = 100000000;
	run->own_rest_ns = 500000000;
	run->own_bpf_ns = 1000000;
	run->own_memory = 60 << 20;
	s = closing(p, (struct closing_options){ .metric = PROFILE_LAUNCHES, .written = "x.folded",
						 .stats = &stats });
	want = read_document("tests/golden/closing.txt");
	ck_assert_msg(!strcmp(s, want), "%.3000s", s);
	free(want);
	free(s);
	profile__free(p);
}
END_TEST

/* Where CPU time is shown there is nothing about the GPU, but what was lost, and in JSON all of it. */
START_TEST(cpu_time_alone)
{
	struct folded_stats stats = { .lines = 3, .bytes = 2048 };
	struct profile *p = profile__new();
	char *s;

	SAMPLES(10, NATIVE("main"));
	ADD(PROFILE_GPU_NS, PROFILE_UNCALIBRATED, 50, 5, NATIVE("main"), GPU("k"));
	ADD(PROFILE_LAUNCHES, 0, 11, 11, UNNAMED("0x1", "lib.so", PROFILE_NO_SYMBOL), GPU("k"));
	ADD(PROFILE_BYTES, 0, 4096, 5, NATIVE("main"), GPU("memcpy HtoD"));
	ADD(PROFILE_WAIT_NS, 0, 4096, 5, NATIVE("main"));
	profile__run(p)->metrics = 1u << PROFILE_CPU_NS | 1u << PROFILE_GPU_NS | 1u << PROFILE_LAUNCHES |
				   1u << PROFILE_BYTES | 1u << PROFILE_WAIT_NS;
	profile__run(p)->duration_ns = 1000000000;
	profile__run(p)->frequency = 20;
	profile__run(p)->looked_at = 5;
	profile__run(p)->made = 11;
	profile__count(p, PROFILE_UNTIMED, "in a capture", 6);
	profile__count(p, PROFILE_INFO_GPU, "graph launches, each timed as a whole", 12);
	profile__count(p, PROFILE_INFO, "stacks unwound from a copy", 2);
	s = closing(p, (struct closing_options){ .metric = PROFILE_CPU_NS, .written = "x", .stats = &stats });
	ck_assert_str_eq(s, "gpucollect: captured 1.00 s, 10 CPU samples at 20 Hz\n"
			    "gpucollect: stacks unwound from a copy: 2\n"
			    "gpucollect: stacks of CPU samples from their root: 100.0 %\n"
			    "gpucollect: wrote x: 3 stacks, 2.00 KiB; weights are nanoseconds of CPU time\n");
	free(s);
	profile__count(p, PROFILE_LOST_LAUNCHES, "ring buffer full", 11);
	s = closing(p, (struct closing_options){ .metric = PROFILE_CPU_NS });
	has(s, "gpucollect: lost: 11 of 22 launches (50.0 %): ring buffer full (11)\n");
	free(s);
	s = closing(p, (struct closing_options){ .metric = PROFILE_CPU_NS, .json = true });
	has(s, "\"launches\":11,\"timed\":5,\"gpu_ns\":50,");
	has(s, "{\"kind\":\"info\",\"what\":\"graph launches, each timed as a whole\",\"count\":12}");
	free(s);
	s = closing(p, (struct closing_options){ .metric = PROFILE_GPU_NS });
	has(s, "11 launches (5 timed");
	has(s, "gpucollect: graph launches, each timed as a whole: 12\n");
	has(s, "of launches");
	free(s);
	profile__free(p);
}
END_TEST

START_TEST(gpu_time_is_labelled)
{
	struct folded_stats stats = { .lines = 60000, .bytes = 2048 };
	struct profile *p = profile__new();
	char *s;

	ADD(PROFILE_GPU_NS, 0, 50, 5, NATIVE("main"), GPU("k"));
	ADD(PROFILE_GPU_NS, PROFILE_UNCALIBRATED, 25, 3, NATIVE("main"), GPU("k"));
	ADD(PROFILE_GPU_NS, PROFILE_ESTIMATED, 25, 2, NATIVE("main"), GPU("k"));
	ADD(PROFILE_LAUNCHES, 0, 11, 11, NATIVE("main"), GPU("k"));
	profile__run(p)->metrics = 1u << PROFILE_GPU_NS | 1u << PROFILE_LAUNCHES;
	s = closing(p, (struct closing_options){ .metric = PROFILE_GPU_NS, .stats = &stats });
	has(s, "11 launches (10 timed, 2 of them by an estimate, 100 ns of GPU time)\n");
	has(s, "GPU time is event-timed; uncalibrated (no constant is known, see gpucollect calibrate): "
	       "25.0 %; estimated: 25.0 %\n");
	has(s, "device busy time: not known; kernels that overlap are each shown in full, so the "
	       "sum may exceed wall time\n");
	has(s, "60,000 stacks");
	has(s, "weights are nanoseconds of GPU time\n");
	has(s, "much for a viewer");
	lacks(s, "wrote");
	lacks(s, "CPU samples");
	lacks(s, "lost");
	lacks(s, "own cost");
	free(s);
	profile__run(p)->gpu_busy_known = true;
	profile__run(p)->gpu_busy_ns = 75;
	s = closing(p, (struct closing_options){ .metric = PROFILE_GPU_NS });
	has(s, "device busy for 75 ns; ");
	lacks(s, "weights");
	free(s);
	profile__free(p);
}
END_TEST

#define COPY(text) { .kind = PROFILE_GPU, .id = PROFILE_COPY, .name = text }

/* They stand beside the launches, in figures of their own. */
START_TEST(copies_are_no_launches)
{
	const unsigned int of_copies = PROFILE_OF_COPIES;
	struct profile *p = profile__new();
	char *s;

	ADD(PROFILE_LAUNCHES, 0, 11, 11, NATIVE("main"), GPU("k"));
	ADD(PROFILE_GPU_NS, 0, 3000, 10, NATIVE("main"), GPU("k"));
	ADD(PROFILE_BYTES, 0, 4096, 5, NATIVE("main"), COPY("memcpy HtoD"));
	ADD(PROFILE_GPU_NS, of_copies, 500, 3, NATIVE("main"), COPY("memcpy HtoD"));
	ADD(PROFILE_GPU_NS, of_copies | PROFILE_ESTIMATED, 500, 1, NATIVE("main"), COPY("memcpy HtoD"));
	profile__run(p)->metrics = 1u << PROFILE_GPU_NS | 1u << PROFILE_LAUNCHES | 1u << PROFILE_BYTES;
	profile__count(p, PROFILE_UNTIMED, "no end seen", 1);
	s = closing(p, (struct closing_options){ .metric = PROFILE_BYTES, .written = "x",
						 .stats = &(struct folded_stats){ .lines = 1 } });
	has(s, ", 11 launches (10 timed, 3.00 us of GPU time), 5 copies and sets (4.00 KiB, 4 timed, "
	       "1 of them by an estimate, 1.00 us of GPU time)\n");
	has(s, "estimated: 12.5 %\n");
	has(s, "counted, not timed: 1 of 11 launches");
	has(s, "weights are bytes copied or set\n");
	free(s);
	s = closing(p, (struct closing_options){ .json = true, .metric = PROFILE_BYTES });
	has(s, "\"metric\":\"bytes\",\"unit\":\"bytes\",");
	has(s, "\"launches\":11,\"timed\":10,\"gpu_ns\":3000,");
	has(s, "\"estimated\":0,\"estimated_ns\":0,\"split_ns\":0,\"looked_at\":null,\"looked_at_of\":null,"
		   "\"gpu_error_ns\":null,\"copies\":5,\"copied_bytes\":4096,"
	       "\"copies_timed\":4,\"copies_ns\":1000,");
	free(s);
	s = summary(p, (struct summary_options){ 0 });
	has(s, "GPU time by kernel: 4.00 us in 10 launches and 4 copies and sets\n"
	       "    share       time        calls      mean  kernel\n"
	       "   75.0 %    3.00 us           10    300 ns  k\n"
	       "   25.0 %    1.00 us            4    250 ns  memcpy HtoD\n");
	lacks(s, "Bytes");
	free(s);
	ADD(PROFILE_BYTES, 0, 1024, 1, NATIVE("main"), COPY("memset"));
	s = summary(p, (struct summary_options){ .bytes = true });
	has(s, "Bytes copied or set: 5.00 KiB in 6 copies and sets\n"
	       "    share       size        calls      mean  kind\n"
	       "   80.0 %   4.00 KiB            5     819 B  memcpy HtoD\n"
	       "   20.0 %   1.00 KiB            1  1.00 KiB  memset\n"
	       "\nGPU time by kernel: ");
	free(s);
	profile__free(p);
}
END_TEST

START_TEST(one_is_not_several)
{
	struct folded_stats stats = { .lines = 1, .bytes = 10 };
	struct profile *p = profile__new();
	char *s;

	ADD(PROFILE_GPU_NS, 0, 50, 1, NATIVE("main"), GPU("k"));
	ADD(PROFILE_LAUNCHES, 0, 1, 1, NATIVE("main"), GPU("k"));
	SAMPLES(1, NATIVE("main"), NATIVE("f"));
	profile__run(p)->metrics = 7;
	profile__run(p)->frequency = 20;
	s = closing(p, (struct closing_options){ .metric = PROFILE_GPU_NS, .stats = &stats });
	has(s, ", 1 CPU sample at 20 Hz, 1 launch (1 timed, 50 ns of GPU time)\n");
	has(s, ": 1 stack, 10 B;");
	free(s);
	s = summary(p, (struct summary_options){ 0 });
	has(s, "GPU time by kernel: 50 ns in 1 launch\n");
	has(s, "CPU time by function: 50.0 ms in 1 sample\n");
	free(s);
	SAMPLES(1, NATIVE("main"), NATIVE("g"));
	s = summary(p, (struct summary_options){ .rows = 1 });
	has(s, "and 1 more function\n");
	free(s);
	profile__free(p);
}
END_TEST

/* A stripped C library's start is at the root of every stack: little of what is seen of them. */
START_TEST(a_nameless_root_is_no_alarm)
{
	struct profile *p = profile__new();
	char *s;

	SAMPLES(100, UNNAMED("libc.so.6+1", "/lib/libc.so.6", PROFILE_NO_SYMBOL), NATIVE("main"),
		NATIVE("a"), NATIVE("b"), NATIVE("c"), NATIVE("d"), NATIVE("e"), NATIVE("f"),
		NATIVE("g"), NATIVE("h"));
	profile__run(p)->metrics = 1u << PROFILE_CPU_NS;
	s = closing(p, (struct closing_options){ .metric = PROFILE_CPU_NS });
	has(s, "frames of CPU samples with a name: 90.0 %; others: no symbol covers the address 10.0 %\n");
	has(s, "libc.so.6: no symbols for 10.0 % of the frames of CPU samples\n");
	lacks(s, "100.0 %;");
	free(s);
	profile__free(p);
}
END_TEST

/* Python's functions are part of the area: here all but a fifth of it, and of their names none is missing. */
START_TEST(python_functions_have_names)
{
	struct profile *p = profile__new();
	struct quality q;
	char *s;

	SAMPLES(10, UNNAMED("libc.so.6+1", "/lib/libc.so.6", PROFILE_NO_SYMBOL),
		{ .kind = PROFILE_PYTHON, .name = "<module>", .file = "x.py", .line = 1 },
		{ .kind = PROFILE_PYTHON, .name = "f", .file = "x.py", .line = 2 },
		{ .kind = PROFILE_PYTHON, .name = "g", .file = "x.py", .line = 3 }, NATIVE("memcpy"));
	profile__run(p)->metrics = 1u << PROFILE_CPU_NS;
	ck_assert_int_eq(quality__new(p, false, &q), 0);
	ck_assert_uint_eq(q.frames, 50);
	ck_assert_uint_eq(q.unresolved[PROFILE_RESOLVED], 40);
	quality__free(&q);
	s = closing(p, (struct closing_options){ .metric = PROFILE_CPU_NS });
	has(s, "frames of CPU samples with a name: 80.0 %; others: no symbol covers the address 20.0 %\n");
	has(s, "libc.so.6: no symbols for 20.0 % of the frames of CPU samples\n");
	free(s);
	profile__free(p);
}
END_TEST

/* The same numbers as in the golden file. */
START_TEST(a_graph_s_time_is_what_it_runs)
{
	struct profile *p = profile__new();
	char *s;

	ADD(PROFILE_GPU_NS, PROFILE_SHARED, 3000, 0, NATIVE("main"), GPU("k"));
	ADD(PROFILE_GPU_NS, 0, 3000, 2, NATIVE("main"), GPU("k"));
	has(s = summary(p, (struct summary_options){ 0 }), "100.0 %    6.00 us            2   1.50 us  k\n");
	free(s);
	profile__free(p);
}
END_TEST

START_TEST(scripts_get_the_same_unrounded)
{
	struct folded_stats stats = { .lines = 1234, .bytes = 2048 };
	struct profile *p = spoiled();
	char *s;

	profile__count(p, PROFILE_LOST_SAMPLES, "ring buffer full", 45);
	profile__count(p, PROFILE_LOST_LAUNCHES, "ring buffer full", 0);
	profile__note(p, "say \"a\"");
	profile__run(p)->duration_ns = 10000000001;
	profile__run(p)->frequency = 20;
	s = closing(p, (struct closing_options){ .json = true, .metric = PROFILE_LAUNCHES,
						 .written = "x\n.folded", .stats = &stats });
	ck_assert_str_eq(s,
		"{\"gpucollect\":\"summary\",\"result\":\"written\",\"file\":\"x\\n.folded\","
		"\"metric\":\"launches\",\"unit\":\"count\",\"stacks\":1234,\"bytes\":2048,"
		"\"duration_ns\":10000000001,\"frequency_hz\":20,\"cpu_samples\":255,"
		"\"driver_seen\":false,"
		"\"launches\":4000,\"timed\":null,\"gpu_ns\":null,\"uncalibrated\":null,"
		"\"uncalibrated_ns\":null,\"estimated\":null,\"estimated_ns\":null,\"split_ns\":null,"
		"\"looked_at\":null,\"looked_at_of\":null,\"gpu_error_ns\":null,"
		"\"copies\":null,\"copied_bytes\":null,\"copies_timed\":null,\"copies_ns\":null,"
		"\"waits\":null,\"waits_ns\":null,\"waits_estimated_ns\":null,\"waits_error_ns\":null,"
		"\"gpu_busy_ns\":null,\"lost_share\":0.150000,\"counters\":["
		"{\"kind\":\"lost samples\",\"what\":\"ring buffer full\",\"count\":45}],"
		"\"sample_stacks\":{\"events\":255,\"complete\":131,\"guessed\":80,\"marks\":{"
		"\"[truncated]\":4,\"[no unwind info]\":8,\"[no stack]\":32},\"frames\":522,"
		"\"named\":440,\"unnamed\":{\"no symbol covers the address\":10,"
		"\"file without symbols\":8,\"generated code\":64},\"files\":["
		"{\"file\":\"/bin/train\",\"events_no_unwind_info\":64,\"frames_no_symbols\":0},"
		"{\"file\":\"b.so\",\"events_no_unwind_info\":16,\"frames_no_symbols\":0},"
		"{\"file\":\"/x/a.so\",\"events_no_unwind_info\":8,\"frames_no_symbols\":18}]},"
		"\"launch_stacks\":{\"events\":4000,\"complete\":3000,\"guessed\":0,\"marks\":{"
		"\"[stack loops]\":1000},\"frames\":3000,\"named\":3000,\"unnamed\":{},"
		"\"files\":[]},\"kernels\":[{\"name\":\"k\",\"mangled\":\"k\","
		"\"registers\":null,\"static_shared_bytes\":null,\"launches\":4000,"
		"\"gpu_ns\":null}],\"processes\":[{\"rank\":null,\"pid\":1,\"name\":\"train\","
		"\"device\":0,\"streams\":1,\"launches\":4000,\"copies\":null,"
		"\"gpu_ns\":null}],\"notes\":[\"say \\\"a\\\"\"],\"own_cost\":{\"cpu_ns\":0,"
		"\"before_and_after_ns\":0,\"bpf_ns\":0,\"memory_bytes\":0}}\n");
	free(s);
	profile__free(p);
}
END_TEST

START_TEST(many_bad_files_are_not_all_listed)
{
	struct profile *p = profile__new();
	char name[32], *s;

	for (int i = 0; i < 20; i++) {
		snprintf(name, sizeof(name), "/lib/bad%02d.so", i);
		SAMPLES(1 + (uint64_t)i, NATIVE("main"), UNNAMED("x+1", name, PROFILE_NO_SYMBOLS));
	}
	profile__run(p)->metrics = 1u << PROFILE_CPU_NS;
	s = closing(p, (struct closing_options){ .metric = PROFILE_CPU_NS });
	has(s, "bad19.so: no symbols for 4.8 % of the frames of CPU samples\n");	/* 20 of 420 */
	has(s, "bad12.so: ");
	lacks(s, "bad11.so");
	has(s, "and 12 more files without symbols or unwind information\n");
	free(s);
	profile__free(p);
}
END_TEST

START_TEST(errors_come_back)
{
	struct closing_options c = { .metric = PROFILE_CPU_NS };
	struct summary_options o = { 0 };
	struct profile *p = spoiled();
	FILE *f = fopen("/dev/full", "w");
	int err = -ENOMEM;
	long n;

	ck_assert_int_eq(summary__write(p, &o, f), -ENOSPC);
	fclose(f);
	f = fopen("/dev/full", "w");
	ck_assert_int_eq(closing__write(p, &c, f), -ENOSPC);
	fclose(f);
	f = fopen("/dev/null", "w");
	fputs("x", f);		/* the stream has its buffer */
	fflush(f);
	for (n = 0; CAN_REFUSE && err; n++) {
		allocations_left = n;
		err = summary__write(p, &o, f);
		allocations_left = -1;
		ck_assert(!err || err == -ENOMEM);
	}
	ck_assert(!CAN_REFUSE || n > 10);
	err = -ENOMEM;
	for (n = 0; CAN_REFUSE && err; n++) {
		allocations_left = n;
		err = closing__write(p, &c, f);
		allocations_left = -1;
		ck_assert(!err || err == -ENOMEM);
	}
	ck_assert(!CAN_REFUSE || n > 10);
	c.json = true;
	err = -ENOMEM;
	for (n = 0; CAN_REFUSE && err; n++) {
		allocations_left = n;
		err = closing__write(p, &c, f);
		allocations_left = -1;
		ck_assert(!err || err == -ENOMEM);
	}
	ck_assert(!CAN_REFUSE || n > 10);
	fclose(f);
	profile__free(p);
}
END_TEST

UNIT_MAIN("summary", the_table_adds_up_by_what_ends_the_stack, what_kernels_do_is_said_of_kernels,
	  without_times_launches_are_shown,
	  rows_and_columns_have_limits, names_do_not_steer_the_terminal,
	  quality_is_counted_by_event,
	  the_end_says_what_is_missing_and_why, one_is_not_several, copies_are_no_launches,
	  a_nameless_root_is_no_alarm, python_functions_have_names,
	  scripts_get_the_same_unrounded, a_graph_s_time_is_what_it_runs, gpu_time_is_labelled,
	  cpu_time_alone,
	  many_bad_files_are_not_all_listed, errors_come_back)
