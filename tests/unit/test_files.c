// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Files that are mapped: what is the same, what is opened, what has gone or been replaced. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "loader/files.h"
#include "tests/unit/unit.h"

#define PAGE 4096

static char folder[] = "/tmp/test_files.XXXXXX";
static struct files *files;

static void begin(void)
{
	strcpy(folder, "/tmp/test_files.XXXXXX");
	ck_assert_ptr_nonnull(mkdtemp(folder));
	files = files__new();
	ck_assert_ptr_nonnull(files);
}

static void end(void)
{
	char command[128];

	files__free(files);
	snprintf(command, sizeof(command), "rm -rf '%s'", folder);
	ck_assert_int_eq(system(command), 0);
}

/* Pages of code in a file of ours that begins as an ELF file does and goes on as `text` says. */
static void fill(int fd, const char *magic, const char *text)
{
	char page[PAGE] = "";

	memcpy(page, magic, 4);
	strcpy(page + 64, text);
	ck_assert_int_eq(write(fd, page, sizeof(page)), sizeof(page));
}

static void *map(int fd)
{
	void *at = mmap(NULL, PAGE, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, 0);

	ck_assert_ptr_ne(at, MAP_FAILED);
	close(fd);
	return at;
}

static void path_of(char *to, size_t size, const char *name)
{
	snprintf(to, size, "%s/%s", folder, name);
}

static void *map_named(const char *name, const char *text)
{
	char path[512];
	int fd;

	path_of(path, sizeof(path), name);
	fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0700);
	ck_assert_int_ge(fd, 0);
	fill(fd, "\177ELF", text);
	return map(fd);
}

struct wanted {
	pid_t tgid;
	uint64_t at;
	uint32_t file;
	bool met;
};

static int see(const struct maps_line *line, void *arg)
{
	struct wanted *w = arg;

	if (line->start != w->at)
		return 0;
	w->met = true;
	w->file = files__of_mapping(files, w->tgid, line);
	return 0;
}

static uint32_t of_process(pid_t tgid, void *at)
{
	struct wanted w = { .tgid = tgid, .at = (uintptr_t)at };

	ck_assert_int_eq(maps__read(tgid, see, &w), 0);
	ck_assert(w.met);
	return w.file;
}

static uint32_t of(void *at)
{
	return of_process(getpid(), at);
}

/* What the registry's descriptor reads. */
static bool says(uint32_t file, const char *text)
{
	char got[64] = "";
	int fd = files__open(files, file);

	return fd >= 0 && pread(fd, got, sizeof(got) - 1, 64) > 0 && !strcmp(got, text);
}

START_TEST(a_file_has_one_number)
{
	char path[512];
	uint32_t a, b;
	void *at;

	begin();
	at = map_named("a", "first");
	a = of(at);
	b = of(map_named("b", "second"));
	ck_assert_uint_gt(a, FILES_VDSO);
	ck_assert_uint_gt(b, a);
	ck_assert_uint_eq(of(at), a);
	path_of(path, sizeof(path), "a");
	ck_assert_uint_eq(of(map(open(path, O_RDONLY | O_CLOEXEC))), a);
	ck_assert_str_eq(files__path(files, a), path);
	ck_assert(says(a, "first"));
	ck_assert(says(b, "second"));
	ck_assert_uint_eq(files__count(files), b);
	end();
}
END_TEST

START_TEST(a_new_file_of_the_same_name_is_another)
{
	char path[512], renamed[512];
	uint32_t a, b, c;
	void *first, *second;

	begin();
	first = map_named("x", "first");
	path_of(path, sizeof(path), "x");
	ck_assert_int_eq(unlink(path), 0);
	second = map_named("x", "second");
	a = of(first);		/* met when it was deleted already */
	b = of(second);
	ck_assert_uint_ne(a, b);
	ck_assert(says(a, "first"));
	ck_assert(says(b, "second"));
	path_of(renamed, sizeof(renamed), "y");
	ck_assert_int_eq(rename(path, renamed), 0);
	c = of(map_named("x", "third"));
	ck_assert(c != a && c != b);
	ck_assert(says(c, "third"));
	ck_assert_uint_eq(of(second), b);	/* under its new name */
	ck_assert(says(b, "second"));
	end();
}
END_TEST

START_TEST(names_that_mislead)
{
	static const char *const names[] = {
		"x (deleted)", "two\nlines", "\\012", "a;b", " ends in 12", "\xff\xfe", "%s%n",
	};
	char path[512];
	uint32_t file;

	begin();
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		file = of(map_named(names[i], names[i]));
		path_of(path, sizeof(path), names[i]);
		ck_assert(says(file, names[i]));
		/* The kernel writes both as \012. */
		if (strcmp(names[i], "\\012"))
			ck_assert_str_eq(files__path(files, file), path);
	}
	end();
}
END_TEST

START_TEST(memory_with_code)
{
	int elf, data;
	void *at;

	begin();
	elf = memfd_create("lib.so", MFD_CLOEXEC);
	data = memfd_create("jit", MFD_CLOEXEC);
	fill(elf, "\177ELF", "in memory");
	fill(data, "\x90\x90\x90\xc3", "");
	ck_assert(says(of(map(elf)), "in memory"));
	at = map(data);
	ck_assert_uint_eq(of(at), 0);		/* as anonymous memory is: its code changes */
	ck_assert_uint_eq(of(at), 0);
	/* A device isn't opened, whatever it is. */
	at = mmap(NULL, PAGE, PROT_READ | PROT_EXEC, MAP_PRIVATE, open("/dev/zero", O_RDWR), 0);
	ck_assert_ptr_ne(at, MAP_FAILED);
	ck_assert_int_lt(files__fd(files, of(at)), 0);
	end();
}
END_TEST

