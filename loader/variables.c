// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "loader/variables.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "loader/base/array.h"
#include "loader/base/log.h"
#include "loader/base/proc.h"

#define MAX_BYTES (8u << 20)	/* the kernel takes 6 MiB at most */
#define MAX_ANCESTORS 64

/* --- the list --- */

static bool is_named(const char *entry, const char *name, size_t len)
{
	return !strncmp(entry, name, len) && entry[len] == '=';
}

/* Of an entry that is malloc'd, or NULL; it is ours from now on. */
static int append(struct variables *v, char *entry)
{
	if (!entry || array__reserve((void **)&v->list, &v->size, v->nr + 1, sizeof(*v->list))) {
		free(entry);
		return -ENOMEM;
	}
	v->list[v->nr++] = entry;
	v->list[v->nr] = NULL;
	return 0;
}

/* The same, in the place of the first of that name, which is the one that counts. */
static int put(struct variables *v, char *entry)
{
	size_t len = entry ? strcspn(entry, "=") : 0, i;

	for (i = 0; entry && i < v->nr; i++)
		if (is_named(v->list[i], entry, len)) {
			free(v->list[i]);
			v->list[i] = entry;
			return 0;
		}
	return append(v, entry);
}

const char *variables__get(const struct variables *v, const char *name)
{
	size_t len = strlen(name), i;

	for (i = 0; i < v->nr; i++)
		if (is_named(v->list[i], name, len))
			return v->list[i] + len + 1;
	return NULL;
}

int variables__set(struct variables *v, const char *name, const char *value)
{
	char *entry;

	return asprintf(&entry, "%s=%s", name, value) < 0 ? -ENOMEM : put(v, entry);
}

void variables__free(struct variables *v)
{
	size_t i;

	for (i = 0; i < v->nr; i++)
		free(v->list[i]);
	free(v->list);
	memset(v, 0, sizeof(*v));
}

/* --- merging --- */

/* What sudo sets by itself: of these the caller's hold. */
static bool is_sudos(const char *entry)
{
	static const char *const names[] = {
		"HOME", "LOGNAME", "MAIL", "PATH", "SHELL", "USER", "USERNAME",
	};
	size_t i;

	for (i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (is_named(entry, names[i], strlen(names[i])))
			return true;
	return !strncmp(entry, "SUDO_", 5);
}

int variables__merge(struct variables *v, const char *data, size_t len, char *const *own)
{
	size_t at, part;
	int err = 0;

	for (at = 0; at < len && !err; at += part + 1) {
		part = strnlen(data + at, len - at);
		/* The last one was cut, or the process is writing over it. */
		if (at + part == len || !memchr(data + at, '=', part) || data[at] == '=')
			continue;
		err = append(v, strndup(data + at, part));
	}
	for (; *own && !err; own++)
		if (strchr(*own, '=') && !is_sudos(*own))
			err = put(v, strdup(*own));
	return err;
}

/* --- sudo --- */

/* Setuid root and called sudo: any implementation of it. */
static bool is_sudo(pid_t pid)
{
	char path[64], exe[256];
	const char *base;
	struct stat st;
	ssize_t n;

	snprintf(path, sizeof(path), "/proc/%d/exe", (int)pid);
	n = readlink(path, exe, sizeof(exe) - 1);
	if (n <= 0 || stat(path, &st) || st.st_uid || !(st.st_mode & S_ISUID))
		return false;
	exe[n] = '\0';
	base = strrchr(exe, '/');
	return base && !strcmp(base + 1, "sudo");
}

/* The nearest one: it is what set SUDO_UID. 0: none. */
static pid_t find_sudo(void)
{
	struct proc_stat stat;
	pid_t pid = getppid();
	int i;

	for (i = 0; i < MAX_ANCESTORS && pid > 0; i++) {
		if (is_sudo(pid))
			return pid;
		pid = proc__stat(pid, 0, &stat) ? 0 : stat.parent;
	}
	return 0;
}

/* The bytes of its environment: 0 or a negative errno. */
static int read_environment(pid_t pid, char **data, size_t *len)
{
	size_t size = 1 << 16;
	char path[64], *more;
	ssize_t n = 1;
	int fd, err = 0;

	*data = NULL;
	*len = 0;
	snprintf(path, sizeof(path), "/proc/%d/environ", (int)pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	while (n > 0 && !err && *len < MAX_BYTES) {
		more = realloc(*data, size *= 2);
		if (!more) {
			err = -ENOMEM;
			break;
		}
		*data = more;
		n = read(fd, *data + *len, size - *len);
		if (n < 0)
			err = -errno;
		else
			*len += (size_t)n;
	}
	close(fd);
	if (!err && !*len)
		err = -ENODATA;
	return err;
}

static int add_own(struct variables *v)
{
	char *const *own;
	int err = 0;

	for (own = environ; own && *own && !err; own++)
		err = append(v, strdup(*own));
	return err;
}

static int add_names(struct variables *v, const struct caller *c)
{
	int err = 0;

	if (c->home)
		err = variables__set(v, "HOME", c->home);
	if (c->name && !err)
		err = variables__set(v, "USER", c->name);
	if (c->name && !err)
		err = variables__set(v, "LOGNAME", c->name);
	return err;
}

int variables__new(const struct caller *caller, struct variables *v)
{
	static char *const nothing[] = { NULL };
	char *data = NULL;
	size_t len = 0;
	pid_t sudo;
	int err;

	memset(v, 0, sizeof(*v));
	sudo = caller->other ? find_sudo() : 0;
	err = sudo ? read_environment(sudo, &data, &len) : 0;
	if (err && err != -ENOMEM)
		log_warn("the command gets sudo's environment, not its caller's: that of process %d "
			 "can't be read: %s; sudo -E keeps it", (int)sudo, strerror(-err));
	if (!err && sudo) {
		err = variables__merge(v, data, len, environ ? environ : nothing);
	} else if (err != -ENOMEM) {
		err = add_own(v);
		if (!err && caller->other)
			err = add_names(v, caller);
	}
	free(data);
	if (err)
		variables__free(v);
	return err;
}
