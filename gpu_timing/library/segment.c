// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "gpu_timing/library/segment.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/memfd.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "gpu_timing/library/session.h"

/* The file of this process's segment. */
static dev_t file_dev;
static ino_t file_ino;

#define RING_MASK ((uint64_t)CHANNEL_RING_SIZE - 1)
#define FAR_DESCRIPTOR 500
#define NEAR_END 16	/* of the table */
#define OFFSET_OF_THREAD(nr) (offsetof(struct channel_segment, threads) + \
			      (nr) * sizeof(struct channel_thread))
#ifndef MFD_NOEXEC_SEAL
#define MFD_NOEXEC_SEAL 0x0008u
#endif

/* Descriptors that the process's table has room for (proc(5), FDSize); 0: not known. */
static int table_size(void)
{
	char text[1024];
	const char *at;
	ssize_t n;
	int fd = open("/proc/self/status", O_RDONLY | O_CLOEXEC);

	if (fd < 0)
		return 0;
	n = read(fd, text, sizeof(text) - 1);
	close(fd);
	text[n < 0 ? 0 : n] = '\0';
	at = strstr(text, "\nFDSize:");
	return at ? atoi(at + sizeof("\nFDSize:") - 1) : 0;
}

/*
 * Programs count on getting the lowest free numbers in the order in which they open things. Nor is
 * the table made larger: where threads share it that waits for a grace period of many milliseconds,
 * and the thread that is here may be a borrowed one.
 */
static int move_away(int fd)
{
	int size = table_size(), to = FAR_DESCRIPTOR, far;
	struct rlimit limit;

	if (!getrlimit(RLIMIT_NOFILE, &limit) && limit.rlim_cur < (rlim_t)size)
		size = (int)limit.rlim_cur;
	if (size < FAR_DESCRIPTOR + NEAR_END)
		to = size - NEAR_END;
	if (to <= NEAR_END)
		return fd;
	far = fcntl(fd, F_DUPFD_CLOEXEC, to);
	if (far < 0)
		return fd;
	close(fd);
	return far;
}

/* Since Linux 6.3 a system may insist on memory that can't be executed; before, it is no flag. */
static int make_memfd(void)
{
	const unsigned int flags = MFD_CLOEXEC | MFD_ALLOW_SEALING;
	int fd = (int)syscall(SYS_memfd_create, "gpucollect", flags | MFD_NOEXEC_SEAL);

	if (fd < 0 && errno == EINVAL)
		fd = (int)syscall(SYS_memfd_create, "gpucollect", flags);
	return fd;
}

/* fstat, which is no function before glibc 2.33. */
static long look_at(int fd, struct stat *st)
{
	return syscall(SYS_fstat, fd, st);
}

static int make_file(struct stat *st)
{
	int fd = make_memfd(), err;

	if (fd < 0)
		return -errno;
	fd = move_away(fd);
	if (!ftruncate(fd, CHANNEL_SIZE) && !look_at(fd, st) &&
	    !fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL))
		return fd;
	err = -errno;
	close(fd);
	return err;
}

/* At `at`, in the place of what is mapped there, or anywhere. 0 or negative errno. */
static int map(struct channel_segment *at, int fd, const struct stat *st, struct channel_segment **segment)
{
	void *p = mmap(at, CHANNEL_SIZE, PROT_READ | PROT_WRITE, MAP_SHARED | (at ? MAP_FIXED : 0), fd, 0);

	if (p == MAP_FAILED)
		return -errno;
	file_dev = st->st_dev;
	file_ino = st->st_ino;
	*segment = p;
	return 0;
}

int segment__create(struct channel_segment **segment)
{
	struct stat st;
	int fd = make_file(&st), err;

	if (fd < 0)
		return fd;
	err = map(NULL, fd, &st, segment);
	if (err) {
		close(fd);
		return err;
	}
	(*segment)->abi = CHANNEL_ABI;
	(*segment)->size = CHANNEL_SIZE;
	(*segment)->nr_threads = 1;
	return fd;
}

bool segment__is_at(int fd)
{
	struct stat st;

	return fd >= 0 && !look_at(fd, &st) && st.st_dev == file_dev && st.st_ino == file_ino;
}

