/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Frame words (bpf/gpucollect.h) to names: each word is worked out once and remembered. Never
 * fails: what has no name gets a visible mark that says why.
 *
 *	at::native::foo<float>		a symbol, demangled, without parameters
 *	libfoo.so+0x1234		no symbol: link-time address, as nm and addr2line take it
 *					(the offset in the file where that can't be had)
 *	vfs_read			the kernel; kernel+0xffff... no symbol there,
 *					[kernel] where addresses are hidden
 *	[anonymous code]		executable memory without a file
 *	[truncated], [no unwind info: libfoo.so], ...	how a stack ended
 *	[unknown]			a file that was never added
 *
 * Names are as the files have them: making them fit a format is the output's part. Not for use by
 * several threads at once.
 */
#ifndef SYMBOLS_CACHE_H
#define SYMBOLS_CACHE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct symbols;

enum resolved_kind {
	RESOLVED_NATIVE = 0,	/* a name from a file */
	RESOLVED_KERNEL = 1,	/* a name from the kernel */
	RESOLVED_UNNAMED = 2,	/* module and address, or anonymous code: no symbol covers it */
	RESOLVED_MARK = 3,	/* how the stack ended: not a function */
};

/* A call that the compiler inlined. */
struct resolved_inline {
	const char *name;	/* as struct resolved */
	const char *symbol;
	const char *file;	/* where in it the frame is: source file, NULL: not known */
	uint32_t line;		/* 0: not known */
};

/* All strings live as long as the struct symbols; equal names are the same pointer. */
struct resolved {
	const char *name;	/* to show; never NULL, never empty */
	const char *symbol;	/* as in the file, mangled; NULL: none */
	const char *module;	/* file name without directories; of kernel code its module, or */
				/* "kernel"; NULL: none */
	uint64_t address;	/* link-time address; of kernel and anonymous code as it is */
	enum resolved_kind kind;
	bool guess;		/* found by the frame pointer, not by unwind information */
	const char *file;	/* source file of the function's own line, NULL: not known */
	uint32_t line;		/* 0: not known */
	uint32_t nr_inlines;
	const struct resolved_inline *inlines;	/* inlined in the function there, outermost first */
};

struct symbols *symbols__new(void);		/* NULL: out of memory */
void symbols__free(struct symbols *s);		/* NULL is fine */

/*
 * What file id `file` of the words is. `path` names the module (what follows the last '/'); it is
 * copied. The descriptor stays the caller's and must stay open until symbols__free; -1: the file
 * can't be read. The file is looked into when the first of its words is resolved. An id can be
 * added once: -EEXIST. 0, -EEXIST or -ENOMEM.
 */
int symbols__add_file(struct symbols *s, uint32_t file, int fd, const char *path);
/* The same for an image in memory (vDSO: path "[vdso]"), which is copied. */
int symbols__add_image(struct symbols *s, uint32_t file, const void *image, size_t size,
		       const char *path);

/*
 * Where a file lies: `root` is an O_PATH descriptor of its process's root (the caller's, open until
 * symbols__free), `path` the way from there. Its separate debug file is looked for in that root and
 * in ours. Without it, in ours alone. 0, -ENOENT (no such id), -ENOMEM.
 */
int symbols__set_place(struct symbols *s, uint32_t file, int root, const char *path);
/*
 * Lines and inlined calls are looked up, too, where debug information is at hand (lines.h): called
 * before the first look-up. `pulse` is called while that takes time; true gives up. 0 or -ENOMEM.
 */
int symbols__use_lines(struct symbols *s, bool (*pulse)(void *ctx), void *ctx);
/*
 * Where to ask for the debug file of a build id when it isn't found on this machine: a descriptor, which
 * is ours then, or -1. What it brings is believed only if it has that build id.
 */
struct build_id;
void symbols__set_fetch(struct symbols *s, int (*fetch)(void *ctx, const struct build_id *id),
			void *ctx);
/* Files, by *pos from 0 on, whose lines aren't whole: name and why; false: no more. */
bool symbols__next_missing(const struct symbols *s, size_t *pos, const char **name,
			   const char **why);
/* Files that were read so far; copies of one build, of the same owner, are one. */
size_t symbols__nr_opened(const struct symbols *s);

/*
 * Where kernel names come from; default /proc/kallsyms. Read at the first kernel word, and again
 * (not more often than each second, later each minute) when an address has no name: modules come
 * and go. Words that are known keep their names.
 */
int symbols__set_kernel_path(struct symbols *s, const char *path);
/* Why there are no kernel names: 0 there are, or none were asked for; else kernel_symbols__read. */
int symbols__kernel_error(const struct symbols *s);

/* true and *out; false: the word stands for no frame (END_ROOT). */
bool symbols__resolve(struct symbols *s, uint64_t word, struct resolved *out);

/*
 * A name that comes without an address (of a GPU kernel): readable form of it, interned, the name
 * itself where it isn't mangled. "[unknown]" for NULL, an empty one or without memory.
 */
const char *symbols__readable(struct symbols *s, const char *mangled);

#endif
