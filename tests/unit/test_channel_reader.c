// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The reader on segments that no honest library would make. */
#include <errno.h>
#include <fcntl.h>
#include <linux/memfd.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "gpu_timing/reader.h"
#include "tests/unit/unit.h"

#define SEALS (F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL)

static struct channel_segment *segment;
static struct channel *channel;

static int memfd(unsigned int flags)
{
	return (int)syscall(SYS_memfd_create, "test", MFD_CLOEXEC | flags);
}

/* A segment as a library makes it, mapped here as the hostile side. */
static int honest(off_t size, int seals)
{
	int fd = memfd(MFD_ALLOW_SEALING);

	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(ftruncate(fd, size), 0);
	if (size == (off_t)CHANNEL_SIZE) {
		segment = mmap(NULL, CHANNEL_SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
		ck_assert_ptr_ne(segment, MAP_FAILED);
		segment->magic = CHANNEL_MAGIC;
		segment->abi = CHANNEL_ABI;
		segment->size = CHANNEL_SIZE;
	}
	ck_assert_int_eq(fcntl(fd, F_ADD_SEALS, seals), 0);
	return fd;
}

static void start(void)
{
	int fd = honest(CHANNEL_SIZE, SEALS);

	ck_assert_int_eq(channel__open(fd, &channel), 0);
	close(fd);
}

START_TEST(only_sealed_memfds_of_the_right_size_are_mapped)
{
	char path[] = "/tmp/channel-XXXXXX";
	int fds[2], fd = mkstemp(path);

	ck_assert_int_ge(fd, 0);
	unlink(path);
	ck_assert_int_eq(ftruncate(fd, CHANNEL_SIZE), 0);
	ck_assert_int_eq(channel__open(fd, &channel), -EINVAL);
	ck_assert_ptr_null(channel);
	ck_assert_int_eq(pipe(fds), 0);
	ck_assert_int_eq(channel__open(fds[0], &channel), -EINVAL);
	ck_assert_int_eq(channel__open(-1, &channel), -EINVAL);
	ck_assert_int_eq(channel__open(open("/dev/null", O_RDWR), &channel), -EINVAL);
	ck_assert_int_eq(channel__open(memfd(0), &channel), -EINVAL);
	ck_assert_int_eq(channel__open(honest(CHANNEL_SIZE, F_SEAL_SEAL), &channel), -EINVAL);
	ck_assert_int_eq(channel__open(honest(CHANNEL_SIZE, F_SEAL_SHRINK | F_SEAL_GROW), &channel),
			 -EINVAL);
	ck_assert_int_eq(channel__open(honest(CHANNEL_SIZE, F_SEAL_GROW | F_SEAL_SEAL), &channel),
			 -EINVAL);
	ck_assert_int_eq(channel__open(honest(0, SEALS), &channel), -EINVAL);
	ck_assert_int_eq(channel__open(honest(CHANNEL_SIZE - 4096, SEALS), &channel), -EINVAL);
	ck_assert_int_eq(channel__open(honest(CHANNEL_SIZE + 1, SEALS), &channel), -EINVAL);
	ck_assert_int_eq(channel__open(honest(CHANNEL_SIZE, SEALS), &channel), 0);
	channel__close(channel);
	channel__close(NULL);
}
END_TEST

static int nr_mapped(void)
{
	FILE *f = fopen("/proc/self/maps", "r");
	char line[512];
	int nr = 0;

	while (fgets(line, sizeof(line), f))
		nr += strstr(line, "/memfd:test") != NULL;
	fclose(f);
	return nr;
}

/* What the collector starts, to read files that may be hostile, can't write to a target. */
START_TEST(children_do_not_have_it)
{
	int status;
	pid_t pid;

	start();
	ck_assert_int_eq(nr_mapped(), 2);	/* the target's side, and ours */
	pid = fork();
	if (pid == 0)
		_exit(nr_mapped());
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	ck_assert_int_eq(WEXITSTATUS(status), 1);
	channel__close(channel);
}
END_TEST

START_TEST(huge_pages_are_refused)
{
	int fd = memfd(MFD_ALLOW_SEALING | MFD_HUGETLB);

	/* Where the kernel has none there is nothing to refuse. */
	if (fd < 0)
		return;
	if (!ftruncate(fd, (CHANNEL_SIZE + (2 << 20) - 1) & ~((off_t)(2 << 20) - 1)) &&
	    !fcntl(fd, F_ADD_SEALS, SEALS))
		ck_assert_int_eq(channel__open(fd, &channel), -EINVAL);
	close(fd);
}
END_TEST

START_TEST(other_contents_are_refused)
{
	int fd = honest(CHANNEL_SIZE, SEALS);

	segment->magic ^= 1;
	ck_assert_int_eq(channel__open(fd, &channel), -EPROTO);
	segment->magic = 0;
	ck_assert_int_eq(channel__open(fd, &channel), -EAGAIN);
	segment->magic = CHANNEL_MAGIC;
	segment->abi++;
	ck_assert_int_eq(channel__open(fd, &channel), -EPROTO);
	segment->abi--;
	segment->size--;
	ck_assert_int_eq(channel__open(fd, &channel), -EPROTO);
	segment->size++;
	ck_assert_int_eq(channel__open(fd, &channel), 0);
	channel__close(channel);
}
END_TEST

static unsigned int called;

static void on_result(void *ctx, const struct channel_result *r)
{
	(void)ctx;
	called++;
	ck_assert_uint_lt(r->entry, r->flags & LAUNCH_COPY ? SLOT_GRAPHS : NR_LAUNCH_ENTRIES);
	ck_assert_uint_lt(r->copy, NR_COPY_KINDS);
	ck_assert_uint_lt(r->cause, NR_LAUNCH_CAUSES);
	ck_assert_uint_le(r->load, LOAD_IDLE);
	ck_assert_uint_ge(r->launches, 1);
	ck_assert_uint_ge(r->weight, 1);
	ck_assert(!r->duration || !r->cause);
	/* the further launches are inside what was handed over */
	for (uint32_t i = 0; i + 1 < r->launches; i++)
		(void)*(const volatile __u64 *)&r->more[i].launch;
}

static void on_name(void *ctx, const struct channel_name *n)
{
	(void)ctx;
	called++;
	ck_assert_uint_le(n->len, CHANNEL_MAX_NAME);
	for (uint32_t i = 0; i < n->len; i++)
		(void)*(const volatile char *)&n->text[i];
}

static void on_device(void *ctx, const struct channel_device *d)
{
	(void)ctx;
	called++;
	ck_assert_uint_le(d->len, CHANNEL_MAX_NAME);
}

static void on_graph(void *ctx, const struct channel_graph *g, uint32_t nr)
{
	(void)ctx;
	called++;
	ck_assert_uint_le(nr, CHANNEL_GRAPH_PART);
	ck_assert_uint_le(g->first + nr, g->members);
	for (uint32_t i = 0; i < nr; i++)
		ck_assert_uint_le(g->member[i].copy, NR_COPY_KINDS);
}

static const struct channel_handler handler = {
	.result = on_result, .name = on_name, .device = on_device, .graph = on_graph,
};

/* One record at the ring's start; the reader's verdict: 1 taken, else an error. */
static int verdict(const void *record, size_t bytes)
{
	int n;

	start();
	memcpy(segment->ring, record, bytes);
	segment->head = bytes;
	called = 0;
	n = channel__poll(channel, &handler, NULL, 10);
	if (n < 0) {
		/* and it stays so, whatever the target does then */
		segment->head = 0;
		ck_assert_int_eq(channel__poll(channel, &handler, NULL, 10), n);
		ck_assert_uint_eq(called, 0);
	}
	channel__close(channel);
	munmap(segment, CHANNEL_SIZE);
	return n;
}

static const struct channel_result good_result = {
	.head = { .size = sizeof(struct channel_result), .type = CHANNEL_RESULT },
	.launches = 1, .weight = 1, .stands_for = 1, .duration = 1000, .entry = ENTRY_LAUNCH_KERNEL,
};

static const struct channel_result good_copy = {
	.head = { .size = sizeof(struct channel_result), .type = CHANNEL_RESULT },
	.launches = 1, .weight = 1, .stands_for = 1, .duration = 1000, .entry = SLOT_COPIES,
	.flags = LAUNCH_COPY,
	.copy = NR_COPY_KINDS - 1, .bytes = ~0ull,
};

START_TEST(bad_results_end_the_channel)
{
	struct channel_result r = good_result;
	struct { struct channel_result r; struct channel_member more[2]; } three = { .r = good_result };

	ck_assert_int_eq(verdict(&r, sizeof(r)), 1);
#define REFUSED(field, value)						\
	do {								\
		r = good_result;					\
		r.field = value;					\
		ck_assert_int_eq(verdict(&r, sizeof(r)), -EBADMSG);	\
	} while (0)
	REFUSED(launches, 0);
	REFUSED(launches, 2);
	REFUSED(launches, ~0u);
	REFUSED(weight, 0);
	REFUSED(weight, CHANNEL_MAX_WEIGHT + 1);
	REFUSED(entry, NR_LAUNCH_ENTRIES);
	REFUSED(entry, 0xffff);
	REFUSED(entry, SLOT_HTOD_ASYNC);
	REFUSED(copy, COPY_HTOD);
	REFUSED(bytes, 1);
	REFUSED(flags, LAUNCH_COPY);		/* by the entry of a launch */
	REFUSED(cause, NR_LAUNCH_CAUSES);
	REFUSED(cause, CAUSE_PDL);		/* with a duration */
	REFUSED(load, LOAD_IDLE + 1);
	REFUSED(duration, ~0ull);
	REFUSED(duration, 1ull << 53);
	REFUSED(head.size, 0);
	REFUSED(head.size, 4);
	REFUSED(head.size, 7);
	REFUSED(head.size, 8);
	REFUSED(head.size, 64);
	REFUSED(head.size, sizeof(r) - 1);
	REFUSED(head.size, sizeof(r) + 8);	/* beyond what was reserved */
	REFUSED(head.size, ~0u);
	REFUSED(head.size, ~0u - 7);
	REFUSED(head.size, CHANNEL_RING_SIZE);
	REFUSED(head.type, 0);
	REFUSED(head.type, NR_CHANNEL_TYPES);
	REFUSED(head.type, 0xffff);

	r = good_copy;
	ck_assert_int_eq(verdict(&r, sizeof(r)), 1);
#define COPY_REFUSED(field, value)					\
	do {								\
		r = good_copy;						\
		r.field = value;					\
		ck_assert_int_eq(verdict(&r, sizeof(r)), -EBADMSG);	\
	} while (0)
	COPY_REFUSED(entry, SLOT_COPIES - 1);
	COPY_REFUSED(entry, SLOT_GRAPHS);
	COPY_REFUSED(copy, NR_COPY_KINDS);
	COPY_REFUSED(flags, 0);

	three.r.launches = 3;
	three.r.head.size = sizeof(three);
	ck_assert_int_eq(verdict(&three, sizeof(three)), 1);
	three.r.launches = 2;
	ck_assert_int_eq(verdict(&three, sizeof(three)), -EBADMSG);
	three.r.launches = 4;
	ck_assert_int_eq(verdict(&three, sizeof(three)), -EBADMSG);
	/* each launch of a run was looked at */
	three.r.launches = 3;
	three.r.stands_for = 2;
	ck_assert_int_eq(verdict(&three, sizeof(three)), -EBADMSG);
	three.r.stands_for = 1;
	three.r.stratum = 5;
	ck_assert_int_eq(verdict(&three, sizeof(three)), -EBADMSG);
	three.r.stratum = 0;
	ck_assert_int_eq(verdict(&three, sizeof(three)), 1);
	/* nor does one hold anything but launches */
	three.r.flags = LAUNCH_COPY;
	three.r.entry = SLOT_COPIES;
	ck_assert_int_eq(verdict(&three, sizeof(three)), -EBADMSG);
	three.r.flags = LAUNCH_WAIT;
	three.r.entry = SLOT_STREAM_SYNC;
	ck_assert_int_eq(verdict(&three, sizeof(three)), -EBADMSG);
	three.r.flags = 0;
	three.r.entry = ENTRY_LAUNCH_KERNEL;
	three.r.launches = 3;
	three.r.head.size = sizeof(three) - 8;	/* half of a launch */
	ck_assert_int_eq(verdict(&three, sizeof(three)), -EBADMSG);
	three.r.launches = 2;
	ck_assert_int_eq(verdict(&three, sizeof(three)), -EBADMSG);
}
END_TEST

START_TEST(bad_texts_end_the_channel)
{
	struct { struct channel_name n; char text[16]; } n = {
		.n = { .head = { sizeof(n), CHANNEL_NAME, 0 }, .len = 12 },
	};
	struct { struct channel_device d; char text[8]; } d = {
		.d = { .head = { sizeof(d), CHANNEL_DEVICE, 0 }, .len = 8 },
	};
	static const __u32 lens[] = { 0, 8, 17, 24, ~0u, ~0u - 7, ~0u - 30, CHANNEL_MAX_NAME,
				      CHANNEL_MAX_NAME + 1, 1u << 31 };

	ck_assert_int_eq(verdict(&n, sizeof(n)), 1);
	ck_assert_int_eq(verdict(&d, sizeof(d)), 1);
	for (size_t i = 0; i < sizeof(lens) / sizeof(lens[0]); i++) {
		n.n.len = lens[i];
		ck_assert_int_eq(verdict(&n, sizeof(n)), -EBADMSG);
		d.d.len = lens[i] == 8 ? 9 : lens[i];
		ck_assert_int_eq(verdict(&d, sizeof(d)), -EBADMSG);
	}
	n.n.len = 12;
	n.n.status = NAME_CUT + 1;
	ck_assert_int_eq(verdict(&n, sizeof(n)), -EBADMSG);
	n.n.status = NAME_CUT;
	n.n.head.size = 16;
	ck_assert_int_eq(verdict(&n, sizeof(n)), -EBADMSG);
}
END_TEST

START_TEST(bad_graphs_end_the_channel)
{
	struct graph { struct channel_graph g; struct channel_node n[3]; } good = {
		.g = { .head = { sizeof(good), CHANNEL_GRAPH, 0 }, .members = 5, .first = 2 },
		.n = { { .count = 1 }, { .count = ~0u, .copy = NR_COPY_KINDS }, { .count = 2 } },
	}, g = good;
	static struct { struct channel_graph g; struct channel_node n[CHANNEL_GRAPH_PART + 1]; } many;
	struct channel_graph none = { .head = { sizeof(none), CHANNEL_GRAPH, 0 }, .generation = 1 };

	ck_assert_int_eq(verdict(&g, sizeof(g)), 1);
	ck_assert_int_eq(verdict(&none, sizeof(none)), 1);
#define GRAPH_REFUSED(field, value)					\
	do {								\
		g = good;						\
		g.field = value;					\
		ck_assert_int_eq(verdict(&g, sizeof(g)), -EBADMSG);	\
	} while (0)
	GRAPH_REFUSED(g.members, 4);
	GRAPH_REFUSED(g.members, CHANNEL_GRAPH_NODES + 1);
	GRAPH_REFUSED(g.members, ~0u);
	GRAPH_REFUSED(g.first, 3);
	GRAPH_REFUSED(g.first, ~0u);
	GRAPH_REFUSED(g.head.size, sizeof(none));	/* none, and some are missing */
	GRAPH_REFUSED(g.head.size, sizeof(none) - 8);
	GRAPH_REFUSED(g.head.size, sizeof(good) - 8);
	GRAPH_REFUSED(n[0].count, 0);
	GRAPH_REFUSED(n[2].copy, NR_COPY_KINDS + 1);
	for (uint32_t i = 0; i <= CHANNEL_GRAPH_PART; i++)
		many.n[i].count = 1;
	many.g = (struct channel_graph){ .head = { sizeof(many) - sizeof(many.n[0]), CHANNEL_GRAPH, 0 },
					 .members = 2 * CHANNEL_GRAPH_PART };
	ck_assert_uint_le(many.g.head.size, CHANNEL_MAX_RECORD);
	ck_assert_int_eq(verdict(&many, many.g.head.size), 1);
	many.g.head.size = sizeof(many);
	ck_assert_int_eq(verdict(&many, sizeof(many)), -EBADMSG);
}
END_TEST

START_TEST(a_record_may_not_leave_the_ring)
{
	struct channel_head pad = { .size = CHANNEL_RING_SIZE - 8, .type = CHANNEL_PAD };

	start();
	memcpy(segment->ring, &pad, sizeof(pad));
	memcpy(segment->ring + pad.size, &good_result, 8);
	segment->head = pad.size + sizeof(good_result);
	ck_assert_uint_gt(segment->head, CHANNEL_RING_SIZE);
	/* more is reserved than the ring holds */
	ck_assert_int_eq(channel__poll(channel, &handler, NULL, 10), -EBADMSG);
	channel__close(channel);

	start();
	memcpy(segment->ring, &pad, sizeof(pad));
	segment->head = pad.size;
	ck_assert_int_eq(channel__poll(channel, &handler, NULL, 10), 1);
	memcpy(segment->ring + pad.size, &good_result, 8);
	segment->head += sizeof(good_result);
	ck_assert_int_eq(channel__poll(channel, &handler, NULL, 10), -EBADMSG);
	channel__close(channel);
}
END_TEST

START_TEST(a_head_that_jumps_ends_the_channel)
{
	static const __u64 heads[] = { CHANNEL_RING_SIZE + 8, ~0ull, ~0ull - 7, 1ull << 63, 4, 1 };

	for (size_t i = 0; i < sizeof(heads) / sizeof(heads[0]); i++) {
		start();
		segment->head = heads[i];
		ck_assert_uint_eq(channel__stalled(channel) > CHANNEL_RING_SIZE, 0);
		ck_assert_int_eq(channel__poll(channel, &handler, NULL, 10), -EBADMSG);
		channel__close(channel);
		munmap(segment, CHANNEL_SIZE);
	}
	/* back behind what was read */
	start();
	memcpy(segment->ring, &good_result, sizeof(good_result));
	segment->head = sizeof(good_result);
	ck_assert_int_eq(channel__poll(channel, &handler, NULL, 10), 1);
	segment->head = 8;
	ck_assert_int_eq(channel__poll(channel, &handler, NULL, 10), -EBADMSG);
	channel__close(channel);
}
END_TEST

START_TEST(what_the_target_writes_as_the_tail_is_ignored)
{
	start();
	memcpy(segment->ring, &good_result, sizeof(good_result));
	segment->head = sizeof(good_result);
	segment->tail = 1ull << 40;
	called = 0;
	ck_assert_int_eq(channel__poll(channel, &handler, NULL, 10), 1);
	ck_assert_uint_eq(called, 1);
	ck_assert_uint_eq(segment->tail, sizeof(good_result));
	/* consumed bytes are left as zeroes for the producers */
	for (size_t i = 0; i < sizeof(good_result); i++)
		ck_assert_uint_eq(segment->ring[i], 0);
	channel__close(channel);
}
END_TEST

START_TEST(numbers_out_of_range_are_tamed)
{
	struct channel_counters sum;
	struct channel_status status;

	start();
	segment->state = 77;
	segment->reason = ~0u;
	segment->detail = ~0u;
	for (uint64_t i = 0; i < CHANNEL_SLOT_WORDS; i++)
		segment->slots[i] = i + 1;
	channel__status(channel, &status);
	for (uint64_t i = 0; i < CHANNEL_SLOT_WORDS; i++)
		ck_assert_uint_eq(status.slots[i], i + 1);
	ck_assert_int_eq(status.state, CHANNEL_REFUSED);
	ck_assert_int_eq(status.reason, REASON_NONE);
	ck_assert_ptr_nonnull(channel__slot_name(status.detail));
	segment->nr_threads = ~0u;
	segment->threads[0].launches[ENTRY_LAUNCH_KERNEL] = 3;
	segment->threads[CHANNEL_THREADS - 1].launches[ENTRY_LAUNCH_KERNEL] = 4;
	segment->threads[CHANNEL_THREADS - 1].results[CAUSE_PDL] = 5;
	segment->threads[7].launches[ENTRY_GRAPH_LAUNCH] = 6;
	segment->threads[1].copies = 8;
	segment->threads[7].copies = 9;
	channel__counters(channel, &sum);
	ck_assert_uint_eq(sum.launches[ENTRY_LAUNCH_KERNEL], 7);
	ck_assert_uint_eq(sum.results[CAUSE_PDL], 5);
	ck_assert_uint_eq(sum.launched, 13);
	ck_assert_uint_eq(sum.copies, 17);
	channel__close(channel);
}
END_TEST

START_TEST(texts_exist_for_all_and_for_none)
{
	for (int i = -1; i <= NR_LAUNCH_CAUSES; i++)
		ck_assert_uint_gt(strlen(channel__cause_text((enum launch_cause)i)), 0);
	for (int i = -1; i <= NR_COPY_KINDS; i++)
		ck_assert_int_eq(strncmp(channel__copy_text((enum copy_kind)i), "mem", 3), 0);
	for (int i = -1; i <= NR_CHANNEL_REASONS; i++)
		ck_assert_uint_gt(strlen(channel__reason_text((enum channel_reason)i)), 0);
	for (uint32_t i = 0; i <= NR_CHANNEL_SLOTS; i++)
		ck_assert_uint_gt(strlen(channel__slot_name(i)), 0);
	ck_assert_str_eq(channel__slot_name(ENTRY_LAUNCH_KERNEL), "cuLaunchKernel");
}
END_TEST

START_TEST(refusals_make_sense_whatever_the_target_says)
{
	static const char unknown[] = "the timing library gives no reason that is known";
	static const struct {
		unsigned int reason, detail;
		const char *text;
	} rows[] = {
		{ REASON_SHAPE, ENTRY_LAUNCH_KERNEL,
		  "an entry point of the driver has an unknown shape: cuLaunchKernel" },
		{ REASON_SHAPE, ~0u, "an entry point of the driver has an unknown shape" },
		{ REASON_SHAPE, ENTRY_UNKNOWN, "an entry point of the driver has an unknown shape" },
		{ REASON_NO_MEMORY, ENOMEM, "no memory: Cannot allocate memory" },
		{ REASON_NO_MEMORY, ~0u, "no memory" },
		{ REASON_NO_MEMORY, 0, "no memory" },
		{ REASON_TWO_DRIVERS, 7, "two different libcuda are loaded" },
		{ REASON_NONE, ~0u, unknown },
		{ NR_CHANNEL_REASONS, 1, unknown },
		{ ~0u, ~0u, unknown },
	};
	char buf[CHANNEL_REFUSAL];

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		ck_assert_str_eq(channel__refusal(buf, (enum channel_reason)rows[i].reason,
						  rows[i].detail), rows[i].text);
}
END_TEST

static uint64_t next_random(uint64_t *x)
{
	*x ^= *x << 13;
	*x ^= *x >> 7;
	*x ^= *x << 17;
	return *x;
}

/* Writes while the reader reads: heads of records that are half right, ever other ones. */
static void *scribble(void *arg)
{
	uint64_t x = 88172645463325252ull;
	const int *stop = arg;

	while (!__atomic_load_n(stop, __ATOMIC_RELAXED)) {
		struct channel_result r = good_result;
		uint64_t at = segment->tail & (CHANNEL_RING_SIZE - 1);

		r.head.size = next_random(&x) % 4 ? r.head.size : (__u32)x % 512;
		r.head.type = next_random(&x) % 8 ? CHANNEL_RESULT : (__u16)x % 6;
		r.cause = next_random(&x) % 32 ? 0 : (__u16)x;
		r.launches = next_random(&x) % 32 ? 1 : (__u32)x % 9;
		if (at + sizeof(r) <= CHANNEL_RING_SIZE)
			memcpy(segment->ring + at, &r, sizeof(r));
		__atomic_store_n(&segment->head,
				 segment->tail + (next_random(&x) % 64 ? sizeof(r) : x % 4096),
				 __ATOMIC_RELEASE);
	}
	return NULL;
}

START_TEST(a_writer_that_never_stops_breaks_nothing_but_its_channel)
{
	unsigned int records = 0;

	for (int round = 0; round < 400; round++) {
		int stop = 0, n = 0;
		pthread_t thread;

		start();
		pthread_create(&thread, NULL, scribble, &stop);
		for (int i = 0; i < 2000 && n >= 0; i++) {
			n = channel__poll(channel, &handler, NULL, 16);
			ck_assert(n <= 16 && (n >= 0 || n == -EBADMSG));
			records += n > 0 ? (unsigned int)n : 0;
		}
		__atomic_store_n(&stop, 1, __ATOMIC_RELAXED);
		pthread_join(thread, NULL);
		channel__close(channel);
		munmap(segment, CHANNEL_SIZE);
	}
	ck_assert_uint_gt(records, 0);
}
END_TEST

START_TEST(work_per_call_is_bounded)
{
	start();
	for (int i = 0; i < 1000; i++)
		memcpy(segment->ring + (size_t)i * sizeof(good_result), &good_result,
		       sizeof(good_result));
	segment->head = 1000 * sizeof(good_result);
	called = 0;
	ck_assert_int_eq(channel__poll(channel, &handler, NULL, 10), 10);
	ck_assert_uint_eq(called, 10);
	ck_assert_int_eq(channel__poll(channel, &handler, NULL, 0), 0);
	ck_assert_int_eq(channel__poll(channel, &handler, NULL, ~0u), 990);
	channel__close(channel);
}
END_TEST

UNIT_MAIN("channel_reader", only_sealed_memfds_of_the_right_size_are_mapped, children_do_not_have_it,
	  huge_pages_are_refused, other_contents_are_refused, bad_results_end_the_channel,
	  bad_texts_end_the_channel, bad_graphs_end_the_channel, a_record_may_not_leave_the_ring,
	  a_head_that_jumps_ends_the_channel, what_the_target_writes_as_the_tail_is_ignored,
	  numbers_out_of_range_are_tamed, texts_exist_for_all_and_for_none,
	  refusals_make_sense_whatever_the_target_says,
	  a_writer_that_never_stops_breaks_nothing_but_its_channel, work_per_call_is_bounded)
