// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "loader/driver.h"

#include <errno.h>
#include <fcntl.h>
#include <gelf.h>
#include <libelf.h>
#include <linux/types.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "gpu_timing/channel.h"
#include "gpu_timing/reader.h"
#include "gpu_timing/stub.h"

#define MAX_CANDIDATES 32
#define SECTION_MAX (64u << 20)	/* libcuda's symbols take less than a MiB */
#define LD_CACHE "/etc/ld.so.cache"
#define LD_CACHE_MAX (64u << 20)

/* glibc's cache, format 1.1 (dl-cache.h): a header, entries, strings by offset in the file. */
#define LD_CACHE_MAGIC "glibc-ld.so.cache1.1"

struct ld_cache_header {
	char magic[sizeof(LD_CACHE_MAGIC) - 1];
	uint32_t nr;
	uint32_t strings;
	uint32_t unused[5];
};

struct ld_cache_entry {
	int32_t flags;
	uint32_t name;
	uint32_t path;
	uint32_t os_version;
	uint64_t hwcap;
};

struct candidates {
	char *path[MAX_CANDIDATES + 1];
	size_t nr;
	dev_t device[MAX_CANDIDATES];
	ino_t inode[MAX_CANDIDATES];
};

/* Adds a file that exists; one behind two names is one. */
static int add(struct candidates *c, const char *path)
{
	struct stat st;
	size_t i;

	if (c->nr == MAX_CANDIDATES || stat(path, &st) || !S_ISREG(st.st_mode))
		return 0;
	for (i = 0; i < c->nr; i++)
		if (c->device[i] == st.st_dev && c->inode[i] == st.st_ino)
			return 0;
	c->device[c->nr] = st.st_dev;
	c->inode[c->nr] = st.st_ino;
	c->path[c->nr] = strdup(path);
	if (!c->path[c->nr])
		return -ENOMEM;
	c->nr++;
	return 0;
}

static int add_in(struct candidates *c, const char *dir, size_t len)
{
	char path[4096];

	if ((size_t)snprintf(path, sizeof(path), "%.*s/%s", (int)len, dir, DRIVER_NAME) >= sizeof(path))
		return 0;
	return add(c, path);
}

/* The empty entry of the list means the current directory, ld.so(8). */
static int add_library_path(struct candidates *c, const char *list)
{
	while (list && *list) {
		size_t len = strcspn(list, ":;");
		int err = len ? add_in(c, list, len) : add_in(c, ".", 1);

		if (err || !list[len])
			return err;
		list += len + 1;
		if (!*list)	/* it ends in a separator: one more that is empty */
			return add_in(c, ".", 1);
	}
	return 0;
}

static int add_from_cache(struct candidates *c, const char *data, size_t size)
{
	struct ld_cache_header head;
	struct ld_cache_entry e;
	uint32_t i;
	int err = 0;

	if (size < sizeof(head))
		return 0;
	memcpy(&head, data, sizeof(head));
	if (memcmp(head.magic, LD_CACHE_MAGIC, sizeof(head.magic)) ||
	    head.nr > (size - sizeof(head)) / sizeof(e))
		return 0;
	for (i = 0; i < head.nr && !err; i++) {
		memcpy(&e, data + sizeof(head) + i * sizeof(e), sizeof(e));
		/* The buffer ends in a 0: a string at any offset inside ends, too. */
		if (e.name < size && e.path < size && !strcmp(data + e.name, DRIVER_NAME))
			err = add(c, data + e.path);
	}
	return err;
}

static int add_cached(struct candidates *c)
{
	int fd = open(LD_CACHE, O_RDONLY | O_CLOEXEC), err = 0;
	struct stat st;
	char *data = NULL;
	ssize_t n;

	if (fd < 0)
		return 0;
	if (!fstat(fd, &st) && st.st_size > 0 && st.st_size < (off_t)LD_CACHE_MAX) {
		data = calloc(1, (size_t)st.st_size + 1);
		n = data ? read(fd, data, (size_t)st.st_size) : -1;
		if (n > 0)
			err = add_from_cache(c, data, (size_t)n);
	}
	free(data);
	close(fd);
	return err;
}

char **driver__candidates(const char *library_path)
{
	static const char *const dirs[] = {
		"/lib/x86_64-linux-gnu", "/usr/lib/x86_64-linux-gnu", "/lib/aarch64-linux-gnu",
		"/usr/lib/aarch64-linux-gnu", "/lib64", "/usr/lib64", "/lib", "/usr/lib",
	};
	struct candidates *c = calloc(1, sizeof(*c));
	char **out;
	size_t i;
	int err;

	if (!c)
		return NULL;
	err = add_library_path(c, library_path);
	if (!err)
		err = add_cached(c);
	for (i = 0; !err && i < sizeof(dirs) / sizeof(dirs[0]); i++)
		err = add_in(c, dirs[i], strlen(dirs[i]));
	out = err ? NULL : malloc((c->nr + 1) * sizeof(*out));
	for (i = 0; i < c->nr; i++) {
		if (out)
			out[i] = c->path[i];
		else
			free(c->path[i]);
	}
	if (out)
		out[c->nr] = NULL;
	free(c);
	return out;
}

bool driver__is_named(const char *path)
{
	const char *base = strrchr(path, '/');

	return !strncmp(base ? base + 1 : path, "libcuda.so", 10);
}

void driver__free_candidates(char **paths)
{
	size_t i;

	for (i = 0; paths && paths[i]; i++)
		free(paths[i]);
	free(paths);
}

