// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "gpu_timing/library/crowd.h"
#include "gpu_timing/library/library.h"

/* keys[]: 0 free, 1 retired, else a handle or a name of our own for a default stream. */
#define KEY_RETIRED 1ull
#define KEY_DEFAULT (1ull << 63)
#define KEY_LEGACY 1ull
#define KEY_PER_THREAD 2ull

#define SHIFTS 10		/* the smallest chance is 1 in 1024 */
/* Of the brackets up to the limit so many are taken without any being left out. */
#define ALL_HELD 4
#define ALL_STANDING 60

_Static_assert(1u << SHIFTS == CHANNEL_MAX_WEIGHT, "what the reader believes");
#define ENDS_FROM 32	/* brackets without an end from which on one is looked for */
#define MANY 128	/* the same, with or without */
#define ENDS_AT_ONCE 128	/* some 30 us */
#define DEAR_AT_ONCE 24

static struct stream_table *table(void)
{
	return &lib.memory->streams;
}

static uint64_t key_of(CUstream handle, const struct context *current, const struct thread *t)
{
	uint64_t index;

	if (!stream__is_default(handle))
		return (uint64_t)handle;
	if (!current)
		return 0;
	if (handle != CU_STREAM_PER_THREAD)
		return KEY_DEFAULT | (uint64_t)current->serial << 20 | KEY_LEGACY;
	index = (uint64_t)(t - lib.memory->threads.threads);
	return KEY_DEFAULT | (uint64_t)current->serial << 20 | index << 4 | KEY_PER_THREAD;
}

static uint32_t first_way(uint64_t key)
{
	key ^= key >> 32;
	key *= 0x9e3779b97f4a7c15ull;
	return (uint32_t)(key >> 40) % STREAM_SETS * STREAM_WAYS;
}

static struct stream *find(uint64_t key, uint32_t from, uint32_t to)
{
	for (uint32_t i = from; i < to; i++)
		if (load_acquire(&table()->keys[i]) == key)
			return &table()->streams[i];
	return NULL;
}

static void release(struct stream *s)
{
	uint32_t i = (uint32_t)(s - table()->streams);

	s->context = s->serial = s->pdl = s->since = s->held = s->order = 0;
	s->run = s->chained = s->place = s->left_out = s->drains = 0;
	s->function = 0;
	__atomic_and_fetch(&table()->used[i / 64], ~(1ull << i % 64), __ATOMIC_RELAXED);
	store_relaxed(&s->dead, 0u);
	store_release(&table()->keys[i], 0ull);
}

static struct stream *insert(uint64_t key, uint32_t from)
{
	for (uint32_t i = from; i < from + STREAM_WAYS; i++) {
		struct stream *s = &table()->streams[i], *other;
		uint64_t expected = 0;

		if (!__atomic_compare_exchange_n(&table()->keys[i], &expected, key, false,
						 __ATOMIC_ACQ_REL, __ATOMIC_RELAXED))
			continue;
		/* Somebody may have put the same one in before it. */
		other = find(key, from, i);
		if (other) {
			release(s);
			return other;
		}
		__atomic_or_fetch(&table()->used[i / 64], 1ull << i % 64, __ATOMIC_RELEASE);
		return s;
	}
	return NULL;
}

static enum stream_order order_of(CUstream handle)
{
	unsigned int flags = CU_STREAM_DEFAULT;

	if (!handle || handle == CU_STREAM_LEGACY)
		return ORDER_LEGACY;
	if (handle != CU_STREAM_PER_THREAD && lib.driver.stream_get_flags)
		lib.driver.stream_get_flags(handle, &flags);
	return flags & CU_STREAM_NON_BLOCKING ? ORDER_FREE : ORDER_BLOCKING;
}

static void ask_context(struct stream *s, CUstream handle, uint64_t key, struct context *current)
{
	CUcontext ctx;

	store_relaxed(&s->order, (uint32_t)order_of(handle));
	if (!(key & KEY_DEFAULT)) {
		/* Never asked of the legacy stream: that destroys captures. */
		current = lib.driver.stream_get_ctx(handle, &ctx) ? NULL : context__get(ctx);
	}
	if (current)
		store_relaxed(&s->serial, current->serial);
	store_release(&s->context, current ? context__number(current) : STREAM_NO_CONTEXT);
}

struct stream *stream__get(CUstream handle, struct context *current, const struct thread *t)
{
	uint64_t key = key_of(handle, current, t);
	uint32_t from = first_way(key);
	struct stream *s;

	if (key <= KEY_RETIRED)
		return NULL;
	s = find(key, from, from + STREAM_WAYS);
	if (unlikely(!s))
		s = insert(key, from);
	if (s && unlikely(!load_acquire(&s->context)))
		ask_context(s, handle, key, current);
	return s;
}

struct stream *stream__find(CUstream handle, const struct context *current, const struct thread *t)
{
	uint64_t key = key_of(handle, current, t);
	uint32_t from = first_way(key);

	return key > KEY_RETIRED ? find(key, from, from + STREAM_WAYS) : NULL;
}

bool stream__is_legacy(const struct stream *s)
{
	uint64_t key = load_relaxed(&table()->keys[s - table()->streams]);

	return key & KEY_DEFAULT && (key & 15) == KEY_LEGACY;
}

uint64_t stream__place(const struct stream *s)
{
	uint64_t key = load_relaxed(&table()->keys[s - table()->streams]);

	if (!(key & KEY_DEFAULT))
		return key;
	/* Without the context. */
	return (key & 15) == KEY_LEGACY ? CROWD_LEGACY : KEY_DEFAULT | (key & 0xffff0);
}

