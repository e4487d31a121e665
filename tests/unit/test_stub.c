// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Expected slots and words: read in libcuda 580.159.04 by another program, which took them from the
 * running driver (address of each entry, and what its call went through). All as offsets in it.
 */
#include <errno.h>
#include <linux/types.h>
#include <stdbool.h>
#include <string.h>

#include "gpu_timing/channel.h"
#include "gpu_timing/stub.h"
#include "tests/unit/unit.h"

#define WORD 0x5bd5d50

struct known {
	const char *name;
	uint64_t at;
	size_t size;
	struct stub_args args;
	uint64_t slot;
	const char *code;	/* the first bytes; what follows the call isn't looked at */
};

#define HEAD "554889e541544883ec08813d"

static const struct known driver[] = {
	{ "cuLaunchKernel", 0x39fb60, 175, { .on_stack = 5 }, 0x5bd0378,
	  HEAD "dc61830500ba1c320f84860000008b45184883ec08ff7530ff7528ff7520508b451050ff15e3078305"
	  "4189c44883c43085c0740f" },
	{ "cuLaunchKernel_ptsz", 0x352290, 175, { .on_stack = 5 }, 0x5bd07b0,
	  HEAD "ac3a880500ba1c320f84860000008b45184883ec08ff7530ff7528ff7520508b451050ff15ebe48705"
	  "4189c44883c43085c0740f" },
	{ "cuLaunchKernelEx", 0x39fc10, 191, { 0 }, 0x5bd0e40,
	  HEAD "2c61830500ba1c320f8496000000ff15101283054189c485c0740f3d5802000074088d40fd83f80177" },
	{ "cuLaunchCooperativeKernel", 0x3a14f0, 159, { .on_stack = 4 }, 0x5bd08c8,
	  HEAD "4c48830500ba1c32747a8b4518ff7528ff7520508b451050ff15aef382054189c44883c42085c0740f" },
	{ "cuGraphLaunch_ptsz", 0x357950, 191, { 0 }, 0x5bd09f8,
	  HEAD "ece3870500ba1c320f8496000000ff15889087054189c485c0740f3d5802000074088d40fd83f80177" },
	{ "cuStreamDestroy_v2", 0x350a90, 191, { 0 }, 0x5bd0410,
	  HEAD "ac52880500ba1c320f8496000000ff1560f987054189c485c0740f3d5802000074088d40fd83f80177" },
	{ "cuDevicePrimaryCtxReset", 0x37a870, 191, { 0 }, 0x5bd0608,
	  HEAD "ccb4850500ba1c320f8496000000ff15785d85054189c485c0740f3d5802000074088d40fd83f80177" },
	{ "cuMemsetD8Async", 0x39eb20, 207, { 0, 2, 8 }, 0x5bd00a0,
	  HEAD "1c72830500ba1c320f84a6000000400fb6f6ff155c158305" },
	{ "cuMemcpyPeerAsync", 0x39e4f0, 143, { 0 }, 0x5bd03d8,
	  HEAD "4c78830500ba1c32746aff15cc1e8305" },
};

#define NR (sizeof(driver) / sizeof(driver[0]))

static size_t bytes(const char *hex, uint8_t *out)
{
	size_t n = strlen(hex) / 2;

	for (size_t i = 0; i < n; i++) {
		char two[3] = { hex[2 * i], hex[2 * i + 1], '\0' };

		out[i] = (uint8_t)strtoul(two, NULL, 16);
	}
	return n;
}

/* Offset behind the call: what the verdict may depend on. */
static size_t prefix(const uint8_t *code, size_t n)
{
	for (size_t i = 0; i + 6 <= n; i++)
		if (code[i] == 0xff && (code[i + 1] == 0x15 || code[i + 1] == 0x25))
			return i + 6;
	ck_abort_msg("no call");
	return 0;
}

