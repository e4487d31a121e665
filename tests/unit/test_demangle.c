// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * What is expected here was worked out by hand from the Itanium C++ ABI (chapter 5.1) and from
 * Rust's RFC 2603, but for two names marked below; it is nobody's output.
 */
#include <errno.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "symbols/demangle.h"
#include "tests/unit/unit.h"

#define NR(a) ((int)(sizeof(a) / sizeof((a)[0])))

struct pair {
	const char *mangled, *readable;
};

static const struct pair cxx[] = {
	{ "_Z3foov", "foo" },
	{ "_ZN1A3fooEi", "A::foo" },
	{ "_ZNK1A3barEid", "A::bar" },
	{ "_ZNVK1A3barEv", "A::bar" },
	{ "_ZNKR1A3barEv", "A::bar" },
	{ "_ZN1AC2Ei", "A::A" },
	{ "_ZN1AD0Ev", "A::~A" },
	{ "_ZNSt6vectorIiSaIiEE9push_backEOi",
	  "std::vector<int, std::allocator<int> >::push_back" },
	{ "_ZNKSs4sizeEv", "std::string::size" },
	{ "_ZNSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEE6appendEPKc",
	  "std::__cxx11::basic_string<char, std::char_traits<char>, "
	  "std::allocator<char> >::append" },
	{ "_ZSt4moveIRiEONSt16remove_referenceIT_E4typeEOS2_", "std::move<int&>" },
	/* operators */
	{ "_ZN1AaSERKS_", "A::operator=" },
	{ "_ZlsRSoRK1A", "operator<<" },
	{ "_ZN1AclEi", "A::operator()" },
	{ "_ZN1AixEm", "A::operator[]" },
	{ "_ZN1AptEv", "A::operator->" },
	{ "_Znwm", "operator new" },
	{ "_ZdaPvm", "operator delete[]" },
	{ "_ZplIiE1AIT_ES1_S1_", "operator+<int>" },
	{ "_ZN1AcvbEv", "A::operator bool" },
	{ "_ZNK1AcvPKcEv", "A::operator char const*" },
	{ "_ZN1AcvT_IiEEv", "A::operator int<int>" },
	{ "_Zli3_kmy", "operator\"\" _km" },
	/* local things: no parameters of what is around them either */
	{ "_ZZ4mainENKUlvE_clEv", "main::{lambda()#1}::operator()" },
	{ "_ZZ3runiENKUlifE0_clEif", "run::{lambda(int, float)#2}::operator()" },
	{ "_ZZ3fooIdEvT_ENKUlvE_clEv", "foo<double>::{lambda()#1}::operator()" },
	{ "_ZZ4mainENKUlT_E_clIiEEDaS_", "main::{lambda(auto:1)#1}::operator()<int>" },
	{ "_ZZZN2at6native6kernelERNS_14TensorIteratorEENKUlvE_clEvENKUlvE0_clEv",
	  "at::native::kernel::{lambda()#1}::operator()::{lambda()#2}::operator()" },
	{ "_ZZ3foovEN5Local3barEi", "foo::Local::bar" },
	{ "_ZZNK1A3fooEvE4once", "A::foo::once" },
	/* template arguments of every kind */
	{ "_Z1fILb1ELin3ELj7EEvv", "f<true, -3, 7u>" },
	{ "_Z1fIJiPKcEEvDpT_", "f<int, char const*>" },
	{ "_Z1fIJEEvv", "f<>" },
	{ "_ZN1AIFviEE3runEv", "A<void (int)>::run" },
	{ "_Z1fIA3_iEvv", "f<int [3]>" },
	{ "_Z1fIM1AFvvEEvT_", "f<void (A::*)()>" },
	{ "_Z1fIM1AKFvvEEvT_", "f<void (A::*)() const>" },
	{ "_Z1fIRKiOjEvv", "f<int const&, unsigned int&&>" },
	{ "_Z1fIDv4_fEvT_", "f<float __vector(4)>" },
	{ "_Z1fIZ4mainEUlvE_EvT_", "f<main::{lambda()#1}>" },
	{ "_Z1fIXadL_Z3bariEEEvv", "f<&bar>" },
	{ "_Z3addIiiEDTplfp_fp0_ET_T0_", "add<int, int>" },
	/* special */
	{ "_ZThn16_N1B3fooEv", "non-virtual thunk to B::foo" },
	{ "_ZTv0_n24_N1B3fooEi", "virtual thunk to B::foo" },
	{ "_Z3fooB5cxx11v", "foo[abi:cxx11]" },
	{ "_ZN12_GLOBAL__N_13fooEv", "(anonymous namespace)::foo" },
	{ "_ZL6staticv", "static" },
};

