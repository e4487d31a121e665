// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "loader/library.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <libelf.h>
#include <gelf.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "loader/base/clock.h"
#include "loader/base/fault.h"
#include "loader/base/log.h"
#include "loader/base/table.h"

#define SHARED_DIR "/run/gpucollect"
#define FILE_NAME "libgpucollect_timing"

extern const char embedded_timing_library[];
extern const char embedded_timing_library_end[];

struct library {
	char path[256];
	char own_dir[64];	/* to be removed at the end; "": none */
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

static bool place_shared(struct library *l)
{
	uint64_t hash = hash__bytes(embedded_timing_library, embedded_size(), 1);

	if (!shared_dir(SHARED_DIR))
		return false;
	snprintf(l->path, sizeof(l->path), SHARED_DIR "/" FILE_NAME "-%016" PRIx64 ".so", hash);
	if (is_ours(l->path))
		return true;
	if (write_file(SHARED_DIR, l->path))
		return false;
	if (is_ours(l->path))
		return true;
	unlink(l->path);
	return false;
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

	if (place_shared(l))
		return 0;
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
	err = place(l);
	FAULT_POINT("library-placed");
	if (!err) {
		*out = l;
		return 0;
	}
	if (asprintf(why, "the timing library can't be put into %s or /tmp: %s; make room there, mount "
		     "one of them without noexec, or use --no-inject --metric launches", SHARED_DIR,
		     strerror(-err)) < 0)
		*why = NULL;
	library__free(l);
	return err;
}

void library__free(struct library *l)
{
	if (!l)
		return;
	remove_own(l);
	free(l);
}

const char *library__path(const struct library *l)
{
	return l->path;
}
