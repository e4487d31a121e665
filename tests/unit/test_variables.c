// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The environment of a command: its caller's, as far as sudo's own process tells. */
#include "loader/variables.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/unit/refuse.h"
#include "tests/unit/unit.h"

static void check(const struct variables *v, const char *const *want)
{
	size_t i;

	for (i = 0; want[i]; i++) {
		ck_assert_uint_lt(i, v->nr);
		ck_assert_str_eq(v->list[i], want[i]);
	}
	ck_assert_uint_eq(v->nr, i);
	ck_assert(!v->list || !v->list[i]);
}

static char *own_list[] = {
	(char *)(uintptr_t)"PATH=/usr/sbin", (char *)(uintptr_t)"HOME=/root",
	(char *)(uintptr_t)"SUDO_UID=4242", (char *)(uintptr_t)"SUDO_COMMAND=x",
	(char *)(uintptr_t)"LANG=C", (char *)(uintptr_t)"ADDED=on the way",
	(char *)(uintptr_t)"broken", (char *)(uintptr_t)"HOMES=mine", NULL,
};

START_TEST(the_callers_hold_but_what_was_set_since)
{
	static const char theirs[] = "PATH=/venv/bin\0VIRTUAL_ENV=/venv\0LANG=de\0A=\0=odd\0none\0"
				     "TWICE=1\0TWICE=2\0LD_LIBRARY_PATH=/x";
	static const char *const want[] = {
		"PATH=/venv/bin", "VIRTUAL_ENV=/venv", "LANG=C", "A=", "TWICE=1", "TWICE=2",
		"LD_LIBRARY_PATH=/x", "ADDED=on the way", "HOMES=mine", NULL,
	};
	static const char *const own[] = { "LANG=C", "ADDED=on the way", "HOMES=mine", NULL };
	struct variables v = { 0 };

	ck_assert_int_eq(variables__merge(&v, theirs, sizeof(theirs), own_list), 0);
	check(&v, want);
	ck_assert_str_eq(variables__get(&v, "TWICE"), "1");
	ck_assert_str_eq(variables__get(&v, "A"), "");
	ck_assert_ptr_null(variables__get(&v, "LAN"));
	ck_assert_ptr_null(variables__get(&v, "HOME"));
	ck_assert_int_eq(variables__set(&v, "TWICE", "3"), 0);
	ck_assert_str_eq(variables__get(&v, "TWICE"), "3");
	ck_assert_int_eq(variables__set(&v, "NEW", "4"), 0);
	ck_assert_str_eq(variables__get(&v, "NEW"), "4");
	variables__free(&v);
	ck_assert_ptr_null(v.list);
	/* The last one may be cut: it isn't taken. */
	ck_assert_int_eq(variables__merge(&v, "A=1\0B=2", 7, (char *[]){ NULL }), 0);
	check(&v, (const char *const[]){ "A=1", NULL });
	variables__free(&v);
	ck_assert_int_eq(variables__merge(&v, "", 0, own_list), 0);
	check(&v, own);
	variables__free(&v);
}
END_TEST

/* The tests themselves may run under sudo: here nobody is above us. */
pid_t getppid(void)
{
	return 0;
}

START_TEST(without_sudo_they_are_our_own)
{
	char *mine[] = {
		(char *)(uintptr_t)"B=1", (char *)(uintptr_t)"A=2", (char *)(uintptr_t)"A=3",
		(char *)(uintptr_t)"odd", (char *)(uintptr_t)"HOME=/root", NULL,
	}, **before = environ, *none[] = { NULL };
	static const char *const callers[] = { "B=1", "A=2", "A=3", "odd", "HOME=/home/me", "USER=me",
					       "LOGNAME=me", NULL };
	struct caller caller = { 0 };
	struct variables v;

	environ = mine;
	ck_assert_int_eq(variables__new(&caller, &v), 0);
	check(&v, (const char *const *)mine);
	variables__free(&v);
	/* SUDO_UID is set, but sudo is none of our ancestors: what is known of the caller is used. */
	caller = (struct caller){ .other = true, .uid = 4242, .gid = 4242,
				  .home = (char *)(uintptr_t)"/home/me", .name = (char *)(uintptr_t)"me" };
	ck_assert_int_eq(variables__new(&caller, &v), 0);
	check(&v, callers);
	variables__free(&v);
	environ = none;
	ck_assert_int_eq(variables__new(&(struct caller){ 0 }, &v), 0);
	ck_assert_uint_eq(v.nr, 0);
	environ = NULL;
	ck_assert_int_eq(variables__new(&(struct caller){ 0 }, &v), 0);
	ck_assert_uint_eq(v.nr, 0);
	environ = before;
}
END_TEST

START_TEST(memory_may_be_short)
{
	static const char theirs[] = "PATH=/venv/bin\0A=1";
	struct variables v;
	int err = -ENOMEM;
	long n;

	for (n = 0; CAN_REFUSE && err; n++) {
		memset(&v, 0, sizeof(v));
		allocations_left = n;
		err = variables__merge(&v, theirs, sizeof(theirs), own_list);
		allocations_left = -1;
		ck_assert(!err || err == -ENOMEM);
		variables__free(&v);
	}
	ck_assert(!CAN_REFUSE || n > 4);
}
END_TEST

UNIT_MAIN("variables", the_callers_hold_but_what_was_set_since, without_sudo_they_are_our_own,
	  memory_may_be_short)
