// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "loader/launcher.h"

#include <stddef.h>
#include <string.h>

#include "tests/unit/unit.h"

START_TEST(commands_that_work_elsewhere_are_known)
{
	static const char *const away[] = { "docker", "/usr/bin/podman", "./srun", "ray", "kubectl" };
	static const char *const here[] = { "python3", "docker.py", "/docker/run", "", "/", "torchrun" };

	for (size_t i = 0; i < sizeof(away) / sizeof(away[0]); i++) {
		const char *advice = launcher__advice(away[i]);

		ck_assert_msg(advice && strstr(advice, "not recorded") && strstr(advice, "-p PID"), "%s",
			      away[i]);
	}
	ck_assert_ptr_nonnull(strstr(launcher__advice("sudo"), "let sudo start gpucollect"));
	for (size_t i = 0; i < sizeof(here) / sizeof(here[0]); i++)
		ck_assert_msg(!launcher__advice(here[i]), "%s", here[i]);
}
END_TEST

UNIT_MAIN("launcher", commands_that_work_elsewhere_are_known)
