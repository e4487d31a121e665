// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "gpu_timing/library/slot.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "gpu_timing/library/libc.h"
#include "gpu_timing/library/library.h"
#include "gpu_timing/library/maps.h"
#include "gpu_timing/stub.h"

#define PAGE 4096ull

struct slot {
	uint64_t address;	/* 0: the driver has no such entry */
	uint64_t entry;
	uint64_t size;
	bool writable;		/* else its page is r--p */
	bool placed;		/* in a page of the driver's own file */
};

static struct slot slots[NR_CHANNEL_SLOTS];

static const char *symbol(uint32_t slot)
{
	static const char *const name[NR_CHANNEL_SLOTS] = {
#define SLOT_SYMBOL(slot, symbol) [slot] = symbol,
		CHANNEL_SLOT_LIST(SLOT_SYMBOL)
#undef SLOT_SYMBOL
	};

	return name[slot];
}

static uint64_t read_slot(uint64_t address)
{
	return __atomic_load_n((uint64_t *)address, __ATOMIC_ACQUIRE);
}

/* From a session before: where hooks had to stay, or in a child of a process that had them in. */
static bool holds_ours(uint32_t i)
{
	return lib.original[i] && read_slot(slots[i].address) == (uint64_t)hook__of(i);
}

static enum channel_reason look_at(uint32_t i, uint64_t *gone)
{
	struct slot *s = &slots[i];
	const uint8_t *code = driver__entry(&lib.driver, symbol(i), &s->size);
	struct stub stub;

	if (!code)
		return i == ENTRY_LAUNCH_KERNEL ? REASON_NO_SYMBOL : REASON_NONE;
	if (stub__decode(code, s->size, (uint64_t)code, stub__args(i), &stub))
		return REASON_SHAPE;
	/* One word for all entries, else it isn't what we take it for. */
	if (*gone && stub.gone != *gone)
		return REASON_SHAPE;
	*gone = stub.gone;
	s->placed = false;
	if (stub.gone % sizeof(uint32_t) || stub.slot % sizeof(uint64_t) ||
	    !driver__holds(&lib.driver, stub.gone, sizeof(uint32_t), PF_R | PF_W) ||
	    !driver__holds(&lib.driver, stub.slot, sizeof(uint64_t), PF_R | PF_W))
		return REASON_SLOT_PLACE;
	if (*(volatile uint32_t *)stub.gone == STUB_GONE)
		return REASON_EXITING;
	for (uint32_t k = 1; k < i; k++) {
		if (slots[k].entry == (uint64_t)code)
			return REASON_NONE;	/* another name of the same entry */
		if (slots[k].address == stub.slot)
			return REASON_SLOT_SHARED;
	}
	s->entry = (uint64_t)code;
	s->address = stub.slot;
	return holds_ours(i) || driver__holds(&lib.driver, read_slot(stub.slot), 1, PF_R | PF_X) ?
		       REASON_NONE : REASON_SLOT_FOREIGN;
}

struct place {
	uint64_t dev, inode;	/* of the driver's code */
	uint32_t first;
};

static bool find_code(const struct map *map, void *ctx)
{
	uint64_t entry = slots[ENTRY_LAUNCH_KERNEL].entry;
	struct place *p = ctx;

	if (entry < map->start || entry >= map->end)
		return true;
	p->dev = map->dev;
	p->inode = map->inode;
	return false;
}

static bool find_pages(const struct map *map, void *ctx)
{
	struct place *p = ctx;

	if (!map->is_private || map->inode != p->inode || map->dev != p->dev ||
	    !(map->prot & PROT_READ) || map->prot & PROT_EXEC)
		return true;
	for (uint32_t i = 1; i < NR_CHANNEL_SLOTS; i++) {
		struct slot *s = &slots[i];

		if (s->address < map->start || s->address >= map->end)
			continue;
		s->placed = true;
		s->writable = map->prot & PROT_WRITE;
	}
	return true;
}

static enum channel_reason look_at_pages(uint32_t *detail)
{
	struct place p = { 0 };

