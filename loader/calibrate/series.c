// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "loader/calibrate/series.h"

#include <string.h>
#include <time.h>

#include "loader/base/clock.h"
#include "loader/calibrate/bench.h"

#define ROUNDS 200u
#define TRIES 4u		/* as many rounds as are wanted, until it is given up */
#define FILL_NS 500000u		/* work in front that keeps a stream busy; longer where that is too short */
#define MAX_FILL_NS 64000000u
#define BEHIND_NS 20000u	/* and behind, as in a program that is ahead of its device */
#define PAUSE_NS 30000
/* A call that takes longer does the copy itself: no stream is kept busy beside it. */
#define SLOW_CALL_NS 2000000u
#define SERIES_MIDDLING (1u << 20)	/* bytes: from here on a copy takes so long that few rounds will do */

struct run {
	struct bench *bench;
	bool no_gap;
	uint64_t fill_ns;
	struct calibrate_series series;
	double value[ROUNDS + BENCH_BRACKETS], marginal[ROUNDS + BENCH_BRACKETS];
	size_t nr, tries;
};

static void begin(struct run *r, enum calibration_work work, enum launch_load load, uint64_t size,
		  uint32_t wanted)
{
	memset(&r->series, 0, sizeof(r->series));
	r->series.work = work;
	r->series.load = load;
	r->series.size = size;
	r->series.wanted = wanted;
	r->nr = r->tries = 0;
	r->fill_ns = FILL_NS;
}

static bool goes_on(struct run *r, unsigned int rounds)
{
	r->tries += rounds;
	return r->nr < r->series.wanted && r->tries <= (size_t)TRIES * r->series.wanted;
}

static void longer_fill(struct run *r)
{
	if (r->fill_ns < MAX_FILL_NS)
		r->fill_ns *= 2;
}

/* The stream runs dry, and is left alone for a moment. */
static int rest(struct bench *b)
{
	const struct timespec pause = { 0, PAUSE_NS };
	int err = bench__sync(b);

	nanosleep(&pause, NULL);
	return err;
}

/* --- kernels ---------------------------------------------------------------------------------- */

/* That bracket less the kernel's own account. */
static int add_kernel(struct run *r, unsigned int i, double gap)
{
	double ns;
	int err = bench__elapsed(r->bench, &r->bench->bracket[i], &ns);

	r->value[r->nr++] = ns - bench__own_ns(r->bench, i) - CALIBRATION_AROUND_NS - gap;
	return err;
}

static int kernels_busy_once(struct run *r)
{
	struct bench *b = r->bench;
	size_t before = r->nr;
	unsigned int i;
	int err;

	err = bench__fill(b, r->fill_ns);
	for (i = 0; !err && i < BENCH_BRACKETS; i++)
		err = bench__bracket(b, &b->bracket[i],
				     &(struct bench_work){ CALIBRATION_KERNEL, r->series.size, 1, i });
	if (!err)
		err = bench__fill(b, BEHIND_NS);
	if (!err)
		err = bench__sync(b);
	if (!err)
		err = bench__read_told(b);
	for (i = 0; !err && i < BENCH_BRACKETS; i++)
		if (!b->bracket[i].idle)
			err = add_kernel(r, i, 0);
	if (r->nr - before < BENCH_BRACKETS / 2)
		longer_fill(r);
	return err;
}

static int kernels_idle_once(struct run *r)
{
	struct bench *b = r->bench;
	struct bench_bracket *bracket = &b->bracket[0];
	int err = rest(b);

	if (!err)
		err = bench__bracket(b, bracket,
				     &(struct bench_work){ CALIBRATION_KERNEL, r->series.size, 1, 0 });
	if (!err)
		err = bench__sync(b);
	if (!err)
		err = bench__read_told(b);
	if (err || !bracket->idle)
		return err;
	return add_kernel(r, 0, r->no_gap ? 0 : (double)bracket->gap_ns);
}

static int kernels(struct run *r, uint64_t ns, enum launch_load load)
{
	bool busy = load == LOAD_BUSY;
	int err = 0;

	begin(r, CALIBRATION_KERNEL, load, ns, ROUNDS);
	while (!err && goes_on(r, busy ? BENCH_BRACKETS : 1))
		err = busy ? kernels_busy_once(r) : kernels_idle_once(r);
	return err;
}

/* --- copies ----------------------------------------------------------------------------------- */

static struct bench_work copy_of(const struct run *r, unsigned int times)
{
	return (struct bench_work){ (enum calibration_work)r->series.work, r->series.size, times, 0 };
}

/*
 * Brackets around 1, n and 2 n copies, all of them put in before the first begins: the last two tell by
 * how much each further copy makes them longer, the first has more than that.
 */