/* Device code: what nvcc, Triton and CUTLASS give the driver. */
static const struct pair kernels[] = {
	{ "_Z6KernelI4TileILi128ELi64EEEvT_", "Kernel<Tile<128, 64> >" },
	{ "_Z9vectorAddPKfS0_Pfi", "vectorAdd" },
	{ "_ZN2at6native29vectorized_elementwise_kernelILi4ENS0_15CUDAFunctor_addIfEE"
	  "St5arrayIPcLm3EEEEviT0_T1_",
	  "at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<float>, "
	  "std::array<char*, 3ul> >" },
	{ "_ZN2at6native50_GLOBAL__N__0123abcd_10_Softmax_cu_89abcdef_12345612softmax_warpIfEEvPT_",
	  "at::native::(anonymous namespace)::softmax_warp<float>" },
	{ "_ZN7cutlass6KernelINS_4gemm6kernel4GemmINS1_11threadblock13MmaMultistageINS1_9GemmShape"
	  "ILi128ELi64ELi32EEEEEEEEEvNT_6ParamsE",
	  "cutlass::Kernel<cutlass::gemm::kernel::Gemm<cutlass::gemm::threadblock::MmaMultistage<"
	  "cutlass::gemm::GemmShape<128, 64, 32> > > >" },
	{ "triton_poi_fused_add_mul_relu_17", NULL },
	{ "ampere_sgemm_128x64_nn", NULL },
	{ "ncclDevKernel_AllReduce_Sum_f32_RING_LL", NULL },
};

static const struct pair rust[] = {
	{ "_ZN3std2io5stdio6_print17h0123456789abcdefE", "std::io::stdio::_print" },
	{ "_ZN4main4main28_$u7b$$u7b$closure$u7d$$u7d$17h0123456789abcdefE",
	  "main::main::{{closure}}" },
	/* the example of the reference decoder */
	{ "_ZN71_$LT$Test$u20$$u2b$$u20$$u27$static$u20$as$u20$foo..Bar$LT$Test$GT$$GT$3bar"
	  "17h930b740aa94f1d3aE", "<Test + 'static as foo::Bar<Test>>::bar" },
	{ "_RNvC7mycrate3foo", "mycrate::foo" },
	{ "_RNvNtC7mycrate3foo3bar", "mycrate::foo::bar" },
	{ "_RNvNtCs1234_7mycrate3foo3bar", "mycrate::foo::bar" },
	{ "_RINvNtC3std3mem8align_ofdE", "std::mem::align_of::<f64>" },
	{ "_RNCNvC4main4main0", "main::main::{closure#0}" },
	{ "_RNvMC4testNtB2_3Foo3bar", "<test::Foo>::bar" },
	{ "_RNvXC4testNtB2_3FooNtB2_3Bar3baz", "<test::Foo as test::Bar>::baz" },
	/* and its example of a name outside ASCII */
	{ "_RNqCs4fqI2P2rA04_11utf8_identsu30____7hkackfecea1cbdathfdh9hlq6y",
	  "utf8_idents::საჭმელად_გემრიელი_სადილი" },
};

/* Parts of functions that compilers make: the suffix stays as it is. */
static const struct pair clones[] = {
	{ "_Z3foov.cold", "foo.cold" },
	{ "_ZN1A3fooEi.part.0", "A::foo.part.0" },
	{ "_ZN1A3fooEi.isra.0.constprop.1", "A::foo.isra.0.constprop.1" },
	{ "_ZZ4mainENKUlvE_clEv.llvm.1234567", "main::{lambda()#1}::operator().llvm.1234567" },
	{ "_Z3foov._omp_fn.0", "foo._omp_fn.0" },
	{ "_Z3foov.lto_priv.0.cold", "foo.lto_priv.0.cold" },
	{ "_ZN3std2io5stdio6_print17h0123456789abcdefE.llvm.42", "std::io::stdio::_print.llvm.42" },
	{ "_RNvC7mycrate3foo.llvm.9876", "mycrate::foo.llvm.9876" },
	{ "_RNvC7mycrate3foo.cold.1", "mycrate::foo.cold.1" },
	{ "foo.cold", NULL },
};

static const struct pair none[] = {
	{ "", NULL }, { "_", NULL }, { "_Z", NULL }, { "_R", NULL }, { "main", NULL },
	{ "_start", NULL }, { "__libc_start_main", NULL }, { "_Zqq", NULL }, { "_ZN1A3foo", NULL },
	{ "_Z3foovQ", NULL }, { "_Z999foov", NULL }, { "_RNvC7mycrate", NULL }, { ".cold", NULL },
	{ "_Z.cold", NULL }, { "_Resume", NULL },
};

