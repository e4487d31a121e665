// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "tests/unit/output_file.h"

#include <pthread.h>
#include <sched.h>
#include <sys/mount.h>

static const struct caller self;	/* root, or whoever runs the tests */

static int say_half_and_fail(FILE *f, void *arg)
{
	fputs(arg, f);
	fflush(f);
	return -ECHRNG;
}

/* Fills until the stream says no; as writers of formats do. */
static int say_much(FILE *f, void *arg)
{
	size_t n = *(size_t *)arg;

	errno = 0;
	while (n--)
		if (putc('x', f) == EOF)
			return errno ? -errno : -EIO;
	return fflush(f) ? -errno : 0;
}

START_TEST(a_file_is_there_when_it_is_whole)
{
	struct output_file *f;
	struct stat st;
	char *why;

	fresh_directory();
	ck_assert_int_eq(open_file(&self, "out", false, &f), 0);
	ck_assert_int_eq(count_files(), 0);		/* nothing is left behind by the check */
	ck_assert(output_file__is_regular(f) && !output_file__is_stdout(f));
	ck_assert_int_eq(output_file__write(f, say_half_and_fail, (void *)(uintptr_t)"half", &why),
			 -ECHRNG);
	ck_assert_ptr_nonnull(why);
	free(why);
	ck_assert_int_eq(count_files(), 0);
	ck_assert_int_eq(output_file__write(f, say, (void *)(uintptr_t)"whole", &why), 0);
	ck_assert_str_eq(content("out"), "whole");
	ck_assert_int_eq(count_files(), 1);
	ck_assert_int_eq(stat("out", &st), 0);
	ck_assert_uint_eq(st.st_mode & 07777, 0644);
	/* What we wrote ourselves may be replaced, and stays whole if that fails. */
	ck_assert_int_eq(output_file__write(f, say, (void *)(uintptr_t)"again", &why), 0);
	ck_assert_str_eq(content("out"), "again");
	output_file__write(f, say_half_and_fail, (void *)(uintptr_t)"half", &why);
	free(why);
	ck_assert_str_eq(content("out"), "again");
	ck_assert_int_eq(count_files(), 1);
	/* Once it is another's it is that other's. */
	unlink("out");
	put("out", "theirs", 0644);
	ck_assert_int_eq(output_file__write(f, say, (void *)(uintptr_t)"ours", &why), -EEXIST);
	ck_assert_ptr_nonnull(strstr(why, "-y"));
	free(why);
	ck_assert_str_eq(content("out"), "theirs");
	ck_assert_int_eq(count_files(), 1);
	output_file__free(f);
	output_file__free(NULL);
}
END_TEST

START_TEST(existing_files_are_safe_without_force)
{
	struct output_file *f;
	char *why;

	fresh_directory();
	put("out", "theirs", 0644);
	ck_assert_int_eq(save(&self, "out", false, "ours"), -EEXIST);
	ck_assert_str_eq(content("out"), "theirs");
	ck_assert_int_eq(save(&self, "out", true, "ours"), 0);
	ck_assert_str_eq(content("out"), "ours");
	/* One that appears after the check. */
	ck_assert_int_eq(open_file(&self, "late", false, &f), 0);
	put("late", "theirs", 0644);
	ck_assert_int_eq(output_file__write(f, say, (void *)(uintptr_t)"ours", &why), -EEXIST);
	free(why);
	ck_assert_str_eq(content("late"), "theirs");
	output_file__free(f);
	ck_assert_int_eq(count_files(), 2);
}
END_TEST

