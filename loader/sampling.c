// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "loader/sampling.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/perf_event.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "loader/base/fault.h"
#include "loader/base/log.h"
#include "loader/base/text.h"
#include "loader/cpus.h"

#define RING_PAGES 16		/* a power of two; 64 KiB: some 400 mappings between two reads */
#define LARGEST_RECORD 4352	/* PERF_RECORD_MMAP2 with a path of PATH_MAX bytes */
#define NS_PER_S 1000000000ull

struct cpu {
	int clock_fd;
	int mapped_fd;
	struct perf_event_mmap_page *ring;
	uint64_t lost;		/* records dropped, as last told */
	bool on;
};

struct sampling {
	struct sampling_config config;
	struct cpu *cpu;
	int nr;			/* highest CPU seen + 1 */
	size_t page;
	char *record;		/* one that wraps is put together here */
	int uevents;		/* socket; -1: none */
	unsigned int opened;	/* CPUs, by the last scan */
};

static int perf_event_open(struct perf_event_attr *attr, pid_t pid, int cpu)
{
	return (int)syscall(SYS_perf_event_open, attr, pid, cpu, -1, PERF_FLAG_FD_CLOEXEC);
}

/*
 * A period a little different on every CPU, and not a round number: samples must not march in
 * step with each other or with a program that does something every 10 ms.
 */
static uint64_t period(unsigned int frequency, int cpu)
{
	uint64_t p = NS_PER_S / frequency;

	return p - p * (uint64_t)((cpu * 7 + 3) % 16) / 16384;
}

static int open_clock(const struct sampling *s, int cpu)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_SOFTWARE,
		.size = sizeof(attr),
		.config = PERF_COUNT_SW_CPU_CLOCK,
		.sample_period = period(s->config.frequency, cpu),
		.exclude_idle = 1,
	};
	int fd = perf_event_open(&attr, -1, cpu), err;

	if (fd < 0)
		return -errno;
	if (ioctl(fd, PERF_EVENT_IOC_SET_BPF, s->config.program_fd) ||
	    ioctl(fd, PERF_EVENT_IOC_ENABLE, 0)) {
		err = -errno;
		close(fd);
		return err;
	}
	return fd;
}

static int open_mapped(const struct sampling *s, int cpu)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_SOFTWARE,
		.size = sizeof(attr),
		.config = PERF_COUNT_SW_DUMMY,
		.mmap = 1,
		.mmap2 = 1,
		.comm = 1,
		.comm_exec = 1,
		.sample_id_all = 1,
		.sample_type = PERF_SAMPLE_TIME,
		.use_clockid = 1,
		.clockid = CLOCK_MONOTONIC,
		/* Or at any record: wakeup_events counts samples alone. */
		.watermark = 1,
		.wakeup_watermark = s->config.lazy ? (uint32_t)(RING_PAGES * s->page / 2) : 1,
		.read_format = PERF_FORMAT_LOST,	/* Linux 6.0 */
	};
	int fd = perf_event_open(&attr, -1, cpu);

	if (fd < 0 && errno == EINVAL) {
		attr.read_format = 0;
		fd = perf_event_open(&attr, -1, cpu);
	}
	return fd < 0 ? -errno : fd;
}

static void cpu__close(struct sampling *s, struct cpu *c)
{
	if (c->clock_fd >= 0)
		close(c->clock_fd);
	if (c->ring)
		munmap(c->ring, (RING_PAGES + 1) * s->page);
	if (c->mapped_fd >= 0) {
		epoll_ctl(s->config.epoll_fd, EPOLL_CTL_DEL, c->mapped_fd, NULL);
		close(c->mapped_fd);
	}
	memset(c, 0, sizeof(*c));
	c->clock_fd = -1;
	c->mapped_fd = -1;
}

