// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "loader/profile/profile.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "tests/unit/docs.h"
#include "tests/unit/refuse.h"
#include "tests/unit/unit.h"

static uint32_t native(struct profile *p, const char *name)
{
	struct profile_frame f = { .kind = PROFILE_NATIVE, .name = name };
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

START_TEST(frames_are_one_exactly_if_all_fields_agree)
{
	struct profile_frame base = {
		.kind = PROFILE_NATIVE, .flags = PROFILE_GUESS, .unresolved = 0, .id = 0,
		.line = 7, .name = "f", .raw = "_Z1fv", .module = "/lib/a.so", .file = "a.c",
	}, f;
	struct profile *p = profile__new();
	char name[] = "f";
	uint32_t a, b, n = 1;

	ck_assert_int_eq(profile__frame(p, &base, &a), 0);
	f = base;
	f.name = name;			/* another address, the same text */
	ck_assert_int_eq(profile__frame(p, &f, &b), 0);
	ck_assert_uint_eq(a, b);
	name[0] = 'X';			/* it was copied */
	ck_assert_str_eq(profile__frame_at(p, a)->name, "f");
#define DIFFERS(field, value) do { \
		f = base; \
		f.field = value; \
		ck_assert_int_eq(profile__frame(p, &f, &b), 0); \
		ck_assert_uint_eq(b, n++); \
	} while (0)
	DIFFERS(kind, PROFILE_KERNEL);
	DIFFERS(flags, 0);
	DIFFERS(unresolved, PROFILE_NO_SYMBOL);
	DIFFERS(id, 1);
	DIFFERS(line, 8);
	DIFFERS(name, "g");
	DIFFERS(name, "");
	DIFFERS(name, NULL);
	DIFFERS(raw, NULL);
	DIFFERS(module, NULL);
	DIFFERS(file, NULL);
	ck_assert_uint_eq(profile__nr_frames(p), n);
	f = base;
	f.kind = NR_PROFILE_KINDS;
	ck_assert_int_eq(profile__frame(p, &f, &b), -EINVAL);
	ck_assert_int_eq(profile__mark(p, NR_PROFILE_MARKS, NULL, &b), -EINVAL);
	profile__free(p);
	profile__free(NULL);
}
END_TEST

START_TEST(stacks_share_their_prefixes)
{
	struct profile *p = profile__new();
	uint32_t f[3] = { native(p, "a"), native(p, "b"), native(p, "c") }, abc, ab, again, none;

	ck_assert_int_eq(profile__path(p, PROFILE_ROOT, f, 3, &abc), 0);
	ck_assert_int_eq(profile__path(p, PROFILE_ROOT, f, 2, &ab), 0);
	ck_assert_int_eq(profile__path(p, PROFILE_ROOT, f, 3, &again), 0);
	ck_assert_uint_eq(abc, again);
	ck_assert_uint_eq(profile__node_parent(p, abc), ab);
	ck_assert_uint_eq(profile__node_frame(p, abc), f[2]);
	ck_assert_uint_eq(profile__nr_nodes(p), 4);
	ck_assert_int_eq(profile__node(p, ab, f[2], &again), 0);
	ck_assert_uint_eq(abc, again);
	ck_assert_int_eq(profile__node(p, PROFILE_ROOT, f[1], &again), 0);
	ck_assert_uint_eq(again, 4);
	ck_assert_int_eq(profile__path(p, ab, NULL, 0, &none), 0);
	ck_assert_uint_eq(none, ab);
	ck_assert_int_eq(profile__node(p, 5, f[0], &none), -EINVAL);
	ck_assert_int_eq(profile__node(p, 0, 3, &none), -EINVAL);
	ck_assert_int_eq(profile__path(p, 99, NULL, 0, &none), -EINVAL);
	ck_assert_uint_eq(profile__nr_nodes(p), 5);
	profile__free(p);
}
END_TEST

