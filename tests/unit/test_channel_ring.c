// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The library's end of the channel against the collector's, in one process. */
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "gpu_timing/library/segment.c"
#include "gpu_timing/reader.h"
#include "tests/unit/unit.h"

struct library lib;

void thread__add_shared(size_t offset, uint64_t n)
{
	ck_assert_uint_lt(offset, sizeof(struct channel_thread));
	ck_assert_uint_ge(n, 1);
}

uint64_t clock__ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000ull + (uint64_t)t.tv_nsec;
}

#define PRODUCERS 4
#define RECORDS 60000		/* of each: several times the ring in all */
#define MAX_TEXT 1500

static struct channel_segment *segment;
static struct channel *channel;

static int make(void)
{
	static struct memory memory;
	int fd = segment__create(&segment);

	ck_assert_int_ge(fd, 0);
	lib.segment = segment;
	lib.memory = &memory;
	return fd;
}

static void start(void)
{
	int fd = make();

	/* Of this number a launch's id holds 0. */
	lib.memory->guard.open = SESSION_MASK + 1;
	segment__publish(segment, CHANNEL_ARMED);
	ck_assert_int_eq(channel__open(fd, &channel), 0);
	close(fd);
}

static int put_name(uint32_t generation, uint64_t function, const void *text, size_t len)
{
	struct channel_name rec = { .function = function, .generation = generation,
				    .len = (uint32_t)len };

	return ring__put(segment, CHANNEL_NAME, &rec, sizeof(rec), text, len);
}

/* The n-th text of a producer, known to both ends. */
static size_t text_of(uint64_t producer, uint32_t n, uint8_t *text)
{
	uint32_t x = n * 2654435761u ^ (uint32_t)producer;
	size_t len = (x >> 7) % MAX_TEXT;

	for (size_t i = 0; i < len; i++)
		text[i] = (uint8_t)(x >> (i % 24)) ^ (uint8_t)i;
	return len;
}

static void *produce(void *arg)
{
	uint64_t producer = (uint64_t)arg;
	uint8_t text[MAX_TEXT];

	for (uint32_t n = 1; n <= RECORDS; n++) {
		size_t len = text_of(producer, n, text);

		while (put_name(n, producer, text, len))
			sched_yield();
	}
	return NULL;
}

static uint32_t seen[PRODUCERS];

static void check_name(void *ctx, const struct channel_name *name)
{
	uint8_t text[MAX_TEXT];

	(void)ctx;
	ck_assert_uint_lt(name->function, PRODUCERS);
	ck_assert_uint_eq(name->generation, ++seen[name->function]);
	ck_assert_uint_eq(name->len, text_of(name->function, name->generation, text));
	ck_assert(!memcmp(name->text, text, name->len));
}

START_TEST(many_producers_lose_nothing_and_keep_their_order)
{
	static const struct channel_handler handler = { .name = check_name };
	pthread_t threads[PRODUCERS];
	uint64_t total = 0;
	int n;

	start();
	for (uint64_t i = 0; i < PRODUCERS; i++)
		pthread_create(&threads[i], NULL, produce, (void *)i);
	while (seen[0] + seen[1] + seen[2] + seen[3] < PRODUCERS * RECORDS) {
		n = channel__poll(channel, &handler, NULL, 1000);
		ck_assert_int_ge(n, 0);
		ck_assert_int_le(n, 1000);
		total += (uint64_t)n;
		if (!n)
			sched_yield();
	}
	for (int i = 0; i < PRODUCERS; i++)
		pthread_join(threads[i], NULL);
	/* The pads at the ring's end are consumed too. */
	ck_assert_uint_gt(total, PRODUCERS * RECORDS);
	ck_assert_uint_gt(segment->head, 4ull * CHANNEL_RING_SIZE);
	ck_assert_int_eq(channel__poll(channel, &handler, NULL, 1), 0);
	ck_assert_uint_eq(channel__stalled(channel), 0);
	channel__close(channel);
}
END_TEST

static uint64_t count;

static void count_result(void *ctx, const struct channel_result *result)
{
	(void)ctx;
	ck_assert_uint_eq(result->launch, ++count);
}

