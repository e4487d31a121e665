// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Records of the ring and of a channel in this process: what of them gets into the tally. */
#include <errno.h>
#include <fcntl.h>
#include <linux/memfd.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

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

static void on_refused(void *ctx, struct process *p, enum channel_reason reason, uint32_t detail)
{
	ck_assert_ptr_eq(ctx, &refusals);
	ck_assert_ptr_eq(p, &process);
	ck_assert_uint_eq(detail, 3);
	refused_for = reason;
	refusals++;
}

static int memfd(size_t size, int seals)
{
	int fd = (int)syscall(SYS_memfd_create, "test", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(ftruncate(fd, (off_t)size), 0);
	segment = mmap(NULL, CHANNEL_SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	ck_assert_ptr_ne(segment, MAP_FAILED);
	ck_assert_int_eq(fcntl(fd, F_ADD_SEALS, seals), 0);
	return fd;
}

static void setup(void)
{
	const struct launches_config config = {
		.tally = tally = tally__new(), .site = SITE_NOP5, .refused = on_refused, .ctx = &refusals,
	};

	log__set_level(LOG_ERROR);
	process = (struct process){ .tgid = getpid(), .index = 5 };
	ck_assert_ptr_nonnull(tally);
	launches = launches__new(&config);
	ck_assert_ptr_nonnull(launches);
}

/* As a library does it: the segment, then the hello. */
static void hello(void)
{
	int fd = memfd(CHANNEL_SIZE, SEALS);

	segment->abi = CHANNEL_ABI;
	segment->size = CHANNEL_SIZE;
	segment->site = SITE_NOP1;
	segment->state = CHANNEL_ARMED;
	segment->magic = CHANNEL_MAGIC;
	launches__hello(launches, &process, fd);
	close(fd);
}

static void put(const void *record, uint32_t size, enum channel_type type)
{
	struct channel_head head = { .size = (size + 7) & ~7u, .type = (uint16_t)type };
	uint8_t *at = segment->ring + segment->head % CHANNEL_RING_SIZE;

	memcpy(at + sizeof(head), (const uint8_t *)record + sizeof(head), size - sizeof(head));
	segment->head += head.size;
	memcpy(at, &head, sizeof(head));
}

static void put_result(const struct channel_result *r)
{
	put(r, sizeof(*r), CHANNEL_RESULT);
}

static struct channel_result timed(uint64_t id, uint64_t ns)
{
	return (struct channel_result){
		.launch = id, .duration = ns, .launches = 1, .weight = 1, .device = 0, .stream = 9,
		.entry = ENTRY_LAUNCH_KERNEL, .load = LOAD_BUSY,
	};
}

static void put_name(uint64_t function, uint32_t generation, const char *text,
		     enum channel_name_status status)
{
	char bytes[sizeof(struct channel_name) + 64] = {};
	struct channel_name *n = (void *)bytes;

	n->function = function;
	n->generation = generation;
	n->status = status;
	n->len = (uint32_t)strlen(text);
	memcpy(n->text, text, n->len);
	put(bytes, (uint32_t)sizeof(*n) + n->len, CHANNEL_NAME);
}

static void record(uint64_t id, uint32_t stack, uint64_t function)
{
	const struct rec_launch r = {
		.tgid = (uint32_t)getpid(), .tid = 77, .id = id, .function = function,
	};

	ck_assert_int_eq(launches__record(launches, &process, &r, stack), 0);
}

/* The one line of the tally that has this stack. */
static const struct tally_value *of_stack(uint32_t stack)
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

static struct launches_counters counters(void)
{
	struct launches_counters c;

	launches__counters(launches, &c);
	return c;
}

START_TEST(halves_meet_whichever_comes_first)
{
	struct channel_result r = timed(1, 500);
	const struct tally_value *v;

	setup();
	hello();
	record(1, 11, 0);
	put_result(&r);
	launches__poll(launches);
	r = timed(2, 700);
	put_result(&r);
	launches__poll(launches);
	ck_assert_uint_eq(tally__count(tally), 1);
	record(2, 11, 0);
	v = of_stack(11);
	ck_assert_ptr_nonnull(v);
	ck_assert_uint_eq(v->count, 2);
	ck_assert_uint_eq(v->timed, 2);
	ck_assert_uint_eq(v->ns, 1200);
	ck_assert_uint_eq(v->key.process, 5);
	ck_assert_uint_eq(v->key.tid, 77);
	ck_assert_uint_eq(v->key.stream, 9);
	ck_assert_uint_eq(v->key.kind, TALLY_LAUNCH);
	launches__finish(launches);
	ck_assert_uint_eq(tally__count(tally), 1);
	ck_assert_uint_eq(counters().no_end + counters().no_stack, 0);
	ck_assert_uint_eq(counters().libraries, 1);
}
END_TEST

START_TEST(the_collectors_page_is_written)
{
	setup();
	hello();
	ck_assert_uint_eq(segment->site, SITE_NOP5);
	ck_assert_uint_ne(segment->heartbeat, 0);
	for (uint64_t beat = segment->heartbeat, i = 0; i < 3; i++, beat = segment->heartbeat) {
		launches__poll(launches);
		ck_assert_uint_ne(segment->heartbeat, beat);
	}
	ck_assert_uint_eq(segment->command, CHANNEL_RUN);
	ck_assert(!launches__stopped(launches));
	launches__stop(launches);
	ck_assert_uint_eq(segment->command, CHANNEL_STOP);
	ck_assert(!launches__stopped(launches));
	segment->state = CHANNEL_PASSIVE;
	ck_assert(launches__stopped(launches));
	launches__finish(launches);
	launches__free(launches);
	tally__free(tally);
}
END_TEST

START_TEST(a_launch_has_the_name_that_held_for_it)
{
	struct channel_result r = timed(1, 10);

	setup();
	hello();
	put_name(0x100, 1, "first", NAME_KNOWN);
	r.name = 1;
	r.function = 0x100;
	put_result(&r);
	/* The handle comes again, as another kernel's. */
	put_name(0x100, 2, "second", NAME_KNOWN);
	r.launch = 2;
	r.name = 2;
	put_result(&r);
	put_name(0x200, 3, "first", NAME_KNOWN);
	r.launch = 3;
	r.name = 3;
	put_result(&r);
	r.launch = 4;
	r.name = 99;	/* never heard of */
	put_result(&r);
	for (uint64_t id = 1; id <= 4; id++)
		record(id, (uint32_t)id, 0x100);
	launches__poll(launches);
	ck_assert_str_eq(launches__name(launches, of_stack(1)->key.work), "first");
	ck_assert_str_eq(launches__name(launches, of_stack(2)->key.work), "second");
	ck_assert_uint_eq(of_stack(3)->key.work, of_stack(1)->key.work);
	ck_assert_uint_eq(of_stack(4)->key.work, 0);
}
END_TEST

START_TEST(empty_absent_and_unknown_names_are_three_things)
{
	static const enum channel_name_status status[] = { NAME_KNOWN, NAME_NULL, NAME_ERROR };
	uint32_t work[3];

	setup();
	hello();
	for (uint32_t i = 0; i < 3; i++) {
		struct channel_result r = timed(i + 1, 10);

		put_name(0x100 + i, i + 1, "", status[i]);
		r.name = i + 1;
		put_result(&r);
		record(i + 1, i + 1, 0x100 + i);
	}
	launches__poll(launches);
	for (uint32_t i = 0; i < 3; i++)
		work[i] = of_stack(i + 1)->key.work;
	ck_assert_uint_ne(work[0], 0);
	ck_assert_uint_ne(work[1], 0);
	ck_assert_uint_ne(work[0], work[1]);
	ck_assert_uint_eq(work[2], 0);
	ck_assert_str_eq(launches__name(launches, work[0]), "");
	ck_assert_str_ne(launches__name(launches, work[1]), "");
}
END_TEST

START_TEST(what_did_not_run_is_not_counted)
{
	static const enum launch_cause ran[] = {
		CAUSE_PDL, CAUSE_OTHER_CONTEXT, CAUSE_RECORD_FAILED, CAUSE_CONTEXT_GONE,
		CAUSE_CONTEXT_ERROR, CAUSE_NO_END, CAUSE_ENTRY, CAUSE_BAD_TIME,
	};
	struct channel_result r = timed(1, 0);

	setup();
	hello();
	r.cause = CAUSE_CAPTURED;
	put_result(&r);
	r.launch = 2;
	r.cause = CAUSE_LAUNCH_FAILED;
	put_result(&r);
	for (size_t i = 0; i < sizeof(ran) / sizeof(ran[0]); i++) {
		r.launch = 3 + i;
		r.cause = (uint16_t)ran[i];
		put_result(&r);
	}
	for (uint64_t id = 1; id < 3 + sizeof(ran) / sizeof(ran[0]); id++)
		record(id, 11, 0);
	launches__poll(launches);
	ck_assert_uint_eq(of_stack(11)->count, sizeof(ran) / sizeof(ran[0]));
	ck_assert_uint_eq(of_stack(11)->timed, 0);
	ck_assert_uint_eq(of_stack(11)->untimed, 0);
	ck_assert_uint_eq(counters().by_cause[CAUSE_CAPTURED], 1);
	ck_assert_uint_eq(counters().by_cause[CAUSE_LAUNCH_FAILED], 1);
	ck_assert_uint_eq(counters().by_cause[CAUSE_PDL], 1);
}
END_TEST

START_TEST(shares_that_are_timed_by_chance)
{
	struct channel_result r = timed(1, 100);

	setup();
	hello();
	r.weight = 4;
	put_result(&r);
	r = timed(2, 0);
	r.cause = CAUSE_OUTSTANDING;
	put_result(&r);
	record(1, 11, 0);
	record(2, 12, 0);
	launches__poll(launches);
	ck_assert_uint_eq(of_stack(11)->count, 1);
	ck_assert_uint_eq(of_stack(11)->ns, 100);
	ck_assert_uint_eq(of_stack(11)->weight, 4);
	ck_assert_uint_eq(of_stack(11)->weighted_ns, 400);
	ck_assert_uint_eq(of_stack(12)->count, 1);
	ck_assert_uint_eq(of_stack(12)->untimed, 1);
}
END_TEST

START_TEST(a_half_that_stays_alone)
{
	struct channel_result r = timed(3, 300);
	const struct rec_launch graph = {
		.tgid = (uint32_t)getpid(), .tid = 77, .id = 2, .function = 0x300, .flags = LAUNCH_GRAPH,
	};

	setup();
	hello();
	put_name(0x100, 1, "old", NAME_KNOWN);
	put_name(0x100, 2, "spin", NAME_KNOWN);
	record(1, 11, 0x100);
	ck_assert_int_eq(launches__record(launches, &process, &graph, 12), 0);
	put_result(&r);
	launches__poll(launches);
	ck_assert_uint_eq(tally__count(tally), 0);
	launches__exited(launches, &process);
	/* Killed before its end was seen: counted, and under the name that its handle had last. */
	ck_assert_uint_eq(of_stack(11)->count, 1);
	ck_assert_uint_eq(of_stack(11)->timed, 0);
	ck_assert_str_eq(launches__name(launches, of_stack(11)->key.work), "spin");
	ck_assert(of_stack(12)->key.flags & TALLY_GRAPH);
	/* Its record was lost: the time stays, under no stack. */
	ck_assert_uint_eq(of_stack(STACKS_NONE)->ns, 300);
	ck_assert_uint_eq(counters().no_end, 2);
	ck_assert_uint_eq(counters().no_stack, 1);
	ck_assert_uint_eq(counters().by_cause[CAUSE_NO_END], 2);
}
END_TEST

START_TEST(without_a_library_launches_are_only_counted)
{
	setup();
	record(0, 11, 0);
	record(0, 11, 0);
	ck_assert_uint_eq(of_stack(11)->count, 2);
	ck_assert_uint_eq(of_stack(11)->timed, 0);
	ck_assert_uint_eq(of_stack(11)->untimed, 0);
	ck_assert_uint_eq(counters().without_library, 2);
}
END_TEST

START_TEST(a_launch_is_counted_by_the_library_or_by_a_probe)
{
	struct channel_result r = timed(1, 10);

	setup();
	hello();
	record(1, 11, 0);
	record(0, 11, 0);	/* the same one, seen in the driver */
	put_result(&r);
	launches__poll(launches);
	ck_assert_uint_eq(of_stack(11)->count, 1);
	/* Its slots are restored: only the probe is left. */
	segment->reason = REASON_SILENT;
	segment->state = CHANNEL_PASSIVE;
	launches__poll(launches);
	record(0, 12, 0);
	ck_assert_uint_eq(of_stack(12)->count, 1);
	ck_assert_uint_eq(counters().without_library, 1);
}
END_TEST

static void record_at(uint64_t id, uint64_t time)
{
	const struct rec_launch r = {
		.head.time = time, .tgid = (uint32_t)getpid(), .tid = 77, .id = id,
	};

	ck_assert_int_eq(launches__record(launches, &process, &r, (uint32_t)time), 0);
}

/* By the library and by probes; in time, without a time, and with no result at all. */
START_TEST(only_launches_of_the_capture_count)
{
	struct channel_result r;

	setup();
	hello();
	launches__only(launches, 200, 300);
	for (uint64_t id = 1; id <= 4; id++) {
		r = timed(id, 100);
		put_result(&r);
	}
	record_at(1, 199);
	record_at(2, 200);
	record_at(3, 299);
	record_at(4, 300);
	record_at(5, 150);
	record_at(6, 250);	/* was under way at the end */
	r = timed(7, 0);
	r.cause = CAUSE_NO_END;
	put_result(&r);
	record_at(7, 350);
	launches__poll(launches);
	launches__exited(launches, &process);
	record_at(0, 199);
	record_at(0, 201);
	record_at(0, 301);
	ck_assert_uint_eq(tally__count(tally), 4);
	ck_assert_uint_eq(of_stack(200)->ns, 100);
	ck_assert_uint_eq(of_stack(299)->ns, 100);
	ck_assert_uint_eq(of_stack(250)->timed, 0);
	ck_assert_uint_eq(of_stack(201)->count, 1);
	ck_assert_uint_eq(counters().no_end, 1);
	ck_assert_uint_eq(counters().by_cause[CAUSE_NO_END], 1);
	ck_assert_uint_eq(counters().by_cause[CAUSE_NONE], 2);
	ck_assert_uint_eq(counters().without_library, 1);
}
END_TEST

START_TEST(a_refusal_is_handed_on_once)
{
	setup();
	hello();
	launches__poll(launches);
	ck_assert_uint_eq(refusals, 0);
	segment->reason = REASON_SHAPE;
	segment->detail = 3;
	segment->state = CHANNEL_REFUSED;
	launches__poll(launches);
	launches__exited(launches, &process);
	/* Armed was seen before, so nothing more is expected of its state. */
	ck_assert_uint_eq(refusals, 0);
	process.index++;
	hello();
	segment->reason = REASON_SHAPE;
	segment->detail = 3;
	segment->state = CHANNEL_REFUSED;
	for (int i = 0; i < 3; i++)
		launches__poll(launches);
	ck_assert_uint_eq(refusals, 1);
	ck_assert_uint_eq(refused_for, REASON_SHAPE);
	ck_assert(launches__stopped(launches));
}
END_TEST

START_TEST(a_library_that_took_us_for_dead_is_counted)
{
	setup();
	hello();
	launches__poll(launches);
	ck_assert_uint_eq(counters().gave_up, 0);
	segment->reason = REASON_STOPPED;
	segment->state = CHANNEL_PASSIVE;
	launches__poll(launches);
	ck_assert_uint_eq(counters().gave_up, 0);
	segment->reason = REASON_SILENT;
	launches__poll(launches);
	launches__poll(launches);
	ck_assert_uint_eq(counters().gave_up, 1);
}
END_TEST

START_TEST(a_segment_that_is_none)
{
	int fd;

	setup();
	launches__hello(launches, &process, -EMFILE);
	launches__hello(launches, &process, INT32_MIN);
	launches__hello(launches, &process, 9999);	/* no such descriptor */
	fd = memfd(CHANNEL_SIZE, F_SEAL_GROW);		/* may be cut under us */
	launches__hello(launches, &process, fd);
	close(fd);
	process.index++;
	fd = memfd(4096, SEALS);
	launches__hello(launches, &process, fd);
	close(fd);
	launches__poll(launches);
	ck_assert_uint_eq(counters().libraries, 0);
	ck_assert_uint_ge(counters().bad_channels, 2);
	/* Its launches are counted all the same. */
	record(1, 11, 0);
	launches__finish(launches);
	ck_assert_uint_eq(of_stack(11)->count, 1);
}
END_TEST

START_TEST(a_ring_that_holds_nonsense)
{
	struct channel_head bad = { .size = 0xfffffff8, .type = CHANNEL_RESULT };
	struct channel_result r = timed(1, 10);

	setup();
	hello();
	put_result(&r);
	record(1, 11, 0);
	memcpy(segment->ring + segment->head, &bad, sizeof(bad));
	segment->head += 4096;
	launches__poll(launches);
	launches__poll(launches);
	ck_assert_uint_eq(counters().bad_channels, 1);
	ck_assert_uint_eq(of_stack(11)->timed, 1);
	ck_assert(launches__stopped(launches));		/* nobody waits for it */
	record(2, 12, 0);
	launches__finish(launches);
	ck_assert_uint_eq(of_stack(12)->count, 1);
}
END_TEST

/* A target must not fill our memory with halves: past a bound they are counted alone at once. */
START_TEST(launches_without_end_are_bounded)
{
	uint64_t id;

	setup();
	hello();
	for (id = 1; id <= 600000; id++)
		record(id, 11, 0x100);
	ck_assert_uint_ge(of_stack(11)->count, 300000);
	launches__finish(launches);
	ck_assert_uint_eq(of_stack(11)->count, 600000);
	ck_assert_uint_eq(counters().no_end, 600000);
	launches__free(launches);
	tally__free(tally);
}
END_TEST

START_TEST(names_are_bounded)
{
	struct launches_counters c;
	uint32_t i;

	setup();
	hello();
	for (i = 1; i <= 1200000; i++) {
		put_name(i, i, "", NAME_KNOWN);
		if (i % 1000 == 0)
			launches__poll(launches);
	}
	c = counters();
	ck_assert_uint_ge(c.lost_names, 100000);
	launches__free(launches);
	tally__free(tally);
}
END_TEST

UNIT_MAIN("launches",
	  halves_meet_whichever_comes_first,
	  the_collectors_page_is_written,
	  a_launch_has_the_name_that_held_for_it,
	  empty_absent_and_unknown_names_are_three_things,
	  what_did_not_run_is_not_counted,
	  shares_that_are_timed_by_chance,
	  a_half_that_stays_alone,
	  without_a_library_launches_are_only_counted,
	  a_launch_is_counted_by_the_library_or_by_a_probe,
	  only_launches_of_the_capture_count, a_refusal_is_handed_on_once,
	  a_library_that_took_us_for_dead_is_counted,
	  a_segment_that_is_none,
	  a_ring_that_holds_nonsense,
	  launches_without_end_are_bounded,
	  names_are_bounded)