START_TEST(entries_of_the_driver_are_understood)
{
	for (size_t i = 0; i < NR; i++) {
		uint8_t code[STUB_MAX_SIZE] = { 0 };
		struct stub stub;

		bytes(driver[i].code, code);
		ck_assert_msg(!stub__decode(code, driver[i].size, driver[i].at,
					    driver[i].args, &stub), "%s", driver[i].name);
		ck_assert_uint_eq(stub.gone, WORD);
		ck_assert_uint_eq(stub.slot, driver[i].slot);
	}
}
END_TEST

/* push and mov of another argument would give the callee the wrong ones */
START_TEST(another_number_of_arguments_is_refused)
{
	for (size_t i = 0; i < NR; i++)
		for (unsigned int args = 0; args < 12; args++) {
			struct stub_args other = driver[i].args;
			uint8_t code[STUB_MAX_SIZE] = { 0 };
			struct stub stub;
			int err;

			other.on_stack = args;
			bytes(driver[i].code, code);
			err = stub__decode(code, driver[i].size, driver[i].at, other, &stub);
			ck_assert_int_eq(err, args == driver[i].args.on_stack ? 0 : -ENOEXEC);
		}
}
END_TEST

/* An offset, in the code, of a displacement: these may change the verdict without a refusal. */
static bool is_displacement(const uint8_t *code, size_t end, size_t at)
{
	size_t compare = 10, jump = compare + 10;

	if (at >= end - 4)
		return true;			/* of the call */
	if (at >= compare + 2 && at < compare + 6)
		return true;			/* of the word */
	return code[jump] == 0x74 ? at == jump + 1 : at >= jump + 2 && at < jump + 6;
}

START_TEST(every_other_byte_counts)
{
	for (size_t i = 0; i < NR; i++) {
		uint8_t code[STUB_MAX_SIZE] = { 0 };
		size_t end = prefix(code, bytes(driver[i].code, code) ? STUB_MAX_SIZE : 0);

		for (size_t at = 0; at < end; at++)
			for (unsigned int change = 1; change < 256; change++) {
				struct stub stub, right = { WORD, driver[i].slot };
				int err;

				code[at] ^= (uint8_t)change;
				err = stub__decode(code, driver[i].size, driver[i].at,
						   driver[i].args, &stub);
				code[at] ^= (uint8_t)change;
				if (err) {
					ck_assert_int_eq(err, -ENOEXEC);
					continue;
				}
				ck_assert_msg(is_displacement(code, end, at) ||
					      !memcmp(&stub, &right, sizeof(stub)),
					      "%s: byte %zu ^ %x", driver[i].name, at, change);
				/* A displacement is believed, and what it leads to is checked. */
				if (at >= end - 4)
					ck_assert_uint_ne(stub.slot, right.slot);
				else
					ck_assert_uint_eq(stub.slot, right.slot);
			}
	}
}
END_TEST

START_TEST(bytes_behind_the_call_do_not_count)
{
	uint8_t code[STUB_MAX_SIZE];
	struct stub stub;

	memset(code, 0xff, sizeof(code));
	bytes(driver[2].code, code);
	ck_assert_int_eq(stub__decode(code, driver[2].size, driver[2].at, (struct stub_args){ 0 }, &stub), 0);
	ck_assert_uint_eq(stub.slot, driver[2].slot);
}
END_TEST

/* Every length up to the whole: nothing is read behind the entry's end. */
START_TEST(cut_entries_are_refused)
{
	for (size_t i = 0; i < NR; i++)
		for (size_t size = 0; size < driver[i].size; size++) {
			uint8_t whole[STUB_MAX_SIZE] = { 0 }, *code = malloc(size ? size : 1);
			struct stub stub;
			int err;

			bytes(driver[i].code, whole);
			memcpy(code, whole, size);
			err = stub__decode(code, size, driver[i].at, driver[i].args, &stub);
			free(code);
			/* The jump for "shut down" leads behind such an end, unless little is cut. */
			if (size <= driver[i].size - 15)
				ck_assert_int_eq(err, -ENOEXEC);
		}
}
END_TEST