static void count_name(void *ctx, const struct channel_name *name)
{
	(void)ctx;
	ck_assert_uint_eq(name->function, ++count);
}

START_TEST(a_full_ring_refuses_and_counts)
{
	static const struct channel_handler handler = { .result = count_result };
	struct channel_result result = { .launches = 1, .weight = 1, .stands_for = 1 };
	uint64_t room = CHANNEL_RING_SIZE / sizeof(result), lost = 5;

	start();
	for (uint64_t i = 0; i < room + lost; i++) {
		result.launch = i + 1;
		segment__result(NULL, &result, NULL);
	}
	ck_assert_uint_eq(segment->lost_results, lost);
	while (channel__poll(channel, &handler, NULL, 100000) > 0)
		;
	ck_assert_uint_eq(count, room);
	/* and works again afterwards */
	for (uint64_t i = 0; i < room; i++) {
		result.launch = room + i + 1;
		segment__result(NULL, &result, NULL);
		if (i % 1000 == 0)
			ck_assert_int_ge(channel__poll(channel, &handler, NULL, 100000), 0);
	}
	while (channel__poll(channel, &handler, NULL, 100000) > 0)
		;
	ck_assert_uint_eq(count, 2 * room);
	ck_assert_uint_eq(segment->lost_results, lost);
	channel__close(channel);
}
END_TEST

START_TEST(the_largest_name_fits_at_every_place)
{
	static const struct channel_handler handler = { .name = count_name };
	static uint8_t text[CHANNEL_MAX_NAME];

	start();
	for (uint64_t i = 1; i < 1000; i++) {
		ck_assert_int_eq(put_name(1, i, text, CHANNEL_MAX_NAME - i % 64), 0);
		while (channel__poll(channel, &handler, NULL, 1) > 0)
			;
		ck_assert_uint_eq(count, i);
	}
	channel__close(channel);
}
END_TEST

START_TEST(nonsense_in_the_tail_is_a_full_ring)
{
	static const uint64_t tails[] = { 8, 1ull << 63, CHANNEL_RING_SIZE * 3ull, 64 };
	uint64_t head;

	start();
	for (size_t i = 0; i < sizeof(tails) / sizeof(tails[0]); i++) {
		segment->tail = tails[i];
		head = segment->head;
		ck_assert_int_eq(put_name(1, 1, NULL, 0), -ENOSPC);
		ck_assert_uint_eq(segment->head, head);
	}
	channel__close(channel);
}
END_TEST

START_TEST(a_record_under_way_stops_the_reader_and_nothing_else)
{
	static const struct channel_handler handler = { .name = count_name };
	uint8_t *place;
	uint64_t word;
	struct channel_head head = { .size = 64, .type = CHANNEL_PAD };

	start();
	put_name(1, 1, NULL, 0);
	place = reserve(segment, 64);
	put_name(1, 2, NULL, 0);
	ck_assert_int_eq(channel__poll(channel, &handler, NULL, 10), 1);
	ck_assert_int_eq(channel__poll(channel, &handler, NULL, 10), 0);
	ck_assert_uint_eq(channel__stalled(channel), 64 + sizeof(struct channel_name));
	memcpy(&word, &head, sizeof(word));
	store_release((uint64_t *)place, word);
	ck_assert_uint_eq(channel__stalled(channel), 0);
	ck_assert_int_eq(channel__poll(channel, &handler, NULL, 10), 2);
	ck_assert_uint_eq(count, 2);
	channel__close(channel);
}
END_TEST

START_TEST(the_segment_is_sealed_and_out_of_the_way)
{
	int size = table_size(), fd = segment__create(&segment), other;

	/* near the table's end, which does not grow for it */
	ck_assert_int_ge(fd, size - NEAR_END < FAR_DESCRIPTOR ? size - NEAR_END : FAR_DESCRIPTOR);
	ck_assert_int_eq(table_size(), size);
	ck_assert_int_eq(fcntl(fd, F_GETFD) & FD_CLOEXEC, FD_CLOEXEC);
	ck_assert_int_ne(ftruncate(fd, 4096), 0);
	ck_assert_int_ne(ftruncate(fd, 2 * CHANNEL_SIZE), 0);
	ck_assert_int_ne(fcntl(fd, F_ADD_SEALS, F_SEAL_WRITE), 0);
	/* not before it is whole */
	ck_assert_int_eq(channel__open(fd, &channel), -EAGAIN);
	segment__publish(segment, CHANNEL_REFUSED);
	ck_assert_int_eq(channel__open(fd, &channel), 0);
	/* a program's own next descriptor is the one that it would have got */
	other = open("/dev/null", O_RDONLY);
	ck_assert_int_lt(other, fd / 2);
	close(other);
	channel__close(channel);
}
END_TEST

