// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Finds the slots of the mapped libcuda, shows who writes them, swaps and restores them. */
#include "probe_hook.h"

#include <dlfcn.h>
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

static struct probe_stub stubs[2048];
static int n_stubs;
static int ready;
static int quiet;
static FILE *out;

void probe_hook_quiet(int on)
{
	quiet = on;
}

FILE *probe_hook_out(void)
{
	return out ? out : stdout;
}

/* ---- maps ---- */

struct region {
	uintptr_t start, end, offset;
	char prot[8], path[200];
};

static int region_of(uintptr_t addr, struct region *r)
{
	FILE *f = fopen("/proc/self/maps", "re");
	char line[600];
	int found = 0;

	while (f && fgets(line, sizeof(line), f)) {
		r->path[0] = 0;
		if (sscanf(line, "%lx-%lx %7s %lx %*s %*s %199s", &r->start, &r->end, r->prot,
			   &r->offset, r->path) < 4)
			continue;
		if (addr >= r->start && addr < r->end) {
			found = 1;
			break;
		}
	}
	if (f)
		fclose(f);
	return found;
}

static uintptr_t lib_base, lib_text, lib_text_end, lib_data, lib_data_end;
static char lib_path[512];

const char *probe_hook_where(uintptr_t addr)
{
	static char text[8][300];
	static unsigned int turn;
	char *t = text[turn++ & 7];
	struct region r;
	Dl_info info;

	if (addr >= lib_base && addr < lib_data_end)
		snprintf(t, 300, "libcuda+0x%lx", addr - lib_base);
	else if (addr && dladdr((void *)addr, &info) && info.dli_fname)
		snprintf(t, 300, "%s+0x%lx(%s)", strrchr(info.dli_fname, '/') ?
			 strrchr(info.dli_fname, '/') + 1 : info.dli_fname,
			 addr - (uintptr_t)info.dli_fbase, info.dli_sname ? info.dli_sname : "");
	else if (addr && region_of(addr, &r))
		snprintf(t, 300, "%s:%s+0x%lx", r.path[0] ? r.path : "anon", r.prot,
			 addr - r.start);
	else
		snprintf(t, 300, "0x%lx", addr);
	return t;
}

const char *probe_hook_prot(uintptr_t addr)
{
	static char text[80];
	struct region r;

	if (!region_of(addr, &r))
		return "unmapped";
	snprintf(text, sizeof(text), "%s %s", r.prot, r.path[0] ? "file" : "anon");
	return text;
}

/* ---- stubs ---- */

static void stub__decode(struct probe_stub *s)
{
	const unsigned char *code = (const unsigned char *)s->entry;
	uint32_t n = s->size < 4096 ? s->size : 4096;

	for (uint32_t i = 0; i + 6 <= n; i++) {
		int32_t rel;
		uintptr_t target;

		memcpy(&rel, code + i + 2, 4);
		if (code[i] == 0xff && (code[i + 1] == 0x15 || code[i + 1] == 0x25)) {
			target = s->entry + i + 6 + (uintptr_t)(intptr_t)rel;
			if (target < lib_data || target >= lib_data_end || target % 8)
				continue;
			if (!s->calls++) {
				s->slot = target;
				s->slot_at = i;
				s->kind = code[i + 1] == 0x15 ? 5 : 25;
			}
		} else if (i + 10 <= n && code[i] == 0x81 && code[i + 1] == 0x3d) {
			target = s->entry + i + 10 + (uintptr_t)(intptr_t)rel;
			if (target < lib_data || target >= lib_data_end)
				continue;
			if (!s->checks++) {
				s->magic = target;
				memcpy(&s->magic_value, code + i + 6, 4);
			}
		}
	}
}

static int stub__order(const void *a, const void *b)
{
	return strcmp(((const struct probe_stub *)a)->name, ((const struct probe_stub *)b)->name);
}

