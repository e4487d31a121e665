// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include <string.h>

#include "gpu_timing/library/context.h"
#include "gpu_timing/library/library.h"
#include "gpu_timing/library/segment.h"

static struct name_table *table(void)
{
	return &lib.memory->names;
}

static uint64_t mix(uint64_t x)
{
	x ^= x >> 32;
	x *= 0xd6e8feb86659fd93ull;
	x ^= x >> 32;
	x *= 0xd6e8feb86659fd93ull;
	return x ^ x >> 32;
}

static uint64_t hash_of(const char *text, size_t len, enum channel_name_status status)
{
	uint64_t h = mix((uint64_t)status << 32 | len), word;

	for (; len >= sizeof(word); text += sizeof(word), len -= sizeof(word)) {
		memcpy(&word, text, sizeof(word));
		h = mix(h ^ word);
	}
	word = 0;
	memcpy(&word, text, len);
	return mix(h ^ word);
}

/* NULL: no room near its place. */
static struct name_entry *entry_of(uint64_t function)
{
	uint64_t at = mix(function);

	for (uint64_t i = 0; i < NAME_PROBES; i++) {
		struct name_entry *e = &table()->entries[(at + i) % MAX_NAMES];
		uint64_t here = load_relaxed(&e->function);

		if (likely(here == function))
			return e;
		if (!here && __atomic_compare_exchange_n(&e->function, &here, function, false,
							 __ATOMIC_RELAXED, __ATOMIC_RELAXED))
			return e;
		if (here == function)
			return e;
	}
	return NULL;
}

static CUresult ask(enum handle_kind kind, uint64_t function, const char **name)
{
	if (kind == HANDLE_FUNCTION)
		return lib.driver.func_name ?
			       lib.driver.func_name(name, (CUfunction)function) :
			       CUDA_ERROR_INVALID_HANDLE;
	return lib.driver.kernel_name ? lib.driver.kernel_name(name, (CUkernel)function) :
					CUDA_ERROR_INVALID_HANDLE;
}

/*
 * A handle may be of either kind, and asking for the wrong one leaves a line in the driver's error
 * log, which the program may read: so the kind that it was last, or was made as, comes first. Of one
 * that was made before we came, that of the last such one: most programs have only one kind.
 */
static enum channel_name_status resolve(struct name_entry *e, uint64_t function,
					const char **name, size_t *len)
{
	enum handle_kind first = load_relaxed(&e->kind), second, kind;
	bool guessed = first == HANDLE_UNKNOWN;

	if (guessed)
		first = load_relaxed(&table()->guess) == HANDLE_FUNCTION ? HANDLE_FUNCTION :
									   HANDLE_KERNEL;
	kind = first;
	second = first == HANDLE_KERNEL ? HANDLE_FUNCTION : HANDLE_KERNEL;
	*name = NULL;
	*len = 0;
	if (ask(first, function, name)) {
		*name = NULL;
		if (ask(second, function, name)) {
			*name = NULL;
			return NAME_ERROR;
		}
		kind = second;
	}
	store_relaxed(&e->kind, (uint32_t)kind);
	if (guessed)
		store_relaxed(&table()->guess, (uint32_t)kind);
	if (!*name)
		return NAME_NULL;
	*len = strnlen(*name, CHANNEL_MAX_NAME + 1);
	if (*len <= CHANNEL_MAX_NAME)
		return NAME_KNOWN;
	*len = CHANNEL_MAX_NAME;
	return NAME_CUT;
}

/*
 * A CUkernel belongs to no context, but has its sizes for a device. They are asked only where that
 * device's primary context is the launch's own, so that the kernel is loaded already where the driver
 * looks for it. Where nobody saw which one that is, it is taken to be the only one that launches.
 */
static bool may_ask_kernel(const struct context *c, CUdevice device)
{
	CUcontext primary = context__primary(device);
	unsigned int flags;
	int active = 0;

	if (!lib.driver.kernel_attribute || device < 0)
		return false;
	if (primary)
		return (uint64_t)primary == load_relaxed(&c->handle);
	return context__is_only(c) && !lib.driver.primary_state(device, &flags, &active) && active;
}

static CUresult ask_size(const struct name_entry *e, uint64_t function, CUdevice device,
			 CUfunction_attribute which, int *value)
{
	if (load_relaxed(&e->kind) == HANDLE_KERNEL)
		return lib.driver.kernel_attribute(value, which, (CUkernel)function, device);
	return lib.driver.func_attribute(value, which, (CUfunction)function);
}

