// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "loader/output/names.h"

#include <string.h>

#include "loader/output/shorten.h"
#include "tests/unit/docs.h"
#include "tests/unit/unit.h"

START_TEST(frames_are_made_safe)
{
	static const struct {
		const char *in, *out;
	} rows[] = {
		{ "f", "f" },
		{ "operator<<", "operator<<" },
		{ "<lambda>", "<lambda>" },
		{ "<module>", "<module>" },
		{ "caf\xc3\xa9 \xe4\xb8\xad \xf0\x9f\x98\x80",
		  "caf\xc3\xa9 \xe4\xb8\xad \xf0\x9f\x98\x80" },
		{ "a  b", "a  b" },
		{ "[u8; 32]", "[u8: 32]" },
		{ ";;", "::" },
		{ "two\nlines", "two?lines" },
		{ "tab\there\r", "tab?here?" },
		{ "\x1b[31mred\x07", "?[31mred?" },
		{ "\xff\xfe" "ab\xc3", "??ab?" },
		{ "\xe2\x80\xa8x\xe2\x80\xa9\xc2\x85", "?x??" },
		{ "evil\xe2\x80\xaelamtam", "evil?lamtam" },	/* U+202E: would read "matmal" */
		{ "\xef\xbb\xbf" "f\xe2\x80\x8b\xe2\x81\xa6", "?f??" },
		{ "\xd9\x85\xdb\x8c\xe2\x80\x8c\xd8\xae", "\xd9\x85\xdb\x8c\xe2\x80\x8c\xd8\xae" },
		{ "stream 7", "stream #7" },
		{ "stream 7.", "stream #7." },
		{ "x 1.5", "x #1.5" },
		{ "1 2", "1 #2" },
		{ "1 2 33", "1 2 #33" },
		{ "7", "7" },
		{ "x 1.5.6", "x 1.5.6" },
		{ "x 7a", "x 7a" },
		{ "x -7", "x -7" },
		{ "x .5", "x .5" },
		{ "x 7 ", "x 7?" },
		{ "x 7\n", "x 7?" },
		{ " lead", "?lead" },
		{ "  ", "??" },
		{ " 7", "?7" },
		{ "trail  ", "trail??" },
		{ "", "[no name]" },
		{ "\n", "?" },
		{ "#hash", "#hash" },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct text t = { 0 };
		char *s;

		text__add_string(&t, "before;");
		names__add_frame(&t, rows[i].in, strlen(rows[i].in));
		s = text__take(&t);
		ck_assert_ptr_nonnull(s);
		ck_assert(!strncmp(s, "before;", 7));
		ck_assert_str_eq(s + 7, rows[i].out);
		free(s);
	}
}
END_TEST

#define E "\xe2\x80\xa6"

