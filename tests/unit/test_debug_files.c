// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Names of stripped files: where their symbols are looked for, and whose are taken. */
#include <fcntl.h>
#include <linux/types.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "bpf/gpucollect.h"
#include "symbols/cache.h"
#include "symbols/debug_file.h"
#include "tests/unit/symbols_places.h"
#include "tests/unit/unit.h"

/*
 * One program whose static function is only in .symtab: `full` has all, `app` is stripped; with
 * `id` and `noid` in front for one with and one without a build id.
 */
static const char source[] =
	"static __attribute__((noinline)) int hidden_fn(int x) { __asm__ volatile(\\\"\\\"); return x; }"
	"int shown_fn(int x) { return hidden_fn(x) + 1; } int main(int c, char **v)"
	"{ (void)v; return shown_fn(c); }";

static void build(void)
{
	places__make_dir();
	ck_assert_int_eq(places__sh(
		"cd %s && mkdir -p root/opt/app root/usr/lib/debug && echo \"%s\" >p.c &&"
		" gcc -O1 -g -rdynamic -Wl,--build-id -o id.full p.c &&"
		" gcc -O1 -g -rdynamic -Wl,--build-id=none -o noid.full p.c &&"
		" for k in id noid; do objcopy --only-keep-debug $k.full $k.debug &&"
		"  strip -o $k.stripped $k.full &&"
		"  objcopy --add-gnu-debuglink=$k.debug $k.stripped $k.linked || exit 1; done",
		places_dir, source), 0);
}

static uint64_t address_of(const char *file, const char *name)
{
	char command[1024];
	unsigned long address = 0;
	FILE *f;

	snprintf(command, sizeof(command), "nm %s/%s | sed -n 's/ [tT] %s$//p'", places_dir, file, name);
	f = popen(command, "r");
	ck_assert_int_eq(fscanf(f, "%lx", &address), 1);
	pclose(f);
	return address;
}

static int open_built(const char *file)
{
	char path[512];
	int fd;

	snprintf(path, sizeof(path), "%s/%s", places_dir, file);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	ck_assert_msg(fd >= 0, "%s", path);
	return fd;
}

/* The name at hidden_fn of `full`, looked up in `file`, which lies in root/opt/app. */
static const char *name_in_root(const char *file, const char *full)
{
	static char name[256];
	char path[256];
	struct symbols *s = symbols__new();
	int root = open_built("root"), fd = open_built(file);
	struct symbol_file *f = symbol_file__open(fd);
	uint64_t offset, address = address_of(full, "hidden_fn") + 1, found;
	struct resolved r;

	/* By search: the reverse is not part of the interface. */
	for (offset = 0; !symbol_file__address(f, offset, &found) || found != address; offset++)
		ck_assert_uint_lt(offset, 1 << 20);
	symbol_file__free(f);
	snprintf(path, sizeof(path), "/opt/app/%s", file);
	ck_assert_int_eq(symbols__add_file(s, 1, fd, path), 0);
	ck_assert_int_eq(symbols__set_place(s, 1, root, path), 0);
	ck_assert(symbols__resolve(s, FRAME_MAKE_FILE(FRAME_FILE, 1, offset), &r));
	snprintf(name, sizeof(name), "%s", r.name);
	symbols__free(s);
	close(fd);
	close(root);
	return name;
}

static void expect_unnamed(const char *file, const char *full)
{
	const char *name = name_in_root(file, full);

	ck_assert_msg(!strncmp(name, file, strlen(file)) && name[strlen(file)] == '+', "%s", name);
}

START_TEST(stripped_without_any)
{
	build();
	ck_assert_str_eq(name_in_root("id.full", "id.full"), "hidden_fn");
	expect_unnamed("id.stripped", "id.full");
	expect_unnamed("noid.stripped", "noid.full");
	places__remove_dir();
}
END_TEST

#define INSTALL(file, to) \
	ck_assert_int_eq(places__sh("mkdir -p $(dirname %s/root%s) && cp %s/%s %s/root%s", places_dir, to, \
				    places_dir, file, places_dir, to), 0)
#define REMOVE(to) ck_assert_int_eq(places__sh("rm %s/root%s", places_dir, to), 0)

