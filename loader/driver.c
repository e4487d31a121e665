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

#define MAX_CANDIDATES 32
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

	if ((size_t)snprintf(path, sizeof(path), "%.*s/%s", (int)len, len ? dir : ".", DRIVER_NAME) >=
	    sizeof(path))
		return 0;
	return add(c, path);
}

/* The empty entry of the list means the current directory, ld.so(8). */
static int add_library_path(struct candidates *c)
{
	const char *list = getenv("LD_LIBRARY_PATH");
	int err = 0;

	while (list && *list && !err) {
		size_t len = strcspn(list, ":;");

		err = add_in(c, list, len);
		list += len;
		if (*list)
			list++;
	}
	return err;
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

char **driver__candidates(void)
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
	err = add_library_path(c);
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

static int scan_symbols(Elf *elf, Elf_Scn *scn, const GElf_Shdr *sh, driver_entry fn, void *ctx)
{
	Elf_Data *data = elf_getdata(scn, NULL);
	uint32_t entry;
	int found = 0, i;
	GElf_Sym sym;

	for (i = 0; data && gelf_getsym(data, i, &sym); i++) {
		const char *name = elf_strptr(elf, sh->sh_link, sym.st_name);
		uint64_t offset;

		if (!name || GELF_ST_TYPE(sym.st_info) != STT_FUNC || sym.st_shndx == SHN_UNDEF)
			continue;
		for (entry = ENTRY_UNKNOWN + 1; entry < NR_LAUNCH_ENTRIES; entry++) {
			if (strcmp(name, channel__slot_name(entry)))
				continue;
			offset = file_offset(elf, sym.st_value);
			if (!offset)
				continue;
			fn(ctx, entry, offset);
			found++;
		}
	}
	return found;
}

int driver__entries(int fd, driver_entry fn, void *ctx)
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
		if (gelf_getshdr(scn, &sh) && sh.sh_type == SHT_DYNSYM)
			found += scan_symbols(elf, scn, &sh, fn, ctx);
	elf_end(elf);
	return found ? 0 : -ENOENT;
}