static void check_pairs(const struct pair *pairs, int nr)
{
	for (int i = 0; i < nr; i++) {
		char *text = demangle(pairs[i].mangled);

		if (!pairs[i].readable) {
			ck_assert_msg(!text, "%s: %s", pairs[i].mangled, text);
			ck_assert_int_eq(errno, EINVAL);
			continue;
		}
		ck_assert_msg(text, "%s: %s", pairs[i].mangled, strerror(errno));
		ck_assert_str_eq(text, pairs[i].readable);
		free(text);
	}
}

START_TEST(cxx_functions) { check_pairs(cxx, NR(cxx)); }
END_TEST
START_TEST(gpu_kernels) { check_pairs(kernels, NR(kernels)); }
END_TEST
START_TEST(rust_functions) { check_pairs(rust, NR(rust)); }
END_TEST
START_TEST(clone_suffixes) { check_pairs(clones, NR(clones)); }
END_TEST
START_TEST(what_is_not_mangled) { check_pairs(none, NR(none)); }
END_TEST

/* --- long ones -------------------------------------------------------------------------------- */

struct text {
	char *s;
	size_t len;
};

__attribute__((format(printf, 2, 3)))
static void add(struct text *t, const char *fmt, ...)
{
	va_list args;
	char *more;
	int n;

	va_start(args, fmt);
	n = vasprintf(&more, fmt, args);
	va_end(args);
	t->s = realloc(t->s, t->len + (size_t)n + 1);
	memcpy(t->s + t->len, more, (size_t)n + 1);
	t->len += (size_t)n;
	free(more);
}

static void add_times(struct text *t, const char *s, int times)
{
	size_t len = strlen(s);

	t->s = realloc(t->s, t->len + len * (size_t)times + 1);
	for (int i = 0; i < times; i++, t->len += len)
		memcpy(t->s + t->len, s, len);
	t->s[t->len] = '\0';
}

/* Frees the mangled name. */
static void expect(struct text *mangled, const char *readable, int err)
{
	char *text = demangle(mangled->s);

	if (readable) {
		ck_assert_msg(text, "%.60s…: %s", mangled->s, strerror(errno));
		ck_assert_str_eq(text, readable);
	} else {
		ck_assert_msg(!text, "%.60s…: %.60s…", mangled->s, text);
		ck_assert_int_eq(errno, err);
	}
	free(text);
	free(mangled->s);
	*mangled = (struct text){};
}

/* Pair<Pair<…Pair<int, LayerNumber<0> >…, LayerNumber<199> >, LayerNumber<200> > */
START_TEST(nested_two_hundred_deep)
{
	struct text m = {}, r = {};

	add(&m, "_Z9spin_withI4PairI");
	add_times(&m, "S0_I", 200);
	add(&m, "i11LayerNumberILi0EEE");
	for (int i = 1; i <= 200; i++)
		add(&m, "S1_ILi%dEEE", i);
	add(&m, "EvPT_");
	ck_assert_uint_gt(m.len, 3000);
	add(&r, "spin_with<");
	add_times(&r, "Pair<", 201);
	add(&r, "int, LayerNumber<0> >");
	for (int i = 1; i <= 200; i++)
		add(&r, ", LayerNumber<%d> >", i);
	add(&r, " >");
	expect(&m, r.s, 0);
	free(r.s);
}
END_TEST

START_TEST(kernel_names_of_kilobytes)
{
	static const int lengths[] = { 900, 4096, 65536 };

	for (int i = 0; i < NR(lengths); i++) {
		struct text m = {}, r = {};

		add(&m, "_Z4hugeI1AI");
		add_times(&m, "i", lengths[i]);
		add(&m, "EEvT_");
		add(&r, "huge<A<int");
		add_times(&r, ", int", lengths[i] - 1);
		add(&r, "> >");
		/* a thousand arguments are where the library gives up */
		expect(&m, lengths[i] < 1000 ? r.s : NULL, E2BIG);
		free(r.s);
	}
}
END_TEST

START_TEST(identifiers_of_any_length)
{
	static const int lengths[] = { 1000, 65536, 500000, 600000 };

	for (int i = 0; i < NR(lengths); i++) {
		struct text m = {}, r = {};

		add(&r, "n::");
		add_times(&r, "a", lengths[i]);
		add(&m, "_ZN1n%d%sEv", lengths[i], r.s + 3);
		expect(&m, lengths[i] < 512 << 10 ? r.s : NULL, E2BIG);
		free(r.s);
	}
}
END_TEST

