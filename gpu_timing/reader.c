// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "gpu_timing/reader.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/futex.h>
#include <linux/magic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <time.h>
#include <unistd.h>

#include "gpu_timing/waits.h"
#include "loader/base/proc.h"

#define RING_MASK ((uint64_t)CHANNEL_RING_SIZE - 1)
#define MAX_DURATION (1ull << 53)

struct channel {
	struct channel_segment *segment;
	uint64_t tail;		/* ours alone: what stands in the segment is never read back */
	uint64_t beats;
	uint32_t session;
	bool broken;
	struct channel_counters base;	/* when the session began */
	struct channel_counters last;	/* read while it was the segment's */
	union {
		struct channel_head head;
		struct channel_result result;
		struct channel_name name;
		struct channel_device device;
		struct channel_graph graph;
		uint8_t bytes[CHANNEL_MAX_RECORD];
	} copy;
};

#define READ_ONCE(x) __atomic_load_n(&(x), __ATOMIC_RELAXED)
#define WRITE_ONCE(x, v) __atomic_store_n(&(x), (v), __ATOMIC_RELAXED)

static int check_fd(int fd)
{
	const int want = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;
	struct statfs fs;
	struct stat st;
	int seals = fcntl(fd, F_GET_SEALS);

	/* Without the seals a truncation would end the collector by SIGBUS. */
	if (seals < 0 || (seals & want) != want)
		return -EINVAL;
	/* A file of huge pages can carry the same seals, and a hole in it can kill the reader. */
	if (fstatfs(fd, &fs) || fs.f_type != TMPFS_MAGIC)
		return -EINVAL;
	if (fstat(fd, &st) || !S_ISREG(st.st_mode) || st.st_size != (off_t)CHANNEL_SIZE)
		return -EINVAL;
	return 0;
}

/* The target begins another session: ours is over, and what stands there is not for us. */
static bool is_over(const struct channel *ch)
{
	return READ_ONCE(ch->segment->session) != ch->session;
}

static uint64_t beginning(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000ull + (uint64_t)t.tv_nsec;
}

static void add_counters(const struct channel_segment *seg, struct channel_counters *sum)
{
	uint32_t nr = READ_ONCE(seg->nr_threads);

	memset(sum, 0, sizeof(*sum));
	/* Only those in use: reading the others would make the kernel allocate their pages. */
	if (nr > CHANNEL_THREADS)
		nr = CHANNEL_THREADS;
	for (uint32_t i = 0; i < nr; i++) {
		const struct channel_thread *t = &seg->threads[i];

		for (int k = 0; k < NR_LAUNCH_ENTRIES; k++)
			sum->launches[k] += READ_ONCE(t->launches[k]);
		for (int k = 0; k < NR_LAUNCH_CAUSES; k++)
			sum->results[k] += READ_ONCE(t->results[k]);
		sum->probes += READ_ONCE(t->probes);
		sum->nested += READ_ONCE(t->nested);
		sum->brackets += READ_ONCE(t->brackets);
		sum->names_lost += READ_ONCE(t->names_lost);
		sum->copies += READ_ONCE(t->copies);
		sum->waits += READ_ONCE(t->waits);
	}
	for (int k = 0; k < NR_LAUNCH_ENTRIES; k++)
		sum->launched += sum->launches[k];
	sum->lost_results = READ_ONCE(seg->lost_results);
	sum->lost_names = READ_ONCE(seg->lost_names);
	sum->lost_devices = READ_ONCE(seg->lost_devices);
	sum->lost_graphs = READ_ONCE(seg->lost_graphs);
}

