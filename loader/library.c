// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "loader/library.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <libelf.h>
#include <gelf.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "loader/base/clock.h"
#include "loader/base/fault.h"
#include "loader/base/log.h"
#include "loader/base/table.h"
#include "loader/base/text.h"

#define SHARED_DIR "/run/gpucollect"
#define FILE_NAME "libgpucollect_timing"
#define PLACE_TRIES 3
#define LOCK_TRIES 20		/* 1 ms each: removing one takes a fraction of that */
#define STALE_SECONDS 3600

extern const char embedded_timing_library[];
extern const char embedded_timing_library_end[];

struct library {
	char path[256];
	char own_dir[64];	/* to be removed at the end; "": none */
	int lock;		/* the shared file, locked as one that is in use; -1: none */
};

static size_t embedded_size(void)
{
	return (size_t)(embedded_timing_library_end - embedded_timing_library);
}

/* The place in the file of what the symbol stands for; false: its section has none. */
static bool file_offset(Elf *elf, const GElf_Sym *sym, uint64_t *offset)
{
	Elf_Scn *in = elf_getscn(elf, sym->st_shndx);
	GElf_Shdr sh;

	if (sym->st_shndx == SHN_UNDEF || !in || !gelf_getshdr(in, &sh))
		return false;
	*offset = sym->st_value - sh.sh_addr + sh.sh_offset;
	return true;
}

static int find_symbol(Elf *elf, const char *wanted, uint64_t *offset)
{
	Elf_Scn *scn = NULL;
	GElf_Shdr sh;
	GElf_Sym sym;

	while ((scn = elf_nextscn(elf, scn))) {
		Elf_Data *data;

		if (!gelf_getshdr(scn, &sh) || sh.sh_type != SHT_SYMTAB)
			continue;
		data = elf_getdata(scn, NULL);
		for (int i = 0; data && gelf_getsym(data, i, &sym); i++) {
			const char *name = elf_strptr(elf, sh.sh_link, sym.st_name);

			if (name && !strcmp(name, wanted) && file_offset(elf, &sym, offset))
				return 0;
		}
	}
	return -ENOENT;
}

int library__offset_in(const void *image, size_t size, const char *symbol, uint64_t *offset)
{
	Elf *elf;
	int err;

	elf_version(EV_CURRENT);
	elf = elf_memory((char *)(uintptr_t)image, size);
	if (!elf)
		return -EINVAL;
	err = find_symbol(elf, symbol, offset);
	elf_end(elf);
	return err;
}

int library__offset(const char *symbol, uint64_t *offset)
{
	return library__offset_in(embedded_timing_library, embedded_size(), symbol, offset);
}

const void *library__image(size_t *size)
{
	*size = embedded_size();
	return embedded_timing_library;
}

/* Not from a file system that is mounted noexec, as /run often is: the driver would say nothing. */
static bool can_execute(int fd)
{
	void *at = mmap(NULL, 1, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, 0);

	if (at == MAP_FAILED)
		return false;
	munmap(at, 1);
	return true;
}

/* The file at `path` has exactly our bytes, belongs to us, nobody else may write it, all may use it. */
static bool is_ours(const char *path)
{
	size_t size = embedded_size();
	struct stat st;
	bool same = false;
	char *bytes;
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);

	if (fd < 0)
		return false;
	bytes = malloc(size);
	if (bytes && !fstat(fd, &st) && S_ISREG(st.st_mode) && st.st_uid == geteuid() &&
	    (st.st_mode & 0777) == 0755 && (size_t)st.st_size == size && can_execute(fd) &&
	    pread(fd, bytes, size, 0) == (ssize_t)size)
		same = !memcmp(bytes, embedded_timing_library, size);
	free(bytes);
	close(fd);
	return same;
}

static int write_all(int fd, const char *data, size_t size)
{
	while (size) {
		ssize_t n = write(fd, data, size);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return n ? -errno : -EIO;
		data += n;
		size -= (size_t)n;
	}
	return 0;
}

/* Written under another name and renamed: whoever opens the final name gets the whole file. */
static int write_file(const char *dir, const char *path)
{
	char temp[128];
	int fd, err;

	snprintf(temp, sizeof(temp), "%s/.new-XXXXXX", dir);
	fd = mkostemp(temp, O_CLOEXEC);
	if (fd < 0)
		return -errno;
	err = write_all(fd, embedded_timing_library, embedded_size());
	FAULT_POINT("library-written");
	if (!err && fchmod(fd, 0755))
		err = -errno;
	if (close(fd) && !err)
		err = -errno;
	if (!err && rename(temp, path))
		err = -errno;
	if (err)
		unlink(temp);
	return err;
}

/*
 * A directory that only we can change and all can enter, whatever our umask: an existing one of
 * somebody else is not used.
 */
static bool shared_dir(const char *dir)
{
	struct stat st;

	if (mkdir(dir, 0755) && errno != EEXIST)
		return false;
	if (lstat(dir, &st) || !S_ISDIR(st.st_mode) || st.st_uid != geteuid() || st.st_mode & 022)
		return false;
	return (st.st_mode & 0777) == 0755 || !chmod(dir, 0755);
}

