// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The rank of a process, from its variables. */
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "loader/rank.h"
#include "tests/unit/unit.h"

static uint32_t of(const char *const *variables)
{
	struct rank_found found = { .rank = RANK_NONE };

	for (; *variables; variables++)
		rank__consider(&found, *variables);
	return found.rank;
}

#define OF(...) of((const char *const []){ __VA_ARGS__, NULL })

START_TEST(the_one_that_says_most)
{
	ck_assert_uint_eq(OF("PATH=/bin"), RANK_NONE);
	ck_assert_uint_eq(OF("RANK=0"), 0);
	ck_assert_uint_eq(OF("SLURM_PROCID=0", "LOCAL_RANK=3", "RANK=11"), 11);
	ck_assert_uint_eq(OF("RANK=11", "SLURM_PROCID=0", "LOCAL_RANK=3"), 11);
	ck_assert_uint_eq(OF("SLURM_PROCID=1", "OMPI_COMM_WORLD_RANK=5", "OMPI_COMM_WORLD_LOCAL_RANK=1"), 5);
	ck_assert_uint_eq(OF("LOCAL_RANK=3"), 3);
	ck_assert_uint_eq(OF("PMI_RANK=7", "WORLD_SIZE=8"), 7);
	/* getenv finds the first. */
	ck_assert_uint_eq(OF("RANK=1", "RANK=2"), 1);
}
END_TEST

START_TEST(nothing_but_a_number)
{
	static const char *const bad[] = {
		"RANK=", "RANK", "RANK=x", "RANK=-1", "RANK=+1", "RANK= 1", "RANK=1 ", "RANK=1.5", "RANK=0x1",
		"RANK=12345678", "RANK=99999999999999999999", "RANK=1\n", "rank=1", "XRANK=1", "RANKS=1",
		"=1", "", "RANK\x01=1",
	};

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		ck_assert_msg(OF(bad[i]) == RANK_NONE, "%s", bad[i]);
	ck_assert_uint_eq(OF("RANK=9999999"), 9999999);
	ck_assert_uint_eq(OF("RANK=007"), 7);
	/* What is none hides none. */
	ck_assert_uint_eq(OF("RANK=many", "LOCAL_RANK=2"), 2);
}
END_TEST

START_TEST(of_a_process)
{
	char *const argv[] = { "sleep", "60", NULL };
	char *const envp[] = { "A=b", "SLURM_PROCID=4", "RANK=12", NULL };
	pid_t pid = fork();
	int i;

	if (!pid) {
		execvpe(argv[0], argv, envp);
		_exit(127);
	}
	/* Until it has executed. */
	for (i = 0; i < 1000 && rank__of(pid) != 12; i++)
		usleep(5000);
	ck_assert_uint_eq(rank__of(pid), 12);
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	ck_assert_uint_eq(rank__of(pid), RANK_NONE);
	ck_assert_uint_eq(rank__of(-5), RANK_NONE);
}
END_TEST

UNIT_MAIN("rank", the_one_that_says_most, nothing_but_a_number, of_a_process)
