// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Python frames in their places: recorded words in, merged words out. */
#include <string.h>

#include "tests/unit/unit.h"
#include "unwind/python_merge.h"

#define N(i) FRAME_MAKE_FILE(FRAME_FILE, 7, 0x100 + (i))	/* native */
#define CALL(i) FRAME_MAKE_FILE(FRAME_FILE, 9, 0x100 + (i))	/* the interpreter's function */
#define ROOT FRAME_MAKE_END(END_ROOT, 0)
#define CUT_OFF FRAME_MAKE_END(END_NO_INFO, 7)
#define PY(i) FRAME_MAKE_ADDRESS(FRAME_PYTHON, 0x1000 + (i)), FRAME_MAKE_ADDRESS(FRAME_PYTHON_AT, (i))
#define RUN(i) FRAME_MAKE_ADDRESS(FRAME_RUN, (i))
#define NOT_MET FRAME_MAKE_ADDRESS(FRAME_RUN_AT, 0x7ffc00001000)
#define ENDED FRAME_MAKE_ADDRESS(FRAME_RUN, FRAME_NOWHERE)
#define EACH FRAME_MAKE_ADDRESS(FRAME_RUN_EACH, 0)
#define CUT FRAME_MAKE_ADDRESS(FRAME_RUN_CUT, 0)
#define CUT_OF(n) FRAME_MAKE_ADDRESS(FRAME_RUN_CUT, (n))
/* A run of which no address is known, only where the next one begins. */
#define BLIND FRAME_MAKE_ADDRESS(FRAME_RUN_AT, 5ull << 48)
#define MORE FRAME_MAKE_ADDRESS(FRAME_RUN_MORE, 0)
#define LOST FRAME_MAKE_ADDRESS(FRAME_RUN_AT, 0)

static bool is_call(void *ctx, __u64 word)
{
	ck_assert_ptr_eq(ctx, (void *)is_call);
	return FRAME_KIND(word) == FRAME_FILE && FRAME_FILE_ID(word) == 9;
}

#define WORDS(...) ((const __u64[]){ __VA_ARGS__ })
#define NR(...) (sizeof(WORDS(__VA_ARGS__)) / sizeof(__u64))
#define MERGES(in, out) merges(WORDS in, NR in, WORDS out, NR out)

static void merges(const __u64 *in, size_t nr_in, const __u64 *wanted, size_t nr_wanted)
{
	__u64 out[64];
	size_t nr;

	ck_assert_uint_le(python_merge__room(nr_in), 64);
	nr = python_merge(in, nr_in, is_call, (void *)is_call, out);
	for (size_t i = 0; i < nr && i < nr_wanted; i++)
		ck_assert_msg(out[i] == wanted[i], "word %zu: %llx, not %llx", i, out[i], wanted[i]);
	ck_assert_uint_eq(nr, nr_wanted);
	ck_assert_uint_le(nr, python_merge__room(nr_in));
}

START_TEST(without_python)
{
	ck_assert_uint_eq(python_merge__chain(WORDS(N(0), ROOT), 2), 0);
	MERGES((N(0), N(1), ROOT), (N(0), N(1), ROOT));
	MERGES((ROOT), (ROOT));
}
END_TEST

START_TEST(runs_stand_before_their_calls)
{
	ck_assert_uint_eq(python_merge__chain(WORDS(RUN(1), PY(0), N(0), ROOT), 4), 3);
	MERGES((RUN(1), PY(0), PY(1), RUN(3), PY(2), N(0), CALL(1), N(2), CALL(3), N(4), ROOT),
	       (N(0), PY(0), PY(1), CALL(1), N(2), PY(2), CALL(3), N(4), ROOT));
	MERGES((RUN(0), PY(0), CALL(0), ROOT), (PY(0), CALL(0), ROOT));
	/* A call whose frames aren't shown, because they have not begun. */
	MERGES((RUN(0), RUN(1), PY(0), CALL(0), CALL(1), ROOT), (CALL(0), PY(0), CALL(1), ROOT));
	/* Not yet whole: nothing stands behind the native words. */
	MERGES((RUN(1), PY(0), N(0), CALL(1)), (N(0), PY(0), CALL(1)));
}
END_TEST