static void read_symbols(const char *image, size_t size)
{
	const ElfW(Ehdr) *eh = (const void *)image;
	const ElfW(Shdr) *sh = (const void *)(image + eh->e_shoff);

	if (eh->e_shoff + eh->e_shnum * sizeof(*sh) > size)
		return;
	for (int i = 0; i < eh->e_shnum; i++) {
		const ElfW(Sym) *sym = (const void *)(image + sh[i].sh_offset);
		const char *names = image + sh[sh[i].sh_link].sh_offset;

		if (sh[i].sh_type != SHT_DYNSYM)
			continue;
		for (size_t k = 0; k < sh[i].sh_size / sizeof(*sym) && n_stubs < 2048; k++) {
			struct probe_stub *s = &stubs[n_stubs];

			if ((sym[k].st_info & 15) != STT_FUNC || !sym[k].st_value ||
			    strncmp(names + sym[k].st_name, "cu", 2))
				continue;
			snprintf(s->name, sizeof(s->name), "%s", names + sym[k].st_name);
			s->entry = lib_base + sym[k].st_value;
			s->size = (uint32_t)sym[k].st_size;
			s->hook = -1;
			stub__decode(s);
			n_stubs++;
		}
	}
}

int probe_hook_init(void)
{
	char line[600], path[300], prot[8];
	uintptr_t start, end, offset;
	const char *want = getenv("PROBE_OUT");
	struct stat st;
	FILE *f;
	int fd;

	if (ready)
		return 0;
	out = want ? fopen(want, "ae") : stdout;
	if (!out)
		out = stderr;
	if (!dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL))
		return -ENOENT;
	f = fopen("/proc/self/maps", "re");
	while (f && fgets(line, sizeof(line), f)) {
		path[0] = 0;
		if (sscanf(line, "%lx-%lx %7s %lx %*s %*s %299s", &start, &end, prot, &offset,
			   path) < 4)
			continue;
		/* The bss follows the last file mapping as anonymous memory. */
		if (lib_data_end && start == lib_data_end && !path[0] && lib_data)
			lib_data_end = end;
		if (!strstr(path, "/libcuda.so"))
			continue;
		if (!lib_base)
			lib_base = start - offset;
		fprintf(out, "  map %lx-%lx %s file offset %lx %s\n", start - lib_base,
			end - lib_base, prot, offset, path);
		if (strchr(prot, 'x'))
			lib_text = start, lib_text_end = end;
		else if (lib_text && !lib_data)
			lib_data = start;
		lib_data_end = end;
		snprintf(lib_path, sizeof(lib_path), "%s", path);
	}
	if (f)
		fclose(f);
	if (!lib_base || (fd = open(lib_path, O_RDONLY | O_CLOEXEC)) < 0)
		return -ENOENT;
	if (!fstat(fd, &st)) {
		char *image = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);

		if (image != MAP_FAILED) {
			read_symbols(image, (size_t)st.st_size);
			munmap(image, (size_t)st.st_size);
		}
	}
	close(fd);
	qsort(stubs, (size_t)n_stubs, sizeof(stubs[0]), stub__order);
	for (int i = 0; i < n_stubs; i++)
		stubs[i].hook = probe_hook_index(stubs[i].name);
	ready = 1;
	return 0;
}

struct probe_stub *probe_hook_stubs(int *n)
{
	*n = n_stubs;
	return stubs;
}

/* ---- swap ---- */

static int write_slot(uintptr_t slot, uintptr_t value)
{
	int fd = open("/proc/self/mem", O_RDWR | O_CLOEXEC), rc = 0;

	if (fd < 0)
		return -errno;
	if (pwrite(fd, &value, sizeof(value), (off_t)slot) != sizeof(value))
		rc = errno ? -errno : -EIO;
	close(fd);
	if (!rc && *(volatile uintptr_t *)slot != value)
		rc = -EAGAIN;
	return rc;
}