START_TEST(what_is_no_file_is_refused)
{
	char dir[4096];

	fresh_directory();
	mkdir("dir", 0755);
	symlink("nowhere", "dangling");
	symlink("loop", "loop");
	symlink("dir", "to-dir");
	put("file", "x", 0644);
	ck_assert_int_eq(save(&self, "dir", true, "x"), -EISDIR);
	ck_assert_int_eq(save(&self, "dir/", true, "x"), -EISDIR);
	ck_assert_int_eq(save(&self, "to-dir", true, "x"), -EISDIR);
	ck_assert_int_eq(save(&self, ".", true, "x"), -EISDIR);
	ck_assert_int_eq(save(&self, "/", true, "x"), -EISDIR);
	ck_assert_int_eq(save(&self, "new/", true, "x"), -EISDIR);
	ck_assert_int_eq(save(&self, "missing/x", true, "x"), -ENOENT);
	ck_assert_int_eq(save(&self, "file/x", true, "x"), -ENOTDIR);
	ck_assert_int_eq(save(&self, "dangling", true, "x"), -ENXIO);
	ck_assert_int_eq(save(&self, "loop", true, "x"), -ELOOP);
	ck_assert_int_eq(count_files(), 5);
	if (!geteuid()) {
		ck_assert_int_eq(mknod("disk", S_IFBLK | 0600, 7 << 8), 0);
		ck_assert_int_eq(save(&self, "disk", true, "x"), -ENOTBLK);
	}
	/* Absolute and through "..", and a link to a file: its target is written. */
	ck_assert_ptr_nonnull(getcwd(dir, sizeof(dir) - 16));
	strcat(dir, "/absolute");
	ck_assert_int_eq(save(&self, dir, false, "a"), 0);
	ck_assert_str_eq(content("absolute"), "a");
	ck_assert_int_eq(save(&self, "dir/../up", false, "u"), 0);
	ck_assert_str_eq(content("up"), "u");
	symlink("../absolute", "dir/link");
	ck_assert_int_eq(save(&self, "dir/link", false, "b"), -EEXIST);
	ck_assert_int_eq(save(&self, "dir/link", true, "b"), 0);
	ck_assert_str_eq(content("absolute"), "b");
	ck_assert_int_eq(readlink("dir/link", dir, sizeof(dir)), 11);
}
END_TEST

START_TEST(numbers_make_names_free)
{
	struct output_request r = {
		.path = "out.folded", .numbered = true, .caller = &self, .abort_fd = -1,
	};
	struct output_file *f;
	char *why;

	fresh_directory();
	put("out.folded", "1", 0644);
	put("out-2.folded", "2", 0644);
	ck_assert_int_eq(output_file__new(&r, &f, &why), 0);
	ck_assert_int_eq(output_file__write(f, say, (void *)(uintptr_t)"three", &why), 0);
	ck_assert_str_eq(output_file__name(f), "out-3.folded");
	ck_assert_int_eq(output_file__write(f, say, (void *)(uintptr_t)"again", &why), 0);
	ck_assert_str_eq(output_file__name(f), "out-3.folded");
	output_file__free(f);
	ck_assert_str_eq(content("out.folded"), "1");
	ck_assert_str_eq(content("out-2.folded"), "2");
	ck_assert_str_eq(content("out-3.folded"), "again");
	ck_assert_int_eq(count_files(), 3);
}
END_TEST

START_TEST(own_names_need_no_quoting)
{
	static const struct {
		const char *command, *name;
	} rows[] = {
		{ "python3", "gpucollect-python3-7.folded" },
		{ "/usr/bin/python3.11", "gpucollect-python3.11-7.folded" },
		{ "./a b;c\n'$x", "gpucollect-a_b_c___x-7.folded" },
		{ "\xff\x1b", "gpucollect-__-7.folded" },
		{ "caf\xc3\xa9", "gpucollect-caf\xc3\xa9-7.folded" },
		{ "dir/", "gpucollect-command-7.folded" },
		{ "..", "gpucollect-..-7.folded" },
	};
	char big[1000], *name;

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		name = output_file__own_name(rows[i].command, 7);
		ck_assert_str_eq(name, rows[i].name);
		free(name);
	}
	memset(big, 'x', sizeof(big));
	big[sizeof(big) - 1] = '\0';
	name = output_file__own_name(big, 7);
	ck_assert_uint_lt(strlen(name), 200);
	free(name);
}
END_TEST