START_TEST(values_add_up_by_their_whole_key)
{
	struct profile *p = profile__new();
	uint32_t node, l1 = labels(p, 1, 1), l2 = labels(p, 1, 2);
	struct profile_value v;
	size_t pos = 0;

	ck_assert_uint_eq(labels(p, 1, 1), l1);
	ck_assert_int_eq(profile__node(p, PROFILE_ROOT, native(p, "a"), &node), 0);
	ck_assert_int_eq(profile__add(p, node, l1, PROFILE_GPU_NS, 0, 100, 1), 0);
	ck_assert_int_eq(profile__add(p, node, l2, PROFILE_GPU_NS, 0, 10, 1), 0);
	ck_assert_int_eq(profile__add(p, node, l1, PROFILE_LAUNCHES, 0, 1, 1), 0);
	ck_assert_int_eq(profile__add(p, node, l1, PROFILE_GPU_NS, PROFILE_ESTIMATED, 7, 2), 0);
	ck_assert_int_eq(profile__add(p, node, l1, PROFILE_GPU_NS, 0, 23, 1), 0);
	ck_assert(profile__next(p, &pos, &v));
	ck_assert(v.node == node && v.labels == l1 && v.metric == PROFILE_GPU_NS && !v.flags);
	ck_assert_uint_eq(v.value, 123);
	ck_assert_uint_eq(v.count, 2);
	ck_assert(profile__next(p, &pos, &v) && v.labels == l2 && v.value == 10);
	ck_assert(profile__next(p, &pos, &v) && v.metric == PROFILE_LAUNCHES);
	ck_assert(profile__next(p, &pos, &v) && v.flags == PROFILE_ESTIMATED && v.count == 2);
	ck_assert(!profile__next(p, &pos, &v));
	ck_assert_uint_eq(profile__total(p, PROFILE_GPU_NS), 140);
	ck_assert_uint_eq(profile__total_count(p, PROFILE_GPU_NS), 5);
	ck_assert_int_eq(profile__add(p, PROFILE_ROOT, l1, PROFILE_GPU_NS, 0, 1, 1), -EINVAL);
	ck_assert_int_eq(profile__add(p, node + 1, l1, PROFILE_GPU_NS, 0, 1, 1), -EINVAL);
	ck_assert_int_eq(profile__add(p, node, l2 + 1, PROFILE_GPU_NS, 0, 1, 1), -EINVAL);
	ck_assert_int_eq(profile__add(p, node, l1, NR_PROFILE_METRICS, 0, 1, 1), -EINVAL);
	ck_assert_int_eq(profile__add(p, node, l1, PROFILE_GPU_NS, 0, UINT64_MAX, 1), 0);
	ck_assert_uint_eq(profile__total(p, PROFILE_GPU_NS), UINT64_MAX);	/* no wrap */
	profile__free(p);
}
END_TEST

START_TEST(labels_differ_in_every_field)
{
	struct profile_labels base = { .pid = 1, .tid = 2, .device = 0, .stream = 0 }, l;
	struct profile *p = profile__new();
	uint32_t id;

	ck_assert_int_eq(profile__labels(p, &base, &id), 0);
	l = base;
	l.pid = 2;
	ck_assert_int_eq(profile__labels(p, &l, &id), 0);
	ck_assert_uint_eq(id, 1);
	l = base;
	l.tid = 3;
	ck_assert_int_eq(profile__labels(p, &l, &id), 0);
	ck_assert_uint_eq(id, 2);
	l = base;
	l.device = PROFILE_NO_LABEL;
	ck_assert_int_eq(profile__labels(p, &l, &id), 0);
	ck_assert_uint_eq(id, 3);
	l = base;
	l.stream = 0x7f0000000000;
	ck_assert_int_eq(profile__labels(p, &l, &id), 0);
	ck_assert_uint_eq(id, 4);
	ck_assert_uint_eq(profile__labels_at(p, 4)->stream, 0x7f0000000000);
	profile__free(p);
}
END_TEST

/*
 * Against a table of counts: random stacks of up to 12 frames out of 6 names with random
 * weights. Whatever the tree does, each stack must come out with its sum.
 */
#define STACKS 20000
START_TEST(nothing_gets_lost_among_many)
{
	static struct { char text[16]; uint64_t sum; } want[STACKS];
	struct profile *p = profile__new();
	uint32_t frames[6], path[12], node, l = labels(p, 1, 1);
	size_t nr_want = 0, pos = 0, seen = 0;
	struct profile_value v;

	for (int i = 0; i < 6; i++)
		frames[i] = native(p, (const char[]){ (char)('a' + i), 0 });
	srandom(1);
	for (int i = 0; i < STACKS; i++) {
		size_t depth = 1 + (size_t)random() % 4, j;
		uint64_t weight = (uint64_t)random();
		char text[16] = "";

		for (j = 0; j < depth; j++) {
			int k = (int)(random() % 6);

			path[j] = frames[k];
			text[j] = (char)('a' + k);
		}
		ck_assert_int_eq(profile__path(p, PROFILE_ROOT, path, depth, &node), 0);
		ck_assert_int_eq(profile__add(p, node, l, PROFILE_CPU_NS, 0, weight, 1), 0);
		for (j = 0; j < nr_want && strcmp(want[j].text, text); j++)
			;
		if (j == nr_want)
			strcpy(want[nr_want++].text, text);
		want[j].sum += weight;
	}
	while (profile__next(p, &pos, &v)) {
		char text[16] = "", name;

		for (node = v.node; node != PROFILE_ROOT; node = profile__node_parent(p, node)) {
			name = profile__frame_at(p, profile__node_frame(p, node))->name[0];
			memmove(text + 1, text, strlen(text) + 1);
			text[0] = name;
			ck_assert_uint_lt(profile__node_parent(p, node), node);
		}
		ck_assert_str_eq(text, want[seen].text);	/* in the order of first addition */
		ck_assert_uint_eq(v.value, want[seen].sum);
		seen++;
	}
	ck_assert_uint_eq(seen, nr_want);
	ck_assert_uint_gt(nr_want, 1000);
	profile__free(p);
}
END_TEST