START_TEST(by_build_id)
{
	char hex[200] = "", to[300];
	FILE *f;

	build();
	ck_assert_int_eq(places__sh("readelf -n %s/id.full | sed -n 's/.*Build ID: //p' >%s/hex",
				    places_dir, places_dir), 0);
	f = fdopen(open_built("hex"), "r");
	ck_assert_int_eq(fscanf(f, "%199s", hex), 1);
	fclose(f);
	snprintf(to, sizeof(to), "/usr/lib/debug/.build-id/%.2s/%s.debug", hex, hex + 2);
	INSTALL("id.debug", to);
	ck_assert_str_eq(name_in_root("id.stripped", "id.full"), "hidden_fn");
	/* another program's under its name: the build id in it is what counts */
	INSTALL("noid.debug", to);
	expect_unnamed("id.stripped", "id.full");
	/* a link to an absolute path leads to the target's, not to ours */
	REMOVE(to);
	INSTALL("id.debug", "/elsewhere/id.debug");
	ck_assert_int_eq(places__sh("ln -s /elsewhere/id.debug %s/root%s", places_dir, to), 0);
	ck_assert_str_eq(name_in_root("id.stripped", "id.full"), "hidden_fn");
	REMOVE(to);
	ck_assert_int_eq(places__sh("ln -s %s/id.debug %s/root%s", places_dir, places_dir, to), 0);
	expect_unnamed("id.stripped", "id.full");
	/* what is no regular file isn't opened: a pipe would keep us waiting */
	REMOVE(to);
	ck_assert_int_eq(places__sh("mkfifo %s/root%s", places_dir, to), 0);
	expect_unnamed("id.stripped", "id.full");
	places__remove_dir();
}
END_TEST

START_TEST(by_debug_link)
{
	static const char *const kinds[] = { "id", "noid" };

	build();
	for (int i = 0; i < 2; i++) {
		char linked[32], full[32], debug[32], places[3][64];

		snprintf(linked, sizeof(linked), "%s.linked", kinds[i]);
		snprintf(full, sizeof(full), "%s.full", kinds[i]);
		snprintf(debug, sizeof(debug), "%s.debug", kinds[i]);
		snprintf(places[0], sizeof(places[0]), "/opt/app/%s", debug);
		snprintf(places[1], sizeof(places[1]), "/opt/app/.debug/%s", debug);
		snprintf(places[2], sizeof(places[2]), "/usr/lib/debug/opt/app/%s", debug);
		expect_unnamed(linked, full);
		for (int place = 0; place < 3; place++) {
			INSTALL(debug, places[place]);
			ck_assert_str_eq(name_in_root(linked, full), "hidden_fn");
			/* one byte more: build ids still agree, a checksum doesn't */
			ck_assert_int_eq(places__sh("echo >>%s/root%s", places_dir, places[place]), 0);
			if (i == 0)
				ck_assert_str_eq(name_in_root(linked, full), "hidden_fn");
			else
				expect_unnamed(linked, full);
			/* another's */
			INSTALL(i ? "id.debug" : "noid.full", places[place]);
			expect_unnamed(linked, full);
			REMOVE(places[place]);
		}
	}
	places__remove_dir();
}
END_TEST

/* As distributions make it: the functions that .dynsym lacks, compressed. */
START_TEST(compressed_in_the_file)
{
	if (system("xz --version >/dev/null 2>&1")) {
		printf("no xz here\n");
		return;
	}
	build();
	ck_assert_int_eq(places__sh(
		"cd %s && objcopy -S --keep-symbol=hidden_fn --remove-section .comment noid.debug mini &&"
		" xz -k mini && objcopy --add-section .gnu_debugdata=mini.xz noid.stripped noid.mini",
		places_dir), 0);
	ck_assert_str_eq(name_in_root("noid.mini", "noid.full"), "hidden_fn");
	/* cut, not xz, and a gigabyte of zeros in some kilobytes */
	ck_assert_int_eq(places__sh(
		"cd %s && head -c 100 mini.xz >cut && head -c 1000 /dev/urandom >noise &&"
		" head -c 1000000000 /dev/zero | xz -0 >bomb && for k in cut noise bomb; do"
		" objcopy --add-section .gnu_debugdata=$k noid.stripped noid.$k || exit 1; done",
		places_dir), 0);
	expect_unnamed("noid.cut", "noid.full");
	expect_unnamed("noid.noise", "noid.full");
	expect_unnamed("noid.bomb", "noid.full");
	places__remove_dir();
}
END_TEST

static const char inlined_source[] =
	"static inline __attribute__((always_inline)) int inlined_fn(int x)"
	"{ __asm__ volatile(\\\"nop; nop\\\"); return x + VALUE; }"
	"static __attribute__((noinline)) int hidden_fn(int x) { return inlined_fn(x); }"
	"int main(int c, char **v) { (void)v; return hidden_fn(c); }";

