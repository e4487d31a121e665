// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "loader/tracer/space.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

#include "loader/base/array.h"
#include "loader/base/far.h"
#include "loader/maps.h"
#include "loader/tracer/exports.h"

#define MAX_AUXV 64

int space__peek(pid_t pid, uint64_t address, void *to, size_t len)
{
	ssize_t n = far__read_memory(pid, address, to, len);

	return n < 0 ? -errno : (size_t)n == len ? 0 : -EFAULT;
}

int space__poke(pid_t pid, uint64_t address, const void *from, size_t len)
{
	struct iovec local = { (void *)(uintptr_t)from, len };
	struct iovec remote = { (void *)(uintptr_t)address, len };
	ssize_t n = process_vm_writev(pid, &local, 1, &remote, 1, 0);

	return n < 0 ? -errno : (size_t)n == len ? 0 : -EFAULT;
}

static int add_line(const struct maps_line *line, void *arg)
{
	struct space *s = arg;
	struct mapping *m;

	if (array__reserve((void **)&s->areas, &s->room_areas, s->nr_areas, sizeof(*s->areas)))
		return -ENOMEM;
	s->areas[s->nr_areas++] = (struct space_area){
		.start = line->start, .end = line->end,
		.main_stack = !line->inode && !strcmp(line->path, "[stack]"),
	};
	if (!line->executable)
		return 0;
	if (array__reserve((void **)&s->code, &s->room_code, s->nr_code, sizeof(*s->code)))
		return -ENOMEM;
	m = &s->code[s->nr_code++];
	*m = (struct mapping){
		.start = line->start, .end = line->end, .offset = line->offset,
		.file = files__of_mapping(s->files, s->pid, line),
	};
	m->kind = m->file ? MAPPING_FILE :
		  strcmp(line->path, "[uprobes-trampoline]") ? MAPPING_ANON : MAPPING_TRAMPOLINE;
	return 0;
}

int space__refresh(struct space *s)
{
	s->nr_code = s->nr_areas = 0;
	return maps__read_all(s->pid, add_line, s);
}

static bool is_loader(const struct space *s, uint32_t file)
{
	struct exports e;
	bool is;

	if (!file || exports__open(&e, files__fd(s->files, file)))
		return false;
	is = exports__is_called(&e, "ld-linux-x86-64.so.2");
	exports__close(&e);
	return is;
}

/* What the kernel told the program at its start: where its entry and its dynamic loader are. */
static void find_program(struct space *s)
{
	Elf64_auxv_t auxv[MAX_AUXV];
	const struct mapping *m;
	char path[64];
	ssize_t n;
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/auxv", (int)s->pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return;
	n = read(fd, auxv, sizeof(auxv));
	close(fd);
	for (ssize_t i = 0; i < n / (ssize_t)sizeof(auxv[0]); i++) {
		if (auxv[i].a_type == AT_ENTRY) {
			m = space__code(s, auxv[i].a_un.a_val);
			s->program = m ? m->file : 0;
		} else if (auxv[i].a_type == AT_BASE && auxv[i].a_un.a_val) {
			/* Its first mapping may be of the headers alone: the code follows. */
			for (size_t k = 0; k < s->nr_code && !s->loader; k++)
				if (s->code[k].end > auxv[i].a_un.a_val)
					s->loader = s->code[k].file;
		}
	}
	/* Where it was started itself, with a program as its argument, it is what the kernel has loaded. */
	if (!s->loader && is_loader(s, s->program)) {
		s->loader = s->program;
		s->program = 0;
	}
}

int space__open(struct space *s, pid_t pid)
{
	int err;

	*s = (struct space){ .pid = pid, .files = files__new() };
	if (!s->files)
		return -ENOMEM;
	err = space__refresh(s);
	if (!err)
		find_program(s);
	return err;
}

void space__free(struct space *s)
{
	free(s->code);
	free(s->areas);
	files__free(s->files);
	*s = (struct space){ 0 };
}

const struct space_area *space__area(const struct space *s, uint64_t address)
{
	size_t lo = 0, hi = s->nr_areas;

	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;

		if (address < s->areas[mid].start)
			hi = mid;
		else if (address >= s->areas[mid].end)
			lo = mid + 1;
		else
			return &s->areas[mid];
	}
	return NULL;
}

const struct space_area *space__below(const struct space *s, const struct space_area *area)
{
	return area > s->areas ? area - 1 : NULL;
}

const struct mapping *space__code(const struct space *s, uint64_t address)
{
	for (size_t i = 0; i < s->nr_code; i++)
		if (address >= s->code[i].start && address < s->code[i].end)
			return &s->code[i];
	return NULL;
}