START_TEST(names_are_shortened_by_their_templates_first)
{
	static const struct {
		size_t max;
		const char *in, *out;
	} rows[] = {
		{ 20, "short<int>", "short<int>" },
		{ 20, "exactly20<aaaaaaaaa>", "exactly20<aaaaaaaaa>" },
		{ 20, "kernel<aaaaaaaaaaaaaaaaa>", "kernel<" E ">" },
		{ 20, "ns<aaaaaaaaaaaa>::k<b<c>, d>", "ns<" E ">::k<" E ">" },
		{ 20, "operator<< <aaaaaaaaaaaaaaaaaa>", "operator<< <" E ">" },
		{ 20, "operator<<<aaaaaaaaaaaaaaaaaa>", "operator<<<" E ">" },
		{ 20, "a::operator<<aaaaaaaaaaaaaaaaaa>", "a::operator<<aaaa" E },
		{ 20, "a::operator&&<aaaaaaaaaaaaaaaaaaa>", "a::operator&&<" E ">" },
		{ 20, "a::operator-><aaaaaaaaaaaaaaaaa>", "a::operator-><" E ">" },
		{ 20, "myoperator<aaaaaaaaaaaaaaaaaaa>", "myoperator<" E ">" },
		{ 20, "a::operator()<aaaaaaaaaaaaaaaa>", "a::operator()<" E ">" },
		{ 20, "operator bool<aaaaaaaaaaaaaaaa>", "operator bool<" E ">" },
		{ 20, "f<&X::operator>, aaaaaaaaaa>::g", "f<" E ">::g" },
		{ 20, "f<decltype(a->b), aaaaaaaaaa>::g", "f<" E ">::g" },
		{ 20, "f<aaaaaaaaaaaaaaaaaaaaaaa", "f<aaaaaaaaaaaaaaa" E },	/* no end */
		{ 20, "f<a>>aaaaaaaaaaaaaaaaaaaaaaa", "f<" E ">>aaaaaaaaaa" E },
		{ 20, "<T as X<aaaaaaaaaaaaaaaa>>::f", "<T as X<" E ">>::f" },
		{ 20, "aaaaaaaaaaaaaaaaaaaaa", "aaaaaaaaaaaaaaaaa" E },
		{ 20, "aaaaaaaaaaaaaaaa\xc3\xa4" "bbbbb", "aaaaaaaaaaaaaaaa" E },
		{ 20, "aaaaaaaaaaaaaaa\xc3\xa4" "bbbbbb", "aaaaaaaaaaaaaaa\xc3\xa4" E },
		{ 20, "\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff"
		  "\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff",
		  "\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff" "\xff\xff\xff\xff\xff\xff\xff" E },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct text t = { 0 };
		bool cut;
		char *s;

		cut = shorten__add(&t, rows[i].in, rows[i].max);
		s = text__take(&t);
		ck_assert_str_eq(s, rows[i].out);
		ck_assert_uint_le(strlen(s), rows[i].max);
		ck_assert_int_eq(cut, strcmp(rows[i].in, rows[i].out) != 0);
		free(s);
	}
}
END_TEST

static uint32_t gpu(struct profile *p, const char *name, const char *raw, const char *module)
{
	struct profile_frame f = {
		.kind = PROFILE_GPU, .name = name, .raw = raw, .module = module,
	};
	uint32_t id;

	ck_assert_int_eq(profile__frame(p, &f, &id), 0);
	return id;
}

static bool has_hash(const char *text, const char *before)
{
	size_t len = strlen(before);

	return !strncmp(text, before, len) && text[len] == '#' && strlen(text) == len + 9 &&
	       strspn(text + len + 1, "0123456789abcdef") == 8;
}

static char *repeated(const char *head, const char *part, int times, const char *tail)
{
	struct text t = { 0 };

	text__add_string(&t, head);
	while (times--)
		text__add_string(&t, part);
	text__add_string(&t, tail);
	return text__take(&t);
}