START_TEST(strings_of_any_length_stay_where_they_are)
{
	struct profile *p = profile__new();
	const char *first = NULL;
	char *big = malloc(600001);

	for (int i = 0; i < 3000; i++) {
		size_t len = i % 100 == 99 ? 20000 + (size_t)i * 100 : 10 + (size_t)i % 50;
		uint32_t id;

		memset(big, 'a' + i % 26, len);
		snprintf(big + len, 16, "%d", i);
		id = native(p, big);
		ck_assert_str_eq(profile__frame_at(p, id)->name, big);
		if (!i)
			first = profile__frame_at(p, id)->name;
	}
	ck_assert_ptr_eq(profile__frame_at(p, 0)->name, first);
	ck_assert_str_eq(first, "aaaaaaaaaa0");
	free(big);
	profile__free(p);
}
END_TEST

START_TEST(losses_are_a_share_of_what_there_was)
{
	struct profile *p = profile__new();
	uint32_t node, l = labels(p, 1, 1);

	ck_assert(profile__lost_share(p) == 0);
	profile__node(p, PROFILE_ROOT, native(p, "a"), &node);
	profile__add(p, node, l, PROFILE_CPU_SAMPLES, 0, 97, 97);
	ck_assert(profile__lost_share(p) == 0);
	ck_assert_int_eq(profile__count(p, PROFILE_LOST_SAMPLES, "ring full", 1), 0);
	ck_assert_int_eq(profile__count(p, PROFILE_LOST_SAMPLES, "nested", 1), 0);
	ck_assert_int_eq(profile__count(p, PROFILE_LOST_SAMPLES, "ring full", 1), 0);
	ck_assert_int_eq(profile__count(p, PROFILE_INFO, "ring full", 1000), 0);
	ck_assert_int_eq(profile__count(p, PROFILE_LOST_OTHER, "ring full", 1000), 0);
	ck_assert_int_eq(profile__count(p, PROFILE_UNTIMED, "capture", 1000), 0);
	ck_assert_uint_eq(profile__nr_counters(p), 5);
	ck_assert_uint_eq(profile__counter_at(p, 0)->value, 2);
	ck_assert_double_eq_tol(profile__lost_share(p), 0.03, 1e-12);
	profile__count(p, PROFILE_LOST_LAUNCHES, "ring full", 1);	/* of 1: all */
	ck_assert_double_eq_tol(profile__lost_share(p), 1, 1e-12);
	profile__add(p, node, l, PROFILE_LAUNCHES, 0, 999, 999);
	ck_assert_double_eq_tol(profile__lost_share(p), 0.03, 1e-12);
	ck_assert_int_eq(profile__count(p, NR_PROFILE_COUNTER_KINDS, "x", 1), -EINVAL);
	profile__free(p);
}
END_TEST

START_TEST(notes_and_thread_names_are_kept)
{
	struct profile *p = profile__new();

	ck_assert_int_eq(profile__note(p, "graphs: %d", 12), 0);
	ck_assert_int_eq(profile__note(p, "other"), 0);
	ck_assert_int_eq(profile__note(p, "graphs: %d", 12), 0);
	ck_assert_uint_eq(profile__nr_notes(p), 2);
	ck_assert_str_eq(profile__note_at(p, 0), "graphs: 12");
	ck_assert_ptr_null(profile__thread_name(p, 1, 2));
	ck_assert_int_eq(profile__name_thread(p, 1, 2, "a"), 0);
	ck_assert_int_eq(profile__name_thread(p, 2, 1, "b"), 0);
	ck_assert_int_eq(profile__name_thread(p, 1, 2, "c"), 0);
	ck_assert_str_eq(profile__thread_name(p, 1, 2), "c");
	ck_assert_str_eq(profile__thread_name(p, 2, 1), "b");
	profile__run(p)->frequency = 20;
	ck_assert_uint_eq(profile__run_const(p)->frequency, 20);
	profile__free(p);
}
END_TEST