static uint64_t pages(int fd)
{
	struct stat st;

	ck_assert_int_eq(fstat(fd, &st), 0);
	return (uint64_t)st.st_blocks * 512;
}

/* Of a thread without an element of its own, in the session `number`. */
static void put_results(uint32_t number, uint64_t nr)
{
	struct channel_result result = { .launches = 1, .weight = 1, .stands_for = 1 };

	for (uint64_t i = 1; i <= nr; i++) {
		result.launch = (uint64_t)number << CHANNEL_SESSION_SHIFT | i;
		segment__result(NULL, &result, NULL);
	}
}

static struct channel *session(int fd, uint32_t number)
{
	struct channel *ch;

	lib.memory->guard.session = lib.memory->guard.open = number;
	count = (uint64_t)number << CHANNEL_SESSION_SHIFT;
	segment__begin(segment, number, true);
	segment__publish(segment, CHANNEL_STARTING);
	ck_assert_int_eq(channel__open(fd, &ch), 0);
	return ch;
}

START_TEST(the_ring_is_given_back)
{
	static const struct channel_handler handler = { .result = count_result };
	int fd = make();

	channel = session(fd, 1);
	put_results(1, 100000);
	ck_assert_uint_gt(pages(fd), 100000 * sizeof(struct channel_result) / 2);
	segment__release(segment);
	ck_assert_uint_lt(pages(fd), 1 << 20);
	/* what was not read is lost, and the reader none the worse for it */
	ck_assert_int_eq(channel__poll(channel, &handler, NULL, 10), 0);
	ck_assert_uint_gt(channel__stalled(channel), 0);
	channel__close(channel);
}
END_TEST

START_TEST(a_session_sees_nothing_of_the_one_before)
{
	static const struct channel_handler handler = { .result = count_result };
	struct channel_status status;
	struct channel_counters sum;
	struct channel *second;
	int fd = make();

	channel = session(fd, 1);
	put_results(1, 1000);
	ck_assert_int_eq(channel__poll(channel, &handler, NULL, 300), 300);
	segment->threads[0].probes = 1000;
	channel__counters(channel, &sum);
	ck_assert_uint_eq(sum.probes, 1000);
	lib.memory->guard.open = 0;
	put_results(1, 1000);
	second = session(fd, 2);

	/* ours is over */
	ck_assert_int_eq(channel__poll(channel, &handler, NULL, 1000), 0);
	ck_assert_uint_eq(channel__stalled(channel), 0);
	channel__status(channel, &status);
	ck_assert_int_eq(status.state, CHANNEL_PASSIVE);
	segment->threads[0].probes += 500;
	channel__counters(channel, &sum);
	ck_assert_uint_eq(sum.probes, 1000);

	/* and has no say any more */
	channel__heartbeat(channel);
	channel__stop(channel);
	channel__set_site(channel, SITE_NONE);
	ck_assert_uint_eq(segment->heartbeat, 0);
	ck_assert_uint_eq(segment->command, CHANNEL_RUN);
	ck_assert_uint_eq(segment->site, SITE_NOP1);

	/* the next begins with nothing, whatever was left; what comes late belongs to nobody */
	put_results(1, 1000);
	ck_assert_int_eq(channel__poll(second, &handler, NULL, 1000), 0);
	put_results(2, 200);
	ck_assert_int_eq(channel__poll(second, &handler, NULL, 1000), 200);
	channel__status(second, &status);
	ck_assert_int_eq(status.state, CHANNEL_STARTING);
	channel__counters(second, &sum);
	ck_assert_uint_eq(sum.probes, 500);
	channel__close(channel);
	channel__close(second);
}
END_TEST

