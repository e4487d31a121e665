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

__attribute__((format(printf, 4, 5)))
static int try(int root, const struct separate *of, int own, const char *fmt, ...)
{
	struct elf_image image;
	char *path;
	va_list args;
	bool belongs;
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
	belongs = !is_same(fd, own) && !elf_image__open(&image, fd);
	if (belongs) {
		belongs = separate__belongs(of, &image);
		elf_image__close(&image);
	}
	if (belongs)
		return fd;
	close(fd);
	return -1;
}

static int by_build_id(int root, const struct separate *of, int own)
{
	char hex[2 * BUILD_ID_MAX + 1] = "";

	for (size_t i = 0; i < of->id.len; i++)
		snprintf(hex + 2 * i, 3, "%02x", of->id.bytes[i]);
	return of->id.len ? try(root, of, own, DEBUG_DIR "/.build-id/%.2s/%s.debug", hex, hex + 2) : -1;
}

static int by_link(int root, const struct separate *of, int own, const char *path)
{
	const char *slash = strrchr(path, '/');
	int dir = slash ? (int)(slash - path) : 0, fd;

	if (!of->link[0] || path[0] != '/')
		return -1;
	fd = try(root, of, own, "%.*s/%s", dir, path, of->link);
	if (fd < 0)
		fd = try(root, of, own, "%.*s/.debug/%s", dir, path, of->link);
	if (fd < 0)
		fd = try(root, of, own, DEBUG_DIR "%.*s/%s", dir, path, of->link);
	return fd;
}

int debug_file__open(const struct debug_places *places, const struct separate *of, int own)
{
	int ours = open("/", O_PATH | O_CLOEXEC), fd = -1;
	int roots[] = { places->root, is_same(ours, places->root) ? -1 : ours };

	for (int i = 0; i < 2 && fd < 0; i++)
		if (roots[i] >= 0)
			fd = by_build_id(roots[i], of, own);
	for (int i = 0; i < 2 && fd < 0; i++)
		if (roots[i] >= 0)
			fd = by_link(roots[i], of, own, places->path);
	if (ours >= 0)
		close(ours);
	return fd;
}