START_TEST(kernels_that_look_alike_are_told_apart)
{
	struct profile *p = profile__new();
	char *a = repeated("ns::kernel<", "std::array<char*, 1>, ", 12, "1>");
	char *b = repeated("ns::kernel<", "std::array<char*, 1>, ", 12, "2>");
	char *alone = repeated("other<", "int, ", 60, "int>");
	uint32_t long_a = gpu(p, a, "_Za", NULL), long_b = gpu(p, b, "_Zb", NULL);
	uint32_t unique = gpu(p, alone, NULL, NULL);
	uint32_t c_name = gpu(p, "scale", NULL, NULL);
	uint32_t cxx_name = gpu(p, "scale", "_Z5scalev", NULL);
	uint32_t here = gpu(p, "same", "_Z4samev", "a.out");
	uint32_t there = gpu(p, "same", "_Z4samev", "b.out");
	uint32_t one = gpu(p, "spin1", NULL, NULL), two = gpu(p, "spin2", NULL, NULL);
	uint32_t none = gpu(p, NULL, NULL, NULL), empty = gpu(p, "", NULL, NULL);
	uint32_t bad1 = gpu(p, "k\n", NULL, NULL), bad2 = gpu(p, "k\r", NULL, NULL);
	uint32_t number = gpu(p, "k 7", NULL, NULL);
	struct names *n, *again;

	ck_assert_int_eq(names__new(p, false, &n), 0);
	ck_assert_str_eq(names__of(n, unique), "[GPU] other<" E ">");
	ck_assert(has_hash(names__of(n, long_a), "[GPU] ns::kernel<" E ">"));
	ck_assert(has_hash(names__of(n, long_b), "[GPU] ns::kernel<" E ">"));
	ck_assert_str_ne(names__of(n, long_a), names__of(n, long_b));
	ck_assert(has_hash(names__of(n, c_name), "[GPU] scale"));
	ck_assert(has_hash(names__of(n, cxx_name), "[GPU] scale"));
	ck_assert_str_ne(names__of(n, c_name), names__of(n, cxx_name));
	ck_assert_str_eq(names__of(n, here), "[GPU] same");	/* one kernel in two files */
	ck_assert_str_eq(names__of(n, there), "[GPU] same");
	ck_assert_str_eq(names__of(n, one), "[GPU] spin1");
	ck_assert_str_eq(names__of(n, two), "[GPU] spin2");
	ck_assert_str_eq(names__of(n, none), "[GPU] [unknown kernel]");
	ck_assert_str_eq(names__of(n, empty), "[GPU] [kernel with an empty name]");
	ck_assert(has_hash(names__of(n, bad1), "[GPU] k?"));
	ck_assert(has_hash(names__of(n, bad2), "[GPU] k?"));
	ck_assert_str_ne(names__of(n, bad1), names__of(n, bad2));
	ck_assert_str_eq(names__of(n, number), "[GPU] k #7");
	ck_assert_int_eq(names__new(p, true, &again), 0);
	ck_assert_str_eq(names__of(again, one), "[GPU] spin1_[G]");
	ck_assert_int_eq(memcmp(names__of(again, long_a), names__of(n, long_a),
				strlen(names__of(n, long_a))), 0);
	names__free(n);
	names__free(again);
	profile__free(p);

	/* In another run, with other neighbours, the same kernel has the same text. */
	p = profile__new();
	gpu(p, "x", NULL, NULL);
	cxx_name = gpu(p, "scale", "_Z5scalev", NULL);
	c_name = gpu(p, "scale", NULL, NULL);
	ck_assert_int_eq(names__new(p, false, &n), 0);
	ck_assert_str_eq(names__of(n, c_name), "[GPU] scale#06e5ca79");
	names__free(n);
	profile__free(p);
	free(a);
	free(b);
	free(alone);
}
END_TEST

START_TEST(long_functions_are_told_apart_only_where_cut)
{
	struct profile *p = profile__new();
	char *a = repeated("f<", "int, ", 200, "1>"), *b = repeated("f<", "int, ", 200, "2>");
	struct profile_frame f = { .kind = PROFILE_NATIVE, .name = a };
	uint32_t ids[4];
	struct names *n;

	profile__frame(p, &f, &ids[0]);
	f.name = b;
	profile__frame(p, &f, &ids[1]);
	f.name = "g";
	f.raw = "_Z1gv";
	profile__frame(p, &f, &ids[2]);
	f.raw = "_Z1gi";
	profile__frame(p, &f, &ids[3]);
	ck_assert_int_eq(names__new(p, false, &n), 0);
	ck_assert(has_hash(names__of(n, ids[0]), "f<" E ">"));
	ck_assert_str_ne(names__of(n, ids[0]), names__of(n, ids[1]));
	ck_assert_str_eq(names__of(n, ids[2]), "g");	/* overloads are one box, by design */
	ck_assert_str_eq(names__of(n, ids[3]), "g");
	names__free(n);
	profile__free(p);
	free(a);
	free(b);
}
END_TEST