START_TEST(what_has_no_place_keeps_its_order)
{
	MERGES((RUN(0), PY(0), NOT_MET, PY(1), CALL(0), N(1), CUT_OFF),
	       (PY(0), CALL(0), N(1), PY(1), LOST, CUT_OFF));
	MERGES((NOT_MET, PY(0), RUN(1), PY(1), N(0), CALL(1), ROOT),
	       (N(0), PY(0), LOST, PY(1), CALL(1), ROOT));
	MERGES((NOT_MET, PY(0), NOT_MET, PY(1), N(0), CUT_OFF), (N(0), PY(0), PY(1), LOST, CUT_OFF));
	/* A call that was not met and has no frames is nothing to tell of. */
	MERGES((NOT_MET, RUN(0), PY(1), CALL(0), ROOT), (PY(1), CALL(0), ROOT));
}
END_TEST

START_TEST(places_that_can_not_be)
{
	MERGES((RUN(9), PY(0), N(0), ROOT), (N(0), PY(0), ROOT));
	MERGES((PY(0), N(0), ROOT), (N(0), ROOT));
}
END_TEST

/* The lists of two interpreters that call each other. */
START_TEST(lists_of_two_interpreters)
{
	MERGES((RUN(0), PY(0), RUN(2), PY(2), RUN(1), PY(1), RUN(3), PY(3), CALL(0), CALL(1), CALL(2),
		CALL(3), ROOT),
	       (PY(0), CALL(0), PY(1), CALL(1), PY(2), CALL(2), PY(3), CALL(3), ROOT));
	MERGES((RUN(2), PY(2), RUN(0), PY(0), NOT_MET, PY(9), RUN(3), PY(3), CALL(0), N(1), CALL(2),
		CALL(3), ROOT),
	       (PY(0), CALL(0), N(1), PY(2), CALL(2), PY(9), LOST, PY(3), CALL(3), ROOT));
}
END_TEST

/* The mark stands outside of the last frame that is there; what called that one is outside of the mark. */
START_TEST(cut_lists)
{
	MERGES((RUN(0), PY(0), CUT, CALL(0), ROOT), (PY(0), CUT, CALL(0), ROOT));
	MERGES((RUN(1), PY(0), RUN(3), PY(1), CUT, N(0), CALL(1), N(2), CALL(3), N(4), CALL(5), N(6), ROOT),
	       (N(0), PY(0), CALL(1), N(2), PY(1), CUT, CALL(3), N(4), CALL(5), N(6), ROOT));
	/* The last run begins where there is no more room. */
	MERGES((RUN(0), PY(0), NOT_MET, CUT, CALL(0), N(1), CALL(2), ROOT),
	       (PY(0), CUT, CALL(0), N(1), CALL(2), ROOT));
	MERGES((RUN(0), PY(0), RUN(2), CUT, CALL(0), N(1), CALL(2), ROOT),
	       (PY(0), CUT, CALL(0), N(1), CALL(2), ROOT));
	/* Nothing is known at all. */
	MERGES((BLIND, CUT, CALL(0), N(1), ROOT), (CALL(0), N(1), CUT, ROOT));
	MERGES((RUN(0), BLIND, CUT, CALL(0), N(1), ROOT), (CALL(0), N(1), CUT, ROOT));
	MERGES((EACH, CUT, CALL(0), N(1), ROOT), (CALL(0), N(1), CUT, ROOT));
}
END_TEST

/* The native stack is cut, too: further in than the list, or further out. */
START_TEST(both_are_cut)
{
	MERGES((RUN(1), PY(0), NOT_MET, PY(1), NOT_MET, PY(2), CUT, N(0), CALL(1), N(2), CUT_OFF),
	       (N(0), PY(0), CALL(1), N(2), PY(1), PY(2), LOST, CUT, CUT_OFF));
	MERGES((RUN(0), PY(0), RUN(2), PY(1), CUT, CALL(0), N(1), CALL(2), N(3), CUT_OFF),
	       (PY(0), CALL(0), N(1), PY(1), CUT, CALL(2), N(3), CUT_OFF));
	MERGES((NOT_MET, PY(0), CUT, N(0), CUT_OFF), (N(0), PY(0), LOST, CUT, CUT_OFF));
	/* 3.13: the call was not met. */
	MERGES((RUN(0), PY(0), BLIND, PY(1), CUT, CALL(0), N(1), CUT_OFF),
	       (PY(0), CALL(0), N(1), PY(1), LOST, CUT, CUT_OFF));
	/* A call at the leaf that begins is not the one that was not met. */
	MERGES((NOT_MET, PY(0), CUT, CALL(0), N(1), CUT_OFF), (CALL(0), N(1), PY(0), LOST, CUT, CUT_OFF));
}
END_TEST

