// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Where the timing library's file is put: one for all runs, which nobody else can change. As root in
 * a mount namespace with a /run of its own; otherwise only what any user can have.
 */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "loader/library.h"
#include "tests/unit/unit.h"

#define SHARED "/run/gpucollect"

extern const char embedded_timing_library[];
extern const char embedded_timing_library_end[];

/* False: the test can't be, here. */
static bool private_run(void)
{
	if (geteuid() || unshare(CLONE_NEWNS))
		return false;
	if (mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) ||
	    mount("tmpfs", "/run", "tmpfs", 0, "mode=0755"))
		return false;
	umask(022);
	return true;
}

static struct library *place(void)
{
	struct library *l = NULL;
	char *why = NULL;

	ck_assert_int_eq(library__new(&l, &why), 0);
	ck_assert_ptr_null(why);
	ck_assert_ptr_nonnull(l);
	return l;
}

static ino_t inode(const char *path)
{
	struct stat st;

	ck_assert_int_eq(lstat(path, &st), 0);
	return st.st_ino;
}

/* The whole library, readable and executable for all, writable for its owner alone. */
static void is_whole(const char *path)
{
	size_t size = (size_t)(embedded_timing_library_end - embedded_timing_library);
	char *bytes = malloc(size + 1);
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	struct stat st;

	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(fstat(fd, &st), 0);
	ck_assert(S_ISREG(st.st_mode));
	ck_assert_uint_eq(st.st_mode & 07777, 0755);
	ck_assert_uint_eq(st.st_uid, geteuid());
	ck_assert_int_eq(read(fd, bytes, size + 1), (ssize_t)size);
	ck_assert_int_eq(memcmp(bytes, embedded_timing_library, size), 0);
	close(fd);
	free(bytes);
}

static bool is_shared(const struct library *l)
{
	return !strncmp(library__path(l), SHARED "/", strlen(SHARED "/"));
}

START_TEST(the_library_is_whole_wherever_it_is)
{
	struct library *l = place();

	is_whole(library__path(l));
	library__free(l);
	library__free(NULL);
}
END_TEST

START_TEST(one_file_serves_all_runs)
{
	struct library *first, *second;
	ino_t i;

	if (!private_run())
		return;
	first = place();
	ck_assert(is_shared(first));
	is_whole(library__path(first));
	i = inode(library__path(first));
	second = place();
	ck_assert_str_eq(library__path(first), library__path(second));
	ck_assert_uint_eq(inode(library__path(second)), i);
	library__free(second);
	/* Somebody may be about to load it: it stays. */
	is_whole(library__path(first));
	library__free(first);
}
END_TEST

/* Whatever stands in its place is replaced, and never written into: it may be mapped. */
START_TEST(what_is_not_the_library_is_replaced)
{
	char path[256];
	struct library *l;
	int fd, kind;

	if (!private_run())
		return;
	l = place();
	snprintf(path, sizeof(path), "%s", library__path(l));
	library__free(l);
	for (kind = 0; kind < 6; kind++) {
		ino_t before;

		switch (kind) {
		case 0:		/* other bytes of the same length */
			fd = open(path, O_WRONLY);
			ck_assert_int_eq(pwrite(fd, "x", 1, 5000), 1);
			close(fd);
			break;
		case 1:
			ck_assert_int_eq(truncate(path, 1000), 0);
			break;
		case 2:
			ck_assert_int_eq(chmod(path, 0777), 0);
			break;
		case 3:
			ck_assert_int_eq(chmod(path, 0600), 0);
			break;
		case 4:
			ck_assert_int_eq(chown(path, 4242, 4242), 0);
			break;
		default:
			ck_assert_int_eq(rename(path, SHARED "/elsewhere"), 0);
			ck_assert_int_eq(symlink("elsewhere", path), 0);
			break;
		}
		before = inode(path);
		l = place();
		ck_assert_str_eq(library__path(l), path);
		is_whole(path);
		ck_assert_msg(inode(path) != before, "kind %d", kind);
		library__free(l);
	}
}
END_TEST

static int make_file(const char *name, time_t age)
{
	struct timespec times[2];
	int fd = open(name, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0755);

	ck_assert_int_ge(fd, 0);
	times[0].tv_sec = times[1].tv_sec = time(NULL) - age;
	times[0].tv_nsec = times[1].tv_nsec = 0;
	ck_assert_int_eq(futimens(fd, times), 0);
	return fd;
}