int segment__renew(struct channel_segment *seg)
{
	size_t len = OFFSET_OF_THREAD(load_acquire(&seg->nr_threads)), at = 0;
	struct stat st;
	int fd = make_file(&st), err = 0;
	ssize_t n;

	if (fd < 0)
		return fd;
	while (!err && at < len) {
		n = pwrite(fd, (const char *)seg + at, len - at, (off_t)at);
		if (n > 0)
			at += (size_t)n;
		else if (!n || errno != EINTR)
			err = n ? -errno : -EIO;
	}
	if (!err)
		err = map(seg, fd, &st, &seg);
	if (!err)
		return fd;
	close(fd);
	return err;
}

void segment__populate(struct channel_segment *seg)
{
#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23
#endif
	/* Before Linux 5.14 pages come as they are needed. */
	madvise(seg->ring, CHANNEL_RING_SIZE, MADV_POPULATE_WRITE);
}

void segment__release(struct channel_segment *seg)
{
	if (madvise(seg->ring, CHANNEL_RING_SIZE, MADV_REMOVE))
		memset(seg->ring, 0, CHANNEL_RING_SIZE);
}

void segment__begin(struct channel_segment *seg, uint32_t session, bool empty)
{
	/* Of the session before something may be left that its collector has not read. */
	if (empty && load_relaxed(&seg->head))
		segment__release(seg);
	store_relaxed(&seg->session_head, load_relaxed(&seg->head));
	store_relaxed(&seg->tail, load_relaxed(&seg->head));
	store_relaxed(&seg->command, (uint32_t)CHANNEL_RUN);
	store_relaxed(&seg->site, (uint32_t)SITE_NOP1);
	store_relaxed(&seg->every, 1u);
	store_release(&seg->session, session);
}

void segment__publish(struct channel_segment *seg, enum channel_state state)
{
	store_relaxed(&seg->state, (uint32_t)state);
	store_release(&seg->magic, CHANNEL_MAGIC);
}

/* size bytes of the ring in one piece, or NULL. The position is a multiple of 8. */
static uint8_t *reserve(struct channel_segment *seg, uint64_t size)
{
	uint64_t head = load_relaxed(&seg->head), need, room, used, seen;

	for (;;) {
		/* Acquire: the consumer zeroes what it read before it moves the tail. */
		used = head - load_acquire(&seg->tail);
		room = CHANNEL_RING_SIZE - (head & RING_MASK);
		need = size <= room ? size : room + size;
		if (used > CHANNEL_RING_SIZE || CHANNEL_RING_SIZE - used < need) {
			/* Full, unless head is an old one that the tail has passed meanwhile. */
			seen = head;
			head = load_relaxed(&seg->head);
			if (head == seen)
				return NULL;
			continue;
		}
		if (__atomic_compare_exchange_n(&seg->head, &head, head + need, true,
						__ATOMIC_RELEASE, __ATOMIC_RELAXED))
			break;
	}
	if (need != size) {
		struct channel_head pad = { .size = (uint32_t)room, .type = CHANNEL_PAD };
		uint64_t word;

		memcpy(&word, &pad, sizeof(word));
		store_release((uint64_t *)(seg->ring + (head & RING_MASK)), word);
		head += room;
	}
	return seg->ring + (head & RING_MASK);
}

int ring__put(struct channel_segment *seg, enum channel_type type, void *record, size_t fixed,
	      const void *text, size_t len)
{
	size_t size = (fixed + len + 7) & ~(size_t)7;
	struct channel_head head = { .size = (uint32_t)size, .type = (uint16_t)type };
	uint8_t *at = reserve(seg, size);
	uint64_t word;

	if (!at)
		return -ENOSPC;
	memcpy(at + sizeof(head), (const uint8_t *)record + sizeof(head), fixed - sizeof(head));
	if (len)
		memcpy(at + fixed, text, len);
	memcpy(&word, &head, sizeof(word));
	store_release((uint64_t *)at, word);
	return 0;
}

void segment__result(struct thread *t, struct channel_result *result, const struct channel_member *more)
{
	uint32_t session = session__of(result->launch), was = 0;

	if (!session || !session__enter(t, session, &was))
		return;
	thread__add(t, results[result->cause], result->launches);
	if (ring__put(lib.segment, CHANNEL_RESULT, result, sizeof(*result), more,
		      (result->launches - 1) * sizeof(*more)))
		__atomic_add_fetch(&lib.segment->lost_results, result->launches, __ATOMIC_RELAXED);
	session__leave(t, was);
}
