// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Where libcuda is looked for, and the offsets of its entries: against marks in the file's bytes. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "gpu_timing/reader.h"
#include "loader/driver.h"
#include "tests/unit/unit.h"

static char folder[256];

static void begin(void)
{
	snprintf(folder, sizeof(folder), "%s/driver-XXXXXX", getenv("TMPDIR") ? getenv("TMPDIR") : "/tmp");
	ck_assert_ptr_nonnull(mkdtemp(folder));
}

static void end(void)
{
	char command[300];

	snprintf(command, sizeof(command), "rm -rf '%s'", folder);
	ck_assert_int_eq(system(command), 0);
}

static char *in_folder(const char *name)
{
	static char path[600];

	snprintf(path, sizeof(path), "%s/%s", folder, name);
	return path;
}

static void write_file(const char *name, const char *text)
{
	FILE *f = fopen(in_folder(name), "w");

	ck_assert_ptr_nonnull(f);
	fputs(text, f);
	ck_assert_int_eq(fclose(f), 0);
}

/* --- entries ------------------------------------------------------------------------------- */

#define MARK "MARK%04u"		/* first bytes of each entry */

/* A library that exports all entries but those in `without` (a bit each), linked with `flags`. */
static int make_driver(uint32_t without, const char *flags)
{
	FILE *f = fopen(in_folder("driver.S"), "w");
	char command[1024];
	uint32_t e;

	ck_assert_ptr_nonnull(f);
	fprintf(f, "\t.text\n\t.globl cuInit\n\t.type cuInit, @function\ncuInit:\n\tret\n");
	for (e = ENTRY_UNKNOWN + 1; e < NR_LAUNCH_ENTRIES; e++) {
		const char *name = channel__slot_name(e);

		/* One that is there as data only is no entry. */
		fprintf(f, "\t.globl %s\n\t.type %s, %s\n%s:\n\t.ascii \"" MARK "\"\n\tret\n"
			"\t.size %s, .-%s\n\t.balign 64\n", name, name,
			without >> e & 1 ? "@object" : "@function", name, e, name, name);
	}
	fprintf(f, "\t.section .note.GNU-stack, \"\", @progbits\n");
	ck_assert_int_eq(fclose(f), 0);
	snprintf(command, sizeof(command), "cd '%s' && cc -shared -nostdlib %s -o driver.so driver.S",
		 folder, flags);
	ck_assert_int_eq(system(command), 0);
	return open(in_folder("driver.so"), O_RDONLY | O_CLOEXEC);
}

struct found {
	uint64_t offset[NR_LAUNCH_ENTRIES];
	unsigned int nr;
};

static void note(void *ctx, uint32_t entry, uint64_t offset)
{
	struct found *found = ctx;

	ck_assert_uint_gt(entry, ENTRY_UNKNOWN);
	ck_assert_uint_lt(entry, NR_LAUNCH_ENTRIES);
	ck_assert_uint_eq(found->offset[entry], 0);
	found->offset[entry] = offset;
	found->nr++;
}

static uint64_t mark_at(int fd, uint32_t entry)
{
	struct stat st;
	char mark[16], *bytes, *at;
	uint64_t offset;

	ck_assert_int_eq(fstat(fd, &st), 0);
	bytes = malloc((size_t)st.st_size);
	ck_assert_int_eq(pread(fd, bytes, (size_t)st.st_size, 0), st.st_size);
	snprintf(mark, sizeof(mark), MARK, entry);
	at = memmem(bytes, (size_t)st.st_size, mark, strlen(mark));
	offset = at ? (uint64_t)(at - bytes) : 0;
	free(bytes);
	return offset;
}

START_TEST(offsets_are_where_the_code_is)
{
	static const char *const flags[] = {
		"", "-Wl,-Ttext-segment=0x34fd200000", "-Wl,-z,noseparate-code",
		"-Wl,-z,max-page-size=0x200000", "-Wl,--strip-all",
	};

	begin();
	for (size_t i = 0; i < sizeof(flags) / sizeof(flags[0]); i++) {
		struct found found = { .nr = 0 };
		int fd = make_driver(0, flags[i]);

		ck_assert_int_eq(driver__entries(fd, note, &found), 0);
		ck_assert_uint_eq(found.nr, NR_LAUNCH_ENTRIES - 1);
		for (uint32_t e = ENTRY_UNKNOWN + 1; e < NR_LAUNCH_ENTRIES; e++) {
			ck_assert_uint_ne(found.offset[e], 0);
			ck_assert_uint_eq(found.offset[e], mark_at(fd, e));
		}
		close(fd);
	}
	end();
}
END_TEST

START_TEST(an_old_driver_has_fewer)
{
	struct found found = { .nr = 0 };
	uint32_t without = 1u << ENTRY_LAUNCH_KERNEL_EX | 1u << ENTRY_GRAPH_LAUNCH_PTSZ;
	int fd;

	begin();
	fd = make_driver(without, "");
	ck_assert_int_eq(driver__entries(fd, note, &found), 0);
	ck_assert_uint_eq(found.nr, NR_LAUNCH_ENTRIES - 3);
	ck_assert_uint_eq(found.offset[ENTRY_LAUNCH_KERNEL_EX], 0);
	ck_assert_uint_eq(found.offset[ENTRY_GRAPH_LAUNCH_PTSZ], 0);
	close(fd);
	found.nr = 0;
	fd = make_driver(~0u, "");
	ck_assert_int_eq(driver__entries(fd, note, &found), -ENOENT);
	ck_assert_uint_eq(found.nr, 0);
	close(fd);
	end();
}
END_TEST