/* File offset of an address, by the load segment that holds it; 0: none. */
static uint64_t file_offset(Elf *elf, uint64_t vaddr)
{
	GElf_Phdr ph;
	size_t nr, i;

	if (elf_getphdrnum(elf, &nr))
		return 0;
	for (i = 0; i < nr; i++)
		if (gelf_getphdr(elf, (int)i, &ph) && ph.p_type == PT_LOAD && (ph.p_flags & PF_X) &&
		    vaddr >= ph.p_vaddr && vaddr - ph.p_vaddr < ph.p_filesz)
			return vaddr - ph.p_vaddr + ph.p_offset;
	return 0;
}

/* An entry point as its symbol has it. */
struct entry {
	uint32_t entry;		/* enum launch_entry, or enum channel_slot */
	uint64_t offset;
	uint64_t vaddr;
	uint64_t size;
};

typedef void (*entry_fn)(void *ctx, const struct entry *e);

static int scan_symbols(Elf *elf, Elf_Scn *scn, const GElf_Shdr *sh, uint32_t nr, entry_fn fn,
			void *ctx)
{
	Elf_Data *data = elf_getdata(scn, NULL);
	struct entry e;
	int found = 0, i;
	GElf_Sym sym;

	for (i = 0; data && gelf_getsym(data, i, &sym); i++) {
		const char *name = elf_strptr(elf, sh->sh_link, sym.st_name);

		if (!name || GELF_ST_TYPE(sym.st_info) != STT_FUNC || sym.st_shndx == SHN_UNDEF)
			continue;
		for (e.entry = ENTRY_UNKNOWN + 1; e.entry < nr; e.entry++) {
			if (strcmp(name, channel__slot_name(e.entry)))
				continue;
			e.offset = file_offset(elf, sym.st_value);
			e.vaddr = sym.st_value;
			e.size = sym.st_size;
			if (!e.offset)
				continue;
			fn(ctx, &e);
			found += e.entry < NR_LAUNCH_ENTRIES;
		}
	}
	return found;
}

/* A target's file may claim, and have as holes, sections that fill our memory. */
static bool is_small(Elf *elf, const GElf_Shdr *symbols)
{
	GElf_Shdr names;

	return symbols->sh_size <= SECTION_MAX &&
	       gelf_getshdr(elf_getscn(elf, symbols->sh_link), &names) && names.sh_size <= SECTION_MAX;
}

/* Entries below `nr`, which is NR_LAUNCH_ENTRIES or NR_CHANNEL_SLOTS. */
static int scan_file(int fd, uint32_t nr, entry_fn fn, void *ctx)
{
	Elf_Scn *scn = NULL;
	GElf_Shdr sh;
	int found = 0;
	Elf *elf;

	elf_version(EV_CURRENT);
	elf = elf_begin(fd, ELF_C_READ, NULL);
	if (!elf)
		return -EINVAL;
	while ((scn = elf_nextscn(elf, scn)))
		if (gelf_getshdr(scn, &sh) && sh.sh_type == SHT_DYNSYM && is_small(elf, &sh))
			found += scan_symbols(elf, scn, &sh, nr, fn, ctx);
	elf_end(elf);
	return found ? 0 : -ENOENT;
}

struct entries {
	driver_entry fn;
	void *ctx;
};

static void pass_on(void *ctx, const struct entry *e)
{
	const struct entries *to = ctx;

	to->fn(to->ctx, e->entry, e->offset);
}

int driver__entries(int fd, driver_entry fn, void *ctx)
{
	struct entries to = { fn, ctx };

	return scan_file(fd, NR_LAUNCH_ENTRIES, pass_on, &to);
}

static void note_entry(void *ctx, const struct entry *e)
{
	bool *found = ctx;

	found[e->entry] = true;
}

int driver__exports(int fd, bool upkeep, void (*fn)(void *ctx, const char *name), void *ctx)
{
	uint32_t nr = upkeep ? NR_CHANNEL_SLOTS : NR_LAUNCH_ENTRIES, i;
	bool found[NR_CHANNEL_SLOTS] = { false };
	int err = scan_file(fd, nr, note_entry, found);

	for (i = 0; i < nr && !err; i++)
		if (found[i])
			fn(ctx, channel__slot_name(i));
	return err;
}

struct check {
	int fd;
	int err;
	const char *entry;
};

static void check_shape(void *ctx, const struct entry *e)
{
	uint8_t code[STUB_MAX_SIZE];
	struct check *c = ctx;
	struct stub stub;
	int err = -ENOEXEC;

	if (c->err)
		return;
	if (e->size && e->size <= sizeof(code)) {
		if (pread(c->fd, code, e->size, (off_t)e->offset) != (ssize_t)e->size)
			err = -EIO;
		else
			err = stub__decode(code, e->size, e->vaddr, stub__args(e->entry), &stub);
	}
	if (err) {
		c->err = err;
		c->entry = channel__slot_name(e->entry);
	}
}

int driver__check(int fd, const char **entry)
{
	struct check c = { .fd = fd };
	int err = scan_file(fd, NR_LAUNCH_ENTRIES, check_shape, &c);

	*entry = c.entry;
	return err ? err : c.err;
}

const char *driver__error(int err)
{
	switch (-err) {
	case ENOENT:
		return "it has no launch entry, so it is no libcuda, or not a whole one";
	case ENOEXEC:
		return "its code has a shape that is not known";
	case EINVAL:
		return "it is no ELF file that can be read";
	default:
		return strerror(-err);
	}
}