/* 3.13: a run that was not followed to its end is of the next call outside of the one before. */
START_TEST(cut_within_a_run)
{
	MERGES((BLIND, PY(0), PY(1), CUT, N(0), CALL(1), N(2), N(3), ROOT),
	       (N(0), PY(0), PY(1), CUT, CALL(1), N(2), N(3), ROOT));
	MERGES((RUN(1), PY(0), BLIND, PY(1), PY(2), CUT, N(0), CALL(1), N(2), CALL(3), N(4), CALL(5), ROOT),
	       (N(0), PY(0), CALL(1), N(2), PY(1), PY(2), CUT, CALL(3), N(4), CALL(5), ROOT));
	/* Where the one before was not met, there is nothing to go by; nor where no call is known. */
	MERGES((NOT_MET, PY(0), BLIND, PY(1), CUT, CALL(0), N(1), ROOT),
	       (CALL(0), N(1), PY(0), PY(1), LOST, CUT, ROOT));
	MERGES((RUN(0), PY(0), BLIND, PY(1), CUT, CALL(0), N(1), ROOT),
	       (PY(0), CALL(0), N(1), PY(1), LOST, CUT, ROOT));
	/* Calls of another interpreter are that one's. */
	MERGES((RUN(1), PY(1), RUN(0), PY(0), BLIND, PY(2), CUT, CALL(0), CALL(1), CALL(2), ROOT),
	       (PY(0), CALL(0), PY(1), CALL(1), PY(2), CUT, CALL(2), ROOT));
}
END_TEST

/* The mark is of its own list. */
START_TEST(one_of_two_lists_is_cut)
{
	MERGES((RUN(0), PY(0), CUT, RUN(1), PY(1), RUN(2), PY(2), CALL(0), CALL(1), CALL(2), ROOT),
	       (PY(0), CUT, CALL(0), PY(1), CALL(1), PY(2), CALL(2), ROOT));
	MERGES((RUN(2), PY(2), RUN(0), PY(0), RUN(1), PY(1), CUT, CALL(0), CALL(1), CALL(2), ROOT),
	       (PY(0), CALL(0), PY(1), CUT, CALL(1), PY(2), CALL(2), ROOT));
	MERGES((RUN(0), PY(0), CUT, RUN(1), PY(1), CUT, CALL(0), CALL(1), ROOT),
	       (PY(0), CUT, CALL(0), PY(1), CUT, CALL(1), ROOT));
}
END_TEST

/* 3.10: a call is put into one list before the other. */
START_TEST(one_list_is_ahead)
{
	/* The call at the leaf has no frame yet. */
	MERGES((RUN(0), PY(1), RUN(1), PY(2), RUN(2), MORE, CALL(0), CALL(1), CALL(2), ROOT),
	       (CALL(0), PY(1), CALL(1), PY(2), CALL(2), ROOT));
	/* Its frame is still in the list, its call is over. */
	MERGES((RUN(1), PY(0), RUN(2), PY(1), ENDED, PY(2), CALL(0), CALL(1), CALL(2), ROOT),
	       (CALL(0), PY(1), CALL(1), PY(2), CALL(2), ROOT));
}
END_TEST

/* The same where there are more frames than fit: the call of the first of them is told. */
START_TEST(one_list_is_ahead_and_cut)
{
	MERGES((RUN(1), PY(0), RUN(3), PY(1), RUN(5), CUT, N(0), CALL(1), N(2), CALL(3), N(4), CALL(5), N(6),
		ROOT),
	       (N(0), PY(0), CALL(1), N(2), PY(1), CUT, CALL(3), N(4), CALL(5), N(6), ROOT));
	MERGES((RUN(0), PY(0), RUN(2), PY(1), RUN(4), CUT, MORE, CALL(0), N(1), CALL(2), N(3), CALL(4), N(5),
		ROOT),
	       (CALL(0), N(1), PY(0), CALL(2), N(3), PY(1), CUT, CALL(4), N(5), ROOT));
	MERGES((RUN(1), PY(0), RUN(3), PY(1), RUN(5), CUT, ENDED, CALL(0), CALL(1), N(2), CALL(3), N(4),
		CALL(5), ROOT),
	       (CALL(0), PY(1), CUT, CALL(1), N(2), CALL(3), N(4), CALL(5), ROOT));
	/* Where the native stack ends before that call. */
	MERGES((RUN(0), PY(0), NOT_MET, PY(1), NOT_MET, CUT, MORE, CALL(0), N(1), CUT_OFF),
	       (CALL(0), N(1), PY(0), PY(1), LOST, CUT, CUT_OFF));
}
END_TEST

