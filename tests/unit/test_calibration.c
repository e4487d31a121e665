// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "gpu_timing/calibration.h"
#include "tests/unit/unit.h"

START_TEST(only_measured_devices_have_constants)
{
	struct calibration c;

	ck_assert(calibration__find("NVIDIA H200", 11, 13000, &c));
	ck_assert(calibration__find("NVIDIA H200", 11, 13020, &c));
	ck_assert(!c.copies);	/* measured with kernels alone */
	ck_assert(!calibration__find("NVIDIA H200", 11, 12080, &c));
	ck_assert(!calibration__find("NVIDIA H200", 10, 13000, &c));
	ck_assert(!calibration__find("NVIDIA H200 NVL", 15, 13000, &c));
	ck_assert(!calibration__find("", 0, 13000, &c));
	ck_assert(calibration__find("Stand-in 1", 10, 13000, &c));
	ck_assert(c.copies);
	ck_assert(!calibration__find("Stand-in", 8, 13000, &c));
	ck_assert(!calibration__find("Stand-ins 1", 11, 13000, &c));
}
END_TEST

START_TEST(a_bracket_loses_the_constant_of_its_situation)
{
	const struct calibration c = { .busy_ns = 3000, .idle_ns = 5000 };
	const struct calibration exact = { .no_gap = true };

	ck_assert_uint_eq(calibration__apply(&c, 13000, 700, LOAD_BUSY), 10000);
	ck_assert_uint_eq(calibration__apply(&c, 13000, 700, LOAD_IDLE), 7300);
	ck_assert_uint_eq(calibration__apply(&c, 13000, 700, LOAD_UNKNOWN), 10000);
	ck_assert_uint_eq(calibration__apply(&c, 3000, 0, LOAD_BUSY), 0);
	ck_assert_uint_eq(calibration__apply(&c, 6000, 1500, LOAD_IDLE), 0);
	ck_assert_uint_eq(calibration__apply(NULL, 6000, 1500, LOAD_IDLE), 4500);
	ck_assert_uint_eq(calibration__apply(&exact, 6000, 1500, LOAD_IDLE), 6000);
	ck_assert_uint_eq(calibration__apply(NULL, 6000, 1500, LOAD_BUSY), 6000);
}
END_TEST

UNIT_MAIN("calibration", only_measured_devices_have_constants,
	  a_bracket_loses_the_constant_of_its_situation)
