// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "loader/uprobes.h"

#include <errno.h>
#include <linux/bpf.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <bpf/bpf.h>

/* The part of union bpf_attr that BPF_LINK_CREATE reads for this attach type. */
struct link_create {
	uint32_t program_fd;
	uint32_t target_fd;
	uint32_t attach_type;
	uint32_t flags;
	uint64_t path;
	uint64_t offsets;
	uint64_t ref_ctr_offsets;
	uint64_t cookies;
	uint32_t nr;
	uint32_t multi_flags;
	uint32_t pid;
	uint32_t reserved;
};

int uprobes__attach(int program_fd, const char *path, const uint64_t *offsets,
		    const uint64_t *cookies, size_t nr)
{
	struct link_create attr = {
		.program_fd = (uint32_t)program_fd,
		.attach_type = UPROBES_ATTACH_TYPE,
		.path = (uintptr_t)path,
		.offsets = (uintptr_t)offsets,
		.cookies = (uintptr_t)cookies,
		.nr = (uint32_t)nr,
	};
	int fd = (int)syscall(SYS_bpf, BPF_LINK_CREATE, &attr, sizeof(attr));

	return fd < 0 ? -errno : fd;
}

bool uprobes__supported(void)
{
	/* r0 = 0; exit */
	const struct bpf_insn code[] = {
		{ .code = BPF_ALU64 | BPF_MOV | BPF_K },
		{ .code = BPF_JMP | BPF_EXIT },
	};
	LIBBPF_OPTS(bpf_prog_load_opts, opts,
		    .expected_attach_type = (enum bpf_attach_type)UPROBES_ATTACH_TYPE);
	const uint64_t offset = 0;
	int program, link;

	program = bpf_prog_load(BPF_PROG_TYPE_KPROBE, NULL, "GPL", code, 2, &opts);
	if (program < 0)
		return false;
	/* A directory: a kernel that knows the attach type looks at the path and says so. */
	link = uprobes__attach(program, "/", &offset, NULL, 1);
	if (link >= 0)
		close(link);
	close(program);
	return link == -EBADF;
}
