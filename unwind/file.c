// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "unwind/file.h"
#include "unwind/elf_view.h"
#include "unwind/fde.h"

#include <errno.h>
#include <stdlib.h>

struct unwind_file {
	struct elf_view *view;
	struct fde_index *fdes[2];	/* by enum fde_section */
};

static int file__wrap(struct unwind_file **out, struct elf_view *view)
{
	struct unwind_file *file = calloc(1, sizeof(*file));
	int err;

	if (!file) {
		elf_view__free(view);
		return -ENOMEM;
	}
	file->view = view;
	err = fde_index__new(&file->fdes[FDE_EH_FRAME], view, FDE_EH_FRAME);
	if (!err)
		err = fde_index__new(&file->fdes[FDE_DEBUG_FRAME], view, FDE_DEBUG_FRAME);
	if (err) {
		unwind_file__free(file);
		return err;
	}
	*out = file;
	return 0;
}

int unwind_file__open(struct unwind_file **file, int fd)
{
	struct elf_view *view;
	int err = elf_view__open(&view, fd);

	return err ? err : file__wrap(file, view);
}

int unwind_file__open_memory(struct unwind_file **file, const void *image, size_t size)
{
	struct elf_view *view;
	int err = elf_view__open_memory(&view, image, size);

	return err ? err : file__wrap(file, view);
}

void unwind_file__free(struct unwind_file *file)
{
	if (!file)
		return;
	fde_index__free(file->fdes[FDE_EH_FRAME]);
	fde_index__free(file->fdes[FDE_DEBUG_FRAME]);
	elf_view__free(file->view);
	free(file);
}

size_t unwind_file__memory(const struct unwind_file *file)
{
	return sizeof(*file) + elf_view__memory(file->view) +
	       fde_index__memory(file->fdes[FDE_EH_FRAME]) +
	       fde_index__memory(file->fdes[FDE_DEBUG_FRAME]);
}

struct elf_view *unwind_file__view(struct unwind_file *file)
{
	return file->view;
}

struct fde_index *unwind_file__fdes(struct unwind_file *file, enum fde_section section)
{
	return file->fdes[section];
}