static bool is_at(int fd, int dir, const char *name)
{
	struct stat here, there;

	return !fstat(fd, &here) && !fstatat(dir, name, &there, AT_SYMLINK_NOFOLLOW) &&
	       here.st_dev == there.st_dev && here.st_ino == there.st_ino;
}

/*
 * Others see by the lock that the file is in use, as long as this process lives. Another build's run
 * may have removed it before that: false. Somebody else may hold the lock for ever, as all can read the
 * file: then nobody can remove it.
 */
static bool lock_in_use(struct library *l)
{
	int i;

	l->lock = open(l->path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	for (i = 0; l->lock >= 0 && i < LOCK_TRIES && flock(l->lock, LOCK_SH | LOCK_NB); i++)
		usleep(1000);
	if (l->lock >= 0 && is_at(l->lock, AT_FDCWD, l->path) && is_ours(l->path))
		return true;
	if (l->lock >= 0)
		close(l->lock);
	l->lock = -1;
	return false;
}

static bool place_shared(struct library *l)
{
	uint64_t hash = hash__bytes(embedded_timing_library, embedded_size(), 1);
	int i;

	if (!shared_dir(SHARED_DIR))
		return false;
	snprintf(l->path, sizeof(l->path), SHARED_DIR "/" FILE_NAME "-%016" PRIx64 ".so", hash);
	for (i = 0; i < PLACE_TRIES; i++) {
		if (!is_ours(l->path) && write_file(SHARED_DIR, l->path))
			return false;
		if (!is_ours(l->path))
			break;
		if (lock_in_use(l))
			return true;
	}
	unlink(l->path);
	return false;
}

/* Ours of any build, or what a run that was killed has left half written. */
static bool is_leftover(const char *name, const struct stat *st)
{
	if (!S_ISREG(st->st_mode) || st->st_uid != geteuid())
		return false;
	if (!strncmp(name, ".new-", 5))
		return time(NULL) - st->st_mtime > STALE_SECONDS;
	return !strncmp(name, FILE_NAME "-", strlen(FILE_NAME "-"));
}

static void remove_leftover(int dir, const char *name)
{
	int fd = openat(dir, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	struct stat st;

	if (fd < 0)
		return;
	if (!fstat(fd, &st) && is_leftover(name, &st) && !flock(fd, LOCK_EX | LOCK_NB) &&
	    is_at(fd, dir, name))
		unlinkat(dir, name, 0);
	close(fd);
}

/*
 * Of builds that nobody runs any more. A process that maps such a file keeps it, and is attached to by
 * what it maps; one that only has its name in the environment has lost its collector anyway.
 */
static void remove_leftovers(const struct library *l)
{
	const char *own = strrchr(l->path, '/') + 1;
	DIR *dir = opendir(SHARED_DIR);
	struct dirent *e;

	while (dir && (e = readdir(dir)))
		if (strcmp(e->d_name, own))
			remove_leftover(dirfd(dir), e->d_name);
	if (dir)
		closedir(dir);
}

static void remove_own(struct library *l)
{
	if (!l->own_dir[0])
		return;
	unlink(l->path);
	rmdir(l->own_dir);
	l->own_dir[0] = '\0';
}

static int place_own(struct library *l, const char *where)
{
	int err;

	snprintf(l->own_dir, sizeof(l->own_dir), "%s/gpucollect-XXXXXX", where);
	if (!mkdtemp(l->own_dir)) {
		err = -errno;
		l->own_dir[0] = '\0';
		return err;
	}
	snprintf(l->path, sizeof(l->path), "%s/" FILE_NAME ".so", l->own_dir);
	err = chmod(l->own_dir, 0755) ? -errno : write_file(l->own_dir, l->path);
	if (!err && !is_ours(l->path))
		err = -EACCES;
	if (err)
		remove_own(l);
	return err;
}

static int place(struct library *l)
{
	static const char *const dirs[] = { "/tmp", "/var/tmp", "/dev/shm" };
	int err = 0, first = 0;
	size_t i;

	if (place_shared(l)) {
		remove_leftovers(l);
		return 0;
	}
	for (i = 0; i < sizeof(dirs) / sizeof(dirs[0]); i++) {
		err = place_own(l, dirs[i]);
		if (!err)
			return 0;
		first = first ? first : err;
	}
	return first;
}

int library__new(struct library **out, char **why)
{
	struct library *l = calloc(1, sizeof(*l));
	int err;

	*why = NULL;
	if (!l)
		return -ENOMEM;
	l->lock = -1;
	err = place(l);
	FAULT_POINT("library-placed");
	if (!err) {
		*out = l;
		return 0;
	}
	library__free(l);
	return text__why(why, err, "the timing library can't be put into %s or /tmp: %s; make room there, "
			 "mount one of them without noexec, or use --no-inject --metric launches", SHARED_DIR,
			 strerror(-err));
}

void library__free(struct library *l)
{
	if (!l)
		return;
	remove_own(l);
	if (l->lock >= 0)
		close(l->lock);
	free(l);
}

const char *library__path(const struct library *l)
{
	return l->path;
}
