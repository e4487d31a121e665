// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "symbols/elf_image.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "loader/base/far.h"

#define MAX_SEGMENTS 4096
#define MAX_SECTIONS (1u << 17)

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "files are read in the host's order");

bool elf_image__holds(const struct elf_image *image, uint64_t offset, uint64_t size)
{
	return offset <= image->size && size <= image->size - offset;
}

int elf_image__read(const struct elf_image *image, uint64_t offset, void *buf, size_t len)
{
	char *to = buf;
	ssize_t n;

	if (!elf_image__holds(image, offset, len))
		return -EIO;
	if (image->bytes) {
		memcpy(buf, image->bytes + offset, len);
		return 0;
	}
	while (len > 0) {
		n = far__read(image->fd, to, len, offset);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return n < 0 ? -errno : -EIO;
		to += n;
		offset += (uint64_t)n;
		len -= (size_t)n;
	}
	return 0;
}

static int read_segments(struct elf_image *image)
{
	const Elf64_Ehdr *h = &image->header;
	size_t nr = h->e_phnum, size;
	Elf64_Phdr *segments;
	Elf64_Shdr first;
	int err;

	if (nr == PN_XNUM) {
		err = elf_image__read(image, h->e_shoff, &first, sizeof(first));
		if (err)
			return err;
		nr = first.sh_info;
	}
	if (nr == 0 || nr > MAX_SEGMENTS || h->e_phentsize != sizeof(Elf64_Phdr))
		return -ENOEXEC;
	size = nr * sizeof(*segments);
	segments = malloc(size);
	if (!segments)
		return -ENOMEM;
	err = elf_image__read(image, h->e_phoff, segments, size);
	if (err) {
		free(segments);
		return err;
	}
	image->segments = segments;
	for (size_t i = 0; i < nr; i++)
		if (segments[i].p_type == PT_LOAD || segments[i].p_type == PT_DYNAMIC ||
		    segments[i].p_type == PT_NOTE)
			segments[image->nr_segments++] = segments[i];
	return 0;
}

static int read_headers(struct elf_image *image, bool sections_only)
{
	Elf64_Ehdr *h = &image->header;
	int err = elf_image__read(image, 0, h, sizeof(*h));

	if (err)
		return err == -EIO ? -ENOEXEC : err;
	if (memcmp(h->e_ident, ELFMAG, SELFMAG) || h->e_ident[EI_CLASS] != ELFCLASS64 ||
	    h->e_ident[EI_DATA] != ELFDATA2LSB)
		return -ENOEXEC;
	if (sections_only)
		return 0;
	return h->e_type == ET_EXEC || h->e_type == ET_DYN ? read_segments(image) : -ENOEXEC;
}

static int open_image(struct elf_image *image, int fd, bool sections_only)
{
	int64_t size = far__size(fd);
	int err;

	*image = (struct elf_image){ .fd = fd };
	if (size < 0)
		return errno == EISDIR ? -ENOEXEC : -errno;
	image->size = (uint64_t)size;
	err = read_headers(image, sections_only);
	if (err)
		elf_image__close(image);
	return err;
}

int elf_image__open(struct elf_image *image, int fd)
{
	return open_image(image, fd, false);
}

int elf_image__open_sections(struct elf_image *image, int fd)
{
	return open_image(image, fd, true);
}

int elf_image__open_memory(struct elf_image *image, const void *bytes, size_t size)
{
	int err;

	*image = (struct elf_image){ .fd = -1, .size = size };
	if (size < sizeof(image->header))
		return -ENOEXEC;
	image->bytes = malloc(size);
	if (!image->bytes)
		return -ENOMEM;
	memcpy(image->bytes, bytes, size);
	err = read_headers(image, false);
	if (err)
		elf_image__close(image);
	return err;
}

void elf_image__close(struct elf_image *image)
{
	free(image->bytes);
	free(image->segments);
	image->bytes = NULL;
	image->segments = NULL;
	image->nr_segments = 0;
}

int elf_image__sections(const struct elf_image *image, Elf64_Shdr **sections, size_t *nr)
{
	const Elf64_Ehdr *h = &image->header;
	uint64_t count = h->e_shnum;
	Elf64_Shdr first, *all;
	int err;

	if (h->e_shoff == 0 || h->e_shentsize != sizeof(Elf64_Shdr))
		return -ENOENT;
	if (count == 0) {
		err = elf_image__read(image, h->e_shoff, &first, sizeof(first));
		if (err)
			return err == -EIO ? -ENOENT : err;
		count = first.sh_size;
	}
	if (count == 0 || count > MAX_SECTIONS ||
	    !elf_image__holds(image, h->e_shoff, count * sizeof(*all)))
		return -ENOENT;
	all = malloc(count * sizeof(*all));
	if (!all)
		return -ENOMEM;
	err = elf_image__read(image, h->e_shoff, all, count * sizeof(*all));
	if (err) {
		free(all);
		return err;
	}
	*sections = all;
	*nr = count;
	return 0;
}

/* Segments are few; a lying size can't wrap around since only differences are compared. */
static bool translate(const struct elf_image *image, uint64_t from, bool to_address, uint64_t *to)
{
	for (int pass = 0; pass < 2; pass++) {
		for (size_t i = 0; i < image->nr_segments; i++) {
			const Elf64_Phdr *p = &image->segments[i];
			uint64_t base = to_address ? p->p_offset : p->p_vaddr;

			if (p->p_type != PT_LOAD || (pass == 0) != !!(p->p_flags & PF_X) ||
			    from < base || from - base >= p->p_filesz)
				continue;
			*to = from - base + (to_address ? p->p_vaddr : p->p_offset);
			return true;
		}
	}
	return false;
}

bool elf_image__to_address(const struct elf_image *image, uint64_t offset, uint64_t *address)
{
	return translate(image, offset, true, address);
}

bool elf_image__to_offset(const struct elf_image *image, uint64_t address, uint64_t *offset)
{
	return translate(image, address, false, offset);
}

static int grow(struct elf_name *name, size_t size)
{
	char *text;

	if (size <= name->size)
		return 0;
	text = realloc(name->text, size);
	if (!text)
		return -ENOMEM;
	name->text = text;
	name->size = size;
	return 0;
}

int elf_image__string(const struct elf_image *image, const struct elf_strings *table, uint64_t at,
		      struct elf_name *out)
{
	size_t len = 0, chunk = 128;
	uint64_t left;
	int err;

	if (at >= table->size)
		return -ENOENT;
	left = table->size - at;
	if (left > ELF_MAX_NAME + 1)
		left = ELF_MAX_NAME + 1;
	while (len < left) {
		if (chunk > left - len)
			chunk = left - len;
		err = grow(out, len + chunk);
		if (!err)
			err = elf_image__read(image, table->offset + at + len, out->text + len,
					      chunk);
		if (err)
			return err;
		if (memchr(out->text + len, '\0', chunk))
			return 0;
		len += chunk;
		chunk = len;
	}
	return -ENOENT;
}

void elf_name__free(struct elf_name *name)
{
	free(name->text);
	*name = (struct elf_name){};
}