/* 0: the driver doesn't tell. */
static uint64_t ask_sizes(const struct name_entry *e, uint64_t function, const struct context *c)
{
	CUdevice device = load_relaxed(&c->device);
	int registers = 0, shared = 0;

	if (load_relaxed(&e->kind) == HANDLE_KERNEL ? !may_ask_kernel(c, device) :
						      !lib.driver.func_attribute)
		return 0;
	if (ask_size(e, function, device, CU_FUNC_ATTRIBUTE_NUM_REGS, &registers) ||
	    ask_size(e, function, device, CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES, &shared) ||
	    registers <= 0 || shared < 0)
		return 0;
	return (uint64_t)registers << 32 | (uint32_t)shared;
}

static uint32_t send(uint64_t function, enum channel_name_status status,
		     const char *name, size_t len, uint64_t sizes)
{
	struct channel_name rec = {
		.function = function,
		.generation = __atomic_add_fetch(&table()->generation, 1, __ATOMIC_RELAXED),
		.len = (uint32_t)len,
		.status = status,
		.registers = (uint32_t)(sizes >> 32),
		.shared_bytes = (uint32_t)sizes,
	};

	if (!ring__put(lib.segment, CHANNEL_NAME, &rec, sizeof(rec), name, len))
		return rec.generation;
	__atomic_add_fetch(&lib.segment->lost_names, 1, __ATOMIC_RELAXED);
	return 0;
}

/* Without a context sizes aren't asked: those that were found before hold until something is unloaded. */
static uint32_t find(struct thread *t, uint64_t function, const struct context *c)
{
	uint32_t epoch = load_acquire(&table()->epoch), generation;
	struct name_entry *e;
	enum channel_name_status status;
	uint64_t state, hash, sizes;
	const char *name;
	bool sized;
	size_t len;

	if (!function)
		return 0;
	e = entry_of(function);
	if (!e) {
		thread__count(t, names_lost);
		return 0;
	}
	state = load_acquire(&e->state);
	generation = (uint32_t)(state >> 32);
	sized = !c || load_relaxed(&e->sized) == epoch;
	if (likely((uint32_t)state == epoch && sized))
		return generation;

	status = resolve(e, function, &name, &len);
	sizes = load_relaxed(&e->sized) == epoch ? load_relaxed(&e->sizes) : 0;
	if (!sized) {
		sizes = status == NAME_ERROR ? 0 : ask_sizes(e, function, c);
		store_relaxed(&e->sizes, sizes);
		store_relaxed(&e->sized, epoch);
	}
	hash = hash_of(name ? name : "", len, status) ^ mix(sizes);
	/* The check holds hash and generation together, whoever else may write either. */
	if (generation < load_relaxed(&table()->first) ||
	    (load_acquire(&e->check) ^ mix(generation)) != hash) {
		generation = send(function, status, name, len, sizes);
		if (!generation)
			return 0;	/* asked again at the next launch */
		store_release(&e->check, hash ^ mix(generation));
	}
	store_release(&e->state, (uint64_t)generation << 32 | epoch);
	return generation;
}

uint32_t name__find(struct thread *t, uint64_t function)
{
	return find(t, function, NULL);
}

uint32_t name__find_run(struct thread *t, uint64_t function, const struct context *c)
{
	return find(t, function, c);
}

uint32_t name__known(struct thread *t, uint64_t function)
{
	struct name_entry *e = function ? entry_of(function) : NULL;
	uint32_t generation = e ? (uint32_t)(load_acquire(&e->state) >> 32) : 0;

	return generation >= load_relaxed(&table()->first) ? generation : name__find(t, function);
}

void name__note(uint64_t function, enum handle_kind kind)
{
	struct name_entry *e = function ? entry_of(function) : NULL;

	if (e)
		store_relaxed(&e->kind, (uint32_t)kind);
}

void name__suppose(uint64_t function, enum handle_kind kind)
{
	struct name_entry *e = function ? entry_of(function) : NULL;

	if (e && load_relaxed(&e->kind) == HANDLE_UNKNOWN)
		store_relaxed(&e->kind, (uint32_t)kind);
}

void name__begin(void)
{
	store_relaxed(&table()->first, load_relaxed(&table()->generation) + 1);
	name__forget_all();
}

void name__forget_all(void)
{
	__atomic_add_fetch(&table()->epoch, 1, __ATOMIC_SEQ_CST);
}
