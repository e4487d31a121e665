// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "symbols/separate.h"

#include <errno.h>
#include <lzma.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#define MAX_NOTES (64u << 10)		/* bytes of one note section */
#define MAX_PACKED (64u << 20)		/* of .gnu_debugdata */
#define XZ_MEMORY (128u << 20)		/* what its decoder may take */
#define CHUNK (256u << 10)

/* Names and contents of notes are padded to 4 bytes, in 64-bit files, too. */
static uint64_t padded(uint32_t n)
{
	return ((uint64_t)n + 3) & ~3ull;
}

static void find_build_id(const uint8_t *notes, size_t size, struct build_id *id)
{
	Elf64_Nhdr note;

	for (size_t at = 0; size - at >= sizeof(note);) {
		const uint8_t *name = notes + at + sizeof(note);
		uint64_t left = size - at - sizeof(note);

		memcpy(&note, notes + at, sizeof(note));
		if (padded(note.n_namesz) > left || note.n_descsz > left - padded(note.n_namesz))
			return;
		if (note.n_type == NT_GNU_BUILD_ID && note.n_namesz == 4 &&
		    !memcmp(name, "GNU", 4) && note.n_descsz >= 2 &&
		    note.n_descsz <= BUILD_ID_MAX) {
			memcpy(id->bytes, name + 4, note.n_descsz);
			id->len = note.n_descsz;
			return;
		}
		left -= padded(note.n_namesz);
		if (padded(note.n_descsz) > left)
			return;
		at = size - (size_t)(left - padded(note.n_descsz));
	}
}

static int read_notes(const struct elf_image *image, uint64_t offset, uint64_t size,
		      struct build_id *id)
{
	uint8_t *notes;

	if (id->len || !size || size > MAX_NOTES || !elf_image__holds(image, offset, size))
		return 0;
	notes = malloc(size);
	if (!notes)
		return -ENOMEM;
	if (!elf_image__read(image, offset, notes, size))
		find_build_id(notes, size, id);
	free(notes);
	return 0;
}

/* A name, '\0', padding to 4 bytes, a checksum of 4. It is a name and no path. */
static void read_link(const struct elf_image *image, const Elf64_Shdr *s, struct separate *out)
{
	char text[sizeof(out->link) + 8] = "";
	size_t size = s->sh_size < sizeof(text) ? s->sh_size : sizeof(text), len;

	if (elf_image__read(image, s->sh_offset, text, size))
		return;
	len = strnlen(text, size);
	if (!len || len >= sizeof(out->link) || padded((uint32_t)len + 1) + 4 > size ||
	    strchr(text, '/') || !strcmp(text, ".") || !strcmp(text, ".."))
		return;
	memcpy(out->link, text, len + 1);
	memcpy(&out->link_crc, text + padded((uint32_t)len + 1), sizeof(out->link_crc));
}

/* A path, '\0', a build id. */
static void read_alt(const struct elf_image *image, const Elf64_Shdr *s, struct separate *out)
{
	char text[sizeof(out->alt) + BUILD_ID_MAX] = "";
	size_t size = s->sh_size < sizeof(text) ? s->sh_size : sizeof(text), len;

	if (elf_image__read(image, s->sh_offset, text, size))
		return;
	len = strnlen(text, size);
	if (!len || len >= sizeof(out->alt) || size - len - 1 < 2 || size - len - 1 > BUILD_ID_MAX)
		return;
	memcpy(out->alt, text, len + 1);
	out->alt_id.len = size - len - 1;
	memcpy(out->alt_id.bytes, text + len + 1, out->alt_id.len);
}

static int read_section(const struct elf_image *image, const Elf64_Shdr *s, const char *name,
			struct separate *out)
{
	if (s->sh_type == SHT_NOBITS || !elf_image__holds(image, s->sh_offset, s->sh_size))
		return 0;
	if (s->sh_type == SHT_NOTE)
		return read_notes(image, s->sh_offset, s->sh_size, &out->id);
	if (s->sh_type == SHT_SYMTAB && s->sh_size > sizeof(Elf64_Sym))
		out->has_symtab = true;
	if (!strcmp(name, ".gnu_debuglink")) {
		read_link(image, s, out);
	} else if (!strcmp(name, ".gnu_debugaltlink")) {
		read_alt(image, s, out);
	} else if (!strcmp(name, ".gnu_debugdata")) {
		out->mini_offset = s->sh_offset;
		out->mini_size = s->sh_size;
	} else if (!strcmp(name, ".debug_info")) {
		out->has_debug_info = s->sh_size > 0;
	}
	return 0;
}

