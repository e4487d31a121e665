// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "unwind/elf_view.h"
#include "loader/base/far.h"
#include "unwind/cursor.h"

#include <elf.h>
#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#define BLOCK_SIZE 4096
#define NR_BLOCKS 16
#define MAX_LOADS 1024
#define MAX_SECTIONS (1u << 20)

struct block {
	uint64_t nr;
	uint32_t len;		/* 0: unused; shorter than BLOCK_SIZE at the end of the file */
	uint32_t used;		/* clock of the last use */
	uint8_t *data;
};

struct elf_view {
	int fd;
	uint8_t *image;		/* not NULL: a copy, and no fd */
	uint64_t size;
	uint64_t entry;
	struct elf_segment *segments;
	size_t nr_segments;
	struct elf_part eh_frame_hdr;
	struct elf_part eh_frame;
	struct elf_part debug_frame;
	uint32_t clock;
	struct block *last;	/* the block used last */
	struct block blocks[NR_BLOCKS];
};

/* --- reading ------------------------------------------------------------------------------ */

/* As many of `len` bytes as there are; negative errno. */
static ssize_t fd__read(int fd, void *buf, size_t len, uint64_t offset)
{
	size_t done = 0;

	while (done < len) {
		ssize_t n = far__read(fd, (char *)buf + done, len - done, offset + done);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		if (n == 0)
			break;
		done += (size_t)n;
	}
	return (ssize_t)done;
}

static int view__block(struct elf_view *view, uint64_t nr, struct block **out)
{
	struct block *victim = &view->blocks[0];
	ssize_t n;

	if (view->last && view->last->len && view->last->nr == nr) {
		*out = view->last;
		return 0;
	}
	for (size_t i = 0; i < NR_BLOCKS; i++) {
		struct block *b = &view->blocks[i];

		if (b->len && b->nr == nr) {
			b->used = ++view->clock;
			*out = view->last = b;
			return 0;
		}
		if (!b->len || (victim->len && b->used < victim->used))
			victim = b;
	}
	if (!victim->data) {
		victim->data = malloc(BLOCK_SIZE);
		if (!victim->data)
			return -ENOMEM;
	}
	victim->len = 0;
	n = fd__read(view->fd, victim->data, BLOCK_SIZE, nr * BLOCK_SIZE);
	if (n <= 0)
		return n ? (int)n : -ERANGE;
	victim->nr = nr;
	victim->len = (uint32_t)n;
	victim->used = ++view->clock;
	*out = view->last = victim;
	return 0;
}

int elf_view__read(struct elf_view *view, uint64_t offset, void *buf, size_t len)
{
	uint8_t *to = buf;

	if (offset > view->size || len > view->size - offset)
		return -ERANGE;
	if (view->image) {
		memcpy(to, view->image + offset, len);
		return 0;
	}
	if (len > BLOCK_SIZE) {
		ssize_t n = fd__read(view->fd, to, len, offset);

		return n < 0 ? (int)n : (size_t)n < len ? -ERANGE : 0;
	}
	while (len) {
		size_t at = offset % BLOCK_SIZE, part = BLOCK_SIZE - at;
		struct block *b = NULL;
		int err = view__block(view, offset / BLOCK_SIZE, &b);

		if (err)
			return err;
		if (part > len)
			part = len;
		if (at + part > b->len)		/* the file shrank */
			return -ERANGE;
		memcpy(to, b->data + at, part);
		to += part;
		offset += part;
		len -= part;
	}
	return 0;
}

/* --- headers ------------------------------------------------------------------------------ */

static int view__ehdr(struct elf_view *view, Elf64_Ehdr *eh)
{
	int err = elf_view__read(view, 0, eh, sizeof(*eh));

	if (err)
		return err == -ERANGE ? -ENOTSUP : err;
	if (memcmp(eh->e_ident, ELFMAG, SELFMAG) || eh->e_ident[EI_CLASS] != ELFCLASS64 ||
	    eh->e_ident[EI_DATA] != ELFDATA2LSB || eh->e_machine != EM_X86_64 ||
	    (eh->e_type != ET_EXEC && eh->e_type != ET_DYN))
		return -ENOTSUP;
	if (!eh->e_phoff || !eh->e_phnum || eh->e_phentsize != sizeof(Elf64_Phdr))
		return -EINVAL;
	view->entry = eh->e_entry;
	return 0;
}

/* The first section header holds counts that don't fit into the ELF header (gABI). */
static bool view__shdr0(struct elf_view *view, const Elf64_Ehdr *eh, Elf64_Shdr *sh)
{
	return eh->e_shoff && eh->e_shentsize == sizeof(*sh) &&
	       !elf_view__read(view, eh->e_shoff, sh, sizeof(*sh));
}

