// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include <errno.h>
#include <string.h>

#include "loader/cpus.h"
#include "tests/unit/unit.h"

#define ROOM 64

static uint8_t set[ROOM + 1];

static int parse(const char *text)
{
	memset(set, 0xaa, sizeof(set));
	return cpus__parse(text, set, ROOM);
}

/* Bit i: CPU i. */
static uint64_t cpus(void)
{
	uint64_t bits = 0;

	for (int i = 0; i < ROOM; i++)
		if (set[i])
			bits |= 1ull << i;
	ck_assert_int_eq(set[ROOM], 0xaa);
	return bits;
}

START_TEST(lists_of_the_kernel)
{
	ck_assert_int_eq(parse("0\n"), 1);
	ck_assert_uint_eq(cpus(), 1);
	ck_assert_int_eq(parse("0-3\n"), 4);
	ck_assert_uint_eq(cpus(), 0xf);
	ck_assert_int_eq(parse("0-1,4,6-7\n"), 8);
	ck_assert_uint_eq(cpus(), 0xd3);
	ck_assert_int_eq(parse("1,3,5"), 6);	/* CPU 0 may be off */
	ck_assert_uint_eq(cpus(), 0x2a);
	ck_assert_int_eq(parse("8,2"), 9);
	ck_assert_uint_eq(cpus(), 0x104);
	ck_assert_int_eq(parse("63"), 64);
	ck_assert_uint_eq(cpus(), 1ull << 63);
	ck_assert_int_eq(parse("0-63"), 64);
	ck_assert_uint_eq(cpus(), UINT64_MAX);
	ck_assert_int_eq(parse("5-5"), 6);
	ck_assert_uint_eq(cpus(), 0x20);
}
END_TEST

START_TEST(what_is_none)
{
	static const char *const bad[] = {
		"", "\n", ",", "x", "0-", "-3", "3-1", "0,,1", "1;2", "0-3x", "64", "0-64", "0-1-2",
		"99999999999999999999", "0-99999999999999999999", "-1-2",
	};

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		ck_assert_int_eq(parse(bad[i]), -EINVAL);
		ck_assert_int_eq(set[ROOM], 0xaa);
	}
}
END_TEST

#define UEVENT(text) cpus__parse_uevent(text, sizeof(text))

START_TEST(a_cpu_that_went)
{
	ck_assert_int_eq(UEVENT("offline@/devices/system/cpu/cpu1\0ACTION=offline\0SUBSYSTEM=cpu"), 1);
	ck_assert_int_eq(UEVENT("offline@/devices/system/cpu/cpu127"), 127);
	ck_assert_int_eq(UEVENT("online@/devices/system/cpu/cpu1"), -1);
	ck_assert_int_eq(UEVENT("offline@/devices/system/memory/memory7"), -1);
	ck_assert_int_eq(UEVENT("offline@/devices/system/cpu/cpu"), -1);
	ck_assert_int_eq(UEVENT("offline@/devices/system/cpu/cpu1/x"), -1);
	ck_assert_int_eq(UEVENT("offline@/devices/system/cpu/cpu-1"), -1);
	ck_assert_int_eq(UEVENT("offline@/devices/system/cpu/cpu99999"), -1);
	ck_assert_int_eq(UEVENT("offline@/devices/system/cpu/cpu99999999999999999999"), -1);
	ck_assert_int_eq(cpus__parse_uevent("offline@/devices/system/cpu/cpu12", 32), -1);	/* cut */
	ck_assert_int_eq(cpus__parse_uevent("", 0), -1);
}
END_TEST

UNIT_MAIN("cpus", lists_of_the_kernel, what_is_none, a_cpu_that_went)
