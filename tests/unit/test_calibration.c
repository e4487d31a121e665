// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include <string.h>

#include "gpu_timing/calibration.h"
#include "tests/unit/unit.h"

static struct calibration builtin(const char *name, uint32_t version)
{
	struct calibration c;

	calibration__builtin(name, strlen(name), version, &c);
	return c;
}

START_TEST(only_measured_devices_have_constants)
{
	static const struct calibration nothing;
	static const struct {
		const char *name;
		uint32_t version;
	} others[] = {
		{ "NVIDIA H200", 12080 }, { "NVIDIA H20", 13000 }, { "NVIDIA H200 NVL", 13000 },
		{ "", 13000 }, { "Stand-in", 13000 }, { "Stand-ins 1", 13000 },
	};
	struct calibration c = builtin("NVIDIA H200", 13000);

	ck_assert(c.kernels.known && !c.no_gap);
	ck_assert_uint_eq(c.kernels.busy_ns, 2870);
	ck_assert_uint_eq(c.kernels.idle_ns, 1450);
	ck_assert(builtin("NVIDIA H200", 13020).kernels.known);
	for (int i = 0; i < NR_COPY_KINDS; i++)
		ck_assert(!c.copies[i].known);	/* measured with kernels alone */
	c = builtin("Stand-in 1", 13000);
	ck_assert(c.kernels.known && c.no_gap && c.copies[COPY_UNKNOWN].known && c.copies[COPY_SET].known);
	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
		c = builtin(others[i].name, others[i].version);
		ck_assert_msg(!memcmp(&c, &nothing, sizeof(c)), "%s", others[i].name);
	}
}
END_TEST

static bool known;

static uint64_t apply(const struct calibration *c, uint64_t bracket, uint32_t gap, enum launch_load load)
{
	const struct channel_result r = { .duration = bracket, .gap = gap, .load = load };
	uint64_t ns;

	known = calibration__apply(c, &r, &ns);
	return ns;
}

START_TEST(a_bracket_loses_the_constant_of_its_situation)
{
	const struct calibration c = { .kernels = { true, 3000, 5000 } };
	const struct calibration exact = { .kernels = { true, 0, 0 }, .no_gap = true };
	const struct calibration unknown = { .kernels = { false, 3000, 5000 } };

	ck_assert_uint_eq(apply(&c, 13000, 700, LOAD_BUSY), 10000);
	ck_assert(known);
	ck_assert_uint_eq(apply(&c, 13000, 700, LOAD_IDLE), 7300);
	ck_assert_uint_eq(apply(&c, 13000, 700, LOAD_UNKNOWN), 10000);
	ck_assert_uint_eq(apply(&c, 3000, 0, LOAD_BUSY), 0);
	ck_assert_uint_eq(apply(&c, 2999, 0, LOAD_BUSY), 0);
	ck_assert_uint_eq(apply(&c, 6000, 1500, LOAD_IDLE), 0);
	ck_assert_uint_eq(apply(&exact, 6000, 1500, LOAD_IDLE), 6000);
	ck_assert(known);
	ck_assert_uint_eq(apply(NULL, 6000, 1500, LOAD_IDLE), 4500);
	ck_assert(!known);
	ck_assert_uint_eq(apply(NULL, 6000, 1500, LOAD_BUSY), 6000);
	ck_assert_uint_eq(apply(&unknown, 6000, 1500, LOAD_IDLE), 4500);
	ck_assert(!known);
}
END_TEST

START_TEST(a_copy_has_the_constant_of_its_kind)
{
	const struct calibration c = {
		.kernels = { true, 100, 200 },
		.copies = { [COPY_HTOD] = { true, 2000, 6000 }, [COPY_SET] = { true, 1000, 1500 } },
	};
	struct channel_result r = { .flags = LAUNCH_COPY, .duration = 9000, .load = LOAD_BUSY };
	uint64_t ns;

	r.copy = COPY_HTOD;
	ck_assert(calibration__apply(&c, &r, &ns));
	ck_assert_uint_eq(ns, 7000);
	r.load = LOAD_IDLE;
	ck_assert(calibration__apply(&c, &r, &ns));
	ck_assert_uint_eq(ns, 3000);
	r.copy = COPY_SET;
	r.gap = 400;
	ck_assert(calibration__apply(&c, &r, &ns));
	ck_assert_uint_eq(ns, 7100);
	/* Not a kernel's, where none is known; and no kind at all. */
	r.copy = COPY_DTOD;
	ck_assert(!calibration__apply(&c, &r, &ns));
	ck_assert_uint_eq(ns, 8600);
	r.copy = NR_COPY_KINDS;
	ck_assert(!calibration__apply(&c, &r, &ns));
	ck_assert_uint_eq(ns, 8600);
}
END_TEST

UNIT_MAIN("calibration", only_measured_devices_have_constants,
	  a_bracket_loses_the_constant_of_its_situation, a_copy_has_the_constant_of_its_kind)