#define OTHER(n) SHARED "/libgpucollect_timing-000000000000000" #n ".so"

START_TEST(of_builds_that_nobody_runs_nothing_stays)
{
	static const char *const gone[] = { OTHER(1), SHARED "/.new-aaaaaa" };
	static const char *const stay[] = {
		OTHER(2), OTHER(3), OTHER(4), OTHER(5), SHARED "/.new-bbbbbb", SHARED "/locks",
	};
	struct library *l;
	int used, mapped;
	size_t i;

	if (!private_run())
		return;
	ck_assert_int_eq(mkdir(SHARED, 0755), 0);
	mapped = make_file(OTHER(1), 7200);
	close(make_file(SHARED "/.new-aaaaaa", 7200));
	/* a run of that build lives */
	used = make_file(OTHER(2), 7200);
	ck_assert_int_eq(flock(used, LOCK_SH), 0);
	/* not what we make */
	ck_assert_int_eq(symlink("/etc/passwd", OTHER(3)), 0);
	ck_assert_int_eq(mkdir(OTHER(4), 0755), 0);
	close(make_file(OTHER(5), 7200));
	ck_assert_int_eq(chown(OTHER(5), 4242, 4242), 0);
	/* somebody may be writing it now */
	close(make_file(SHARED "/.new-bbbbbb", 0));
	close(make_file(SHARED "/locks", 7200));
	l = place();
	ck_assert(is_shared(l));
	for (i = 0; i < sizeof(gone) / sizeof(gone[0]); i++)
		ck_assert_msg(access(gone[i], F_OK), "%s", gone[i]);
	for (i = 0; i < sizeof(stay) / sizeof(stay[0]); i++)
		ck_assert_msg(!faccessat(AT_FDCWD, stay[i], F_OK, AT_SYMLINK_NOFOLLOW), "%s", stay[i]);
	is_whole(library__path(l));
	close(mapped);
	close(used);
	library__free(l);
	/* that run has ended */
	l = place();
	ck_assert_int_ne(access(OTHER(2), F_OK), 0);
	library__free(l);
}
END_TEST

/* As another build's run does that is about to start, or is through. */
START_TEST(a_file_in_use_is_said_to_be)
{
	struct library *l;
	char path[256];
	int fd;

	if (!private_run())
		return;
	l = place();
	snprintf(path, sizeof(path), "%s", library__path(l));
	fd = open(path, O_RDONLY | O_CLOEXEC);
	ck_assert_int_ne(flock(fd, LOCK_EX | LOCK_NB), 0);
	library__free(l);
	ck_assert_int_eq(flock(fd, LOCK_EX | LOCK_NB), 0);
	/* any user can do that: it keeps nobody from anything */
	l = place();
	ck_assert(is_shared(l));
	ck_assert_str_eq(library__path(l), path);
	library__free(l);
	close(fd);
}
END_TEST

/* What another build's run does, again and again. */
static void remove_all_the_time(const char *path)
{
	struct stat here, there;

	for (;;) {
		int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);

		if (fd >= 0 && !flock(fd, LOCK_EX | LOCK_NB) && !fstat(fd, &here) &&
		    !lstat(path, &there) && here.st_ino == there.st_ino)
			unlink(path);
		close(fd);
	}
}

START_TEST(nobody_takes_it_away_from_a_run)
{
	struct library *l;
	char path[256];
	pid_t child;
	int i;

	if (!private_run())
		return;
	l = place();
	snprintf(path, sizeof(path), "%s", library__path(l));
	library__free(l);
	child = fork();
	if (!child)
		remove_all_the_time(path);
	for (i = 0; i < 300; i++) {
		l = place();
		/* Where it was taken away at every try, a place of its own. */
		usleep(200);
		is_whole(library__path(l));
		library__free(l);
	}
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
}
END_TEST

static void not_used(const char *what)
{
	struct library *l = place();
	char path[256];

	ck_assert_msg(!is_shared(l), "%s", what);
	is_whole(library__path(l));
	snprintf(path, sizeof(path), "%s", library__path(l));
	library__free(l);
	/* A file of this run alone goes with it, and its folder too. */
	ck_assert_int_eq(access(path, F_OK), -1);
	*strrchr(path, '/') = '\0';
	ck_assert_int_eq(access(path, F_OK), -1);
}

