// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "loader/uprobes.h"

#include <errno.h>
#include <linux/bpf.h>
#include <linux/perf_event.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <sys/wait.h>
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
		    const uint64_t *cookies, size_t nr, pid_t pid)
{
	struct link_create attr = {
		.program_fd = (uint32_t)program_fd,
		.attach_type = UPROBES_ATTACH_TYPE,
		.path = (uintptr_t)path,
		.offsets = (uintptr_t)offsets,
		.cookies = (uintptr_t)cookies,
		.nr = (uint32_t)nr,
		.pid = (uint32_t)pid,
	};
	int fd = (int)syscall(SYS_bpf, BPF_LINK_CREATE, &attr, sizeof(attr));

	return fd < 0 ? -errno : fd;
}

/* The number of the kernel's event source for uprobes, or a negative errno. */
static int event_type(void)
{
	FILE *f = fopen("/sys/bus/event_source/devices/uprobe/type", "re");
	int type = -1;

	if (!f)
		return -errno;
	if (fscanf(f, "%d", &type) != 1)
		type = -1;
	fclose(f);
	return type < 0 ? -EINVAL : type;
}

int uprobes__attach_process(int program_fd, const char *path, uint64_t offset, uint64_t cookie,
			    pid_t pid)
{
	LIBBPF_OPTS(bpf_link_create_opts, opts, .perf_event.bpf_cookie = cookie);
	struct perf_event_attr attr = {
		.size = sizeof(attr),
		.disabled = 1,		/* nothing is counted but by the program */
		.config1 = (uintptr_t)path,
		.config2 = offset,
	};
	int type = event_type(), event, link;

	if (type < 0)
		return type;
	attr.type = (uint32_t)type;
	event = (int)syscall(SYS_perf_event_open, &attr, pid, -1, -1, PERF_FLAG_FD_CLOEXEC);
	if (event < 0)
		return -errno;
	link = bpf_link_create(program_fd, event, BPF_PERF_EVENT, &opts);
	if (link < 0)
		uprobes__detach(event);
	else
		close(event);		/* the link holds it */
	return link;
}

static int close_link(void *fd)
{
	return close(*(int *)fd);
}

void uprobes__detach(int fd)
{
	_Alignas(16) char stack[16384];
	pid_t pid = clone(close_link, stack + sizeof(stack), CLONE_VM | CLONE_FILES | CLONE_VFORK, &fd);

	if (pid < 0)
		close(fd);
	while (pid > 0 && waitpid(pid, NULL, __WALL) < 0 && errno == EINTR)
		;
}

static int load_program(void)
{
	/* r0 = 0; exit */
	const struct bpf_insn code[] = {
		{ .code = BPF_ALU64 | BPF_MOV | BPF_K },
		{ .code = BPF_JMP | BPF_EXIT },
	};
	LIBBPF_OPTS(bpf_prog_load_opts, opts,
		    .expected_attach_type = (enum bpf_attach_type)UPROBES_ATTACH_TYPE);

	return bpf_prog_load(BPF_PROG_TYPE_KPROBE, NULL, "GPL", code, 2, &opts);
}

/* What attaching to the first byte of a file says. */
static int try_to_attach(const char *path, pid_t pid)
{
	const uint64_t offset = 0;
	int program = load_program(), link;

	if (program < 0)
		return program;
	link = uprobes__attach(program, path, &offset, NULL, 1, pid);
	close(program);
	if (link < 0)
		return link;
	close(link);
	return 0;
}

bool uprobes__supported(void)
{
	/* A directory: a kernel that knows the attach type looks at the path and says so. */
	return try_to_attach("/", 0) == -EBADF;
}

/* In a thread that is not the process's first: its id is not a process's. */
static void *try_thread(void *arg)
{
	int *result = arg;

	*result = try_to_attach("/proc/self/exe", (pid_t)syscall(SYS_gettid));
	return NULL;
}

bool uprobes__per_process(void)
{
	pthread_t thread;
	int result = 0;

	if (!uprobes__supported() || pthread_create(&thread, NULL, try_thread, &result))
		return false;
	pthread_join(thread, NULL);
	return result == -ESRCH;
}