	if (own_maps__each(find_code, &p) || !p.inode || own_maps__each(find_pages, &p))
		return REASON_NO_DRIVER;
	for (uint32_t i = 1; i < NR_CHANNEL_SLOTS; i++) {
		*detail = i;
		if (slots[i].address && !slots[i].placed && i < SLOT_HOLDS)
			return REASON_SLOT_PLACE;
		if (!slots[i].placed)
			slots[i].address = 0;
	}
	return REASON_NONE;
}

/* The driver's table of exported symbols: its first one and how many there are. */
static const ElfW(Sym) *exported(size_t *nr)
{
	const uint32_t *hash = NULL, *buckets, *chain;
	const ElfW(Sym) *table = NULL;
	struct link_map *map;
	uint32_t last = 0;

	*nr = 0;
	if (dlinfo(lib.driver.handle, RTLD_DI_LINKMAP, &map))
		return NULL;
	for (const ElfW(Dyn) *d = map->l_ld; d->d_tag != DT_NULL; d++) {
		uint64_t at = d->d_un.d_ptr;

		/* The loader has added the base where the section is writable. */
		if (at < map->l_addr)
			at += map->l_addr;
		if (d->d_tag == DT_SYMTAB)
			table = (const void *)at;
		else if (d->d_tag == DT_GNU_HASH)
			hash = (const void *)at;
	}
	if (!table || !hash)
		return NULL;
	/* header: buckets, first hashed symbol, words of the filter (64 bits each), shift */
	buckets = hash + 4 + 2 * (size_t)hash[2];
	chain = buckets + hash[0];
	for (uint32_t i = 0; i < hash[0]; i++)
		if (buckets[i] > last)
			last = buckets[i];
	if (last < hash[1])
		return NULL;
	while (!(chain[last - hash[1]] & 1))
		last++;
	*nr = last + 1;
	return table;
}

/* One that we can do without is left out. */
static bool is_slot(uint64_t address, uint32_t *detail)
{
	for (uint32_t i = 1; i < NR_CHANNEL_SLOTS; i++) {
		if (slots[i].address != address)
			continue;
		*detail = i;
		if (i < SLOT_HOLDS)
			return true;
		slots[i].address = 0;
	}
	return false;
}

static bool is_entry(uint64_t address)
{
	for (uint32_t i = 1; i < NR_CHANNEL_SLOTS; i++)
		if (slots[i].address && slots[i].entry == address)
			return true;
	return false;
}

/* Does another exported entry leave through one of the slots? Then it isn't that entry's own. */
static bool shared(uint32_t *detail)
{
	size_t nr;
	const ElfW(Sym) *sym = exported(&nr);

	for (size_t i = 0; sym && i < nr; i++) {
		uint64_t at = lib.driver.base + sym[i].st_value, size = sym[i].st_size;
		const uint8_t *code = (const uint8_t *)at;
		int32_t rel;

		if (ELF64_ST_TYPE(sym[i].st_info) != STT_FUNC || !sym[i].st_value || size < 6 ||
		    size > STUB_MAX_SIZE || is_entry(at) ||
		    !driver__holds(&lib.driver, at, size, PF_R | PF_X))
			continue;
		/* Bytes, not instructions: a false alarm only means that we stay out. */
		for (uint64_t k = 0; k + 6 <= size; k++) {
			if (code[k] != 0xff || (code[k + 1] != 0x15 && code[k + 1] != 0x25))
				continue;
			memcpy(&rel, code + k + 2, sizeof(rel));
			if (is_slot(at + k + 6 + (uint64_t)(int64_t)rel, detail))
				return true;
		}
	}
	return !sym;
}

enum channel_reason slot__prepare(uint32_t *detail)
{
	enum channel_reason reason;
	uint64_t gone = 0;

	for (uint32_t i = 1; i < NR_CHANNEL_SLOTS; i++) {
		*detail = i;
		reason = look_at(i, &gone);
		if (reason && i < SLOT_HOLDS)
			return reason;
		if (reason)	/* one that we can do without */
			slots[i].address = 0;
	}
	reason = look_at_pages(detail);
	if (reason)
		return reason;
	*detail = 0;
	if (shared(detail))
		return REASON_SLOT_SHARED;
	for (uint32_t i = 1; i < NR_CHANNEL_SLOTS; i++)
		if (slots[i].address && !holds_ours(i))
			store_release(&lib.original[i], (void *)read_slot(slots[i].address));
	*detail = 0;
	return REASON_NONE;
}