START_TEST(full_disks_are_errors)
{
	struct output_file *f;
	size_t n = 1000000;
	char *why;

	fresh_directory();
	ck_assert_int_eq(save(&self, "/dev/null", false, "x"), 0);
	ck_assert_int_eq(save(&self, "/dev/full", false, "x"), -ENOSPC);
	ck_assert_int_eq(open_file(&self, "/dev/full", false, &f), 0);
	ck_assert(!output_file__is_regular(f));
	ck_assert_int_eq(output_file__write(f, say_much, &n, &why), -ENOSPC);
	ck_assert_ptr_nonnull(strstr(why, "space"));
	free(why);
	output_file__free(f);
	if (geteuid() || unshare(CLONE_NEWNS) ||
	    mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL))
		return;
	ck_assert_int_eq(mkdir("small", 0755), 0);
	ck_assert_int_eq(mount("none", "small", "tmpfs", 0, "size=64k"), 0);
	ck_assert_int_eq(chdir("small"), 0);
	put("old", "theirs", 0644);
	ck_assert_int_eq(open_file(&self, "old", true, &f), 0);
	ck_assert_int_eq(output_file__write(f, say_much, &n, &why), -ENOSPC);
	free(why);
	output_file__free(f);
	ck_assert_str_eq(content("old"), "theirs");
	ck_assert_int_eq(count_files(), 1);
	ck_assert_int_eq(mount(NULL, ".", NULL, MS_REMOUNT | MS_RDONLY, NULL), 0);
	ck_assert_int_eq(save(&self, "new", false, "x"), -EROFS);
}
END_TEST

/* A pipe as standard output, whose reading end is handed back. */
static int piped_stdout(void)
{
	int fds[2];

	ck_assert_int_eq(pipe(fds), 0);
	fflush(stdout);
	ck_assert_int_eq(dup2(fds[1], STDOUT_FILENO), STDOUT_FILENO);
	close(fds[1]);
	return fds[0];
}

START_TEST(a_reader_that_left_does_not_take_the_result_along)
{
	char *why, *name;
	struct output_file *f;
	int reader;

	fresh_directory();
	reader = piped_stdout();
	ck_assert_int_eq(open_file(&self, "-", false, &f), 0);
	ck_assert(output_file__is_stdout(f));
	ck_assert_str_eq(output_file__name(f), "standard output");
	close(reader);
	ck_assert_int_eq(output_file__write(f, say, (void *)(uintptr_t)"result", &why), -EPIPE);
	free(why);
	output_file__free(f);
	ck_assert_int_eq(output_file__rescue(&self, "/bin/train", 42, say,
					     (void *)(uintptr_t)"result", &name, &why), 0);
	ck_assert_str_eq(name, "gpucollect-train-42.folded");
	ck_assert_str_eq(content(name), "result");
	free(name);
	ck_assert_int_eq(output_file__rescue(&self, "/bin/train", 42, say,
					     (void *)(uintptr_t)"second", &name, &why), 0);
	ck_assert_str_eq(name, "gpucollect-train-42-2.folded");
	free(name);
	ck_assert_int_eq(count_files(), 2);
}
END_TEST

static void *read_slowly(void *arg)
{
	static size_t total;
	char buf[3000];
	ssize_t n;

	for (;;) {
		n = read(*(int *)arg, buf, sizeof(buf));
		if (n <= 0)
			break;
		total += (size_t)n;
		if (total < 100000)
			usleep(1000);
	}
	return &total;
}

START_TEST(slow_readers_get_everything)
{
	size_t n = 1000000, *total;
	struct output_file *f;
	pthread_t thread;
	char *why;
	int reader;

	fresh_directory();
	reader = piped_stdout();
	fcntl(STDOUT_FILENO, F_SETFL, O_NONBLOCK);	/* as some parents leave it */
	ck_assert_int_eq(pthread_create(&thread, NULL, read_slowly, &reader), 0);
	ck_assert_int_eq(open_file(&self, "/dev/stdout", false, &f), 0);
	ck_assert(output_file__is_stdout(f));
	ck_assert_int_eq(output_file__write(f, say_much, &n, &why), 0);
	output_file__free(f);
	close(STDOUT_FILENO);
	pthread_join(thread, (void **)&total);
	ck_assert_uint_eq(*total, 1000000);
}
END_TEST