/* Inlined calls at hidden_fn of `full`, by the debug information of `file` in root/opt/app; -1: none. */
static int inlines_of(const char *file, const char *full, const char **why)
{
	struct symbols *s = symbols__new();
	int root = open_built("root"), fd, nr;
	size_t pos = 0;
	char path[300];
	const char *name;
	struct resolved r;

	snprintf(path, sizeof(path), "root/opt/app/%s", file);
	fd = open_built(path);
	ck_assert_int_eq(symbols__use_lines(s, NULL, NULL), 0);
	ck_assert_int_eq(symbols__add_file(s, 1, fd, path), 0);
	ck_assert_int_eq(symbols__set_place(s, 1, root, path + 4), 0);
	/* Without -pie and with one segment at its start: an address is an offset and a constant. */
	ck_assert(symbols__resolve(s, FRAME_MAKE_FILE(FRAME_FILE, 1, address_of(full, "hidden_fn") -
						      0x400000), &r));
	ck_assert_str_eq(r.name, "hidden_fn");
	nr = r.line ? (int)r.nr_inlines : -1;
	if (nr > 0)
		ck_assert_str_eq(r.inlines[0].name, "inlined_fn");
	*why = symbols__next_missing(s, &pos, &name, why) ? *why : NULL;
	symbols__free(s);
	close(fd);
	close(root);
	return nr;
}

/* What two programs have in common stands in a third file: names of inlined functions, for one. */
START_TEST(shared_debug_information)
{
	static const char *const links[] = { "/usr/share/common", "../../usr/share/common" };
	const char *why;

	if (system("dwz --version >/dev/null 2>&1")) {
		printf("no dwz here\n");
		return;
	}
	for (int i = 0; i < 2; i++) {
		places__make_dir();
		ck_assert_int_eq(places__sh(
			"cd %s && mkdir -p root/opt/app root/usr/share && echo \"%s\" >p.c &&"
			" for k in 1 2; do gcc -O1 -g -no-pie -Wl,--build-id -DVALUE=$k -o full$k p.c &&"
			" cp full$k root/opt/app/ || exit 1; done && cd root/opt/app &&"
			" dwz -m ../../usr/share/common -M %s full1 full2", places_dir, inlined_source,
			links[i]), 0);
		ck_assert_int_eq(inlines_of("full1", "full1", &why), 1);
		ck_assert_ptr_null(why);
		/* of another build, then none */
		ck_assert_int_eq(places__sh("cp %s/full1 %s/root/usr/share/common", places_dir,
					    places_dir), 0);
		ck_assert_int_eq(inlines_of("full1", "full1", &why), 0);
		ck_assert_ptr_nonnull(strstr(why, "gnu_debugaltlink"));
		ck_assert_int_eq(places__sh("rm %s/root/usr/share/common", places_dir), 0);
		ck_assert_int_eq(inlines_of("full1", "full1", &why), 0);
		ck_assert_ptr_nonnull(strstr(why, "gnu_debugaltlink"));
		places__remove_dir();
	}
}
END_TEST

/* Opens count, as many processes map copies of one build. */
START_TEST(copies_are_read_once)
{
	const size_t opened[] = { 1, 1, geteuid() ? 1 : 2, geteuid() ? 2 : 3 };
	struct symbols *s = symbols__new();
	struct resolved r;
	int fd[4];

	build();
	ck_assert_int_eq(places__sh("cd %s && cp id.full copy && cp id.full foreign", places_dir), 0);
	if (!geteuid())		/* only root can give a file away */
		ck_assert_int_eq(places__sh("chown 65534 %s/foreign", places_dir), 0);
	fd[0] = open_built("id.full");
	fd[1] = open_built("copy");
	fd[2] = open_built("foreign");
	fd[3] = open_built("noid.full");
	for (uint32_t i = 0; i < 4; i++) {
		ck_assert_int_eq(symbols__add_file(s, i + 1, fd[i], i == 1 ? "/copy" : "/x"), 0);
		ck_assert(symbols__resolve(s, FRAME_MAKE_FILE(FRAME_FILE, i + 1, 0x10), &r));
		ck_assert_str_eq(r.module, i == 1 ? "copy" : "x");
		ck_assert_uint_eq(symbols__nr_opened(s), opened[i]);
	}
	symbols__free(s);
	for (int i = 0; i < 4; i++)
		close(fd[i]);
	places__remove_dir();
}
END_TEST

UNIT_MAIN("debug_files", stripped_without_any, by_build_id, by_debug_link, compressed_in_the_file,
	  shared_debug_information, copies_are_read_once)