static void view__add_load(struct elf_view *view, const Elf64_Phdr *ph)
{
	struct elf_segment *seg = &view->segments[view->nr_segments];
	uint64_t size = ph->p_filesz;

	if (view->nr_segments == MAX_LOADS || ph->p_offset >= view->size)
		return;
	if (size > view->size - ph->p_offset)
		size = view->size - ph->p_offset;
	if (!size || ph->p_vaddr + size < ph->p_vaddr)
		return;
	seg->offset = ph->p_offset;
	seg->vaddr = ph->p_vaddr;
	seg->size = size;
	seg->executable = ph->p_flags & PF_X;
	view->nr_segments++;
}

static int view__load_segments(struct elf_view *view, const Elf64_Ehdr *eh)
{
	uint64_t nr = eh->e_phnum;
	Elf64_Shdr sh;
	Elf64_Phdr ph;

	if (nr == PN_XNUM && view__shdr0(view, eh, &sh))
		nr = sh.sh_info;
	view->segments = calloc(nr < MAX_LOADS ? nr + 1 : MAX_LOADS + 1, sizeof(*view->segments));
	if (!view->segments)
		return -ENOMEM;
	for (uint64_t i = 0; i < nr; i++) {
		uint64_t at = eh->e_phoff + i * sizeof(ph);
		int err = at < eh->e_phoff ? -ERANGE : elf_view__read(view, at, &ph, sizeof(ph));

		if (err == -ERANGE)
			break;		/* cut off: what came before may do */
		if (err)
			return err;
		if (ph.p_type == PT_LOAD)
			view__add_load(view, &ph);
		else if (ph.p_type == PT_GNU_EH_FRAME && !view->eh_frame_hdr.size)
			view->eh_frame_hdr = (struct elf_part){ ph.p_offset, ph.p_vaddr,
								ph.p_filesz, false };
	}
	return view->nr_segments ? 0 : -EINVAL;
}

/* Where the file ends before the part does, the part is cut. */
static struct elf_part view__clip(const struct elf_view *view, struct elf_part part)
{
	if (part.offset >= view->size)
		return (struct elf_part){ 0 };
	if (part.size > view->size - part.offset)
		part.size = view->size - part.offset;
	if (part.vaddr + part.size < part.vaddr)
		return (struct elf_part){ 0 };
	return part;
}

static void view__section(struct elf_view *view, const Elf64_Shdr *sh, const Elf64_Shdr *strings)
{
	const struct elf_part part = { sh->sh_offset, sh->sh_addr, sh->sh_size, false };
	char name[16] = "";
	size_t len = sizeof(name) - 1;
	uint64_t at = strings->sh_offset + sh->sh_name;

	if ((sh->sh_type != SHT_PROGBITS && sh->sh_type != SHT_X86_64_UNWIND) ||
	    sh->sh_name >= strings->sh_size || at < strings->sh_offset)
		return;
	if (len > strings->sh_size - sh->sh_name)
		len = strings->sh_size - sh->sh_name;
	if (elf_view__read(view, at, name, len))
		return;
	if (!strcmp(name, ".eh_frame") && (sh->sh_flags & SHF_ALLOC) && !view->eh_frame.size)
		view->eh_frame = view__clip(view, part);
	else if (!strcmp(name, ".debug_frame") && !(sh->sh_flags & SHF_COMPRESSED))
		view->debug_frame = view__clip(view, part);
}

static void view__load_sections(struct elf_view *view, const Elf64_Ehdr *eh)
{
	uint64_t nr = eh->e_shnum, strndx = eh->e_shstrndx;
	Elf64_Shdr sh, strings;

	if (!view__shdr0(view, eh, &sh))
		return;
	if (!nr)
		nr = sh.sh_size;
	if (strndx == SHN_XINDEX)
		strndx = sh.sh_link;
	if (nr > MAX_SECTIONS || strndx >= nr || eh->e_shoff + nr * sizeof(sh) < eh->e_shoff ||
	    elf_view__read(view, eh->e_shoff + strndx * sizeof(sh), &strings, sizeof(strings)))
		return;
	for (uint64_t i = 1; i < nr; i++) {
		if (elf_view__read(view, eh->e_shoff + i * sizeof(sh), &sh, sizeof(sh)))
			return;
		view__section(view, &sh, &strings);
	}
}

