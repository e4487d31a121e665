// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Programs and libraries in the layouts that linkers make, each of which tells where the kernel has
 * mapped its functions (symbols_truth.c): the names of these places in the file must be theirs.
 */
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "symbols/file.h"
#include "tests/unit/symbols_places.h"
#include "tests/unit/unit.h"

#define IMPORTS " -DIMPORTS"

struct layout {
	const char *name, *flags;
	bool library, may_lack;		/* the linker may not be there */
	int exported, local, slots, indirect;	/* lines it prints; slots: at least */
};

/* "lazy": the slot's second half is one more place, whatever the linker does unasked. */
static const struct layout layouts[] = {
	{ "pie", "-pie -fPIE" IMPORTS, false, false, 3, 2, 3, 0 },
	{ "fixed", "-no-pie -Wl,-Ttext-segment=0x60000000" IMPORTS, false, false, 3, 2, 3, 0 },
	{ "twoseg", "-no-pie -Wl,--section-start=.farcode=0x900000", false, false, 3, 2, 0, 0 },
	{ "hugealign", "-pie -fPIE -Wl,-z,max-page-size=0x200000 -Wl,-z,noseparate-code" IMPORTS,
	  false, false, 3, 2, 3, 0 },
	{ "separate", "-pie -fPIE -Wl,-z,separate-code" IMPORTS, false, false, 3, 2, 3, 0 },
	{ "lazy", "-pie -fPIE -Wl,-z,lazy" IMPORTS, false, false, 3, 2, 4, 0 },
	{ "ibt", "-pie -fPIE -fcf-protection=full -Wl,-z,lazy -Wl,-z,ibtplt" IMPORTS, false,
	  false, 3, 2, 4, 0 },
	{ "ibtnow", "-pie -fPIE -fcf-protection=full -Wl,-z,now -Wl,-z,ibtplt" IMPORTS, false,
	  false, 3, 2, 3, 0 },
	{ "static", "-static", false, false, 3, 2, 0, 0 },
	{ "staticpie", "-static-pie -fPIE", false, false, 3, 2, 0, 0 },
	{ "staticifunc", "-static -DINDIRECT", false, false, 3, 2, 0, 1 },
	{ "ifunc", "-pie -fPIE -DINDIRECT", false, false, 3, 2, 0, 1 },
	{ "lld", "-pie -fPIE -fuse-ld=lld" IMPORTS, false, true, 3, 2, 3, 0 },
	{ "lldibt", "-pie -fPIE -fuse-ld=lld -fcf-protection=full -Wl,-z,force-ibt" IMPORTS, false,
	  true, 3, 2, 3, 0 },
	{ "lldrosegment", "-pie -fPIE -fuse-ld=lld -Wl,--no-rosegment" IMPORTS, false, true, 3, 2,
	  3, 0 },
	{ "gold", "-pie -fPIE -fuse-ld=gold" IMPORTS, false, true, 3, 2, 3, 0 },
	{ "mold", "-pie -fPIE -fuse-ld=mold" IMPORTS, false, true, 3, 2, 3, 0 },
	{ "lib", "" IMPORTS, true, false, 3, 2, 3, 0 },
	{ "highlib", "-Wl,-Ttext-segment=0x34fd200000" IMPORTS, true, false, 3, 2, 3, 0 },
	{ "lldlib", "-fuse-ld=lld" IMPORTS, true, true, 3, 2, 3, 0 },
	{ "sysvhash", "-Wl,--hash-style=sysv" IMPORTS, true, false, 3, 2, 3, 0 },
};
#define NR_LAYOUTS ((int)(sizeof(layouts) / sizeof(layouts[0])))

/* What it printed is in DIR/truth. false: there is no such linker. */
static bool build_and_run(const struct layout *l)
{
	const char *cc = getenv("CC") ?: "cc";
	int status;

	if (l->library)
		status = places__sh("cd %1$s && %2$s -O2 -g -shared -fPIC -DLIBRARY %3$s "
				    "-o libtruth.so $OLDPWD/" TRUTH_SOURCE " 2>errors && "
				    "echo 'int report(void);int main(void) { return report(); }' "
				    ">main.c && %2$s -o truth_main main.c -L. -ltruth "
				    "-Wl,-rpath,'$ORIGIN'", places_dir, cc, l->flags);
	else
		status = places__sh("cd %s && %s -O2 -g -rdynamic %s -o truth_main "
				    "$OLDPWD/" TRUTH_SOURCE " 2>errors", places_dir, cc, l->flags);
	if (status && l->may_lack)
		return false;
	ck_assert_msg(status == 0, "%s: not built", l->name);
	ck_assert_int_eq(places__sh("cd %s && ./truth_main >truth", places_dir), 0);
	return true;
}