/* 3.8, 3.9: counted from the outermost call. */
START_TEST(each_frame_is_a_run)
{
	MERGES((EACH, PY(0), PY(1), N(0), CALL(1), N(2), CALL(3), ROOT),
	       (N(0), PY(0), CALL(1), N(2), PY(1), CALL(3), ROOT));
	MERGES((EACH, PY(1), PY(2), CALL(0), CALL(1), N(2), CALL(3), ROOT),
	       (CALL(0), PY(1), CALL(1), N(2), PY(2), CALL(3), ROOT));
	/* From the innermost where the outermost are not there. */
	MERGES((EACH, PY(0), PY(1), N(0), CALL(1), CUT_OFF), (N(0), PY(0), CALL(1), PY(1), LOST, CUT_OFF));
	MERGES((EACH, PY(0), PY(1), N(0), ROOT), (N(0), PY(0), PY(1), LOST, ROOT));
}
END_TEST

/* The same, with so many more frames than fit. */
START_TEST(each_frame_is_a_run_and_more)
{
	MERGES((EACH, PY(0), CUT_OF(2), N(0), CALL(1), N(2), CALL(3), CALL(4), ROOT),
	       (N(0), PY(0), CUT, CALL(1), N(2), CALL(3), CALL(4), ROOT));
	MERGES((EACH, PY(1), PY(2), CUT_OF(1), CALL(0), N(1), CALL(2), N(3), CALL(4), N(5), CALL(6), ROOT),
	       (CALL(0), N(1), PY(1), CALL(2), N(3), PY(2), CUT, CALL(4), N(5), CALL(6), ROOT));
	/* How many is not known, or where the outermost call is not: from the innermost. */
	MERGES((EACH, PY(0), CUT, CALL(0), CALL(1), ROOT), (PY(0), CUT, CALL(0), CALL(1), ROOT));
	MERGES((EACH, PY(0), CUT_OF(1), CALL(0), N(1), CALL(2), CALL(3), CUT_OFF),
	       (PY(0), CUT, CALL(0), N(1), CALL(2), CALL(3), CUT_OFF));
	MERGES((EACH, PY(0), PY(1), CUT_OF(9), CALL(0), N(1), CUT_OFF),
	       (PY(0), CALL(0), N(1), PY(1), LOST, CUT, CUT_OFF));
	/* More than any number of calls. */
	MERGES((EACH, PY(0), CUT_OF(FRAME_NOWHERE), CALL(0), CALL(1), ROOT),
	       (PY(0), CUT, CALL(0), CALL(1), ROOT));
}
END_TEST

/* Any words at all: no more come out than there is room for, and all native ones do. */
START_TEST(any_words)
{
	__u64 words[48], out[49 + 8];
	unsigned long long x = 88172645463325252ull;

	for (int round = 0; round < 200000; round++) {
		size_t nr = 1 + round % 48, natives = 0, n = 0, chain;

		for (size_t i = 0; i < nr; i++) {
			x ^= x << 13, x ^= x >> 7, x ^= x << 17;
			words[i] = (i > nr / 2 ? x % 7 : 6 + x % 9) << 60 | (x >> 20) % 12;
		}
		chain = python_merge__chain(words, nr);
		memset(out, 0xee, sizeof(out));
		n = python_merge(words, nr, is_call, (void *)is_call, out);
		ck_assert_uint_le(n, python_merge__room(nr));
		ck_assert_uint_eq(out[python_merge__room(nr)], 0xeeeeeeeeeeeeeeeeull);
		for (size_t i = 0; i < n; i++)
			natives += natives < nr - chain && out[i] == words[chain + natives];
		ck_assert_uint_eq(natives, nr - chain);
	}
}
END_TEST

UNIT_MAIN("python merge", without_python, runs_stand_before_their_calls,
	  what_has_no_place_keeps_its_order, places_that_can_not_be, lists_of_two_interpreters, cut_lists,
	  both_are_cut, cut_within_a_run, one_of_two_lists_is_cut, one_list_is_ahead,
	  one_list_is_ahead_and_cut, each_frame_is_a_run, each_frame_is_a_run_and_more, any_words)
