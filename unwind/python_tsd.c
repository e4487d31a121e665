// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * pthread_getspecific, done from outside. glibc's struct pthread holds 32 pairs (sequence, value) for
 * the first 32 keys and, right behind them, pointers to 32 such blocks, the first of which points back
 * to the pairs: by that they are found, whatever else the struct holds in this version. musl's has a
 * pointer to an array of values. Either is believed only if it leads to the thread's state.
 */
#include "unwind/python_threads.h"

#include <errno.h>
#include <string.h>

#define STRUCT_BYTES 4096	/* of a struct pthread that are looked at: glibc's has some 2,300 */
#define MUSL_BYTES 512
#define BLOCK_KEYS 32
#define BLOCK_BYTES (BLOCK_KEYS * 16)
#define MAX_KEYS 1024
#define WINDOW 8192		/* of _PyRuntime in which the key is looked for where it has moved */

struct tsd {
	const struct python_memory *m;
	const struct python_thread *threads;
	size_t nr;
	uint8_t bytes[STRUCT_BYTES];	/* of one thread's struct pthread */
	uint64_t pointer;		/* its address; 0: none */
	size_t len;
};

/* How the key `key` of a thread is found. */
struct place {
	uint32_t at, then;
};

static uint64_t word(const struct tsd *t, size_t at)
{
	uint64_t value;

	memcpy(&value, t->bytes + at, sizeof(value));
	return value;
}

/* The struct lies at the end of a mapping: as much of it as there is. */
static int tsd__load(struct tsd *t, uint64_t pointer)
{
	static const uint16_t lengths[] = { STRUCT_BYTES, 2304, 2048, 1024, 512, 256 };
	int err = -EFAULT;

	if (t->pointer == pointer)
		return 0;
	t->pointer = 0;
	for (size_t i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++) {
		t->len = lengths[i];
		err = t->m->read(t->m->ctx, pointer, t->bytes, t->len);
		if (!err || err == -ESRCH)
			break;
	}
	if (!err)
		t->pointer = pointer;
	return err;
}

/* Where glibc's blocks are listed; 0: not in this struct. */
static size_t tsd__blocks(const struct tsd *t)
{
	for (size_t at = BLOCK_BYTES; at + BLOCK_KEYS * 8 <= t->len; at += 8)
		if (word(t, at) == t->pointer + at - BLOCK_BYTES)
			return at;
	return 0;
}

static int tsd__value(const struct tsd *t, struct place place, uint64_t *value)
{
	uint64_t block;

	if (place.at + 8 > t->len)
		return -ENOENT;
	block = word(t, place.at);
	if (place.then == PYTHON_TSD_DIRECT) {
		*value = block;
		return 0;
	}
	if (!block || block % 8)
		return -ENOENT;
	return t->m->read(t->m->ctx, block + place.then, value, sizeof(*value));
}

/* A thread may have states of several interpreters: whether `value` is one of them. */
static bool tsd__is_state(const struct tsd *t, uint64_t pointer, uint64_t value)
{
	for (size_t i = 0; value && i < t->nr; i++)
		if (t->threads[i].state == value && t->threads[i].pointer == pointer)
			return true;
	return false;
}

/* In how many threads the place holds the state, and in how many it doesn't. */
static int tsd__score(struct tsd *t, struct place place, unsigned int *good, unsigned int *bad)
{
	*good = *bad = 0;
	for (size_t i = 0; i < t->nr; i++) {
		uint64_t value = 0;
		int err = tsd__load(t, t->threads[i].pointer);

		if (!err)
			err = tsd__value(t, place, &value);
		if (err == -ESRCH)
			return err;
		if (!err && tsd__is_state(t, t->threads[i].pointer, value))
			++*good;
		else
			++*bad;
	}
	return 0;
}

