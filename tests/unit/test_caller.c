// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Under sudo: root does it, the caller's rights count. */
#include "loader/output/caller.h"

#include <pthread.h>
#include <sys/syscall.h>

#include "tests/unit/output_file.h"

#define USER 4242
#define GROUP 4343

static void become_sudo(struct caller *c)
{
	setenv("SUDO_UID", "4242", 1);
	setenv("SUDO_GID", "4343", 1);
	ck_assert_int_eq(caller__get(c), 0);
	ck_assert(c->other && c->uid == USER && c->gid == GROUP);
}

START_TEST(callers_are_read_from_sudo)
{
	static const struct {
		const char *uid, *gid;
		int err;
		bool other;
	} rows[] = {
		{ NULL, NULL, 0, false },
		{ NULL, "4343", 0, false },
		{ "0", "0", 0, false },
		{ "4242", "4343", 0, true },
		{ "4242", NULL, -EINVAL, false },	/* in no passwd file: no group is known */
		{ "65534", NULL, 0, true },
		{ "abc", "4343", -EINVAL, false },
		{ "", "4343", -EINVAL, false },
		{ "-1", "4343", -EINVAL, false },
		{ "4294967295", "4343", -EINVAL, false },	/* "leave it" for system calls */
		{ "4242", "4294967295", -EINVAL, false },
		{ "4242", "x", -EINVAL, false },
		{ "18446744073709551616", "1", -EINVAL, false },
	};
	struct caller c;

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		unsetenv("SUDO_UID");
		unsetenv("SUDO_GID");
		if (rows[i].uid)
			setenv("SUDO_UID", rows[i].uid, 1);
		if (rows[i].gid)
			setenv("SUDO_GID", rows[i].gid, 1);
		ck_assert_msg(caller__get(&c) == rows[i].err, "row %zu", i);
		if (!rows[i].err) {
			ck_assert_msg(c.other == rows[i].other, "row %zu", i);
			ck_assert(!c.other || c.nr_groups);
		}
		caller__free(&c);
	}
}
END_TEST

static int seen_by_another_thread;

static void *open_as_another_thread(void *arg)
{
	seen_by_another_thread = open(arg, O_RDONLY);
	return NULL;
}

START_TEST(rights_change_for_one_thread_and_come_back)
{
	static const gid_t before[] = { 0, 7, 8 };
	struct caller_saved saved;
	gid_t groups[8];
	struct stat st;
	struct caller c;
	pthread_t thread;

	fresh_directory();
	syscall(SYS_setgroups, 3, before);
	put("secret", "root's", 0600);
	mkdir("roots", 0755);
	become_sudo(&c);
	ck_assert_int_eq(caller__enter(&c, &saved), 0);
	ck_assert_int_eq(open("secret", O_RDONLY), -1);
	ck_assert_int_eq(errno, EACCES);
	ck_assert_int_eq(open("roots/x", O_WRONLY | O_CREAT, 0600), -1);
	ck_assert_int_eq(chown("secret", USER, GROUP), -1);
	ck_assert_int_eq(getgroups(8, groups), 1);
	ck_assert_uint_eq(groups[0], GROUP);
	pthread_create(&thread, NULL, open_as_another_thread, (void *)(uintptr_t)"secret");
	pthread_join(thread, NULL);
	close(open("mine", O_WRONLY | O_CREAT, 0600));
	errno = ECHRNG;
	caller__leave(&saved);
	ck_assert_int_eq(errno, ECHRNG);
	ck_assert_int_eq(stat("mine", &st), 0);
	ck_assert(st.st_uid == USER && st.st_gid == GROUP);
	ck_assert_int_ge(open("secret", O_RDONLY), 0);
	ck_assert_int_ge(open("roots/x", O_WRONLY | O_CREAT, 0600), 0);
	ck_assert_int_eq(getgroups(8, groups), 3);
	ck_assert_int_eq(memcmp(groups, before, sizeof(before)), 0);
	caller__free(&c);
}
END_TEST

/* A thread that was there before keeps its rights while this one has the caller's. */
static int gate[2];

static void *open_when_told(void *arg)
{
	char c;

	if (read(gate[0], &c, 1) == 1)
		open_as_another_thread(arg);
	return NULL;
}

START_TEST(other_threads_keep_their_rights)
{
	struct caller_saved saved;
	struct caller c;
	pthread_t thread;

	fresh_directory();
	put("secret", "root's", 0600);
	become_sudo(&c);
	ck_assert_int_eq(pipe(gate), 0);
	pthread_create(&thread, NULL, open_when_told, (void *)(uintptr_t)"secret");
	ck_assert_int_eq(caller__enter(&c, &saved), 0);
	ck_assert_int_eq(write(gate[1], "x", 1), 1);
	pthread_join(thread, NULL);
	ck_assert_int_ge(seen_by_another_thread, 0);
	ck_assert_int_eq(open("secret", O_RDONLY), -1);
	caller__leave(&saved);
	caller__free(&c);
}
END_TEST

