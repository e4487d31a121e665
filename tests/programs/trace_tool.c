// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Gets a library into a process the way gpucollect does, for tests:
 *
 *	trace_tool LIBRARY PID [TIMES]
 *
 * For each time a line "err=N placed=0|1 present=0|1 stage=N status=N held_us=N holds=N why=TEXT".
 * Status 0 if all went well, 1 otherwise.
 */
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "loader/tracer/inject.h"

/* The stub's offset in the file by .symtab: the file is ours. */
static uint64_t find_stub(const char *image)
{
	const Elf64_Ehdr *eh = (const void *)image;
	const Elf64_Shdr *sh = (const void *)(image + eh->e_shoff);

	for (int i = 0; i < eh->e_shnum; i++) {
		const Elf64_Sym *sym = (const void *)(image + sh[i].sh_offset);
		const char *names = image + sh[sh[i].sh_link].sh_offset;

		if (sh[i].sh_type != SHT_SYMTAB)
			continue;
		for (size_t k = 0; k < sh[i].sh_size / sizeof(*sym); k++) {
			const Elf64_Shdr *in = &sh[sym[k].st_shndx];

			if (!strcmp(names + sym[k].st_name, "gpucollect_stub"))
				return sym[k].st_value - in->sh_addr + in->sh_offset;
		}
	}
	return 0;
}

static int attach(const struct tracer_request *request)
{
	struct tracer *t = tracer__new(request);
	struct tracer_result result = { 0 };
	struct pollfd p = { .events = POLLIN };
	int placed = 0;

	if (!t) {
		perror("tracer__new");
		return 1;
	}
	p.fd = tracer__fd(t);
	while (result.state != TRACER_DONE) {
		poll(&p, 1, -1);
		tracer__get(t, &result);
		if (result.state == TRACER_PLACED) {
			placed = result.file >= 0;
			tracer__proceed(t);
		}
	}
	printf("err=%d placed=%d present=%d stage=%u status=%d held_us=%llu holds=%u why=%s\n",
	       result.err, placed, result.present, result.attach.stage, result.attach.status,
	       (unsigned long long)(result.held_ns / 1000), result.holds, result.why);
	fflush(stdout);
	tracer__free(t);
	return result.err != 0;
}

int main(int argc, char **argv)
{
	struct tracer_request request = { 0 };
	int times, fd, failed = 0;
	struct stat st;

	if (argc < 3)
		return 64;
	fd = open(argv[1], O_RDONLY | O_CLOEXEC);
	if (fd < 0 || fstat(fd, &st)) {
		perror(argv[1]);
		return 2;
	}
	request.image = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
	request.size = (size_t)st.st_size;
	request.stub = find_stub(request.image);
	request.pid = atoi(argv[2]);
	for (times = argc > 3 ? atoi(argv[3]) : 1; times > 0; times--)
		failed |= attach(&request);
	return failed;
}