START_TEST(files_that_are_no_driver)
{
	struct found found = { .nr = 0 };
	int fd;

	begin();
	write_file("text", "this is no ELF file, but it is longer than a header would be ......");
	fd = open(in_folder("text"), O_RDONLY);
	ck_assert_int_lt(driver__entries(fd, note, &found), 0);
	close(fd);
	write_file("empty", "");
	fd = open(in_folder("empty"), O_RDONLY);
	ck_assert_int_lt(driver__entries(fd, note, &found), 0);
	close(fd);
	ck_assert_int_lt(driver__entries(-1, note, &found), 0);
	ck_assert_uint_eq(found.nr, 0);
	end();
}
END_TEST

/* Cut anywhere, or with any byte changed, it is refused or read, but nothing else happens. */
START_TEST(damaged)
{
	struct stat st;
	char *bytes;
	int fd, out;

	begin();
	fd = make_driver(0, "");
	ck_assert_int_eq(fstat(fd, &st), 0);
	bytes = malloc((size_t)st.st_size);
	ck_assert_int_eq(pread(fd, bytes, (size_t)st.st_size, 0), st.st_size);
	out = open(in_folder("damaged"), O_RDWR | O_CREAT, 0600);
	for (off_t at = 0; at < st.st_size; at += at < 1024 ? 1 : 37) {
		struct found found = { .nr = 0 };
		char old = bytes[at];

		bytes[at] = (char)~old;
		ck_assert_int_eq(pwrite(out, bytes, (size_t)st.st_size, 0), st.st_size);
		bytes[at] = old;
		driver__entries(out, note, &found);
		memset(&found, 0, sizeof(found));
		ck_assert_int_eq(ftruncate(out, at), 0);
		driver__entries(out, note, &found);
	}
	free(bytes);
	close(out);
	close(fd);
	end();
}
END_TEST

/* --- where it is ----------------------------------------------------------------------------- */

static bool is_in_folder(const char *path, const char *name)
{
	return !strcmp(path, in_folder(name));
}

START_TEST(library_path_first)
{
	char list[4096], **found;

	begin();
	ck_assert(!mkdir(in_folder("a"), 0755) && !mkdir(in_folder("b"), 0755) &&
		  !mkdir(in_folder("c"), 0755) && !mkdir(in_folder("d"), 0755));
	write_file("b/" DRIVER_NAME, "b");
	write_file("c/" DRIVER_NAME, "c");
	ck_assert_int_eq(mkdir(in_folder("d/" DRIVER_NAME), 0755), 0);	/* not a file */
	ck_assert_int_eq(symlink("../b/" DRIVER_NAME, in_folder("a/" DRIVER_NAME)), 0);
	snprintf(list, sizeof(list), "%s/nothing:%s/d:%s/c;%s/a:%s/b", folder, folder, folder, folder,
		 folder);
	found = driver__candidates(list);
	ck_assert_ptr_nonnull(found);
	ck_assert(is_in_folder(found[0], "c/" DRIVER_NAME));
	/* a's is b's, and named once. */
	ck_assert(is_in_folder(found[1], "a/" DRIVER_NAME));
	for (size_t i = 2; found[i]; i++)
		ck_assert_ptr_null(strstr(found[i], folder));
	driver__free_candidates(found);
	driver__free_candidates(NULL);
	end();
}
END_TEST

START_TEST(empty_entry_is_the_current_folder)
{
	static const char *const lists[] = { "none::none", "none:", ":none", ":", "none;;none" };
	char **found;

	begin();
	write_file(DRIVER_NAME, "here");
	ck_assert_int_eq(mkdir(in_folder("none"), 0755), 0);
	ck_assert_int_eq(chdir(folder), 0);
	for (size_t f = 0; f < sizeof(lists) / sizeof(lists[0]); f++) {
		unsigned int seen = 0;

		found = driver__candidates(lists[f]);
		ck_assert_ptr_nonnull(found);
		for (size_t i = 0; found[i]; i++)
			seen += !strcmp(found[i], "./" DRIVER_NAME);
		ck_assert_uint_eq(seen, 1);
		driver__free_candidates(found);
	}
	found = driver__candidates(NULL);
	ck_assert_ptr_nonnull(found);
	for (size_t i = 0; found[i]; i++)
		ck_assert_int_eq(found[i][0], '/');
	driver__free_candidates(found);
	ck_assert_int_eq(chdir("/"), 0);
	end();
}
END_TEST

UNIT_MAIN("driver", offsets_are_where_the_code_is, an_old_driver_has_fewer, files_that_are_no_driver,
	  damaged, library_path_first, empty_entry_is_the_current_folder)