static int count_kind(const struct place *places, int nr, char kind)
{
	int n = 0;

	for (int i = 0; i < nr; i++)
		n += places[i].kind == kind;
	return n;
}

static void check_place(struct symbol_file *f, const char *layout, const struct place *p,
			bool known)
{
	struct symbol s;
	int err = symbol_file__find(f, p->offset, &s);

	if (!known) {
		ck_assert_msg(err == -ENOENT, "%s: %#lx: %s", layout, p->offset,
			      err ? "error" : s.name);
		return;
	}
	ck_assert_msg(err == 0, "%s: %s at %#lx: %d", layout, p->name, p->offset, err);
	ck_assert_msg(!strcmp(s.name, p->name), "%s: %s at %#lx: %s", layout, p->name, p->offset,
		      s.name);
	ck_assert_int_eq(s.kind == SYMBOL_PLT, p->kind == 'P' || p->kind == 'I');
}

/* Exported names are left, local ones are not. */
static void check_stripped(const struct layout *l, const struct place *places, int nr, bool dynamic)
{
	char path[512];
	struct symbol_file *f;
	int fd;

	snprintf(path, sizeof(path), "%s/stripped", places_dir);
	ck_assert_int_eq(places__sh("strip -o %s %s", path, places[0].path), 0);
	f = places__open(path, &fd);
	for (int i = 0; i < nr; i++)
		check_place(f, l->name, &places[i], dynamic && places[i].kind != 'L');
	symbol_file__free(f);
	close(fd);
}

/* The dynamic segment leads to the exported names; slots can't be told from other code. */
static void check_without_headers(const struct layout *l, const struct place *places, int nr,
				  bool dynamic)
{
	struct symbol_file *f;
	Elf64_Ehdr h;
	int fd;

	fd = open(places[0].path, O_RDWR);
	ck_assert_int_eq(pread(fd, &h, sizeof(h), 0), sizeof(h));
	h.e_shoff = 0;
	h.e_shnum = h.e_shstrndx = 0;
	ck_assert_int_eq(pwrite(fd, &h, sizeof(h), 0), sizeof(h));
	close(fd);
	f = places__open(places[0].path, &fd);
	for (int i = 0; i < nr; i++)
		check_place(f, l->name, &places[i], dynamic && places[i].kind == 'E');
	symbol_file__free(f);
	close(fd);
}

START_TEST(every_layout)
{
	const struct layout *l = &layouts[_i];
	bool dynamic = !strstr(l->flags, "-static");
	struct place places[16];
	struct symbol_file *f;
	int nr, fd;

	places__make_dir();
	if (!build_and_run(l)) {
		printf("%s: no such linker here\n", l->name);
		places__remove_dir();
		return;
	}
	nr = places__read(places, 16);
	ck_assert_int_eq(count_kind(places, nr, 'E'), l->exported);
	ck_assert_int_eq(count_kind(places, nr, 'L'), l->local);
	ck_assert_int_ge(count_kind(places, nr, 'P'), l->slots);
	ck_assert_int_eq(count_kind(places, nr, 'I'), l->indirect);
	f = places__open(places[0].path, &fd);
	for (int i = 0; i < nr; i++)
		check_place(f, l->name, &places[i], true);
	symbol_file__free(f);
	close(fd);
	check_stripped(l, places, nr, dynamic);
	check_without_headers(l, places, nr, dynamic);
	places__remove_dir();
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("symbols_layouts");
	TCase *tc = tcase_create("symbols_layouts");
	SRunner *runner;
	int failed;

	tcase_set_timeout(tc, 120);
	tcase_add_loop_test(tc, every_layout, 0, NR_LAYOUTS);
	suite_add_tcase(suite, tc);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_ENV);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