START_TEST(a_ring_full_of_another_session_is_empty_for_the_next)
{
	static const struct channel_handler handler = { .result = count_result };
	int fd = make();

	for (uint32_t number = 1; number < 5; number++) {
		channel = session(fd, number);
		put_results(number, CHANNEL_RING_SIZE / sizeof(struct channel_result) + 100);
		ck_assert_int_eq(channel__poll(channel, &handler, NULL, number * 1000),
				 (int)number * 1000);
		put_results(number, 2000);
		channel__close(channel);
	}
}
END_TEST

/* A child forked from this process: its pid is another's than ours. */
static pid_t claim_in_child(int fd, bool leave, int *result)
{
	struct channel *other;
	pid_t holder = 0, pid;
	int pipes[2];

	ck_assert_int_eq(pipe(pipes), 0);
	pid = fork();
	if (!pid) {
		*result = channel__open(fd, &other) ? 1 : channel__claim(other, &holder);
		if (write(pipes[1], result, sizeof(*result)) != sizeof(*result) ||
		    write(pipes[1], &holder, sizeof(holder)) != sizeof(holder) || leave)
			_exit(0);
		pause();
	}
	ck_assert_int_eq(read(pipes[0], result, sizeof(*result)), sizeof(*result));
	ck_assert_int_eq(read(pipes[0], &holder, sizeof(holder)), sizeof(holder));
	if (*result == -EBUSY)
		ck_assert_int_eq(holder, getpid());
	return pid;
}

START_TEST(one_collector_at_a_time)
{
	pid_t holder = 0, pid;
	int fd = make(), result;

	channel = session(fd, 1);
	ck_assert_int_eq(channel__claim(channel, &holder), 0);
	ck_assert_int_eq(channel__claim(channel, &holder), 0);
	waitpid(claim_in_child(fd, true, &result), NULL, 0);
	ck_assert_int_eq(result, -EBUSY);
	/* only its own is given back */
	segment->collector++;
	channel__release(channel);
	ck_assert_uint_ne(segment->collector, 0);
	segment->collector--;
	channel__release(channel);
	ck_assert_uint_eq(segment->collector, 0);

	/* one that lives; dead, though nobody has waited for it; gone */
	pid = claim_in_child(fd, false, &result);
	ck_assert_int_eq(result, 0);
	ck_assert_int_eq(channel__claim(channel, &holder), -EBUSY);
	ck_assert_int_eq(holder, pid);
	kill(pid, SIGKILL);
	ck_assert_int_eq(waitid(P_PID, (id_t)pid, &(siginfo_t){ 0 }, WEXITED | WNOWAIT), 0);
	ck_assert_int_eq(channel__claim(channel, &holder), 0);
	channel__release(channel);
	waitpid(pid, NULL, 0);
	waitpid(claim_in_child(fd, true, &result), NULL, 0);
	ck_assert_int_eq(result, 0);
	ck_assert_uint_ne(segment->collector, 0);
	ck_assert_int_eq(channel__claim(channel, &holder), 0);
	/* another process with its number: the start time tells */
	segment->collector ^= 1ull << 40;
	ck_assert_int_eq(channel__claim(channel, &holder), 0);
	channel__close(channel);
}
END_TEST

START_TEST(few_descriptors_are_enough)
{
	struct rlimit limit = { 64, 64 };

	ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &limit), 0);
	ck_assert_int_ge(segment__create(&segment), 32);
}
END_TEST

UNIT_MAIN("channel_ring", many_producers_lose_nothing_and_keep_their_order,
	  a_full_ring_refuses_and_counts, the_largest_name_fits_at_every_place,
	  nonsense_in_the_tail_is_a_full_ring,
	  a_record_under_way_stops_the_reader_and_nothing_else,
	  the_segment_is_sealed_and_out_of_the_way,
	  the_ring_is_given_back, a_session_sees_nothing_of_the_one_before,
	  a_ring_full_of_another_session_is_empty_for_the_next, one_collector_at_a_time,
	  few_descriptors_are_enough)