/* Whether a CIE is at the start of what is said to be .eh_frame. */
static bool view__starts_with_cie(struct elf_view *view, const struct elf_part *part)
{
	uint8_t bytes[24];
	struct cursor c = cursor__init(bytes, sizeof(bytes), 0);
	uint32_t len;
	uint8_t version;

	if (part->size < sizeof(bytes) ||
	    elf_view__read(view, part->offset, bytes, sizeof(bytes)))
		return false;
	len = cursor__u32(&c);
	if (len == UINT32_MAX)
		cursor__skip(&c, 8);
	if (!len || cursor__u32(&c))
		return false;
	version = cursor__u8(&c);
	return version == 1 || version == 3 || version == 4 ||
	       (len == UINT32_MAX && !version);		/* an 8-byte id: not there yet */
}

/*
 * The pointer in .eh_frame_hdr leads to .eh_frame too: without section headers, and where those
 * lie, which programs survive since only debuggers read them.
 */
static void view__follow_hdr(struct elf_view *view)
{
	const struct elf_part *hdr = &view->eh_frame_hdr;
	struct elf_part part = { .open_ended = true };
	uint8_t bytes[12];
	struct cursor c;

	if (view__starts_with_cie(view, &view->eh_frame) || hdr->size < sizeof(bytes) ||
	    elf_view__read(view, hdr->offset, bytes, sizeof(bytes)) || bytes[0] != 1)
		return;
	c = cursor__init(bytes, sizeof(bytes), hdr->vaddr);
	cursor__skip(&c, 4);
	part.vaddr = cursor__pointer(&c, bytes[1], hdr->vaddr);
	if (c.bad || !elf_view__offset(view, part.vaddr, &part.offset, &part.size))
		return;
	if (!view->eh_frame.size || view__starts_with_cie(view, &part))
		view->eh_frame = part;
}

static int view__load(struct elf_view *view)
{
	Elf64_Ehdr eh;
	int err;

	err = view__ehdr(view, &eh);
	if (err)
		return err;
	err = view__load_segments(view, &eh);
	if (err)
		return err;
	view->eh_frame_hdr = view__clip(view, view->eh_frame_hdr);
	view__load_sections(view, &eh);
	view__follow_hdr(view);
	return 0;
}

/* --- the object --------------------------------------------------------------------------- */

int elf_view__open(struct elf_view **out, int fd)
{
	struct elf_view *view;
	int64_t size = far__size(fd);
	int err;

	if (size < 0)
		return errno == EISDIR ? -ENOTSUP : -errno;
	view = calloc(1, sizeof(*view));
	if (!view)
		return -ENOMEM;
	view->fd = fd;
	view->size = (uint64_t)size;
	err = view__load(view);
	if (err) {
		elf_view__free(view);
		return err;
	}
	*out = view;
	return 0;
}

int elf_view__open_memory(struct elf_view **out, const void *image, size_t size)
{
	struct elf_view *view = calloc(1, sizeof(*view));
	int err = -ENOMEM;

	if (!view)
		return -ENOMEM;
	view->fd = -1;
	view->size = size;
	view->image = malloc(size ? size : 1);
	if (view->image) {
		memcpy(view->image, image, size);
		err = view__load(view);
	}
	if (err) {
		elf_view__free(view);
		return err;
	}
	*out = view;
	return 0;
}

void elf_view__free(struct elf_view *view)
{
	if (!view)
		return;
	for (size_t i = 0; i < NR_BLOCKS; i++)
		free(view->blocks[i].data);
	free(view->segments);
	free(view->image);
	free(view);
}

const struct elf_segment *elf_view__segments(const struct elf_view *view, size_t *nr)
{
	*nr = view->nr_segments;
	return view->segments;
}

const struct elf_part *elf_view__eh_frame_hdr(const struct elf_view *view)
{
	return &view->eh_frame_hdr;
}

const struct elf_part *elf_view__eh_frame(const struct elf_view *view)
{
	return &view->eh_frame;
}

const struct elf_part *elf_view__debug_frame(const struct elf_view *view)
{
	return &view->debug_frame;
}

uint64_t elf_view__entry(const struct elf_view *view)
{
	return view->entry;
}

bool elf_view__offset(const struct elf_view *view, uint64_t vaddr, uint64_t *offset,
		      uint64_t *left)
{
	for (size_t i = 0; i < view->nr_segments; i++) {
		const struct elf_segment *seg = &view->segments[i];

		if (vaddr < seg->vaddr || vaddr - seg->vaddr >= seg->size)
			continue;
		*offset = seg->offset + (vaddr - seg->vaddr);
		if (left)
			*left = seg->size - (vaddr - seg->vaddr);
		return true;
	}
	return false;
}

size_t elf_view__memory(const struct elf_view *view)
{
	size_t sum = sizeof(*view) + view->nr_segments * sizeof(*view->segments);

	if (view->image)
		sum += view->size;
	for (size_t i = 0; i < NR_BLOCKS; i++)
		sum += view->blocks[i].data ? BLOCK_SIZE : 0;
	return sum;
}
