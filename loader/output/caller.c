// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "loader/output/caller.h"

#include <errno.h>
#include <grp.h>
#include <pwd.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/fsuid.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "loader/base/log.h"
#include "loader/base/parse.h"

#define MAX_PASSWD (1 << 20)

static int duplicate(const char *s, char **out)
{
	*out = s && *s ? strdup(s) : NULL;
	return s && *s && !*out ? -ENOMEM : 0;
}

/* The passwd entry of c->uid: name, home, and its gid into *gid. Having none is no error. */
static int read_passwd(struct caller *c, gid_t *gid)
{
	struct passwd entry, *found = NULL;
	size_t size = 1024;
	char *buf = NULL;
	int err;

	do {
		char *more = realloc(buf, size *= 2);

		if (!more) {
			err = ENOMEM;
			break;
		}
		buf = more;
		err = getpwuid_r(c->uid, &entry, buf, size, &found);
	} while (err == ERANGE && size < MAX_PASSWD);
	/* Any other failure (no directory service, no file) is that of a user without an entry. */
	err = err == ENOMEM ? -ENOMEM : 0;
	if (!err && found) {
		*gid = found->pw_gid;
		err = duplicate(found->pw_name, &c->name);
		if (!err)
			err = duplicate(found->pw_dir, &c->home);
	}
	free(buf);
	return err;
}

static int read_groups(struct caller *c)
{
	int nr = 64, wanted;
	gid_t *more;

	do {
		wanted = nr;
		more = reallocarray(c->groups, (size_t)nr, sizeof(*more));
		if (!more)
			return -ENOMEM;
		c->groups = more;
		if (!c->name) {
			c->groups[0] = c->gid;
			nr = 1;
			break;
		}
		/* Sets nr to what there is, also where that is more than there is room for. */
	} while (getgrouplist(c->name, c->gid, c->groups, &nr) < 0 && nr > wanted);
	c->nr_groups = nr > 0 ? (size_t)nr : 0;
	return 0;
}

int caller__get(struct caller *c)
{
	const char *uid_text = getenv("SUDO_UID"), *gid_text = getenv("SUDO_GID");
	uint64_t uid, gid = UINT64_MAX;
	gid_t passwd_gid = (gid_t)-1;
	int err;

	memset(c, 0, sizeof(*c));
	c->uid = geteuid();
	c->gid = getegid();
	if (c->uid || !uid_text)
		return 0;
	/* (uid_t)-1 is no id but "leave it" for system calls. */
	if (parse__u64(uid_text, 0, UINT32_MAX - 1, &uid) ||
	    (gid_text && parse__u64(gid_text, 0, UINT32_MAX - 1, &gid)))
		return -EINVAL;
	if (!uid)
		return 0;
	c->other = true;
	c->uid = (uid_t)uid;
	err = read_passwd(c, &passwd_gid);
	if (!err && !gid_text && passwd_gid == (gid_t)-1)
		err = -EINVAL;
	c->gid = gid_text ? (gid_t)gid : passwd_gid;
	if (!err)
		err = read_groups(c);
	if (err)
		caller__free(c);
	return err;
}

void caller__free(struct caller *c)
{
	free(c->groups);
	free(c->home);
	free(c->name);
	memset(c, 0, sizeof(*c));
}

int caller__become(const struct caller *c)
{
	if (!c->other)
		return 0;
	if (setgroups(c->nr_groups, c->groups) || setresgid(c->gid, c->gid, c->gid) ||
	    setresuid(c->uid, c->uid, c->uid))
		return -errno;
	return 0;
}

/* --- entering and leaving --- */

/* The C library's setgroups changes all threads; the others are to keep their rights. */
static int set_groups(size_t nr, const gid_t *groups)
{
	return syscall(SYS_setgroups, nr, groups) ? -errno : 0;
}

/* setfsuid and setfsgid tell no error: asking again with an invalid id shows what holds. */
static int set_fsuid(uid_t uid)
{
	setfsuid(uid);
	return (uid_t)setfsuid((uid_t)-1) == uid ? 0 : -EPERM;
}

static int set_fsgid(gid_t gid)
{
	setfsgid(gid);
	return (gid_t)setfsgid((gid_t)-1) == gid ? 0 : -EPERM;
}

static int save(struct caller_saved *saved)
{
	int nr = getgroups(0, NULL);

	saved->fsuid = (uid_t)setfsuid((uid_t)-1);
	saved->fsgid = (gid_t)setfsgid((gid_t)-1);
	if (nr < 0)
		return -errno;
	saved->groups = calloc((size_t)nr + 1, sizeof(*saved->groups));
	if (!saved->groups)
		return -ENOMEM;
	saved->nr_groups = getgroups(nr, saved->groups);
	return saved->nr_groups < 0 ? -errno : 0;
}

int caller__enter(const struct caller *c, struct caller_saved *saved)
{
	int err;

	memset(saved, 0, sizeof(*saved));
	if (!c->other)
		return 0;
	err = save(saved);
	if (err) {
		free(saved->groups);
		return err;
	}
	saved->changed = true;
	err = set_groups(c->nr_groups, c->groups);
	if (!err)
		err = set_fsgid(c->gid);
	/* The user last: with it go the capabilities that override file permissions. */
	if (!err)
		err = set_fsuid(c->uid);
	if (err)
		caller__leave(saved);
	return err;
}

void caller__leave(struct caller_saved *saved)
{
	int saved_errno = errno;

	if (!saved->changed)
		return;
	if (set_fsuid(saved->fsuid) || set_fsgid(saved->fsgid) ||
	    set_groups((size_t)saved->nr_groups, saved->groups)) {
		log_error("can't get back from the caller's rights to my own");
		abort();
	}
	free(saved->groups);
	memset(saved, 0, sizeof(*saved));
	errno = saved_errno;
}
