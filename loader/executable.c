// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "loader/executable.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define HEAD 256		/* what the kernel reads of a file to see what it is */
#define MAX_SCRIPTS 5		/* an interpreter may be a script, too; the kernel's limit */
#define MAX_PROGRAM_HEADERS 64

static int check_file(const char *path, unsigned int scripts);

/* "#!/bin/sh -e": the kernel takes what stands up to the first blank. */
static int check_script(char *head, unsigned int scripts)
{
	char *name = head + 2 + strspn(head + 2, " \t");
	size_t len = strcspn(name, " \t\n");

	/* Without a name, or with one that is cut, it is the shell's that execvp calls. */
	if (!len || !name[len])
		return 0;
	name[len] = '\0';
	return scripts < MAX_SCRIPTS ? check_file(name, scripts + 1) : -ELOOP;
}

static int check_elf(int fd, const char *head)
{
	char name[PATH_MAX];
	Elf64_Ehdr ehdr;
	Elf64_Phdr phdr;
	unsigned int i;
	ssize_t n;

	memcpy(&ehdr, head, sizeof(ehdr));
	for (i = 0; i < ehdr.e_phnum && i < MAX_PROGRAM_HEADERS; i++) {
		n = pread(fd, &phdr, sizeof(phdr), (off_t)(ehdr.e_phoff + i * sizeof(phdr)));
		if (n != sizeof(phdr))
			return 0;
		if (phdr.p_type != PT_INTERP)
			continue;
		n = pread(fd, name, sizeof(name) - 1, (off_t)phdr.p_offset);
		if (n < 1)
			return 0;
		name[n] = '\0';
		return check_file(name, MAX_SCRIPTS + 1);
	}
	return 0;
}

/* Not what can't be read, which is executed all the same. */
static int check_content(const char *path, unsigned int scripts)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK), err = 0;
	char head[HEAD + 1] = "";
	ssize_t n;

	if (fd < 0)
		return 0;
	n = read(fd, head, HEAD);
	if (n > 2 && !memcmp(head, "#!", 2))
		err = check_script(head, scripts);
	else if (n >= (ssize_t)sizeof(Elf64_Ehdr) && !memcmp(head, ELFMAG, SELFMAG) &&
		 head[EI_CLASS] == ELFCLASS64)
		err = check_elf(fd, head);
	close(fd);
	return err;
}

static int check_file(const char *path, unsigned int scripts)
{
	struct stat st;

	if (stat(path, &st))
		return -errno;
	if (!S_ISREG(st.st_mode))
		return -EACCES;
	if (faccessat(AT_FDCWD, path, X_OK, AT_EACCESS))
		return -errno;
	return scripts <= MAX_SCRIPTS ? check_content(path, scripts) : 0;
}

/* As execvp goes on to the next directory. */
static bool is_elsewhere(int err)
{
	return err == -ENOENT || err == -ESTALE || err == -ENOTDIR || err == -ENODEV || err == -ETIMEDOUT;
}

static int check_path(const char *path, const char *name)
{
	bool denied = false;
	char file[PATH_MAX];
	size_t len;
	int err;

	for (;; path += len + 1) {
		len = strcspn(path, ":");
		if (len + strlen(name) + 2 <= sizeof(file)) {
			snprintf(file, sizeof(file), "%.*s%s%s", (int)len, path, len ? "/" : "", name);
			err = check_file(file, 0);
			if (err == -EACCES)
				denied = true;
			else if (!is_elsewhere(err))
				return err;
		}
		if (!path[len])
			return denied ? -EACCES : -ENOENT;
	}
}

int executable__check(const char *name, const struct variables *variables, const struct caller *caller)
{
	const char *path = variables__get(variables, "PATH");
	struct caller_saved saved;
	char standard[256];
	int err;

	if (!path)
		path = confstr(_CS_PATH, standard, sizeof(standard)) ? standard : "";
	err = caller__enter(caller, &saved);
	if (err)
		return err;
	err = strchr(name, '/') ? check_file(name, 0) : check_path(path, name);
	caller__leave(&saved);
	return err;
}
