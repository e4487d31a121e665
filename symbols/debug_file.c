// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "symbols/debug_file.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#define DEBUG_DIR "/usr/lib/debug"

/* Only once it is known to be a regular file is it opened: opening a device may do something. */
int debug_file__open_below(int root, const char *path)
{
	struct open_how how = {
		.flags = O_PATH | O_CLOEXEC,
		.resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS,
	};
	int handle = (int)syscall(SYS_openat2, root, path, &how, sizeof(how)), fd;
	struct stat st;
	char self[64];

	if (handle < 0)
		return -errno;
	if (fstat(handle, &st) || !S_ISREG(st.st_mode)) {
		close(handle);
		return -ENOENT;
	}
	snprintf(self, sizeof(self), "/proc/self/fd/%d", handle);
	fd = open(self, O_RDONLY | O_CLOEXEC | O_NOCTTY);
	if (fd < 0)
		fd = -errno;
	close(handle);
	return fd;
}

static bool is_same(int a, int b)
{
	struct stat x, y;

	return b >= 0 && !fstat(a, &x) && !fstat(b, &y) && x.st_dev == y.st_dev &&
	       x.st_ino == y.st_ino;
}

static bool has_build_id(const struct elf_image *image, const struct build_id *id)
{
	struct separate s;

	return !separate__read(image, &s) && build_id__equal(&s.id, id);
}

/* With `alt` that build id counts, else what belongs to `of`. */
static bool is_wanted(int fd, const struct separate *of, int own, const struct build_id *alt)
{
	struct elf_image image;
	bool wanted;

	if (is_same(fd, own) || elf_image__open_sections(&image, fd))
		return false;
	wanted = alt ? has_build_id(&image, alt) : separate__belongs(of, &image);
	elf_image__close(&image);
	return wanted;
}

__attribute__((format(printf, 5, 6)))
static int try(int root, const struct separate *of, int own, const struct build_id *alt,
	       const char *fmt, ...)
{
	char *path;
	va_list args;
	int fd, n;

	va_start(args, fmt);
	n = vasprintf(&path, fmt, args);
	va_end(args);
	if (n < 0)
		return -1;
	fd = debug_file__open_below(root, path);
	free(path);
	if (fd < 0)
		return -1;
	if (is_wanted(fd, of, own, alt))
		return fd;
	close(fd);
	return -1;
}

static int by_build_id(int root, const struct separate *of, int own, const struct build_id *alt)
{
	const struct build_id *id = alt ? alt : &of->id;
	char hex[2 * BUILD_ID_MAX + 1] = "";

	for (size_t i = 0; i < id->len; i++)
		snprintf(hex + 2 * i, 3, "%02x", id->bytes[i]);
	return id->len ? try(root, of, own, alt, DEBUG_DIR "/.build-id/%.2s/%s.debug", hex, hex + 2) : -1;
}

static int by_link(int root, const struct separate *of, int own, const char *path)
{
	const char *slash = strrchr(path, '/');
	int dir = slash ? (int)(slash - path) : 0, fd;

	if (!of->link[0] || path[0] != '/')
		return -1;
	fd = try(root, of, own, NULL, "%.*s/%s", dir, path, of->link);
	if (fd < 0)
		fd = try(root, of, own, NULL, "%.*s/.debug/%s", dir, path, of->link);
	if (fd < 0)
		fd = try(root, of, own, NULL, DEBUG_DIR "%.*s/%s", dir, path, of->link);
	return fd;
}

/* The target's root and ours; -1 for what there isn't, or is there twice. */
static void get_roots(const struct debug_places *places, int *ours, int roots[2])
{
	*ours = open("/", O_PATH | O_CLOEXEC);
	roots[0] = places->root;
	roots[1] = is_same(*ours, places->root) ? -1 : *ours;
}

int debug_file__open(const struct debug_places *places, const struct separate *of, int own)
{
	int ours, roots[2], fd = -1;

	get_roots(places, &ours, roots);
	for (int i = 0; i < 2 && fd < 0; i++)
		if (roots[i] >= 0)
			fd = by_build_id(roots[i], of, own, NULL);
	for (int i = 0; i < 2 && fd < 0; i++)
		if (roots[i] >= 0)
			fd = by_link(roots[i], of, own, places->path);
	if (ours >= 0)
		close(ours);
	return fd;
}

/* As the kernel tells the place of an open file: from its own root where that isn't ours. */
static int by_alt_path(int root, const struct separate *of, int debug)
{
	char self[64], path[4096], *slash;
	ssize_t len;

	if (of->alt[0] == '/')
		return try(root, of, debug, &of->alt_id, "%s", of->alt);
	snprintf(self, sizeof(self), "/proc/self/fd/%d", debug);
	len = readlink(self, path, sizeof(path) - 1);
	if (len <= 0 || path[0] != '/')
		return -1;
	path[len] = '\0';
	slash = strrchr(path, '/');
	return try(root, of, debug, &of->alt_id, "%.*s/%s", (int)(slash - path), path, of->alt);
}

int debug_file__open_alt(const struct debug_places *places, const struct separate *of, int debug)
{
	int ours, roots[2], fd = -1;

	if (!of->alt[0])
		return -1;
	get_roots(places, &ours, roots);
	for (int i = 0; i < 2 && fd < 0; i++)
		if (roots[i] >= 0)
			fd = by_alt_path(roots[i], of, debug);
	for (int i = 0; i < 2 && fd < 0; i++)
		if (roots[i] >= 0)
			fd = by_build_id(roots[i], of, debug, &of->alt_id);
	if (ours >= 0)
		close(ours);
	return fd;
}
