/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The functions of one ELF file: offset in the file -> name as it stands in the file. 64-bit
 * little-endian ELF (System V gABI, chapters 4 and 5). Sources of names: .symtab, of the file itself,
 * of its separate debug file or of .gnu_debugdata, the first that there is; then .dynsym or, without
 * usable section headers, the dynamic segment; PLT slots (x86-64) by their relocations.
 *
 * The file may be hostile and may change while it is read: nothing is mapped, everything is read
 * by pread and checked. The index, 16 bytes a function, is built at the first look-up; names stay
 * in the file until they are asked for. Not for use by several threads at once.
 */
#ifndef SYMBOLS_FILE_H
#define SYMBOLS_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct symbol_file;
struct separate;

enum symbol_kind {
	SYMBOL_FUNCTION = 0,
	SYMBOL_IFUNC = 1,	/* the resolver of an indirect function */
	SYMBOL_LABEL = 2,	/* has no size or no type: reaches to the next symbol */
	SYMBOL_PLT = 3,		/* name is the callee's, with "@plt" */
};

struct symbol {
	const char *name;	/* not demangled; valid until the next call with the same file */
	uint64_t address;	/* where it starts: link-time address, as nm prints it */
	uint64_t size;		/* bytes it reaches */
	uint64_t offset;	/* of the place looked up, from address */
	enum symbol_kind kind;
};

/*
 * The descriptor stays the caller's and must stay open until symbol_file__free. NULL with errno:
 * ENOEXEC (not an ELF file we read), EIO, ENOMEM, ... of pread.
 */
struct symbol_file *symbol_file__open(int fd);
/* The same for an image that lies in memory, laid out as the file (vDSO); it is copied. */
struct symbol_file *symbol_file__open_memory(const void *image, size_t size);
void symbol_file__free(struct symbol_file *f);	/* NULL is fine */

/* What the file says about separate debug information; lives as long as `f`. */
const struct separate *symbol_file__separate(const struct symbol_file *f);
/*
 * A debug file, before the first look-up. 0: it is f's now, which closes it; else it stays the
 * caller's: -ENOEXEC (not ELF, or of another file), -EEXIST (there is one), -EIO, -ENOMEM.
 */
int symbol_file__add_debug(struct symbol_file *f, int fd);
/*
 * Descriptor of the one of the two that has .debug_info, open until symbol_file__free, and what it says
 * about further files; -1: none.
 */
int symbol_file__debug_info(const struct symbol_file *f, const struct separate **of);

/*
 * Which function the byte at `offset` of the file belongs to. 0; -ENOENT: no symbol covers it;
 * else -errno. The same file always gives the same answer.
 */
int symbol_file__find(struct symbol_file *f, uint64_t offset, struct symbol *out);

/*
 * The link-time address (what nm prints and addr2line takes) of a file offset, by the segment that
 * holds it, an executable one if any. false: no segment does.
 */
bool symbol_file__address(const struct symbol_file *f, uint64_t offset, uint64_t *address);

#endif
