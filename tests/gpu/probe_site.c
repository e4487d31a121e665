// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * What does this kernel offer? Cost of a uprobe on each kind of site, bare and with an empty
 * BPF program, and the software clock on every CPU. Needs root; without it says what is refused.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/bpf.h>
#include <linux/perf_event.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

__asm__(".text\n"
	".globl site_nop1\n.type site_nop1,@function\nsite_nop1: nop\n ret\n"
	".size site_nop1,.-site_nop1\n"
	".globl site_nop5\n.type site_nop5,@function\nsite_nop5: .byte 0x0f,0x1f,0x44,0,0\n ret\n"
	".size site_nop5,.-site_nop5\n"
	".globl site_nop10\n.type site_nop10,@function\n"
	"site_nop10: .byte 0x66,0x2e,0x0f,0x1f,0x84,0,0,0,0,0\n ret\n"
	".size site_nop10,.-site_nop10\n"
	".globl site_push\n.type site_push,@function\nsite_push: push %rbp\n pop %rbp\n ret\n"
	".size site_push,.-site_push\n"
	".globl site_mov\n.type site_mov,@function\nsite_mov: mov %rsp,%rax\n ret\n"
	".size site_mov,.-site_mov\n");

void site_nop1(void);
void site_nop5(void);
void site_nop10(void);
void site_push(void);
void site_mov(void);

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static uint64_t file_offset(uintptr_t addr)
{
	FILE *f = fopen("/proc/self/maps", "re");
	unsigned long start, end, off, found = 0;
	char line[512], perm[8];

	while (f && fgets(line, sizeof(line), f))
		if (sscanf(line, "%lx-%lx %7s %lx", &start, &end, perm, &off) == 4 &&
		    addr >= start && addr < end)
			found = addr - start + off;
	if (f)
		fclose(f);
	return found;
}

static int pmu_type(void)
{
	FILE *f = fopen("/sys/bus/event_source/devices/uprobe/type", "re");
	int type = -1;

	if (f && fscanf(f, "%d", &type) != 1)
		type = -1;
	if (f)
		fclose(f);
	return type;
}

static int empty_program(void)
{
	struct bpf_insn code[] = {
		{ .code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = 0, .imm = 0 },
		{ .code = BPF_JMP | BPF_EXIT },
	};
	union bpf_attr attr = {
		.prog_type = BPF_PROG_TYPE_KPROBE,
		.insns = (uintptr_t)code,
		.insn_cnt = 2,
		.license = (uintptr_t)"GPL",
	};
	int fd = (int)syscall(SYS_bpf, BPF_PROG_LOAD, &attr, sizeof(attr));

	printf("empty BPF program: %s\n", fd < 0 ? strerror(errno) : "loaded");
	return fd;
}

static void measure(const char *name, void (*site)(void), int prog)
{
	struct perf_event_attr attr = {
		.size = sizeof(attr),
		.type = (uint32_t)pmu_type(),
		.config1 = (uintptr_t)"/proc/self/exe",
		.config2 = file_offset((uintptr_t)site),
	};
	double t0 = now(), attach, plain, hit;
	uint64_t hits = 0;
	int fd;

	for (int i = 0; i < 100000; i++)
		site();
	plain = (now() - t0) / 1e5;
	t0 = now();
	fd = (int)syscall(SYS_perf_event_open, &attr, 0, -1, -1, PERF_FLAG_FD_CLOEXEC);
	if (fd < 0) {
		printf("%-10s refused: %s\n", name, strerror(errno));
		return;
	}
	if (prog >= 0 && ioctl(fd, PERF_EVENT_IOC_SET_BPF, prog))
		printf("%-10s set_bpf: %s\n", name, strerror(errno));
	attach = (now() - t0) / 1e6;
	for (int i = 0; i < 1000; i++)
		site();
	t0 = now();
	for (int i = 0; i < 50000; i++)
		site();
	hit = (now() - t0) / 5e4;
	if (read(fd, &hits, sizeof(hits)) != sizeof(hits))
		hits = 0;
	printf("%-10s %-8s %6.0f ns a hit (plain %.1f), counted %lu, first byte now %02x, "
	       "attach %.2f ms", name, prog >= 0 ? "with bpf" : "bare", hit, plain, hits,
	       *(volatile unsigned char *)(uintptr_t)site, attach);
	t0 = now();
	close(fd);
	printf(", detach %.1f ms\n", (now() - t0) / 1e6);
}

static void clocks(void)
{
	long cpus = sysconf(_SC_NPROCESSORS_ONLN), ok = 0, last = 0;

	for (long c = 0; c < cpus; c++) {
		struct perf_event_attr attr = {
			.size = sizeof(attr), .type = PERF_TYPE_SOFTWARE,
			.config = PERF_COUNT_SW_CPU_CLOCK, .freq = 1, .sample_freq = 20,
		};
		int fd = (int)syscall(SYS_perf_event_open, &attr, -1, (int)c, -1,
				      PERF_FLAG_FD_CLOEXEC);

		if (fd < 0) {
			last = errno;
			continue;
		}
		ok++;
		close(fd);
	}
	printf("software cpu-clock: %ld of %ld CPUs, last error %ld\n", ok, cpus, last);
}

int main(void)
{
	int prog;

	setvbuf(stdout, NULL, _IOLBF, 0);
	clocks();
	prog = empty_program();
	for (int p = 0; p < 2; p++) {
		int use = p ? prog : -1;

		measure("nop1", site_nop1, use);
		measure("nop5", site_nop5, use);
		measure("nop10", site_nop10, use);
		measure("push rbp", site_push, use);
		measure("mov", site_mov, use);
		if (prog < 0)
			break;
	}
	return 0;
}