/* The sets of memory: each form with the argument that it widens, and with no other. */
START_TEST(only_the_narrow_argument_may_be_widened)
{
	static const struct {
		struct stub_args args;
		const char *code;
	} forms[] = {
		{ { 0, 2, 8 }, "400fb6f6" }, { { 0, 2, 16 }, "0fb7f6" },
		{ { 0, 3, 8 }, "0fb6d2" }, { { 0, 3, 16 }, "0fb7d2" },
		{ { 0 }, "" },
		/* %bl or %dh to %esi or %edx, %sil to %edi, %esi to itself */
		{ { .on_stack = 9 }, "0fb6f3" }, { { .on_stack = 9 }, "0fb6d6" },
		{ { .on_stack = 9 }, "400fb6fe" }, { { .on_stack = 9 }, "89f6" },
	};
	const size_t nr = sizeof(forms) / sizeof(forms[0]);

	for (size_t form = 0; form < nr; form++)
		for (size_t want = 0; want < 5; want++) {
			uint8_t code[STUB_MAX_SIZE] = { 0 };
			struct stub stub;
			size_t n = bytes(HEAD "1c72830500ba1c320f84a6000000", code);
			int err;

			n += bytes(forms[form].code, code + n);
			bytes("ff15000000014189c4", code + n);
			err = stub__decode(code, 207, 0x39eb20, forms[want].args, &stub);
			/* A form of no widening is good for all. */
			ck_assert_int_eq(err, form == want || form == 4 ? 0 : -ENOEXEC);
			if (!err)
				ck_assert_uint_eq(stub.slot, 0x39eb20 + n + 6 + 0x1000000);
		}
	ck_assert_uint_eq(stub__args(SLOT_SET8_ASYNC).narrow, 2);
	ck_assert_uint_eq(stub__args(SLOT_SET8_ASYNC_PTSZ).bits, 8);
	ck_assert_uint_eq(stub__args(SLOT_SET16_ASYNC).bits, 16);
	ck_assert_uint_eq(stub__args(SLOT_SET8_PTDS).bits, 8);
	ck_assert_uint_eq(stub__args(SLOT_SET16).narrow, 2);
	ck_assert_uint_eq(stub__args(SLOT_SET32_ASYNC).narrow, 0);
	ck_assert_uint_eq(stub__args(SLOT_SET2D8).narrow, 3);
	ck_assert_uint_eq(stub__args(SLOT_SET2D8_ASYNC_PTSZ).bits, 8);
	ck_assert_uint_eq(stub__args(SLOT_SET2D16_PTDS).bits, 16);
	ck_assert_uint_eq(stub__args(SLOT_SET2D32).narrow, 0);
	ck_assert_uint_eq(stub__args(ENTRY_LAUNCH_KERNEL).on_stack, 5);
	ck_assert_uint_eq(stub__args(SLOT_BATCH_ASYNC_PTSZ).on_stack, 3);
	ck_assert_uint_eq(stub__args(SLOT_BATCH_V2_ASYNC).on_stack, 2);
	ck_assert_uint_eq(stub__args(SLOT_BATCH3D_ASYNC).on_stack, 0);
}
END_TEST

/* The batches: as docs/measurements.md has their shapes. */
START_TEST(two_and_three_arguments_are_pushed_again)
{
	static const char *const pushes[] = { [2] = "ff7518ff7510", [3] = "4883ec08ff7520ff7518ff7510" };
	static const size_t call_at[] = { [2] = 28, [3] = 35 };

	for (unsigned int nr = 2; nr <= 3; nr++)
		for (unsigned int want = 0; want < 5; want++) {
			const struct stub_args args = { .on_stack = want };
			uint8_t code[STUB_MAX_SIZE] = { 0 };
			struct stub stub;
			size_t n = bytes(HEAD "1c72830500ba1c32747a", code);

			n += bytes(pushes[nr], code + n);
			ck_assert_uint_eq(n, call_at[nr]);
			bytes("ff15000000014189c4", code + n);
			ck_assert_int_eq(stub__decode(code, 159, 0x39eb20, args, &stub),
					 want == nr ? 0 : -ENOEXEC);
			if (want == nr)
				ck_assert_uint_eq(stub.slot, 0x39eb20 + n + 6 + 0x1000000);
		}
}
END_TEST

