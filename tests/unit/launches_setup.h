/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* struct launches with a channel in this process, as a library would have it. */
#ifndef TESTS_UNIT_LAUNCHES_SETUP_H
#define TESTS_UNIT_LAUNCHES_SETUP_H

#include <errno.h>
#include <fcntl.h>
#include <linux/memfd.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "gpu_timing/reader.h"
#include "loader/base/log.h"
#include "loader/launches.h"
#include "loader/stacks.h"
#include "tests/unit/unit.h"

#define SEALS (F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL)

static struct channel_segment *segment;
static struct launches *launches;
static struct tally *tally;
static struct process process;
static unsigned int refusals;
static enum channel_reason refused_for;

static inline void on_refused(void *ctx, struct process *p, enum channel_reason reason, uint32_t detail)
{
	ck_assert_ptr_eq(ctx, &refusals);
	ck_assert_ptr_eq(p, &process);
	ck_assert_uint_eq(detail, 3);
	refused_for = reason;
	refusals++;
}

static unsigned int armed, taken, unreached;
static int unreached_for;
static pid_t taken_by;

static inline void on_unreached(void *ctx, struct process *p, int err)
{
	ck_assert_ptr_eq(ctx, &refusals);
	ck_assert_ptr_eq(p, &process);
	unreached_for = err;
	unreached++;
}

static inline void on_armed(void *ctx, struct process *p)
{
	ck_assert_ptr_eq(ctx, &refusals);
	ck_assert_ptr_eq(p, &process);
	armed++;
}

static inline void on_taken(void *ctx, struct process *p, pid_t holder)
{
	ck_assert_ptr_eq(ctx, &refusals);
	ck_assert_ptr_eq(p, &process);
	taken_by = holder;
	taken++;
}

static inline int memfd(size_t size, int seals)
{
	int fd = (int)syscall(SYS_memfd_create, "test", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(ftruncate(fd, (off_t)size), 0);
	segment = mmap(NULL, CHANNEL_SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	ck_assert_ptr_ne(segment, MAP_FAILED);
	ck_assert_int_eq(fcntl(fd, F_ADD_SEALS, seals), 0);
	return fd;
}

static inline void setup(void)
{
	const struct launches_config config = {
		.tally = tally = tally__new(), .site = SITE_NOP5, .refused = on_refused,
		.armed = on_armed, .unreached = on_unreached, .taken = on_taken, .ctx = &refusals,
	};

	log__set_level(LOG_ERROR);
	process = (struct process){ .tgid = getpid(), .index = 5 };
	ck_assert_ptr_nonnull(tally);
	launches = launches__new(&config);
	ck_assert_ptr_nonnull(launches);
}

/* As a library does it: the segment, then the hello. */
static inline int make_segment(void)
{
	int fd = memfd(CHANNEL_SIZE, SEALS);

	segment->abi = CHANNEL_ABI;
	segment->size = CHANNEL_SIZE;
	segment->site = SITE_NOP1;
	segment->state = CHANNEL_ARMED;
	segment->magic = CHANNEL_MAGIC;
	return fd;
}

static inline void hello(void)
{
	int fd = make_segment();

	launches__hello(launches, &process, fd);
	close(fd);
}

static inline void put(const void *record, uint32_t size, enum channel_type type)
{
	struct channel_head head = { .size = (size + 7) & ~7u, .type = (uint16_t)type };
	uint32_t room = (uint32_t)(CHANNEL_RING_SIZE - segment->head % CHANNEL_RING_SIZE);
	const struct channel_head pad = { .size = room, .type = CHANNEL_PAD };
	uint8_t *at = segment->ring + segment->head % CHANNEL_RING_SIZE;

	/* No record wraps. */
	if (room < head.size) {
		memcpy(at, &pad, sizeof(pad));
		segment->head += room;
		at = segment->ring;
	}
	memcpy(at + sizeof(head), (const uint8_t *)record + sizeof(head), size - sizeof(head));
	segment->head += head.size;
	memcpy(at, &head, sizeof(head));
}

static inline void put_result(const struct channel_result *r)
{
	put(r, sizeof(*r), CHANNEL_RESULT);
}

static inline struct channel_result timed(uint64_t id, uint64_t ns)
{
	return (struct channel_result){
		.launch = id, .duration = ns, .launches = 1, .weight = 1, .stands_for = 1,
		.device = 0, .stream = 9,
		.entry = ENTRY_LAUNCH_KERNEL, .load = LOAD_BUSY,
	};
}

static inline void put_sized(uint64_t function, uint32_t generation, const char *text,
			     enum channel_name_status status, uint32_t registers, uint32_t shared_bytes)
{
	char bytes[sizeof(struct channel_name) + 64] = {};
	struct channel_name *n = (void *)bytes;

	n->function = function;
	n->generation = generation;
	n->status = status;
	n->registers = registers;
	n->shared_bytes = shared_bytes;
	n->len = (uint32_t)strlen(text);
	memcpy(n->text, text, n->len);
	put(bytes, (uint32_t)sizeof(*n) + n->len, CHANNEL_NAME);
}

static inline void put_name(uint64_t function, uint32_t generation, const char *text,
			    enum channel_name_status status)
{
	put_sized(function, generation, text, status, 0, 0);
}

static inline void record(uint64_t id, uint32_t stack, uint64_t function)
{
	const struct rec_launch r = {
		.tgid = (uint32_t)getpid(), .tid = 77, .id = id, .function = function,
	};

	ck_assert_int_eq(launches__record(launches, &process, &r, stack), 0);
}

/* The one line of the tally that has this stack. */
static inline const struct tally_value *of_stack(uint32_t stack)
{
	const struct tally_value *found = NULL;
	size_t i;

	for (i = 0; i < tally__count(tally); i++)
		if (tally__at(tally, i)->key.user == stack) {
			ck_assert_ptr_null(found);
			found = tally__at(tally, i);
		}
	return found;
}

static inline struct launches_counters counters(void)
{
	struct launches_counters c;

	launches__counters(launches, &c);
	return c;
}

#endif