static int exchange_in_place(uint64_t address, uint64_t from, uint64_t to)
{
	return __atomic_compare_exchange_n((uint64_t *)address, &from, to, false, __ATOMIC_SEQ_CST,
					   __ATOMIC_RELAXED) ? 0 : -EBUSY;
}

/*
 * A page without write permission is written through /proc/self/mem, which leaves its protection
 * alone: mprotect races with whoever else changes it and fails on a sealed page. There is no
 * compare-and-swap that way, only a window of microseconds; so the result is read again.
 */
static int exchange_by_mem(uint64_t address, uint64_t from, uint64_t to)
{
	void *page = (void *)(address & ~(PAGE - 1));
	int fd = open("/proc/self/mem", O_RDWR | O_CLOEXEC), err;
	ssize_t n = -1;

	if (read_slot(address) != from) {
		err = -EBUSY;
	} else {
		if (fd >= 0)
			n = pwrite(fd, &to, sizeof(to), (off_t)address);
		if (n == sizeof(to)) {
			err = read_slot(address) == to ? 0 : -EBUSY;
		} else if (mprotect(page, PAGE, PROT_READ | PROT_WRITE)) {
			/* The kernel may have been told to refuse such writes: then the old way. */
			err = -errno;
		} else {
			err = exchange_in_place(address, from, to);
			mprotect(page, PAGE, PROT_READ);
		}
	}
	if (fd >= 0)
		close(fd);
	return err;
}

static int exchange(const struct slot *s, const void *from, const void *to)
{
	if (s->writable)
		return exchange_in_place(s->address, (uint64_t)from, (uint64_t)to);
	return exchange_by_mem(s->address, (uint64_t)from, (uint64_t)to);
}

enum channel_reason slot__arm(uint32_t *detail)
{
	for (uint32_t i = 1; i < NR_CHANNEL_SLOTS; i++) {
		int err;

		if (!slots[i].address || holds_ours(i))
			continue;
		err = exchange(&slots[i], lib.original[i], hook__of(i));
		if (err && i >= SLOT_HOLDS)	/* one that we can do without */
			continue;
		if (err) {
			slot__restore();
			*detail = (uint32_t)-err;
			return err == -EBUSY ? REASON_SLOT_FOREIGN : REASON_SLOT_WRITE;
		}
		__atomic_or_fetch(&lib.segment->slots[i / 64], 1ull << i % 64, __ATOMIC_RELAXED);
	}
	slot__check();
	return REASON_NONE;
}

bool slot__is_missed(uint32_t i)
{
	uint64_t size, entry = (uint64_t)driver__entry(&lib.driver, symbol(i), &size);

	/* It may be another name of an entry that we have. */
	for (uint32_t k = 1; entry && k < NR_CHANNEL_SLOTS; k++)
		if (slots[k].entry == entry && slots[k].address && holds_ours(k))
			return false;
	return entry;
}

void slot__restore(void)
{
	/* Under a system-call filter an unusual call may be the program's end: hooks then stay. */
	bool confined = load_relaxed(&lib.segment->confined);

	for (uint32_t i = 1; i < NR_CHANNEL_SLOTS; i++) {
		const struct slot *s = &slots[i];
		int err;

		if (!s->address || (!s->writable && confined) ||
		    read_slot(s->address) != (uint64_t)hook__of(i))
			continue;
		err = exchange(s, hook__of(i), lib.original[i]);
		if (!err || err == -EBUSY)
			__atomic_and_fetch(&lib.segment->slots[i / 64], ~(1ull << i % 64),
					   __ATOMIC_RELAXED);
	}
	slot__check();
}

void slot__check(void)
{
	uint64_t bits[CHANNEL_SLOT_WORDS] = { 0 };

	for (uint32_t i = 1; i < NR_CHANNEL_SLOTS; i++)
		if (slots[i].address && read_slot(slots[i].address) == (uint64_t)hook__of(i))
			bits[i / 64] |= 1ull << i % 64;
	for (uint32_t w = 0; w < CHANNEL_SLOT_WORDS; w++)
		store_relaxed(&lib.segment->slots[w], bits[w]);
}
