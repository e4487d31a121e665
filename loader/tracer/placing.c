// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "loader/tracer/placing.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/memfd.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "loader/base/fault.h"
#include "loader/base/proc.h"
#include "loader/tracer/remote.h"
#include "loader/tracer/space.h"

#define FAR_DESCRIPTOR 500
#define NEAR_END 16		/* of the table */
#ifndef MFD_EXEC
#define MFD_EXEC 0x0010u
#endif

void placing__init(struct placing *p)
{
	p->fd = p->file = -1;
	p->pages = 0;
	p->lost = 0;
}

void placing__free(struct placing *p)
{
	if (p->file >= 0)
		close(p->file);
	p->file = -1;
}

void placing__give_pages(struct placing *p)
{
	p->pages = 0;
}

void placing__give_file(struct placing *p)
{
	p->fd = -1;
}

/*
 * The result of a system call there; negative errno: it failed, and `what` it was, or the thread was
 * lost on the way: `lost` then.
 */
static int64_t call(struct placing *p, struct remote *r, const char *what, long nr, uint64_t a,
		    uint64_t b, uint64_t c)
{
	const uint64_t args[6] = { a, b, c };
	int64_t result;

	p->lost = remote__syscall(r, nr, args, &result);
	if (p->lost)
		result = p->lost;
	if (result < 0)
		snprintf(p->why, p->why_size, "%s fails in it: %s", what, strerror((int)-result));
	return result;
}

static int make_memfd(struct placing *p, struct remote *r)
{
	const uint64_t flags = MFD_CLOEXEC | MFD_ALLOW_SEALING, name = remote__room(r);
	int64_t fd;
	int err;

	err = space__poke(r->pid, name, "gpucollect", sizeof("gpucollect"));
	if (err)
		return err;
	/* Since Linux 6.3 what is to be executed has to be asked for; before, it is no flag. */
	fd = call(p, r, "memfd_create", SYS_memfd_create, name, flags | MFD_EXEC, 0);
	if (fd == -EINVAL)
		fd = call(p, r, "memfd_create", SYS_memfd_create, name, flags, 0);
	if (fd < 0)
		return (int)fd;
	p->fd = (int)fd;
	return 0;
}

/*
 * A number far from the lowest free ones, which programs count on getting in the order in which they
 * open things; but none that makes the kernel enlarge the table: where threads share it they wait for
 * a grace period of many milliseconds.
 */
static uint64_t far_descriptor(pid_t pid)
{
	struct rlimit limit;
	uint64_t size;

	if (proc__number(pid, "FDSize", &size))
		return 0;
	if (!prlimit(pid, RLIMIT_NOFILE, NULL, &limit) && limit.rlim_cur < size)
		size = limit.rlim_cur;
	if (size >= FAR_DESCRIPTOR + NEAR_END)
		return FAR_DESCRIPTOR;
	return size > 2 * NEAR_END ? size - NEAR_END : 0;
}

static int move_away(struct placing *p, struct remote *r)
{
	uint64_t to = far_descriptor(r->pid);
	int64_t far;
	int near = p->fd;

	if (!to)
		return 0;
	far = call(p, r, "fcntl", SYS_fcntl, (uint64_t)near, F_DUPFD_CLOEXEC, to);
	if (far < 0)
		return p->lost;
	p->fd = (int)far;
	FAULT_POINT("trace-moved");
	call(p, r, "close", SYS_close, (uint64_t)near, 0, 0);
	return p->lost;
}

/* What is at that number there: a handle that nothing can be done with. -ESRCH: the thread is gone. */
static int look_at(pid_t pid, pid_t tid, int fd)
{
	char path[64], byte;
	int handle, err;

	snprintf(path, sizeof(path), "/proc/%d/task/%d/fd/%d", (int)pid, (int)tid, fd);
	handle = open(path, O_PATH | O_CLOEXEC);
	if (handle >= 0)
		return handle;
	err = -errno;
	/* Of one that is ending no number stands for anything any more, nor has it a program. */
	snprintf(path, sizeof(path), "/proc/%d/task/%d/exe", (int)pid, (int)tid);
	return err == -ENOENT && readlink(path, &byte, 1) < 0 ? -ESRCH : err;
}

/* The kernel's own mount, on which memfds lie and nothing that has a name. */
static bool is_on_memfd_mount(const struct statx *st)
{
	int fd = memfd_create("gpucollect", MFD_CLOEXEC);
	struct stat own;
	bool same;

	if (fd < 0)
		return false;
	same = !fstat(fd, &own) && major(own.st_dev) == st->stx_dev_major &&
	       minor(own.st_dev) == st->stx_dev_minor;
	close(fd);
	return same;
}

/*
 * The memfd, to be written by us. The process may have put anything else at its number meanwhile,
 * which we could open, with our rights, where it can't: so first it is looked at what it is, without
 * asking whoever serves it, and then that very file is opened, and is written only if it is new.
 */