/* A process that maps `name`, at *at here as there, and ends when told. */
static pid_t mapper(const char *name, void **at)
{
	pid_t child;

	*at = map_named(name, name);
	child = fork();
	if (!child) {
		pause();
		_exit(0);
	}
	munmap(*at, PAGE);
	return child;
}

static void stop(pid_t child)
{
	kill(child, SIGKILL);
	ck_assert_int_eq(waitpid(child, NULL, 0), child);
}

static int see_then_stop(const struct maps_line *line, void *arg)
{
	struct wanted *w = arg;

	if (line->start == w->at)
		stop(w->tgid);
	return see(line, arg);
}

/* It ends between the reading of its mappings and the opening of its files. */
START_TEST(a_process_that_ends_does_not_spoil_a_file)
{
	struct wanted w = {};
	char path[512];
	void *at;

	begin();
	w.tgid = mapper("lib", &at);
	w.at = (uintptr_t)at;
	maps__read(w.tgid, see_then_stop, &w);
	ck_assert(w.met);
	ck_assert_uint_ne(w.file, 0);
	/* The name leads to a file as young as one that took the place of another would be. */
	ck_assert_int_lt(files__open(files, w.file), 0);
	path_of(path, sizeof(path), "lib");
	ck_assert_str_eq(files__path(files, w.file), path);
	ck_assert(says(of(map(open(path, O_RDONLY | O_CLOEXEC))), "lib"));
	end();
}
END_TEST

/* One that has long been there is believed by its name. */
START_TEST(an_old_file_is_found_by_its_name)
{
	struct wanted w = {};
	char magic[4] = "";
	uint32_t here;
	int fd = open("/bin/sh", O_RDONLY | O_CLOEXEC);
	void *at = map(fd);

	begin();
	w.at = (uintptr_t)at;
	w.tgid = fork();
	if (!w.tgid) {
		pause();
		_exit(0);
	}
	maps__read(w.tgid, see_then_stop, &w);
	ck_assert(w.met);
	fd = files__open(files, w.file);
	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(pread(fd, magic, 4, 0), 4);
	ck_assert_mem_eq(magic, "\177ELF", 4);
	here = of(at);
	ck_assert_uint_eq(here, w.file);
	end();
}
END_TEST

static unsigned int descriptors(void)
{
	unsigned int nr = 0;

	for (int fd = 0; fd < 1024; fd++)
		nr += fcntl(fd, F_GETFD) >= 0;
	return nr;
}

START_TEST(descriptors_are_limited)
{
	enum { LIMIT = 256, NR = 1000, USED = 40 };
	struct rlimit limit = { LIMIT, LIMIT };
	static void *at[NR];
	static uint32_t file[NR];
	unsigned int before, failed = 0;
	char name[32];

	ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &limit), 0);
	begin();
	before = descriptors();
	for (int i = 0; i < NR; i++) {
		snprintf(name, sizeof(name), "%d", i);
		at[i] = map_named(name, name);
	}
	for (int i = 0; i < NR; i++)
		file[i] = of(at[i]);
	ck_assert_uint_eq(files__count(files), FILES_VDSO + NR);
	ck_assert_uint_le(descriptors(), before + LIMIT / 4 + 2);	/* half of its half, and a root */
	/* The code of some is met: they are opened, whichever they are. */
	for (int i = 0; i < USED; i++) {
		snprintf(name, sizeof(name), "%d", i * 25);
		ck_assert(says(file[i * 25], name));
		ck_assert_uint_eq(of(at[i * 25]), file[i * 25]);
	}
	ck_assert_uint_eq(files__too_many(files), 0);
	for (int i = 0; i < NR; i++)
		failed += files__open(files, file[i]) < 0;
	ck_assert_uint_le(descriptors(), before + LIMIT / 2 + 2);
	ck_assert_uint_gt(failed, NR / 2);
	ck_assert_uint_eq(files__too_many(files), failed);
	end();
}
END_TEST

/* Not opened as long as it wasn't needed, and then it was too late: another has the name. */
START_TEST(what_was_not_opened_in_time)
{
	struct rlimit limit = { 32, 32 };
	char path[512], name[32];
	uint32_t file = 0;
	pid_t child;
	void *at;

	ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &limit), 0);
	begin();
	for (int i = 0; i < 16; i++) {
		snprintf(name, sizeof(name), "%d", i);
		of(map_named(name, name));
	}
	child = mapper("late", &at);
	file = of_process(child, at);
	ck_assert_uint_ne(file, 0);
	ck_assert_int_lt(files__fd(files, file), 0);
	path_of(path, sizeof(path), "late");
	ck_assert_int_eq(unlink(path), 0);
	map_named("late", "another");
	stop(child);
	ck_assert_int_lt(files__open(files, file), 0);
	ck_assert(!says(file, "another"));
	end();
}
END_TEST

UNIT_MAIN("files", a_file_has_one_number, a_new_file_of_the_same_name_is_another, names_that_mislead,
	  memory_with_code, a_process_that_ends_does_not_spoil_a_file,
	  an_old_file_is_found_by_its_name, descriptors_are_limited, what_was_not_opened_in_time)