START_TEST(every_mark_and_cause_has_a_text_of_its_own)
{
	for (int i = 0; i < NR_PROFILE_MARKS; i++) {
		const char *text = profile__mark_text((enum profile_mark)i);

		ck_assert(text && text[0] == '[' && text[strlen(text) - 1] == ']');
		for (int j = 0; j < i; j++)
			ck_assert_str_ne(text, profile__mark_text((enum profile_mark)j));
	}
	for (int i = 0; i < NR_PROFILE_UNRESOLVED; i++) {
		const char *text = profile__unresolved_text((enum profile_unresolved)i), *other;

		ck_assert(text && text[0]);
		for (int j = 0; j < i; j++) {
			other = profile__unresolved_text((enum profile_unresolved)j);
			ck_assert_str_ne(text, other);
		}
	}
}
END_TEST

START_TEST(every_mark_is_documented)
{
	char *doc = read_document("docs/output.md"), row[128];

	for (int i = 0; i < NR_PROFILE_MARKS; i++) {
		const char *text = profile__mark_text((enum profile_mark)i);
		const char *hole = strstr(text, "%s");

		snprintf(row, sizeof(row), "| `%.*s%s` |", (int)(hole ? hole - text : 99), text,
			 hole ? "libfoo.so]" : "");
		ck_assert_msg(strstr(doc, row) != NULL, "%s", row);
	}
	free(doc);
}
END_TEST

/* One step that needs about every kind of memory; names differ by i. */
static int step(struct profile *p, int i)
{
	struct profile_frame f = { .kind = PROFILE_NATIVE };
	struct profile_labels l = { .pid = (uint32_t)i };
	char name[3000];
	uint32_t frame, node, label;
	int err;

	memset(name, 'x', sizeof(name));
	snprintf(name + (i % 2 ? 2900 : 0), 64, "%d", i);
	f.name = name;
	err = profile__frame(p, &f, &frame);
	if (!err)
		err = profile__node(p, PROFILE_ROOT, frame, &node);
	if (!err)
		err = profile__labels(p, &l, &label);
	if (!err)
		err = profile__name_thread(p, 1, (uint32_t)i, name);
	if (!err)
		err = profile__count(p, PROFILE_INFO, name, 1);
	if (!err)
		err = profile__note(p, "%s", name);
	if (!err)	/* last, so that a step that failed has added nothing */
		err = profile__add(p, node, label, PROFILE_LAUNCHES, 0, 1, 1);
	return err;
}

START_TEST(no_memory_is_an_error_and_not_the_end)
{
	struct profile *p = NULL;
	long failures = 0;

	for (long n = 0; CAN_REFUSE && !p; n++) {
		allocations_left = n;
		p = profile__new();
		failures++;
	}
	allocations_left = -1;
	if (!p)
		p = profile__new();
	for (int i = 0; i < 600; i++) {
		int err = CAN_REFUSE ? -ENOMEM : step(p, i);

		for (long n = 0; err; n++) {
			allocations_left = n;
			err = step(p, i);
			allocations_left = -1;
			ck_assert(!err || err == -ENOMEM);
			ck_assert_uint_eq(profile__total(p, PROFILE_LAUNCHES), (uint64_t)i + !err);
			failures += !!err;
		}
	}
	ck_assert_uint_eq(profile__nr_frames(p), 600);
	ck_assert_uint_eq(profile__nr_nodes(p), 601);
	ck_assert_uint_eq(profile__nr_notes(p), 600);
	if (CAN_REFUSE)
		ck_assert_int_gt(failures, 600);
	profile__free(p);
}
END_TEST

UNIT_MAIN("profile", frames_are_one_exactly_if_all_fields_agree, stacks_share_their_prefixes,
	  values_add_up_by_their_whole_key, labels_differ_in_every_field,
	  nothing_gets_lost_among_many, strings_of_any_length_stay_where_they_are,
	  losses_are_a_share_of_what_there_was, notes_and_thread_names_are_kept,
	  every_mark_and_cause_has_a_text_of_its_own, every_mark_is_documented,
	  no_memory_is_an_error_and_not_the_end)
