/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* A unit test file: START_TEST(name) … END_TEST for each case, then UNIT_MAIN("suite", name, …). */
#ifndef TESTS_UNIT_H
#define TESTS_UNIT_H

#include <check.h>
#include <stdlib.h>

/* Each case runs in a process of its own (check's fork mode), with check's time limit. */
#define UNIT_MAIN(suite_name, ...) \
	int main(void) \
	{ \
		const TTest *const cases[] = { __VA_ARGS__ }; \
		Suite *suite = suite_create(suite_name); \
		TCase *tc = tcase_create(suite_name); \
		SRunner *runner; \
		int failed; \
\
		tcase_set_timeout(tc, 120); \
		for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) \
			tcase_add_test(tc, cases[i]); \
		suite_add_tcase(suite, tc); \
		runner = srunner_create(suite); \
		srunner_run_all(runner, CK_ENV); \
		failed = srunner_ntests_failed(runner); \
		srunner_free(runner); \
		return failed ? EXIT_FAILURE : EXIT_SUCCESS; \
	}

#endif