/* A place for the key in the struct at hand that holds its thread's state. */
static int tsd__place(struct tsd *t, uint32_t key, struct place *place)
{
	size_t blocks = tsd__blocks(t);
	uint64_t value;

	if (blocks) {
		*place = (struct place){ (uint32_t)(blocks - BLOCK_BYTES) + 16 * key + 8,
					 PYTHON_TSD_DIRECT };
		if (key >= BLOCK_KEYS)
			*place = (struct place){ (uint32_t)blocks + key / BLOCK_KEYS * 8,
						 key % BLOCK_KEYS * 16 + 8 };
		if (!tsd__value(t, *place, &value) && tsd__is_state(t, t->pointer, value))
			return 0;
		return -ENOENT;
	}
	for (uint32_t at = 0; at < MUSL_BYTES && at + 8 <= t->len; at += 8) {
		*place = (struct place){ at, key * 8 };
		if (!tsd__value(t, *place, &value) && tsd__is_state(t, t->pointer, value))
			return 0;
	}
	return -ENOENT;
}

struct best {
	unsigned int good, bad;
	uint32_t distance;
	struct place place;
};

static bool better(const struct best *a, const struct best *b)
{
	if (!a->bad != !b->bad)
		return !a->bad;
	if (a->good != b->good)
		return a->good > b->good;
	return a->distance < b->distance;
}

/* Tries a key: in the threads one after the other, until one says where it would be. */
static int tsd__try(struct tsd *t, uint32_t key, uint32_t distance, struct best *best)
{
	struct best tried = { .distance = distance };

	for (size_t i = 0; i < t->nr; i++) {
		int err = tsd__load(t, t->threads[i].pointer);

		if (err == -ESRCH)
			return err;
		if (err || tsd__place(t, key, &tried.place))
			continue;
		err = tsd__score(t, tried.place, &tried.good, &tried.bad);
		if (err)
			return err;
		if (tried.good && (!best->good || better(&tried, best)))
			*best = tried;
		return 0;
	}
	return 0;
}

static bool is_key(const uint32_t *pair)
{
	return pair[0] == 1 && pair[1] < MAX_KEYS;
}

/*
 * Where the version has it; in some versions it lies behind structures that patch releases and
 * distributions change: then whatever looks like a key and leads to the states is taken, the nearest
 * of several. Extension modules keep the same pointer under keys of their own, but not in here.
 */
static int tsd__search(struct tsd *t, const struct python_runtime *r, uint64_t runtime, struct best *best)
{
	uint32_t tabled = r->offsets.runtime_key, pairs[WINDOW / 4], pair[2];
	size_t len = WINDOW;
	int err = t->m->read(t->m->ctx, runtime + tabled, pair, sizeof(pair));

	if (err)
		return err;
	if (is_key(pair)) {
		err = tsd__try(t, pair[1], 0, best);
		if (err || best->good)
			return err;
	}
	if (r->minor < 12)
		return is_key(pair) ? -ENOENT : -EAGAIN;
	if (r->runtime_size && r->runtime_size < len)
		len = r->runtime_size & ~3ull;
	err = t->m->read(t->m->ctx, runtime, pairs, len);
	for (size_t i = 0; !err && i + 1 < len / 4; i++)
		if (is_key(&pairs[i]))
			err = tsd__try(t, pairs[i + 1], (uint32_t)(i * 4 > tabled ? i * 4 - tabled :
								   tabled - i * 4), best);
	return err;
}

int python_tsd__find(const struct python_runtime *r, uint64_t runtime_address,
		     const struct python_memory *m, const struct python_thread *threads, size_t nr,
		     struct python_layout *layout)
{
	struct tsd t = { .m = m, .threads = threads, .nr = nr };
	struct best best = { 0 };
	int err = tsd__search(&t, r, runtime_address, &best);

	if (err)
		return err;
	if (!best.good)
		return -ENOENT;
	layout->tsd_at = best.place.at;
	layout->tsd_then = best.place.then;
	return 0;
}