static int copies_busy_once(struct run *r, unsigned int n)
{
	const unsigned int times[] = { 1, n, 2 * n };
	struct bench *b = r->bench;
	bool pending = false;
	double ns[3];
	int err, i;

	err = bench__fill(b, r->fill_ns);
	for (i = 0; !err && i < 3; i++) {
		const struct bench_work w = copy_of(r, times[i]);

		err = bench__bracket(b, &b->bracket[i], &w);
	}
	if (!err)
		err = bench__fill(b, BEHIND_NS);
	if (!err)
		err = bench__is_pending(b, b->bracket[0].begin, &pending);
	if (!err)
		err = bench__sync(b);
	if (!err && !pending)
		longer_fill(r);
	for (i = 0; !err && i < 3; i++)
		err = bench__elapsed(b, &b->bracket[i], &ns[i]);
	if (err || !pending)
		return err;
	r->marginal[r->nr] = (ns[2] - ns[1]) / n;
	r->value[r->nr] = ns[0] - r->marginal[r->nr];
	r->nr++;
	return 0;
}

/* The gap is taken off where the library tells it: not where the call itself might copy. */
static int copies_idle_once(struct run *r, double one)
{
	const struct bench_work w = copy_of(r, 1);
	struct bench *b = r->bench;
	struct bench_bracket *bracket = &b->bracket[0];
	bool gap = !r->no_gap && (w.work == CALIBRATION_DTOD || w.work == CALIBRATION_SET);
	int err = rest(b);
	double ns;

	if (!err)
		err = bench__bracket(b, bracket, &w);
	if (!err)
		err = bench__sync(b);
	if (!err)
		err = bench__elapsed(b, bracket, &ns);
	if (!err && bracket->idle)
		r->value[r->nr++] = ns - one - (gap ? (double)bracket->gap_ns : 0);
	return err;
}

/* Whether its call returns before the copy is made; the first ones also take what is made only once. */
static int is_quick(struct run *r, enum calibration_work work, uint64_t size, bool *quick)
{
	const struct bench_work w = { work, size, 1, 0 };
	uint64_t begun, best = UINT64_MAX, ns;
	int err = 0, i;

	for (i = 0; !err && i < 3; i++) {
		begun = clock__now_ns();
		err = bench__put(r->bench, &w);
		ns = clock__now_ns() - begun;
		best = ns < best ? ns : best;
	}
	*quick = best <= SLOW_CALL_NS;
	return err ? err : bench__sync(r->bench);
}

/* Fewer of those that take longer. */
static uint32_t rounds_of(uint64_t size)
{
	return size <= SERIES_SMALL ? ROUNDS : size <= SERIES_MIDDLING ? ROUNDS / 4 : ROUNDS / 20;
}

static int copies_busy(struct run *r, enum calibration_work work, uint64_t size)
{
	unsigned int n = size <= SERIES_SMALL ? 8 : size <= SERIES_MIDDLING ? 4 : 1;
	int err = 0;

	begin(r, work, LOAD_BUSY, size, rounds_of(size));
	while (!err && goes_on(r, 1))
		err = copies_busy_once(r, n);
	return err;
}

static int copies_idle(struct run *r, enum calibration_work work, uint64_t size, double one)
{
	int err = 0;

	begin(r, work, LOAD_IDLE, size, rounds_of(size));
	while (!err && goes_on(r, 1))
		err = copies_idle_once(r, one);
	return err;
}

typedef void (*found_series)(void *ctx, const struct calibrate_series *s);

/* What there was no round of is not known. */
static void hand_over(struct run *r, found_series found, void *ctx)
{
	if (!r->nr)
		return;
	calibrate_series__spread(r->value, r->nr, &r->series);
	r->series.rounds = (uint32_t)r->nr;
	found(ctx, &r->series);
}

static int all_kernels(struct run *r, found_series found, void *ctx)
{
	static const uint64_t lengths[] = { 1000, 10000, 100000 };
	int err = 0, load;
	size_t i;

	for (load = LOAD_BUSY; load <= LOAD_IDLE; load++)
		for (i = 0; !err && i < sizeof(lengths) / sizeof(lengths[0]); i++) {
			err = kernels(r, lengths[i], (enum launch_load)load);
			if (!err)
				hand_over(r, found, ctx);
		}
	return err;
}

/* Busy, then idle, for which the time of one more copy comes from the former. */
static int copies(struct run *r, enum calibration_work work, uint64_t size, found_series found, void *ctx)
{
	struct calibrate_series one;
	bool quick;
	int err;

	err = is_quick(r, work, size, &quick);
	if (err || !quick)
		return err;
	err = copies_busy(r, work, size);
	if (err || !r->nr)
		return err;
	calibrate_series__spread(r->marginal, r->nr, &one);
	hand_over(r, found, ctx);
	err = copies_idle(r, work, size, one.median);
	if (!err)
		hand_over(r, found, ctx);
	return err;
}

int calibrate_series__measure(struct bench *b, bool no_gap, found_series found, void *ctx)
{
	static const uint64_t sizes[] = { 4, 4096, SERIES_SMALL, SERIES_MIDDLING, 64u << 20 };
	struct run r = { .bench = b, .no_gap = no_gap };
	int err, work;
	size_t i;

	err = all_kernels(&r, found, ctx);
	for (work = CALIBRATION_HTOD; work < NR_CALIBRATION_WORKS; work++)
		for (i = 0; !err && i < sizeof(sizes) / sizeof(sizes[0]); i++)
			if (sizes[i] <= b->room)
				err = copies(&r, (enum calibration_work)work, sizes[i], found, ctx);
	return err;
}