static int cpu__open(struct sampling *s, int cpu)
{
	struct epoll_event event = { .events = EPOLLIN, .data.u64 = s->config.epoll_data };
	struct cpu *c = &s->cpu[cpu];
	int err;

	if (s->config.program_fd >= 0) {
		c->clock_fd = open_clock(s, cpu);
		if (c->clock_fd < 0) {
			err = c->clock_fd;
			goto fail;
		}
	}
	c->mapped_fd = open_mapped(s, cpu);
	if (c->mapped_fd < 0) {
		err = c->mapped_fd;
		goto fail;
	}
	c->ring = mmap(NULL, (RING_PAGES + 1) * s->page, PROT_READ | PROT_WRITE, MAP_SHARED,
		       c->mapped_fd, 0);
	if (c->ring == MAP_FAILED) {
		c->ring = NULL;
		err = -errno;
		goto fail;
	}
	FAULT_POINT("cpu-opened");
	if (epoll_ctl(s->config.epoll_fd, EPOLL_CTL_ADD, c->mapped_fd, &event)) {
		err = -errno;
		goto fail;
	}
	c->on = true;
	return 0;
fail:
	cpu__close(s, c);
	return err;
}

static int sampling__scan(struct sampling *s, int *first_error)
{
	uint8_t *set = malloc(CPUS_MAX);
	int nr, cpu, err, opened = 0;

	if (!set)
		return -ENOMEM;
	nr = cpus__online(set);
	if (nr > s->nr)
		s->nr = nr;
	for (cpu = 0; cpu < s->nr; cpu++) {
		struct cpu *c = &s->cpu[cpu];

		if (c->on && !set[cpu])
			cpu__close(s, c);
		else if (!c->on && set[cpu]) {
			err = cpu__open(s, cpu);
			s->opened += !err;
			if (err && !*first_error)
				*first_error = err;
		}
		opened += c->on;
	}
	free(set);
	return opened;
}

/* An event on a CPU that went off is dead for ever, also when the CPU is back. */
static void sampling__close_dead(struct sampling *s)
{
	int cpu, i;

	while (s->uevents >= 0 && (cpu = cpus__went_off(s->uevents)) != CPUS_NONE)
		for (i = 0; i < s->nr; i++)
			if (cpu == i || cpu == CPUS_ANY)
				cpu__close(s, &s->cpu[i]);
}

int sampling__new(const struct sampling_config *config, struct sampling **out, char **why)
{
	struct sampling *s = calloc(1, sizeof(*s));
	int cpu, opened, err = 0;

	*why = NULL;
	if (!s)
		return -ENOMEM;
	s->config = *config;
	s->uevents = -1;
	s->page = (size_t)sysconf(_SC_PAGESIZE);
	s->record = malloc(UINT16_MAX + 1);
	s->cpu = calloc(CPUS_MAX, sizeof(*s->cpu));
	if (!s->record || !s->cpu) {
		sampling__free(s);
		return -ENOMEM;
	}
	for (cpu = 0; cpu < CPUS_MAX; cpu++)
		s->cpu[cpu].clock_fd = s->cpu[cpu].mapped_fd = -1;
	s->uevents = cpus__watch();
	opened = sampling__scan(s, &err);
	FAULT_POINT("sampling-set-up");
	if (opened > 0) {
		if (err)
			log_warn("some CPUs can't be sampled: %s", strerror(-err));
		*out = s;
		return 0;
	}
	if (opened < 0)
		err = opened;
	sampling__free(s);
	return text__why(why, err ? err : -ENODEV, "perf_event_open for CPU samples: %s; "
			 "kernel.perf_event_paranoid may forbid it: run as root, or: sysctl "
			 "kernel.perf_event_paranoid=2", strerror(-err));
}

void sampling__free(struct sampling *s)
{
	int cpu;

	if (!s)
		return;
	for (cpu = 0; s->cpu && cpu < s->nr; cpu++)
		cpu__close(s, &s->cpu[cpu]);
	if (s->uevents >= 0)
		close(s->uevents);
	free(s->cpu);
	free(s->record);
	free(s);
}

unsigned int sampling__rescan(struct sampling *s)
{
	int err = 0;

	s->opened = 0;
	sampling__close_dead(s);
	sampling__scan(s, &err);
	if (err)
		log_debug("a CPU that came up can't be sampled: %s", strerror(-err));
	return s->opened;
}

/* The parts of records behind their headers, perf_event_open(2); a path follows, and at last the time. */
struct mmap2 {
	uint32_t pid, tid;
	uint64_t addr, len, pgoff;
	uint32_t dev_major, dev_minor;
	uint64_t inode, inode_generation;
	uint32_t prot, flags;
};