/* A text that would fill the disk, hundreds of times in a line; what somebody wrote is whole. */
START_TEST(python_names_have_a_limit_and_stay_different)
{
	char *most = repeated("", "n", NAMES_PYTHON_BYTES, ""), *more = repeated("", "n", 65536, "");
	char *other = repeated("", "n", 65535, "m"), *euros = repeated("x", "\xe2\x82\xac", 3000, "");
	struct profile_frame f = { .kind = PROFILE_PYTHON, .name = most, .file = "f.py", .line = 3 };
	struct profile *p = profile__new();
	uint32_t whole, cut, different, no_file, in_long, in_other, wide;
	struct names *n;
	const char *text;

	profile__frame(p, &f, &whole);
	f.name = more;
	profile__frame(p, &f, &cut);
	f.name = other;
	profile__frame(p, &f, &different);
	f.file = NULL;
	profile__frame(p, &f, &no_file);
	f.name = "f";
	f.file = more;
	profile__frame(p, &f, &in_long);
	f.file = other;
	profile__frame(p, &f, &in_other);
	f.file = euros;
	profile__frame(p, &f, &wide);
	ck_assert_int_eq(names__new(p, true, &n), 0);
	text = names__of(n, whole);
	ck_assert(!strncmp(text, most, NAMES_PYTHON_BYTES));
	ck_assert_str_eq(text + NAMES_PYTHON_BYTES, " (f.py:3)");
	text = names__of(n, cut);
	ck_assert(!strncmp(text, most, NAMES_PYTHON_BYTES));
	ck_assert(!strncmp(text + NAMES_PYTHON_BYTES, E "#", 4));
	ck_assert_str_eq(text + NAMES_PYTHON_BYTES + 4 + 8, " (f.py:3)");
	ck_assert_uint_eq(strlen(names__of(n, different)), strlen(text));
	ck_assert_str_ne(names__of(n, different), text);
	ck_assert(has_hash(names__of(n, no_file) + NAMES_PYTHON_BYTES, E));
	ck_assert_uint_eq(strlen(names__of(n, in_long)), 3 + NAMES_PYTHON_BYTES + 4 + 8 + 3);
	ck_assert_str_ne(names__of(n, in_long), names__of(n, in_other));
	/* 1 + 2,730 times 3 is 8,191: the next one doesn't fit. */
	ck_assert(!strncmp(names__of(n, wide) + 3 + 8191, E "#", 4));
	names__free(n);
	profile__free(p);
	free(most);
	free(more);
	free(other);
	free(euros);
}
END_TEST