int channel__open(int fd, struct channel **channel)
{
	struct channel_segment *segment;
	struct channel *ch;
	uint64_t magic;
	int err = check_fd(fd);

	*channel = NULL;
	if (err)
		return err;
	segment = mmap(NULL, CHANNEL_SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (segment == MAP_FAILED)
		return -errno;
	/* A process that we start to read somebody's debug information must not reach a target. */
	madvise(segment, CHANNEL_SIZE, MADV_DONTFORK);
	magic = __atomic_load_n(&segment->magic, __ATOMIC_ACQUIRE);
	if (magic != CHANNEL_MAGIC || READ_ONCE(segment->abi) != CHANNEL_ABI ||
	    READ_ONCE(segment->size) != CHANNEL_SIZE) {
		err = magic ? -EPROTO : -EAGAIN;
		goto unmap;
	}
	ch = calloc(1, sizeof(*ch));
	if (!ch) {
		err = -ENOMEM;
		goto unmap;
	}
	ch->segment = segment;
	ch->session = READ_ONCE(segment->session);
	ch->tail = READ_ONCE(segment->session_head);
	/* None that an earlier collector has left there: a change is a sign of life. */
	ch->beats = beginning();
	/* The first one may have launched already; later ones wait for a sign of life. */
	if (ch->session > 1)
		add_counters(segment, &ch->base);
	*channel = ch;
	return 0;
unmap:
	munmap(segment, CHANNEL_SIZE);
	return err;
}

void channel__close(struct channel *ch)
{
	if (!ch)
		return;
	munmap(ch->segment, CHANNEL_SIZE);
	free(ch);
}

/* A launch has an entry of its own, a copy or wait that of its slot. */
static bool work_ok(const struct channel_result *r)
{
	if (r->flags & LAUNCH_COPY)
		return !(r->flags & LAUNCH_WAIT) && r->entry >= SLOT_COPIES && r->entry < SLOT_GRAPHS &&
		       r->copy < NR_COPY_KINDS && r->waited < MAX_DURATION;
	if (r->copy || r->bytes || r->waited)
		return false;
	return r->flags & LAUNCH_WAIT ? slot__waits(r->entry) && r->cause == CAUSE_NONE :
					r->entry < NR_LAUNCH_ENTRIES;
}

static bool result_ok(const struct channel_result *r)
{
	if (r->head.size < sizeof(*r) || !r->launches ||
	    (uint64_t)(r->launches - 1) * sizeof(r->more[0]) != r->head.size - sizeof(*r))
		return false;
	/* A run holds launches alone, of which each was looked at. */
	if (r->launches > 1 && (r->flags & (LAUNCH_COPY | LAUNCH_WAIT) || r->stands_for != 1 || r->stratum))
		return false;
	return work_ok(r) && r->cause < NR_LAUNCH_CAUSES && r->load <= LOAD_IDLE && r->weight &&
	       r->weight <= CHANNEL_MAX_WEIGHT && r->stands_for && r->stands_for <= CHANNEL_MAX_STANDS_FOR &&
	       CHANNEL_STRATUM(r->stratum) < CHANNEL_STRATA && r->duration < MAX_DURATION &&
	       (!r->duration || r->cause == CAUSE_NONE);
}

static bool text_ok(const struct channel_head *head, size_t fixed, uint32_t len)
{
	return len <= CHANNEL_MAX_NAME && head->size == ((fixed + len + 7) & ~(size_t)7);
}

static uint32_t members_of(const struct channel_graph *g)
{
	return (uint32_t)((g->head.size - sizeof(*g)) / sizeof(g->member[0]));
}

static bool graph_ok(const struct channel_graph *g)
{
	uint32_t nr, i;

	if (g->head.size < sizeof(*g) || (g->head.size - sizeof(*g)) % sizeof(g->member[0]) ||
	    g->members > CHANNEL_GRAPH_NODES || g->first > g->members)
		return false;
	nr = members_of(g);
	if (nr > CHANNEL_GRAPH_PART || nr > g->members - g->first || (!nr && g->members))
		return false;
	for (i = 0; i < nr; i++)
		if (!g->member[i].count || g->member[i].copy > NR_COPY_KINDS)
			return false;
	return true;
}

/* False: not a record. The copy in ch->copy is whole and nobody else's by now. */
static bool hand_on(struct channel *ch, const struct channel_handler *handler, void *ctx)
{
	switch (ch->copy.head.type) {
	case CHANNEL_PAD:
		return true;
	case CHANNEL_RESULT:
		if (!result_ok(&ch->copy.result))
			return false;
		if (handler->result)
			handler->result(ctx, &ch->copy.result);
		return true;
	case CHANNEL_NAME:
		if (ch->copy.head.size < sizeof(struct channel_name) ||
		    !text_ok(&ch->copy.head, sizeof(struct channel_name), ch->copy.name.len) ||
		    ch->copy.name.status > NAME_CUT)
			return false;
		if (handler->name)
			handler->name(ctx, &ch->copy.name);
		return true;
	case CHANNEL_DEVICE:
		if (ch->copy.head.size < sizeof(struct channel_device) ||
		    !text_ok(&ch->copy.head, sizeof(struct channel_device), ch->copy.device.len))
			return false;
		if (handler->device)
			handler->device(ctx, &ch->copy.device);
		return true;
	case CHANNEL_GRAPH:
		if (!graph_ok(&ch->copy.graph))
			return false;
		if (handler->graph)
			handler->graph(ctx, &ch->copy.graph, members_of(&ch->copy.graph));
		return true;
	default:
		return false;
	}
}

/* The head word at `tail`: 0 while its producer is still writing. */
static uint64_t head_word(const struct channel *ch)
{
	const void *at = ch->segment->ring + (ch->tail & RING_MASK);

	return __atomic_load_n((const uint64_t *)at, __ATOMIC_ACQUIRE);
}

/* Bytes of the next record, once it is copied; 0: not committed yet; -EBADMSG. */
static int take(struct channel *ch, uint64_t filled)
{
	uint64_t word = head_word(ch), room = CHANNEL_RING_SIZE - (ch->tail & RING_MASK);
	uint8_t *at = ch->segment->ring + (ch->tail & RING_MASK);
	struct channel_head head;

	if (!word)
		return 0;
	memcpy(&head, &word, sizeof(head));
	if (head.size < sizeof(head) || head.size % 8 || head.size > filled || head.size > room)
		return -EBADMSG;
	if (head.type != CHANNEL_PAD) {
		if (head.size > sizeof(ch->copy))
			return -EBADMSG;
		memcpy(ch->copy.bytes + sizeof(head), at + sizeof(head), head.size - sizeof(head));
	}
	ch->copy.head = head;
	memset(at, 0, head.type == CHANNEL_PAD ? sizeof(head) : head.size);
	return (int)head.size;
}

int channel__poll(struct channel *ch, const struct channel_handler *handler, void *ctx,
		  unsigned int max)
{
	uint64_t head, first = ch->tail;
	unsigned int n = 0;
	int size = 0;

	if (ch->broken)
		return -EBADMSG;
	if (is_over(ch))
		return 0;
	head = __atomic_load_n(&ch->segment->head, __ATOMIC_ACQUIRE);
	/* Nobody may reserve more than the ring holds. */
	if (head - ch->tail > CHANNEL_RING_SIZE || head % 8 || ch->tail % 8)
		goto broken;
	if (max > INT_MAX)
		max = INT_MAX;
	for (; n < max && ch->tail < head; n++) {
		size = take(ch, head - ch->tail);
		if (size < 0 || (size && !hand_on(ch, handler, ctx)))
			goto broken;
		if (!size)
			break;
		ch->tail += (uint64_t)size;
		/* Give room back early: the producers may be waiting for none, but they count losses. */
		if (ch->tail - first >= CHANNEL_RING_SIZE / 16) {
			__atomic_store_n(&ch->segment->tail, ch->tail, __ATOMIC_RELEASE);
			first = ch->tail;
		}
	}
	__atomic_store_n(&ch->segment->tail, ch->tail, __ATOMIC_RELEASE);
	return (int)n;
broken:
	ch->broken = true;
	return -EBADMSG;
}

uint64_t channel__stalled(const struct channel *ch)
{
	uint64_t head = __atomic_load_n(&ch->segment->head, __ATOMIC_ACQUIRE);

	if (ch->broken || is_over(ch) || head - ch->tail > CHANNEL_RING_SIZE || head == ch->tail ||
	    head_word(ch))
		return 0;
	return head - ch->tail;
}

/* False: it doesn't live, or was killed: then the kernel may take seconds to let go of its BPF programs. */
static bool look_up(pid_t pid, struct proc_stat *life)
{
	return !proc__stat(pid, 0, life) && !life->ending && life->state != 'Z' && life->state != 'X';
}

static uint64_t own_mark(void)
{
	struct proc_stat own;

	if (proc__stat(getpid(), 0, &own))
		own.started = 0;
	return own.started << 32 | (uint32_t)getpid();
}

/* Another program than ours collects nothing: the target may have put in whom it wants to be ended. */
static bool holds(uint64_t mark)
{
	pid_t pid = (pid_t)(uint32_t)mark;
	struct proc_stat own, other;

	return pid > 0 && look_up(pid, &other) && (uint32_t)other.started == mark >> 32 &&
	       look_up(getpid(), &own) && !strcmp(own.name, other.name);
}

int channel__holder(const struct channel *ch, pid_t *holder)
{
	uint64_t mark = READ_ONCE(ch->segment->collector);

	if (mark == own_mark() || !holds(mark))
		return 0;
	*holder = (pid_t)(uint32_t)mark;
	return -EBUSY;
}

int channel__claim(struct channel *ch, pid_t *holder)
{
	uint64_t own = own_mark(), mark = READ_ONCE(ch->segment->collector);

	do {
		if (mark == own)
			return 0;
		if (holds(mark)) {
			*holder = (pid_t)(uint32_t)mark;
			return -EBUSY;
		}
	} while (!__atomic_compare_exchange_n(&ch->segment->collector, &mark, own, false,
					      __ATOMIC_SEQ_CST, __ATOMIC_RELAXED));
	return 0;
}

void channel__release(struct channel *ch)
{
	uint64_t own = own_mark();

	__atomic_compare_exchange_n(&ch->segment->collector, &own, 0, false, __ATOMIC_SEQ_CST,
				    __ATOMIC_RELAXED);
}

void channel__heartbeat(struct channel *ch)
{
	/* In another's session it would be a sign of life of that one. */
	if (!is_over(ch))
		__atomic_store_n(&ch->segment->heartbeat, ++ch->beats, __ATOMIC_RELEASE);
}

void channel__set_site(struct channel *ch, enum channel_site site)
{
	if (!is_over(ch))
		WRITE_ONCE(ch->segment->site, (uint32_t)site);
}

void channel__set_confined(struct channel *ch, bool confined)
{
	if (!is_over(ch))
		WRITE_ONCE(ch->segment->confined, (uint32_t)confined);
}

void channel__set_sampling(struct channel *ch, uint32_t every, uint32_t budget_ppm)
{
	if (is_over(ch))
		return;
	WRITE_ONCE(ch->segment->budget, budget_ppm);
	__atomic_store_n(&ch->segment->every, every, __ATOMIC_RELEASE);
}

uint64_t channel__launches_of(const struct channel *ch, uint32_t stratum)
{
	uint64_t n = stratum && stratum < CHANNEL_STRATA ? READ_ONCE(ch->segment->strata[stratum]) : 0;

	return is_over(ch) ? 0 : n;
}

bool channel__is_waiting(const struct channel *ch, uint64_t id)
{
	uint32_t nr = READ_ONCE(ch->segment->nr_threads), i;

	for (i = 0; i < nr && i < CHANNEL_THREADS; i++)
		if (READ_ONCE(ch->segment->threads[i].waiting) == id)
			return !is_over(ch);
	return false;
}

void channel__stop(struct channel *ch)
{
	if (is_over(ch))
		return;
	__atomic_store_n(&ch->segment->command, CHANNEL_STOP, __ATOMIC_RELEASE);
	__atomic_add_fetch(&ch->segment->wake, 1, __ATOMIC_RELEASE);
	syscall(SYS_futex, &ch->segment->wake, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
}

void channel__status(const struct channel *ch, struct channel_status *status)
{
	const struct channel_segment *seg = ch->segment;
	uint32_t state = __atomic_load_n(&seg->state, __ATOMIC_ACQUIRE);
	uint32_t reason = READ_ONCE(seg->reason);

	status->state = state < NR_CHANNEL_STATES ? state : CHANNEL_REFUSED;
	status->reason = reason < NR_CHANNEL_REASONS ? reason : REASON_NONE;
	if (is_over(ch)) {
		status->state = CHANNEL_PASSIVE;
		status->reason = REASON_SUPERSEDED;
	}
	status->detail = READ_ONCE(seg->detail);
	for (int i = 0; i < CHANNEL_SLOT_WORDS; i++)
		status->slots[i] = READ_ONCE(seg->slots[i]);
}

/* Every field is a count. */
#define NR_COUNTERS (sizeof(struct channel_counters) / sizeof(uint64_t))

void channel__counters(struct channel *ch, struct channel_counters *sum)
{
	uint64_t now[NR_COUNTERS], base[NR_COUNTERS];

	if (!is_over(ch)) {
		add_counters(ch->segment, &ch->last);
		memcpy(now, &ch->last, sizeof(now));
		memcpy(base, &ch->base, sizeof(base));
		for (size_t i = 0; i < NR_COUNTERS; i++)
			now[i] -= base[i];
		memcpy(&ch->last, now, sizeof(now));
	}
	*sum = ch->last;
}
