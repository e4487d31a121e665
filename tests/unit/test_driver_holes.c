// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include <elf.h>
#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include <linux/types.h>

#include "gpu_timing/channel.h"
#include "loader/driver.h"
#include "tests/unit/unit.h"

/* A library in memory: one load segment, symbols and names of the sizes given. */
struct file {
	Elf64_Ehdr eh;
	Elf64_Phdr ph;
	Elf64_Shdr sh[3];
	Elf64_Sym sym[3];
	char names[64];
};

static struct file library(void)
{
	struct file f = {
		.eh = {
			.e_ident = { ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64, ELFDATA2LSB,
				     EV_CURRENT },
			.e_type = ET_DYN, .e_machine = EM_X86_64, .e_version = EV_CURRENT,
			.e_phoff = offsetof(struct file, ph), .e_shoff = offsetof(struct file, sh),
			.e_ehsize = sizeof(Elf64_Ehdr), .e_phentsize = sizeof(Elf64_Phdr),
			.e_phnum = 1, .e_shentsize = sizeof(Elf64_Shdr), .e_shnum = 3,
		},
		.ph = { .p_type = PT_LOAD, .p_flags = PF_R | PF_X, .p_offset = 0x1000,
			.p_vaddr = 0x200000, .p_filesz = 0x1000, .p_memsz = 0x1000 },
		.sh = {
			[1] = { .sh_type = SHT_DYNSYM, .sh_offset = offsetof(struct file, sym),
				.sh_size = sizeof(f.sym), .sh_entsize = sizeof(Elf64_Sym),
				.sh_link = 2 },
			[2] = { .sh_type = SHT_STRTAB, .sh_offset = offsetof(struct file, names),
				.sh_size = sizeof(f.names) },
		},
		.sym = {
			[1] = { .st_name = 1, .st_info = ELF64_ST_INFO(STB_GLOBAL, STT_FUNC),
				.st_shndx = 1, .st_value = 0x200040, .st_size = 16 },
			[2] = { .st_name = 16, .st_info = ELF64_ST_INFO(STB_GLOBAL, STT_FUNC),
				.st_shndx = 1, .st_value = 0x200080, .st_size = 16 },
		},
		.names = "\0cuLaunchKernel\0cuGraphLaunch",
	};

	return f;
}

static int put(const struct file *f, off_t size)
{
	int fd = memfd_create("libcuda.so.1", MFD_CLOEXEC);

	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(pwrite(fd, f, sizeof(*f), 0), sizeof(*f));
	ck_assert_int_eq(ftruncate(fd, size), 0);
	return fd;
}

struct seen {
	unsigned int nr;
};

static void on_entry(void *ctx, uint32_t entry, uint64_t offset)
{
	struct seen *s = ctx;

	ck_assert_uint_lt(entry, NR_LAUNCH_ENTRIES);
	ck_assert_uint_gt(offset, 0);
	s->nr++;
}

static int entries(const struct file *f, off_t size, struct seen *s)
{
	int fd = put(f, size), err;

	memset(s, 0, sizeof(*s));
	err = driver__entries(fd, on_entry, s);
	close(fd);
	return err;
}

START_TEST(holes_do_not_fill_our_memory)
{
	const off_t huge = 1ll << 30;
	struct file f = library();
	struct rusage u;
	struct seen s;

	ck_assert_int_eq(entries(&f, 0x2000, &s), 0);	/* without them it is one */
	ck_assert_uint_eq(s.nr, 2);
	f.sh[1].sh_size = (Elf64_Xword)huge / sizeof(Elf64_Sym) * sizeof(Elf64_Sym);
	ck_assert_int_eq(entries(&f, huge * 2, &s), -ENOENT);
	f = library();
	f.sh[2].sh_size = (Elf64_Xword)huge;
	ck_assert_int_eq(entries(&f, huge * 2, &s), -ENOENT);
	ck_assert_int_eq(getrusage(RUSAGE_SELF, &u), 0);
	ck_assert_int_lt(u.ru_maxrss, 256 << 10);	/* KiB */
}
END_TEST

UNIT_MAIN("driver_holes", holes_do_not_fill_our_memory)