/* --- names that are meant to hurt ------------------------------------------------------------- */

/* Each level holds the one before twice: 2^35 times the innermost. */
START_TEST(texts_that_double)
{
	struct text m = {};

	/* S_ is f, S0_ a, S1_ a<int, int>, S2_ f<S1_, S1_>, and so on */
	add(&m, "_Z1fI1aIiiE");
	for (int i = 1; i < 36; i++)
		add(&m, "S_IS%1$c_S%1$c_E", "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ"[i]);
	add(&m, "Evv");
	expect(&m, NULL, E2BIG);

	/* Rust: T…E is a tuple, B…_ goes back to a place (base 62): each to the tuple before */
	add(&m, "_RINvC1a1bThhETB7_B7_ETBb_Bb_ETBj_Bj_ETBr_Br_ETBz_Bz_ETBH_BH_ETBP_BP_ETBX_BX_ETB"
		"15_B15_ETB1d_B1d_ETB1n_B1n_ETB1x_B1x_ETB1H_B1H_ETB1R_B1R_ETB21_B21_ETB2b_B2b_ETB"
		"2l_B2l_ETB2v_B2v_ETB2F_B2F_ETB2P_B2P_ETB2Z_B2Z_ETB39_B39_ETB3j_B3j_ETB3t_B3t_ETB"
		"3D_B3D_ETB3N_B3N_ETB3X_B3X_ETB47_B47_ETB4h_B4h_ETB4r_B4r_EE");
	expect(&m, NULL, E2BIG);
}
END_TEST

/* The library parses the arguments twice at each level: 2^60 times the innermost. */
START_TEST(names_parsed_again_and_again)
{
	struct text m = {};

	add(&m, "_Z1f");
	add_times(&m, "N1AcvT_I", 60);
	add(&m, "i");
	add_times(&m, "EE", 60);
	expect(&m, NULL, E2BIG);
	/* a few are fine, and common as parts of identifiers */
	add(&m, "_Z1f");
	for (int i = 0; i < 8; i++)
		add(&m, "N8cvT_I_%02d1aE", i);
	expect(&m, "f", 0);
}
END_TEST

START_TEST(types_as_deep_as_the_name_is_long)
{
	static const int depths[] = { 900, 100000, 500000 };

	for (int i = 0; i < NR(depths); i++) {
		struct text m = {};

		add(&m, "_Z1fI");
		add_times(&m, "P", depths[i]);
		add(&m, "iEvv");
		if (depths[i] < 1000) {
			char *text = demangle(m.s);

			ck_assert_uint_eq(strlen(text), strlen("f<int>") + (size_t)depths[i]);
			free(text);
			free(m.s);
		} else {
			expect(&m, NULL, E2BIG);
		}
	}
	for (int i = 1; i < NR(depths); i++) {
		struct text m = {};

		add(&m, "_Z1f");
		add_times(&m, "N1aI", depths[i] / 4);
		expect(&m, NULL, EINVAL);
	}
}
END_TEST

static void mutate_all(const struct pair *pairs, int nr, uint64_t *state)
{
	for (int turn = 0; turn < nr * 1000; turn++) {
		static const char letters[] = "_ZRNIEJSTPKXLDBCUlcvt0123456789ab$.\x80";
		char *copy = strdup(pairs[turn % nr].mangled), *text;
		size_t len = strlen(copy);

		for (int i = 0; i < 1 + turn % 3 && len > 2; i++) {
			*state = *state * 6364136223846793005ull + 1442695040888963407ull;
			copy[2 + (*state >> 33) % (len - 2)] =
				letters[(*state >> 20) % (sizeof(letters) - 1)];
		}
		text = demangle(copy);
		ck_assert(!text || text[0]);
		free(text);
		free(copy);
	}
}

START_TEST(hundred_thousand_damaged_names)
{
	uint64_t state = 1;

	mutate_all(cxx, NR(cxx), &state);
	mutate_all(kernels, NR(kernels), &state);
	mutate_all(rust, NR(rust), &state);
	mutate_all(clones, NR(clones), &state);
}
END_TEST

UNIT_MAIN("demangle", cxx_functions, gpu_kernels, rust_functions, clone_suffixes,
	  what_is_not_mangled, nested_two_hundred_deep, kernel_names_of_kilobytes,
	  identifiers_of_any_length, texts_that_double, names_parsed_again_and_again,
	  types_as_deep_as_the_name_is_long, hundred_thousand_damaged_names)