START_TEST(the_tail_jump_of_older_drivers_is_understood)
{
	const struct stub_args five = { .on_stack = 5 };
	uint8_t code[64];
	struct stub stub;
	size_t n;

	/* at 0x1000: cmpl to 0x1000 + 10 + 0x20, je +6, jmp through 0x1000 + 18 + 0x100, mov, ret */
	n = bytes("813d2000000000ba1c327406ff2500010000b804000000c3", code);
	ck_assert_int_eq(stub__decode(code, n, 0x1000, five, &stub), 0);
	ck_assert_uint_eq(stub.gone, 0x102a);
	ck_assert_uint_eq(stub.slot, 0x1112);
	/* a call from there would need a frame */
	code[13] = 0x15;
	ck_assert_int_eq(stub__decode(code, n, 0x1000, five, &stub), -ENOEXEC);
}
END_TEST

/* Another tool's uprobe on the first byte, where uprobes belong, is no reason to refuse. */
START_TEST(a_breakpoint_on_the_first_byte_is_seen_through)
{
	for (size_t i = 0; i < NR; i++) {
		uint8_t code[STUB_MAX_SIZE] = { 0 };
		struct stub stub;

		bytes(driver[i].code, code);
		code[0] = 0xcc;
		ck_assert_int_eq(stub__decode(code, driver[i].size, driver[i].at,
					      driver[i].args, &stub), 0);
		ck_assert_uint_eq(stub.gone, WORD);
		ck_assert_uint_eq(stub.slot, driver[i].slot);
		code[1] = 0xcc;
		ck_assert_int_eq(stub__decode(code, driver[i].size, driver[i].at,
					      driver[i].args, &stub), -ENOEXEC);
	}
}
END_TEST

START_TEST(what_is_no_stub_is_refused)
{
	static const char *const other[] = {
		"b821030000c3",				/* returns a constant */
		"f30f1efa813d2000000000ba1c327406ff2500010000b804000000c3",
		"554889e541544883ec08ff1510000000c3",	/* does not ask */
		HEAD "2c61830500ba1c330f8496000000ff1510128305",	/* another magic */
		HEAD "2c61830500ba1c32eb10ff151012830590909090909090909090909090909090",
		HEAD "2c61830500ba1c3274f0ff151012830590909090909090909090909090909090",
		HEAD "2c61830500ba1c327400ff151012830590909090909090909090909090909090",
		HEAD "2c61830500ba1c327410ff251012830590909090909090909090909090909090",
	};
	const struct stub_args none = { 0 };
	uint8_t code[STUB_MAX_SIZE + 1] = { 0 };
	struct stub stub;

	for (size_t i = 0; i < sizeof(other) / sizeof(other[0]); i++) {
		size_t n = bytes(other[i], code);

		ck_assert_msg(stub__decode(code, n, 0x1000, none, &stub) == -ENOEXEC, "%zu", i);
	}
	bytes(driver[2].code, code);
	ck_assert_int_eq(stub__decode(code, STUB_MAX_SIZE + 1, 0, none, &stub), -ENOEXEC);
}
END_TEST

UNIT_MAIN("stub", entries_of_the_driver_are_understood, another_number_of_arguments_is_refused,
	  every_other_byte_counts, bytes_behind_the_call_do_not_count, cut_entries_are_refused,
	  only_the_narrow_argument_may_be_widened, two_and_three_arguments_are_pushed_again,
	  the_tail_jump_of_older_drivers_is_understood,
	  a_breakpoint_on_the_first_byte_is_seen_through, what_is_no_stub_is_refused)