static int read_sections(const struct elf_image *image, struct separate *out)
{
	struct elf_strings names = {};
	Elf64_Shdr *sections;
	uint32_t index = image->header.e_shstrndx;
	size_t nr;
	int err = elf_image__sections(image, &sections, &nr);

	if (err)
		return err == -ENOMEM ? err : 0;
	if (index == SHN_XINDEX)
		index = sections[0].sh_link;
	if (index < nr && sections[index].sh_type == SHT_STRTAB &&
	    elf_image__holds(image, sections[index].sh_offset, sections[index].sh_size))
		names = (struct elf_strings){ sections[index].sh_offset, sections[index].sh_size };
	for (size_t i = 0; i < nr && !err; i++) {
		char name[24] = "";	/* longer ones are none of ours */
		uint64_t left = sections[i].sh_name < names.size ? names.size - sections[i].sh_name : 0;

		if (left > sizeof(name) - 1)
			left = sizeof(name) - 1;
		if (elf_image__read(image, names.offset + sections[i].sh_name, name, left))
			name[0] = '\0';
		err = read_section(image, &sections[i], name, out);
	}
	free(sections);
	return err;
}

int separate__read(const struct elf_image *image, struct separate *out)
{
	int err;

	*out = (struct separate){};
	err = read_sections(image, out);
	for (size_t i = 0; i < image->nr_segments && !err; i++)
		if (image->segments[i].p_type == PT_NOTE)
			err = read_notes(image, image->segments[i].p_offset,
					 image->segments[i].p_filesz, &out->id);
	return err;
}

bool build_id__equal(const struct build_id *a, const struct build_id *b)
{
	return a->len && a->len == b->len && !memcmp(a->bytes, b->bytes, a->len);
}

static bool has_crc(const struct elf_image *image, uint32_t wanted)
{
	uint8_t *chunk = image->size <= SEPARATE_MAX_CRC ? malloc(CHUNK) : NULL;
	uLong crc = crc32(0, NULL, 0);
	bool same = chunk;

	for (uint64_t at = 0; same && at < image->size; at += CHUNK) {
		size_t len = image->size - at < CHUNK ? (size_t)(image->size - at) : CHUNK;

		same = !elf_image__read(image, at, chunk, len);
		if (same)
			crc = crc32(crc, chunk, (uInt)len);
	}
	free(chunk);
	return same && crc == wanted;
}

/* Equal build ids say more than a checksum of 32 bits, and cost no reading of a gigabyte. */
bool separate__belongs(const struct separate *of, const struct elf_image *image)
{
	struct separate other;

	if (separate__read(image, &other))
		return false;
	if (of->id.len && other.id.len)
		return build_id__equal(&of->id, &other.id);
	return of->link[0] && has_crc(image, of->link_crc);
}

/* `out` grows; -E2BIG where it would grow beyond what is allowed. */
static int unpack(lzma_stream *xz, uint8_t **out, size_t *size)
{
	lzma_ret ret = LZMA_OK;
	uint8_t *grown;

	while (ret == LZMA_OK) {
		size_t more = *size ? *size : CHUNK;

		if (*size + more > SEPARATE_MAX_MINI)
			return -E2BIG;
		grown = realloc(*out, *size + more);
		if (!grown)
			return -ENOMEM;
		*out = grown;
		xz->next_out = grown + *size;
		xz->avail_out = more;
		ret = lzma_code(xz, LZMA_FINISH);
		*size += more - xz->avail_out;
		if (ret == LZMA_OK && xz->avail_out)
			return -EINVAL;		/* it ends too early */
	}
	return ret == LZMA_STREAM_END ? 0 : ret == LZMA_MEM_ERROR ? -ENOMEM :
	       ret == LZMA_MEMLIMIT_ERROR ? -E2BIG : -EINVAL;
}

int separate__mini(const struct separate *of, const struct elf_image *image, uint8_t **bytes,
		   size_t *size)
{
	lzma_stream xz = LZMA_STREAM_INIT;
	uint8_t *packed, *out = NULL;
	int err;

	if (!of->mini_size)
		return -ENOENT;
	if (of->mini_size > MAX_PACKED)
		return -E2BIG;
	packed = malloc(of->mini_size);
	if (!packed)
		return -ENOMEM;
	*size = 0;
	err = elf_image__read(image, of->mini_offset, packed, of->mini_size);
	if (!err && lzma_stream_decoder(&xz, XZ_MEMORY, 0) != LZMA_OK)
		err = -ENOMEM;
	if (!err) {
		xz.next_in = packed;
		xz.avail_in = of->mini_size;
		err = unpack(&xz, &out, size);
		lzma_end(&xz);
	}
	free(packed);
	if (err)
		free(out);
	else
		*bytes = out;
	return err;
}