START_TEST(each_kind_has_its_form)
{
	static const struct {
		struct profile_frame f;
		const char *plain, *annotated;
	} rows[] = {
		{ { .kind = PROFILE_PROCESS, .name = "train", .id = 42 }, "train (pid 42)", NULL },
		{ { .kind = PROFILE_PROCESS, .name = "", .id = 42 }, "[no name] (pid 42)", NULL },
		{ { .kind = PROFILE_PROCESS, .name = "#x", .id = 1 }, "?x (pid 1)", NULL },
		{ { .kind = PROFILE_PROCESS, .name = " ", .id = 1 }, "? (pid 1)", NULL },
		{ { .kind = PROFILE_PROCESS, .name = "  # 7", .id = 1 }, "??# 7 (pid 1)", NULL },
		{ { .kind = PROFILE_PROCESS, .name = "k) R 1 2\n(z", .id = 1 },
		  "k) R 1 2?(z (pid 1)", NULL },
		{ { .kind = PROFILE_PROCESS, .name = " a;b", .id = 4294967295 },
		  "?a:b (pid 4294967295)", NULL },
		{ { .kind = PROFILE_THREAD, .name = "pt_autograd_0" }, "[thread pt_autograd_0]",
		  NULL },
		{ { .kind = PROFILE_THREAD, .id = 7 }, "[thread 7]", NULL },
		{ { .kind = PROFILE_NATIVE, .name = "main" }, "main", NULL },
		{ { .kind = PROFILE_NATIVE, .name = "main", .flags = PROFILE_GUESS }, "main",
		  NULL },
		{ { .kind = PROFILE_NATIVE, .name = "f", .flags = PROFILE_INLINED }, "f", "f_[i]" },
		{ { .kind = PROFILE_NATIVE, .name = "f", .flags = PROFILE_JIT }, "f", "f_[j]" },
		{ { .kind = PROFILE_NATIVE }, "[unknown]", NULL },
		{ { .kind = PROFILE_NATIVE, .name = "" }, "[unknown]", NULL },
		{ { .kind = PROFILE_NATIVE, .name = "libx.so+0x12",
		    .unresolved = PROFILE_NO_SYMBOLS }, "libx.so+0x12", NULL },
		{ { .kind = PROFILE_KERNEL, .name = "do_syscall_64" }, "do_syscall_64",
		  "do_syscall_64_[k]" },
		{ { .kind = PROFILE_GPU, .id = PROFILE_GRAPH }, "[GPU] [graph]", "[GPU] [graph]_[G]" },
		{ { .kind = PROFILE_GPU, .id = PROFILE_COPY, .name = "memset" }, "[GPU] memset",
		  "[GPU] memset_[G]" },
		{ { .kind = PROFILE_GPU, .name = "memset" }, "[GPU] ?emset", "[GPU] ?emset_[G]" },
		{ { .kind = PROFILE_GPU, .name = "memset2" }, "[GPU] memset2", "[GPU] memset2_[G]" },
		{ { .kind = PROFILE_GPU, .name = "memcpy" }, "[GPU] ?emcpy", "[GPU] ?emcpy_[G]" },
		{ { .kind = PROFILE_GPU, .name = "memcpy HtoD" }, "[GPU] ?emcpy HtoD",
		  "[GPU] ?emcpy HtoD_[G]" },
		{ { .kind = PROFILE_NATIVE, .name = "memset" }, "memset", NULL },
		{ { .kind = PROFILE_GPU, .id = PROFILE_KERNEL_NAMELESS }, "[GPU] [kernel without a name]",
		  "[GPU] [kernel without a name]_[G]" },
		{ { .kind = PROFILE_PYTHON, .name = "f", .file = "x.py", .line = 3 }, "f (x.py:3)", NULL },
		{ { .kind = PROFILE_PYTHON, .name = "f", .file = "x.py" }, "f (x.py)", NULL },
		{ { .kind = PROFILE_PYTHON, .name = "", .file = "x.py" }, "[no name] (x.py)", NULL },
		{ { .kind = PROFILE_PYTHON }, "[no name]", NULL },
		{ { .kind = PROFILE_MARK, .id = PROFILE_MARK_TRUNCATED }, "[truncated]", NULL },
		{ { .kind = PROFILE_MARK, .id = PROFILE_MARK_NO_UNWIND_INFO,
		    .module = "/usr/lib/x;y\n/libfoo.so" }, "[no unwind info: libfoo.so]", NULL },
		{ { .kind = PROFILE_MARK, .id = PROFILE_MARK_NO_UNWIND_INFO },
		  "[no unwind info: file not known]", NULL },
		{ { .kind = PROFILE_MARK, .id = PROFILE_MARK_NO_UNWIND_RULE, .module = "%s%n" },
		  "[unusable unwind info: %s%n]", NULL },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct profile *p = profile__new();
		struct names *n;
		uint32_t id;

		ck_assert_int_eq(profile__frame(p, &rows[i].f, &id), 0);
		ck_assert_int_eq(names__new(p, false, &n), 0);
		ck_assert_str_eq(names__of(n, id), rows[i].plain);
		names__free(n);
		ck_assert_int_eq(names__new(p, true, &n), 0);
		ck_assert_str_eq(names__of(n, id),
				 rows[i].annotated ? rows[i].annotated : rows[i].plain);
		names__free(n);
		profile__free(p);
	}
}
END_TEST

