/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What the tests of output files share: a directory of their own, and small writers. */
#ifndef TESTS_OUTPUT_FILE_H
#define TESTS_OUTPUT_FILE_H

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "loader/output/file.h"
#include "tests/unit/unit.h"

/* A new empty directory, which becomes the current one. */
static void fresh_directory(void)
{
	const char *base = getenv("TEST_TMP");
	char path[4096];

	umask(022);
	unsetenv("SUDO_UID");
	signal(SIGPIPE, SIG_IGN);
	snprintf(path, sizeof(path), "%s/output_file.XXXXXX", base ? base : "/tmp");
	ck_assert_ptr_nonnull(mkdtemp(path));
	ck_assert_int_eq(chmod(path, 0777), 0);
	ck_assert_int_eq(chdir(path), 0);
}

static __attribute__((unused)) void put(const char *path, const char *content, mode_t mode)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);

	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(write(fd, content, strlen(content)), (ssize_t)strlen(content));
	ck_assert_int_eq(fchmod(fd, mode), 0);
	close(fd);
}

static const char *content(const char *path)
{
	static char buf[4096];
	int fd = open(path, O_RDONLY);
	ssize_t n;

	if (fd < 0)
		return "(none)";
	n = read(fd, buf, sizeof(buf) - 1);
	buf[n > 0 ? n : 0] = '\0';
	close(fd);
	return buf;
}

/* Names in the current directory. */
static int count_files(void)
{
	DIR *d = opendir(".");
	struct dirent *e;
	int n = 0;

	while ((e = readdir(d)))
		n += strcmp(e->d_name, ".") && strcmp(e->d_name, "..");
	closedir(d);
	return n;
}

static int say(FILE *f, void *arg)
{
	fputs(arg, f);
	return 0;
}

static int open_file(const struct caller *c, const char *path, bool force, struct output_file **f)
{
	struct output_request r = {
		.path = path, .force = force, .caller = c, .abort_fd = -1,
	};
	char *why;
	int err = output_file__new(&r, f, &why);

	ck_assert_int_eq(!err, !why);
	if (err)
		ck_assert(strstr(why, path) || !strcmp(path, "-"));
	free(why);
	return err;
}

/* Both steps; the file is freed. */
static __attribute__((unused)) int save(const struct caller *c, const char *path, bool force,
					const char *text)
{
	struct output_file *f;
	char *why = NULL;
	int err = open_file(c, path, force, &f);

	if (!err) {
		err = output_file__write(f, say, (void *)(uintptr_t)text, &why);
		ck_assert_int_eq(!err, !why);
		output_file__free(f);
	}
	free(why);
	return err;
}

#endif