START_TEST(a_folder_that_others_can_change_is_not_used)
{
	if (!private_run())
		return;
	ck_assert_int_eq(mkdir(SHARED, 0755), 0);
	ck_assert_int_eq(chown(SHARED, 4242, 4242), 0);
	not_used("another's folder");
	ck_assert_int_eq(chown(SHARED, 0, 0), 0);
	ck_assert_int_eq(chmod(SHARED, 01777), 0);
	not_used("a folder that all may write to");
	ck_assert_int_eq(rmdir(SHARED), 0);
	ck_assert_int_eq(mkdir("/run/real", 0755), 0);
	ck_assert_int_eq(symlink("real", SHARED), 0);
	not_used("a link");
	ck_assert_int_eq(unlink(SHARED), 0);
	ck_assert_int_eq(mkfifo(SHARED, 0600), 0);
	not_used("a pipe");
}
END_TEST

START_TEST(a_place_without_room_is_not_used)
{
	if (!private_run())
		return;
	ck_assert_int_eq(mkdir(SHARED, 0755), 0);
	ck_assert_int_eq(mount("tmpfs", SHARED, "tmpfs", 0, "mode=0755,size=4096"), 0);
	not_used("a full file system");
	ck_assert_int_eq(umount(SHARED), 0);
	ck_assert_int_eq(mount("tmpfs", SHARED, "tmpfs", MS_RDONLY, "mode=0755"), 0);
	not_used("a read-only file system");
	ck_assert_int_eq(umount(SHARED), 0);
	ck_assert_int_eq(mount("tmpfs", SHARED, "tmpfs", MS_NOEXEC, "mode=0755"), 0);
	not_used("a file system without execution");
}
END_TEST

START_TEST(no_place_at_all_is_said)
{
	static const char *const places[] = { "/run", "/tmp", "/var/tmp", "/dev/shm" };
	struct library *l = NULL;
	char *why = NULL;
	size_t i;

	if (!private_run())
		return;
	for (i = 0; i < sizeof(places) / sizeof(places[0]); i++)
		if (!access(places[i], F_OK))
			ck_assert_int_eq(mount("tmpfs", places[i], "tmpfs", MS_RDONLY, ""), 0);
	ck_assert_int_lt(library__new(&l, &why), 0);
	ck_assert_ptr_null(l);
	ck_assert_ptr_nonnull(why);
	ck_assert_ptr_nonnull(strstr(why, "--no-inject"));
	free(why);
}
END_TEST

START_TEST(symbols_are_found_in_the_image)
{
	static const uint8_t nop1[] = { 0x90, 0xc3 }, nop5[] = { 0x0f, 0x1f, 0x44, 0, 0, 0xc3 };
	const uint8_t *image;
	uint64_t at;
	size_t size;

	image = library__image(&size);
	ck_assert_ptr_eq(image, embedded_timing_library);
	ck_assert_int_eq(memcmp(image, "\177ELF", 4), 0);
	ck_assert_int_eq(library__offset("gpucollect_site_nop1", &at), 0);
	ck_assert_uint_le(at + sizeof(nop1), size);
	ck_assert_int_eq(memcmp(image + at, nop1, sizeof(nop1)), 0);
	ck_assert_int_eq(library__offset("gpucollect_site_nop5", &at), 0);
	ck_assert_uint_le(at + sizeof(nop5), size);
	ck_assert_int_eq(memcmp(image + at, nop5, sizeof(nop5)), 0);
	ck_assert_int_eq(library__offset("gpucollect_stub", &at), 0);
	ck_assert_uint_eq(at % 4096, 0);
	ck_assert_uint_le(at + 4096, size);
	/* push %rbx, and the page is filled up with what no code is */
	ck_assert_uint_eq(image[at], 0x53);
	ck_assert_uint_eq(image[at + 4095], 0xcc);
	ck_assert_int_eq(library__offset("gpucollect", &at), -ENOENT);
	ck_assert_int_eq(library__offset("", &at), -ENOENT);
	/* one that the library only uses has no place */
	ck_assert_int_eq(library__offset("dlopen", &at), -ENOENT);
}
END_TEST

UNIT_MAIN("library_file",
	  the_library_is_whole_wherever_it_is, symbols_are_found_in_the_image,
	  one_file_serves_all_runs, of_builds_that_nobody_runs_nothing_stays,
	  a_file_in_use_is_said_to_be, nobody_takes_it_away_from_a_run,
	  what_is_not_the_library_is_replaced,
	  a_folder_that_others_can_change_is_not_used,
	  a_place_without_room_is_not_used,
	  no_place_at_all_is_said)