START_TEST(a_reader_that_never_comes_can_be_given_up)
{
	struct output_request r = { .path = "-", .caller = &self };
	struct output_file *f;
	size_t n = 1000000;
	int fds[2], reader;
	char *why;

	fresh_directory();
	ck_assert_int_eq(pipe(fds), 0);
	r.abort_fd = fds[0];
	reader = piped_stdout();		/* a pipe holds 64 KiB: then it blocks */
	ck_assert_int_eq(write(fds[1], "x", 1), 1);
	ck_assert_int_eq(output_file__new(&r, &f, &why), 0);
	ck_assert_int_eq(output_file__write(f, say_much, &n, &why), -ECANCELED);
	free(why);
	output_file__free(f);
	close(reader);
	ck_assert_int_eq(mkfifo("fifo", 0600), 0);
	r.path = "fifo";
	ck_assert_int_eq(output_file__new(&r, &f, &why), 0);
	ck_assert_int_eq(output_file__write(f, say_much, &n, &why), -ECANCELED);
	free(why);
	output_file__free(f);
}
END_TEST

START_TEST(pipes_and_descriptors_are_written_directly)
{
	struct output_file *f;
	char path[64], *why;
	pthread_t thread;
	size_t *total;
	int fds[2], fifo;

	fresh_directory();
	ck_assert_int_eq(mkfifo("fifo", 0600), 0);
	fifo = open("fifo", O_RDONLY | O_NONBLOCK);
	fcntl(fifo, F_SETFL, 0);
	ck_assert_int_eq(open_file(&self, "fifo", false, &f), 0);
	ck_assert_int_eq(output_file__write(f, say, (void *)(uintptr_t)"hello", &why), 0);
	ck_assert_int_eq(read(fifo, path, sizeof(path)), 5);
	unlink("fifo");		/* a file that took its place is left alone */
	put("fifo", "theirs", 0644);
	ck_assert_int_eq(output_file__write(f, say, (void *)(uintptr_t)"hello", &why), -EEXIST);
	free(why);
	ck_assert_str_eq(content("fifo"), "theirs");
	output_file__free(f);
	ck_assert_int_eq(pipe(fds), 0);		/* what >(cmd) of a shell gives */
	snprintf(path, sizeof(path), "/dev/fd/%d", fds[1]);
	ck_assert_int_eq(open_file(&self, path, false, &f), 0);
	ck_assert(!output_file__is_stdout(f));
	close(fds[1]);
	ck_assert_int_eq(output_file__write(f, say, (void *)(uintptr_t)"hello", &why), 0);
	output_file__free(f);
	pthread_create(&thread, NULL, read_slowly, &fds[0]);
	pthread_join(thread, (void **)&total);
	ck_assert_uint_eq(*total, 5);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fds[0]);	/* for reading only */
	ck_assert_int_eq(open_file(&self, path, false, &f), -EBADF);
	ck_assert_int_eq(open_file(&self, "/dev/fd/999", false, &f), -EBADF);
	/* A redirected stdout is written where it stands, not renamed over. */
	put("log", "before ", 0644);
	dup2(open("log", O_WRONLY | O_APPEND), STDOUT_FILENO);
	ck_assert_int_eq(save(&self, "/dev/stdout", true, "after"), 0);
	ck_assert_str_eq(content("log"), "before after");
}
END_TEST

UNIT_MAIN("output_file", a_file_is_there_when_it_is_whole, existing_files_are_safe_without_force,
	  what_is_no_file_is_refused, numbers_make_names_free, own_names_need_no_quoting,
	  full_disks_are_errors, a_reader_that_left_does_not_take_the_result_along,
	  slow_readers_get_everything, a_reader_that_never_comes_can_be_given_up,
	  pipes_and_descriptors_are_written_directly)