static const char *shown(const struct profile_frame *f, bool annotate, char *buf)
{
	struct profile *p = profile__new();
	struct names *n;
	uint32_t id;

	ck_assert_int_eq(profile__frame(p, f, &id), 0);
	ck_assert_int_eq(names__new(p, annotate, &n), 0);
	snprintf(buf, 512, "%s", names__of(n, id));
	names__free(n);
	profile__free(p);
	return buf;
}

#define SHOWN(...) shown(&(const struct profile_frame){ __VA_ARGS__ }, false, (char [512]){ 0 })

/* Names that targets chose so that they read like what gpucollect alone writes, and some that nearly do. */
START_TEST(names_are_not_taken_for_ours)
{
	static const struct {
		const char *in, *out;
	} rows[] = {
		{ "[GPU] matmul", "?GPU] matmul" },
		{ "[GPU]", "?GPU]" },
		{ "[thread x]", "?thread x]" },
		{ "[no stack]", "?no stack]" },
		{ "[no unwind info; libfoo.so]", "?no unwind info: libfoo.so]" },
		{ "[unusable unwind info: x", "?unusable unwind info: x" },
		{ "[graph]", "?graph]" },
		{ "memcpy_[k]", "memcpy_?k]" },
		{ "f_[i]", "f_?i]" },
		{ "f_[j]", "f_?j]" },
		{ "f_[G]", "f_?G]" },
		{ "[GPU] f_[G]", "?GPU] f_?G]" },
		{ "_[k]", "_?k]" },
		{ "train (train.py:17)", "train (train.py:17?" },
		{ "train (train.py;17)", "train (train.py:17?" },
		{ "f (a (b:1)", "f (a (b:1?" },
		{ "train (pid 42)", "train (pid 42?" },
		{ "libfoo.so+0x1234", "libfoo.so?0x1234" },
		{ "gemm#06e5ca79", "gemm?06e5ca79" },
		/* what is none of these */
		{ "[u8; 32]", "[u8: 32]" },
		{ "[gpu] x", "[gpu] x" },
		{ "[no stack] x", "[no stack] x" },
		{ "[threads]", "[threads]" },
		{ "x[no stack]", "x[no stack]" },
		{ "[", "[" },
		{ "memcpy_[k] x", "memcpy_[k] x" },
		{ "memcpy_[x]", "memcpy_[x]" },
		{ "memcpy[k]", "memcpy[k]" },
		{ "a_[k]_b", "a_[k]_b" },
		{ "operator void (*)(int)", "operator void (*)(int)" },
		{ "Foo:Bar (int,string)", "Foo:Bar (int,string)" },
		{ "f(int:3)", "f(int:3)" },
		{ "f (3)", "f (3)" },
		{ "JS:*f /x/a.js:10:3", "JS:*f /x/a.js:10:3" },
		{ "x+0x", "x+0x" },
		{ "x+0x12g", "x+0x12g" },
		{ "foo::{lambda(int)#1}", "foo::{lambda(int)#1}" },
		{ "x#06e5ca7", "x#06e5ca7" },
		{ "x#006e5ca79", "x#006e5ca79" },
		{ "x#06E5CA79", "x#06E5CA79" },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		const char *in = rows[i].in, *out = rows[i].out;
		char want[96], plain[64], *s;

		ck_assert_str_eq(SHOWN(.kind = PROFILE_NATIVE, .name = in), out);
		ck_assert_str_eq(SHOWN(.kind = PROFILE_KERNEL, .name = in), out);
		ck_assert_str_eq(SHOWN(.kind = PROFILE_PYTHON, .name = in), out);
		snprintf(want, sizeof(want), "[GPU] %s", out);
		ck_assert_str_eq(SHOWN(.kind = PROFILE_GPU, .name = in), want);
		/* Between texts of ours neither end matters. */
		snprintf(plain, sizeof(plain), "%s", in);
		if ((s = strchr(plain, ';')))
			*s = ':';
		snprintf(want, sizeof(want), "%c%s (x.py)", out[0], plain + 1);
		ck_assert_str_eq(SHOWN(.kind = PROFILE_PYTHON, .name = in, .file = "x.py"), want);
		snprintf(want, sizeof(want), "%c%s (pid 7)", out[0], plain + 1);
		ck_assert_str_eq(SHOWN(.kind = PROFILE_PROCESS, .name = in, .id = 7), want);
		snprintf(want, sizeof(want), "[thread %s]", plain);
		ck_assert_str_eq(SHOWN(.kind = PROFILE_THREAD, .name = in), want);
	}
}
END_TEST