START_TEST(files_belong_to_the_caller)
{
	struct stat st;
	struct caller c;
	char *name, *why;

	fresh_directory();
	become_sudo(&c);
	ck_assert_int_eq(save(&c, "out", false, "x"), 0);
	ck_assert_int_eq(stat("out", &st), 0);
	ck_assert(st.st_uid == USER && st.st_gid == GROUP && (st.st_mode & 07777) == 0644);
	ck_assert_int_eq(output_file__rescue(&c, "a", 1, say, (void *)(uintptr_t)"x", &name, &why),
			 0);
	ck_assert_int_eq(stat(name, &st), 0);
	ck_assert(st.st_uid == USER && st.st_gid == GROUP);
	free(name);
	/* Where the caller may not write it goes to /tmp. */
	mkdir("roots", 0755);
	ck_assert_int_eq(chdir("roots"), 0);
	ck_assert_int_eq(output_file__rescue(&c, "gpucollect test", getpid(), say,
					     (void *)(uintptr_t)"x", &name, &why), 0);
	ck_assert(!strncmp(name, "/tmp/gpucollect-gpucollect_test-", 32));
	ck_assert_int_eq(stat(name, &st), 0);
	ck_assert_uint_eq(st.st_uid, USER);
	unlink(name);
	free(name);
	ck_assert_int_eq(count_files(), 0);
	caller__free(&c);
}
END_TEST

START_TEST(links_do_not_lead_to_the_files_of_root)
{
	struct output_file *f;
	struct caller c;
	char *why;

	fresh_directory();
	mkdir("roots", 0755);
	mkdir("hidden", 0700);
	mkdir("users", 0755);
	put("roots/file", "root's", 0644);
	put("hidden/file", "root's", 0600);
	put("roots/writable", "root's", 0666);
	symlink("../roots/file", "users/file");
	symlink("../hidden/file", "users/hidden");
	symlink("../roots/new", "users/new");
	symlink("../roots", "users/dir");
	symlink("/dev/mem", "users/memory");
	chown("users", USER, GROUP);
	become_sudo(&c);
	ck_assert_int_eq(save(&c, "users/file", true, "x"), -EACCES);
	ck_assert_int_eq(save(&c, "users/hidden", true, "x"), -EACCES);
	ck_assert_int_eq(save(&c, "users/new", true, "x"), -ENXIO);
	ck_assert_int_eq(save(&c, "users/dir/file", true, "x"), -EACCES);
	ck_assert_int_eq(save(&c, "users/dir/new", true, "x"), -EACCES);
	ck_assert_int_eq(save(&c, "roots/writable", true, "x"), -EACCES);
	ck_assert_int_eq(save(&c, "roots/new", true, "x"), -EACCES);
	ck_assert_int_lt(save(&c, "users/memory", true, "x"), 0);
	/* The link appears, and the directory is exchanged, after the check. */
	ck_assert_int_eq(open_file(&c, "users/out", true, &f), 0);
	symlink("../roots/file", "users/out");
	ck_assert_int_eq(output_file__write(f, say, (void *)(uintptr_t)"x", &why), 0);
	output_file__free(f);
	ck_assert_int_eq(open_file(&c, "users/out2", true, &f), 0);
	rename("users", "moved");
	symlink("roots", "users");
	ck_assert_int_eq(output_file__write(f, say, (void *)(uintptr_t)"x", &why), 0);
	output_file__free(f);
	ck_assert_str_eq(content("moved/out2"), "x");
	ck_assert_str_eq(content("moved/out"), "x");		/* the link, not its target */
	ck_assert_str_eq(content("roots/file"), "root's");
	ck_assert_str_eq(content("roots/writable"), "root's");
	ck_assert_str_eq(content("hidden/file"), "root's");
	ck_assert_int_eq(access("roots/new", F_OK), -1);
	ck_assert_int_eq(access("roots/out2", F_OK), -1);
	caller__free(&c);
}
END_TEST

START_TEST(files_of_others_in_a_common_directory_are_known_to_stay)
{
	struct caller c;

	fresh_directory();
	ck_assert_int_eq(chmod(".", 01777), 0);
	put("roots", "root's", 0666);
	become_sudo(&c);
	ck_assert_int_eq(save(&c, "roots", true, "x"), -EPERM);
	ck_assert_int_eq(save(&c, "roots", false, "x"), -EEXIST);
	ck_assert_int_eq(save(&c, "mine", false, "x"), 0);
	ck_assert_int_eq(save(&c, "mine", true, "y"), 0);
	ck_assert_str_eq(content("roots"), "root's");
	ck_assert_str_eq(content("mine"), "y");
	ck_assert_int_eq(count_files(), 2);
	caller__free(&c);
}
END_TEST

int run(void);

#define main run
UNIT_MAIN("caller", callers_are_read_from_sudo, rights_change_for_one_thread_and_come_back,
	  other_threads_keep_their_rights, files_belong_to_the_caller,
	  links_do_not_lead_to_the_files_of_root,
	  files_of_others_in_a_common_directory_are_known_to_stay)
#undef main

int main(void)
{
	if (geteuid()) {
		puts("needs root: rights are given up and taken back");
		return 77;
	}
	return run();
}