struct context *stream__context(const struct stream *s)
{
	uint32_t number = load_acquire(&s->context);
	struct context *c;

	if (!number || number == STREAM_NO_CONTEXT)
		return NULL;
	c = context__at(number);
	return load_relaxed(&c->serial) == load_relaxed(&s->serial) ? c : NULL;
}

/*
 * Each launch of a burst must have a chance, for the time of one that is timed stands for those that are
 * left out, by the inverse of its chance: this is 1, then it halves in equal steps up to the limit, so that
 * it lasts for more launches than a stream has room for. A shift of SHIFTS + 1: none.
 */
static uint32_t shift_of(const struct stream *s, uint32_t since)
{
	bool held = load_acquire(&s->held);
	uint32_t max = held ? CHANNEL_MAX_HELD : CHANNEL_MAX_STANDING;
	uint32_t all = held ? ALL_HELD : ALL_STANDING;

	if (since < all)
		return 0;
	return since < max ? 1 + (since - all) * SHIFTS / (max - all) : SHIFTS + 1;
}

unsigned int stream__wants_ends(const struct stream *s)
{
	uint32_t from = load_relaxed(&s->held) ? ALL_HELD : ENDS_FROM;

	if (load_relaxed(&s->since) < from && load_relaxed(&s->outstanding) < MANY)
		return 0;
	if (lib.driver.cheap_elapsed)
		return ENDS_AT_ONCE;
	/* There one costs 2 or 3 us, and a question in vain as much. */
	return load_relaxed(&s->seq) % 16 ? 0 : DEAR_AT_ONCE;
}

void stream__moved(struct stream *s)
{
	if (!load_acquire(&s->held))
		store_relaxed(&s->since, 0u);
}

void stream__hold(struct stream *s)
{
	if (!load_relaxed(&s->held))
		store_relaxed(&s->since, 0u);
	store_release(&s->held, __atomic_add_fetch(&s->holds, 1, __ATOMIC_ACQ_REL));
}

void stream__let_go(struct stream *s, uint32_t hold)
{
	__atomic_compare_exchange_n(&s->held, &hold, 0u, false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED);
}

bool stream__admit(struct stream *s, struct thread *t, uint32_t *weight)
{
	uint32_t outstanding = load_relaxed(&s->outstanding), since = load_relaxed(&s->since);
	uint32_t shift;

	if (since > outstanding) {	/* others have seen their ends */
		since = outstanding;
		store_relaxed(&s->since, since);
	}
	shift = shift_of(s, since);
	if (shift > SHIFTS || (shift && thread__random(t) >> (64 - shift)))
		return false;
	if (__atomic_add_fetch(&s->outstanding, 1, __ATOMIC_RELAXED) > CHANNEL_MAX_OUTSTANDING) {
		__atomic_sub_fetch(&s->outstanding, 1, __ATOMIC_RELAXED);
		return false;
	}
	__atomic_add_fetch(&s->since, 1, __ATOMIC_RELAXED);
	*weight = 1u << shift;
	return true;
}

void stream__publish(struct stream *s, uint32_t bracket)
{
	uint32_t at = __atomic_fetch_add(&s->head, 1, __ATOMIC_RELAXED);

	store_release(&s->pending[at % STREAM_RING], (uint16_t)bracket);
}

void stream__retire_at(struct stream *s)
{
	uint32_t i = (uint32_t)(s - table()->streams);

	store_release(&table()->keys[i], KEY_RETIRED);
	__atomic_store_n(&s->dead, 1u, __ATOMIC_SEQ_CST);
	run__void(s, CAUSE_DISTURBED);
	stream__free_if_done(s);
}

void stream__retire(CUstream handle)
{
	uint64_t key = key_of(handle, NULL, NULL);
	uint32_t from = first_way(key);
	struct stream *s;

	if (key <= KEY_RETIRED)
		return;
	while ((s = find(key, from, from + STREAM_WAYS))) {
		stream__retire_at(s);
		run__await(s);
	}
}

void stream__free_if_done(struct stream *s)
{
	uint32_t expected = 1;

	if (load_acquire(&s->dead) != 1 || load_acquire(&s->outstanding) ||
	    load_acquire(&s->active) || load_acquire(&s->lock))
		return;
	if (__atomic_compare_exchange_n(&s->dead, &expected, 2, false, __ATOMIC_ACQUIRE,
					__ATOMIC_RELAXED))
		release(s);
}

void stream__each(void (*fn)(struct stream *s, void *ctx), void *ctx)
{
	for (uint32_t w = 0; w < MAX_STREAMS / 64; w++) {
		uint64_t bits = load_acquire(&table()->used[w]);

		for (; bits; bits &= bits - 1)
			fn(&table()->streams[w * 64 + (uint32_t)__builtin_ctzll(bits)], ctx);
	}
}

static void retire(struct stream *s, void *ctx)
{
	(void)ctx;
	if (!load_acquire(&s->dead))
		stream__retire_at(s);
}

void stream__retire_all(void)
{
	stream__each(retire, NULL);
}

bool stream__try_lock(struct stream *s, enum stream_lock as)
{
	uint32_t expected = STREAM_UNLOCKED;

	return !load_relaxed(&s->lock) &&
	       __atomic_compare_exchange_n(&s->lock, &expected, (uint32_t)as, false,
					   __ATOMIC_SEQ_CST, __ATOMIC_RELAXED);
}

void stream__unlock(struct stream *s)
{
	store_release(&s->lock, STREAM_UNLOCKED);
}
