// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* What kernels take of the device, where they are listed. */
#include <errno.h>

#include "loader/output/kernels.h"
#include "tests/unit/refuse.h"
#include "tests/unit/summary_maker.h"

#define SIZED(n, regs, shared) { .kind = PROFILE_GPU, .name = n, .registers = regs, .shared_bytes = shared }

static struct profile *model(void)
{
	struct profile *p = profile__new();

	ADD(PROFILE_LAUNCHES, 0, 3, 3, NATIVE("a"), SIZED("twin", 40, 1024));
	ADD(PROFILE_GPU_NS, 0, 3000, 3, NATIVE("a"), SIZED("twin", 40, 1024));
	ADD(PROFILE_LAUNCHES, 0, 2, 2, NATIVE("b"), SIZED("twin", 40, 1024));
	ADD(PROFILE_GPU_NS, PROFILE_ESTIMATED, 2000, 2, NATIVE("b"), SIZED("twin", 40, 1024));
	ADD(PROFILE_LAUNCHES, 0, 1, 1, NATIVE("a"), SIZED("twin", 64, 0));
	ADD(PROFILE_GPU_NS, 0, 9000, 1, NATIVE("a"), SIZED("twin", 64, 0));
	ADD(PROFILE_LAUNCHES, 0, 1, 1, NATIVE("a"), GPU("twin"));
	ADD(PROFILE_LAUNCHES, 0, 7, 7, NATIVE("a"), SIZED("one", 255, 49152));
	ADD(PROFILE_GPU_NS, 0, 1000, 7, NATIVE("a"), SIZED("one", 255, 49152));
	ADD(PROFILE_GPU_NS, 0, 500, 1, NATIVE("a"), GPU("unsaid"));
	ADD(PROFILE_GPU_NS, PROFILE_OF_COPIES, 99000, 1, NATIVE("a"),
	    { .kind = PROFILE_GPU, .id = PROFILE_COPY, .name = "memset" });
	ADD(PROFILE_GPU_NS, 0, 88000, 1, NATIVE("a"), { .kind = PROFILE_GPU, .id = PROFILE_GRAPH });
	SAMPLES(4, NATIVE("a"));
	profile__run(p)->metrics = 1u << PROFILE_GPU_NS | 1u << PROFILE_LAUNCHES;
	return p;
}

static void check_kernel(const struct profile *p, const struct kernel *k, const char *name,
			 uint32_t registers, uint32_t shared, uint64_t launches, uint64_t ns)
{
	const struct profile_frame *f = profile__frame_at(p, k->frame);

	ck_assert_str_eq(f->name, name);
	ck_assert_uint_eq(f->registers, registers);
	ck_assert_uint_eq(f->shared_bytes, shared);
	ck_assert_uint_eq(k->launches, launches);
	ck_assert_uint_eq(k->ns, ns);
}

START_TEST(each_size_of_a_kernel_is_one)
{
	struct profile *p = model();
	struct kernels k;
	int err;

	ck_assert_int_eq(kernels__new(p, &k), 0);
	ck_assert_uint_eq(k.nr, 5);
	check_kernel(p, &k.list[0], "twin", 64, 0, 1, 9000);
	check_kernel(p, &k.list[1], "twin", 40, 1024, 5, 5000);
	check_kernel(p, &k.list[2], "one", 255, 49152, 7, 1000);
	check_kernel(p, &k.list[3], "unsaid", 0, 0, 0, 500);
	check_kernel(p, &k.list[4], "twin", 0, 0, 1, 0);
	kernels__free(&k);
	profile__free(p);
	p = profile__new();
	ck_assert_int_eq(kernels__new(p, &k), 0);
	ck_assert_uint_eq(k.nr, 0);
	kernels__free(&k);
	if (CAN_REFUSE) {
		allocations_left = 0;
		err = kernels__new(p, &k);
		allocations_left = -1;
		ck_assert_int_eq(err, -ENOMEM);
	}
	profile__free(p);
}
END_TEST

START_TEST(the_table_has_them_where_there_is_room)
{
	struct profile *p = model();
	char *s = summary(p, (struct summary_options){ .columns = 100 });

	has(s, "    share       time        calls      mean    regs   static smem  kernel\n");
	has(s, "   14.0 us            6   2.33 us   40-64        0-1024  twin\n");
	has(s, "   1.00 us            7    142 ns     255         49152  one\n");
	has(s, "    500 ns            1    500 ns                        unsaid\n");
	free(s);
	s = summary(p, (struct summary_options){ .columns = 99 });
	lacks(s, "smem");
	lacks(s, "49152");
	free(s);
	profile__free(p);
	/* None is known: no empty columns. */
	p = profile__new();
	ADD(PROFILE_GPU_NS, 0, 1000, 1, NATIVE("main"), GPU("unsaid"));
	s = summary(p, (struct summary_options){ .columns = 200 });
	lacks(s, "smem");
	free(s);
	profile__free(p);
}
END_TEST

START_TEST(scripts_get_the_largest)
{
	struct profile *p = model();
	struct closing_options o = { .json = true, .metric = PROFILE_GPU_NS };
	char name[32], *s = closing(p, o), *at;
	int nr = 0;

	has(s, "\"kernels\":[{\"name\":\"twin\",\"mangled\":\"twin\",\"registers\":64,"
	    "\"static_shared_bytes\":0,\"launches\":1,\"gpu_ns\":9000},"
	    "{\"name\":\"twin\",\"mangled\":\"twin\",\"registers\":40,"
	    "\"static_shared_bytes\":1024,\"launches\":5,\"gpu_ns\":5000},");
	has(s, "{\"name\":\"unsaid\",\"mangled\":\"unsaid\",\"registers\":null,"
	    "\"static_shared_bytes\":null,");
	free(s);
	for (int i = 0; i < KERNELS_SHOWN + 5; i++) {
		snprintf(name, sizeof(name), "k%d", i);
		ADD(PROFILE_GPU_NS, 0, 1000000, 1, NATIVE("main"), GPU(name));
	}
	s = closing(p, o);
	for (at = s; (at = strstr(at, "\"mangled\"")); at++)
		nr++;
	ck_assert_int_eq(nr, KERNELS_SHOWN);
	free(s);
	profile__free(p);
}
END_TEST

UNIT_MAIN("kernels", each_size_of_a_kernel_is_one, the_table_has_them_where_there_is_room,
	  scripts_get_the_largest)