static int open_memfd(struct placing *p, const struct remote *r)
{
	int handle = look_at(r->pid, r->tid, p->fd), err = -ENOTSUP;
	char path[64];
	struct statx st;

	if (handle < 0)
		return handle;
	if (statx(handle, "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, 0, &st) || !is_on_memfd_mount(&st) ||
	    statx(handle, "", AT_EMPTY_PATH, STATX_BASIC_STATS, &st) || !S_ISREG(st.stx_mode) ||
	    st.stx_nlink || st.stx_size)
		goto out;
	snprintf(path, sizeof(path), "/proc/self/fd/%d", handle);
	p->file = open(path, O_RDWR | O_NONBLOCK | O_CLOEXEC);
	err = p->file < 0 ? -errno : fcntl(p->file, F_GET_SEALS) ? -ENOTSUP : 0;
out:
	if (err == -ENOTSUP)
		snprintf(p->why, p->why_size, "it has put another file in place of the library's");
	close(handle);
	return err;
}

static int fill(struct placing *p, const struct remote *r)
{
	const char *from = p->image;
	size_t at = 0;
	int err = open_memfd(p, r);

	if (err)
		return err;
	while (at < p->size) {
		ssize_t n = pwrite(p->file, from + at, p->size - at, (off_t)at);

		if (n <= 0)
			return n ? -errno : -EIO;
		at += (size_t)n;
	}
	FAULT_POINT("trace-filled");
	return fcntl(p->file, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE | F_SEAL_SEAL) ?
	       -errno : 0;
}

/* The address, or a negative errno. */
static int64_t map(struct placing *p, struct remote *r, const uint64_t args[6], const char *what)
{
	int64_t at;

	p->lost = remote__syscall(r, SYS_mmap, args, &at);
	if (p->lost)
		at = p->lost;
	if (at < 0 && at > -4096)
		snprintf(p->why, p->why_size, "it can't map %s: %s", what, strerror((int)-at));
	return at;
}

/* Two pages of memory, and over the first of them the stub: one mapping to be unmapped. */
static int map_stub(struct placing *p, struct remote *r)
{
	const uint64_t memory[6] = {
		0, PLACING_SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, ~0ull, 0,
	};
	int64_t at = map(p, r, memory, "memory");

	if (at < 0 && at > -4096)
		return (int)at;
	p->pages = (uint64_t)at;
	FAULT_POINT("trace-roomed");
	at = map(p, r, (const uint64_t[6]){ p->pages, PLACING_PAGE, PROT_READ | PROT_EXEC,
					    MAP_PRIVATE | MAP_FIXED, (uint64_t)p->fd, p->stub },
		 "executable memory");
	return at < 0 && at > -4096 ? (int)at : 0;
}

int placing__make(struct placing *p, struct remote *r)
{
	int err;

	p->why[0] = '\0';
	err = make_memfd(p, r);
	FAULT_POINT("trace-memfd");
	if (!err)
		err = move_away(p, r);
	if (!err)
		err = fill(p, r);
	FAULT_POINT("trace-sealed");
	if (!err)
		err = map_stub(p, r);
	FAULT_POINT("trace-mapped");
	if (!err)
		p->why[0] = '\0';	/* of a way that was not the only one */
	else if (err != -ESRCH && !p->why[0])
		snprintf(p->why, p->why_size, "the library can't be put into a memfd of it: %s",
			 strerror(-err));
	if (err && !p->lost)
		placing__undo(p, r);
	return err;
}

bool placing__is_there(const struct placing *p, pid_t pid, pid_t tid)
{
	int handle = p->fd < 0 || p->file < 0 ? -1 : look_at(pid, tid, p->fd);
	struct statx theirs;
	struct stat ours;
	bool same;

	if (handle < 0)
		return false;
	same = !fstat(p->file, &ours) &&
	       !statx(handle, "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, STATX_INO, &theirs) &&
	       major(ours.st_dev) == theirs.stx_dev_major &&
	       minor(ours.st_dev) == theirs.stx_dev_minor && ours.st_ino == theirs.stx_ino;
	close(handle);
	return same;
}

void placing__undo(struct placing *p, struct remote *r)
{
	char why[sizeof("munmap") + 64], *said = p->why;
	size_t said_size = p->why_size;

	p->why = why;
	p->why_size = sizeof(why);
	p->lost = 0;
	if (p->pages && call(p, r, "munmap", SYS_munmap, p->pages, PLACING_SIZE, 0) == 0)
		p->pages = 0;
	FAULT_POINT("trace-unmapped");
	/* Not filled yet: there is nothing to know it by, but nobody had time to re-use it either. */
	if (!p->lost && p->fd >= 0 && (p->file < 0 || placing__is_there(p, r->pid, r->tid)))
		call(p, r, "close", SYS_close, (uint64_t)p->fd, 0, 0);
	if (!p->lost)
		p->fd = -1;
	FAULT_POINT("trace-closed");
	p->why = said;
	p->why_size = said_size;
}

void placing__path(const struct placing *p, char *path, size_t size)
{
	snprintf(path, size, "/proc/thread-self/fd/%d", p->fd);
}