struct comm {
	uint32_t pid, tid;
};

static void on_mmap2(const char *body, char *end, sampling_event_fn fn, void *ctx)
{
	struct sampling_event event = { .path = body + sizeof(struct mmap2) };
	struct mmap2 m;

	memcpy(&m, body, sizeof(m));
	end[-1] = '\0';			/* is so already: the kernel pads the path with zeroes */
	event.tgid = (pid_t)m.pid;
	event.start = m.addr;
	event.size = m.len;
	event.offset = m.pgoff;
	event.dev_major = m.dev_major;
	event.dev_minor = m.dev_minor;
	event.inode = m.inode;
	memcpy(&event.time, end, sizeof(event.time));
	fn(ctx, &event);
}

static void on_comm(const char *body, const char *end, sampling_event_fn fn, void *ctx)
{
	struct sampling_event event = { .exec = true, .path = "" };
	struct comm c;

	memcpy(&c, body, sizeof(c));
	event.tgid = (pid_t)c.pid;
	memcpy(&event.time, end, sizeof(event.time));
	fn(ctx, &event);
}

static uint64_t handle_record(struct perf_event_header *head, sampling_event_fn fn, void *ctx)
{
	char *body = (char *)(head + 1), *end = (char *)head + head->size - sizeof(uint64_t);
	size_t size = head->size - sizeof(*head);
	uint64_t lost = 0;

	if (head->type == PERF_RECORD_LOST && size >= 16)
		memcpy(&lost, body + 8, sizeof(lost));
	else if (head->type == PERF_RECORD_MMAP2 && size > sizeof(struct mmap2) + sizeof(uint64_t))
		on_mmap2(body, end, fn, ctx);
	else if (head->type == PERF_RECORD_COMM && head->misc & PERF_RECORD_MISC_COMM_EXEC &&
		 size > sizeof(struct comm) + sizeof(uint64_t))
		on_comm(body, end, fn, ctx);
	return lost;
}

/*
 * How many records were dropped since it was last asked. The kernel puts a record of that before the next one
 * on that CPU, which may be long in coming; from Linux 6.0 on it can be asked.
 */
static uint64_t cpu__lost(struct cpu *c, uint64_t recorded)
{
	struct { uint64_t value, lost; } now;
	uint64_t before = c->lost;

	if (read(c->mapped_fd, &now, sizeof(now)) != sizeof(now))
		return recorded;
	c->lost = now.lost;
	return now.lost - before;
}

static uint64_t cpu__read(struct sampling *s, struct cpu *c, sampling_event_fn fn, void *ctx, bool *missed)
{
	uint64_t head = __atomic_load_n(&c->ring->data_head, __ATOMIC_ACQUIRE);
	uint64_t tail = c->ring->data_tail, size = RING_PAGES * s->page, lost = 0;
	bool full = size - (head - tail) < LARGEST_RECORD;
	char *data = (char *)c->ring + s->page;

	while (tail < head) {
		struct perf_event_header *h = (void *)(data + tail % size);
		size_t len = h->size, first = size - tail % size;

		if (len < sizeof(*h))
			break;
		/* Copied always: the ring is the kernel's, and a record may wrap. */
		if (first > len)
			first = len;
		memcpy(s->record, h, first);
		memcpy(s->record + first, data, len - first);
		lost += handle_record((void *)s->record, fn, ctx);
		tail += len;
	}
	/* What came meanwhile had the old tail as its end. */
	full |= size - (__atomic_load_n(&c->ring->data_head, __ATOMIC_ACQUIRE) - c->ring->data_tail) <
		LARGEST_RECORD;
	__atomic_store_n(&c->ring->data_tail, tail, __ATOMIC_RELEASE);
	*missed |= full || lost;
	return full || lost ? cpu__lost(c, lost) : 0;
}

uint64_t sampling__read(struct sampling *s, sampling_event_fn fn, void *ctx, bool *missed)
{
	uint64_t lost = 0;
	int cpu;

	FAULT_POINT("mappings-announced");
	for (cpu = 0; cpu < s->nr; cpu++)
		if (s->cpu[cpu].on)
			lost += cpu__read(s, &s->cpu[cpu], fn, ctx, missed);
	return lost;
}