int probe_hook_swap(int launches)
{
	struct timespec from, to;
	int n = 0, bad = 0;

	clock_gettime(CLOCK_MONOTONIC, &from);
	for (int i = 0; i < n_stubs; i++) {
		struct probe_stub *s = &stubs[i];
		uintptr_t now;
		int rc;

		if (s->hook < 0 || !s->kind || s->calls != 1 || s->original ||
		    (launches && s->hook >= PROBE_LAUNCHES))
			continue;
		now = *(volatile uintptr_t *)s->slot;
		if (!now) {
			fprintf(out, "  swap: %s holds NULL, left\n", s->name);
			continue;
		}
		probe_hook_set_original(s->hook, now);
		rc = write_slot(s->slot, probe_hook_function(s->hook));
		if (rc) {
			bad++;
			fprintf(out, "  swap: %s failed %d\n", s->name, rc);
			continue;
		}
		s->original = now;
		s->last = probe_hook_function(s->hook);
		n++;
	}
	clock_gettime(CLOCK_MONOTONIC, &to);
	if (!quiet)
		fprintf(out, "  swapped %d slots by pwrite in %ld us, %d failed\n", n,
			(to.tv_sec - from.tv_sec) * 1000000 + (to.tv_nsec - from.tv_nsec) / 1000,
			bad);
	fflush(out);
	return n;
}

int probe_hook_unswap(void)
{
	int n = 0;

	for (int i = 0; i < n_stubs; i++) {
		struct probe_stub *s = &stubs[i];

		if (!s->original)
			continue;
		if (*(volatile uintptr_t *)s->slot != probe_hook_function(s->hook)) {
			fprintf(out, "  unswap: %s no longer ours: %s\n", s->name,
				probe_hook_where(*(volatile uintptr_t *)s->slot));
			continue;
		}
		if (!write_slot(s->slot, s->original))
			n++;
		s->last = s->original;
		s->original = 0;
	}
	if (!quiet)
		fprintf(out, "  unswapped %d slots\n", n);
	fflush(out);
	return n;
}

/* ---- dumps ---- */

static void dump_protections(void)
{
	static struct { char prot[80]; int n; uintptr_t low, high; } seen[16];
	int n = 0;

	for (int i = 0; i < n_stubs; i++) {
		const char *prot;
		int k;

		if (!stubs[i].kind)
			continue;
		prot = probe_hook_prot(stubs[i].slot);
		for (k = 0; k < n && strcmp(seen[k].prot, prot); k++)
			;
		if (k == 16)
			continue;
		if (k == n) {
			snprintf(seen[n].prot, sizeof(seen[n].prot), "%s", prot);
			seen[n].n = 0;
			seen[n].low = seen[n].high = stubs[i].slot;
			n++;
		}
		seen[k].n++;
		if (stubs[i].slot < seen[k].low)
			seen[k].low = stubs[i].slot;
		if (stubs[i].slot > seen[k].high)
			seen[k].high = stubs[i].slot;
	}
	for (int k = 0; k < n; k++)
		fprintf(out, "  %d slots in pages %s, %s to %s\n", seen[k].n, seen[k].prot,
			probe_hook_where(seen[k].low), probe_hook_where(seen[k].high));
}

void probe_hook_dump(const char *tag)
{
	int null = 0, own = 0, ours = 0, foreign = 0, changed = 0, shown = 0;

	if (!ready)
		return;
	for (int i = 0; i < n_stubs; i++) {
		struct probe_stub *s = &stubs[i];
		uintptr_t v;

		if (!s->kind)
			continue;
		v = *(volatile uintptr_t *)s->slot;
		if (!v)
			null++;
		else if (v >= lib_text && v < lib_text_end)
			own++;
		else if (s->original && v == probe_hook_function(s->hook))
			ours++;
		else
			foreign++;
		if (v != s->last)
			changed++;
	}
	fprintf(out, "dump %-44s NULL %d, libcuda text %d, our hook %d, other %d, changed %d\n",
		tag, null, own, ours, foreign, changed);
	for (int i = 0; i < n_stubs; i++) {
		struct probe_stub *s = &stubs[i];
		uintptr_t v;

		if (!s->kind)
			continue;
		v = *(volatile uintptr_t *)s->slot;
		if (v != s->last && shown < 12 && (changed < 12 || s->hook >= 0)) {
			fprintf(out, "    %s: %s -> %s\n", s->name,
				probe_hook_where(s->last), probe_hook_where(v));
			shown++;
		}
		s->last = v;
	}
	if (changed)
		dump_protections();
	fflush(out);
}