START_TEST(our_own_text_makes_no_other_of_a_name)
{
	ck_assert_str_eq(SHOWN(.kind = PROFILE_THREAD, .name = "x_[k"), "[thread x_?k]");
	ck_assert_str_eq(SHOWN(.kind = PROFILE_MARK, .id = PROFILE_MARK_NO_UNWIND_INFO, .module = "x_[k"),
			 "[no unwind info: x_?k]");
	/* Files choose their names, too; the offset, or the text in place of a name, is ours. */
	ck_assert_str_eq(SHOWN(.kind = PROFILE_NATIVE, .name = "[GPU] x.so+0x12", .module = "[GPU] x.so",
			       .unresolved = PROFILE_NO_SYMBOL), "?GPU] x.so+0x12");
	ck_assert_str_eq(SHOWN(.kind = PROFILE_NATIVE, .name = "[unknown]+0x12", .module = "[unknown]",
			       .unresolved = PROFILE_FILE_UNREADABLE), "[unknown]+0x12");
	ck_assert_str_eq(SHOWN(.kind = PROFILE_NATIVE, .name = "[anonymous code]",
			       .unresolved = PROFILE_GENERATED), "[anonymous code]");
}
END_TEST

START_TEST(suffixes_are_added_by_us_alone)
{
	struct profile_frame f = { .kind = PROFILE_KERNEL, .name = "memcpy_[k]" };
	char buf[512];

	ck_assert_str_eq(shown(&f, true, buf), "memcpy_?k]_[k]");
	f.kind = PROFILE_GPU;
	ck_assert_str_eq(shown(&f, true, buf), "[GPU] memcpy_?k]_[G]");
	f.kind = PROFILE_NATIVE;
	ck_assert_str_eq(shown(&f, true, buf), "memcpy_?k]");
	f.flags = PROFILE_JIT;
	ck_assert_str_eq(shown(&f, true, buf), "memcpy_?k]_[j]");
}
END_TEST

/* All that docs/output.md has in its table of marks: whoever adds one adds it there. */
START_TEST(documented_marks_are_ours_alone)
{
	char *doc = read_document("docs/output.md"), *line = strstr(doc, "\n### Marks\n");
	size_t marks = 0;

	ck_assert_ptr_nonnull(line);
	for (line = strtok(line, "\n"); line && strcmp(line, "### Names"); line = strtok(NULL, "\n")) {
		char *name = line + 3, *end = strchr(name, '`');
		const char *got;

		if (strncmp(line, "| `", 3) || !end)
			continue;
		*end = '\0';
		got = SHOWN(.kind = PROFILE_NATIVE, .name = name);
		ck_assert_msg(strlen(got) == strlen(name) && strcmp(got, name), "%s", got);
		marks++;
		if (strncmp(name, "[GPU] ", 6))
			continue;
		got = SHOWN(.kind = PROFILE_GPU, .name = name + 6);
		ck_assert_msg(!strncmp(got, "[GPU] ?", 7), "%s", got);
	}
	ck_assert_uint_gt(marks, 15);
	free(doc);
}
END_TEST

UNIT_MAIN("names", frames_are_made_safe, names_are_shortened_by_their_templates_first,
	  kernels_that_look_alike_are_told_apart, long_functions_are_told_apart_only_where_cut,
	  python_names_have_a_limit_and_stay_different, each_kind_has_its_form, names_are_not_taken_for_ours,
	  our_own_text_makes_no_other_of_a_name, suffixes_are_added_by_us_alone,
	  documented_marks_are_ours_alone)
