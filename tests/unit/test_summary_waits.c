// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "tests/unit/summary_maker.h"

/* Of the host's time: in no figure about the GPU's. */
START_TEST(waits_have_figures_of_their_own)
{
	struct profile_value v, last = { 0 };
	struct profile *p = profile__new();
	size_t pos = 0;
	char *s;

	ADD(PROFILE_GPU_NS, 0, 3000, 10, NATIVE("main"), GPU("k"));
	ADD(PROFILE_LAUNCHES, 0, 10, 10, NATIVE("main"), GPU("k"));
	ADD(PROFILE_WAIT_NS, 0, 6000, 3, NATIVE("main"), NATIVE("cuStreamSynchronize"));
	ADD(PROFILE_WAIT_NS, 0, 1000, 1, NATIVE("main"), NATIVE("cuMemcpyDtoH_v2"));
	profile__run(p)->metrics = 1u << PROFILE_GPU_NS | 1u << PROFILE_LAUNCHES | 1u << PROFILE_WAIT_NS;
	s = closing(p, (struct closing_options){ .metric = PROFILE_WAIT_NS, .written = "x",
						 .stats = &(struct folded_stats){ .lines = 1 } });
	has(s, ", 10 launches (10 timed, 3.00 us of GPU time), 4 waits for the GPU (7.00 us)\n");
	has(s, "weights are nanoseconds of waiting for the GPU\n");
	free(s);
	s = summary(p, (struct summary_options){ 0 });
	has(s, "GPU time by kernel: 3.00 us in 10 launches\n");
	has(s, "Waits for the GPU by call: 7.00 us in 4 waits\n"
	       "    share       time        waits      mean  call\n"
	       "   85.7 %    6.00 us            3   2.00 us  cuStreamSynchronize\n"
	       "   14.3 %    1.00 us            1   1.00 us  cuMemcpyDtoH_v2\n");
	free(s);
	ADD(PROFILE_WAIT_NS, PROFILE_ESTIMATED, 3000, 6, NATIVE("main"), NATIVE("cuStreamSynchronize"));
	while (profile__next(p, &pos, &v))
		last = v;
	ck_assert_int_eq(profile__add_variance(p, last.node, last.labels, PROFILE_WAIT_NS,
					       PROFILE_ESTIMATED, 1e6), 0);
	s = closing(p, (struct closing_options){ .metric = PROFILE_WAIT_NS });
	has(s, ", 10 waits for the GPU (10.0 us, 30.0 % of it estimated, standard error 10 %)\n");
	free(s);
	s = closing(p, (struct closing_options){ .json = true, .metric = PROFILE_WAIT_NS });
	has(s, "\"metric\":\"wait\",\"unit\":\"nanoseconds\",");
	has(s, "\"waits\":10,\"waits_ns\":10000,\"waits_estimated_ns\":3000,\"waits_error_ns\":1000,");
	has(s, "\"gpu_ns\":3000,");
	free(s);
	profile__free(p);
}
END_TEST

UNIT_MAIN("summary_waits",
	  waits_have_figures_of_their_own)
