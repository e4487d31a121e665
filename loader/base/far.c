// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "loader/base/far.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "loader/base/array.h"
#include "loader/base/clock.h"

#define MAX_READERS 16		/* file systems; the files of further ones can't be read */
#define MAX_MEMORY_READERS 16	/* the same of users and their memory */
#define MEMORY_OF 0xffffffff00000000ull	/* and a user's number, in the place of a device: of no file system */
#define MAX_STUCK 4		/* readers of one user's memory: so many processes of his may not answer */
#define MAX_FILES 4096		/* of one reader: its descriptors */
#define PIECE 65536		/* bytes of one answer */
/* Who always answers at the last moment may take this much of our time in all, and this part of it. */
#define PATIENCE_NS 2000000000ull
#define PATIENCE_PART 4

struct question {
	uint64_t nr;
	uint32_t file;
	uint32_t len;		/* 0: the file comes with the question */
	uint64_t offset;
	pid_t pid;		/* 0, or whose memory is read, at `offset` */
	uint32_t reserved;
};

struct answer {
	uint64_t nr;
	int64_t result;		/* bytes that follow, or negative errno */
};

struct reader {
	uint64_t device;
	pid_t pid;
	int socket;
	uint64_t asked;
	uint64_t born, waited;	/* ns */
	uint32_t nr_files;
	pthread_mutex_t lock;	/* of all that it is asked: who waits for it keeps nobody else */
	pid_t about;		/* whose memory was asked for last */
	bool silent;		/* owes an answer */
	bool dead;
};

struct far_file {
	int fd;
	uint32_t reader, file;
	uint64_t size;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct reader readers[MAX_READERS + MAX_MEMORY_READERS];
static uint32_t nr_readers, nr_memory;	/* of both kinds together; of the second */
static struct far_file *far_files;
static size_t nr_far, far_size;

/* --- the other process ------------------------------------------------------------------------ */

static int take_file(int *files, uint32_t file, int handle)
{
	char path[64];

	if (handle < 0 || file >= MAX_FILES)
		return -EBADF;
	snprintf(path, sizeof(path), "/proc/self/fd/%d", handle);
	files[file] = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
	close(handle);
	return files[file] < 0 ? -errno : 0;
}

static ssize_t receive(int socket, struct question *q, int *handle)
{
	char control[CMSG_SPACE(sizeof(int))];
	struct iovec part = { q, sizeof(*q) };
	struct msghdr message = {
		.msg_iov = &part, .msg_iovlen = 1, .msg_control = control,
		.msg_controllen = sizeof(control),
	};
	ssize_t n = recvmsg(socket, &message, MSG_CMSG_CLOEXEC);
	struct cmsghdr *c = n > 0 ? CMSG_FIRSTHDR(&message) : NULL;

	*handle = -1;
	if (c && c->cmsg_type == SCM_RIGHTS)
		memcpy(handle, CMSG_DATA(c), sizeof(*handle));
	return n;
}

/* What a descriptor that is closed below still lies mapped of. */
static void unmap_shared(void)
{
	unsigned long start, end;
	char line[512];
	FILE *f = fopen("/proc/self/maps", "re");

	while (f && fgets(line, sizeof(line), f))
		if (strstr(line, " anon_inode:") && sscanf(line, "%lx-%lx", &start, &end) == 2)
			munmap((void *)start, end - start);
	if (f)
		fclose(f);
}

static ssize_t read_memory(pid_t pid, uint64_t addr, void *buf, size_t len)
{
	struct iovec to = { buf, len }, from = { (void *)(uintptr_t)addr, len };

	return process_vm_readv(pid, &to, 1, &from, 1, 0);
}

/* Nothing but the socket is its own: what it held of BPF would live as long as it hangs. */
static _Noreturn void serve(int socket, bool memory)
{
	static char bytes[PIECE];
	static int files[MAX_FILES];
	struct question q;
	struct answer a;
	int handle;

	unmap_shared();
	dup2(socket, 0);
	syscall(SYS_close_range, 1, ~0u, 0);
	if (chdir("/"))
		_exit(1);
	prctl(PR_SET_NAME, "gpucollect-far");
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (memory)
		setpriority(PRIO_PROCESS, 0, -20);	/* a thread may be held meanwhile */
	signal(SIGPIPE, SIG_DFL);
	memset(files, 0xff, sizeof(files));
	while (receive(0, &q, &handle) == sizeof(q)) {
		struct iovec parts[] = { { &a, sizeof(a) }, { bytes, 0 } };
		struct msghdr message = { .msg_iov = parts, .msg_iovlen = 2 };
		ssize_t n = -1;

		a.nr = q.nr;
		if (!q.len) {
			a.result = take_file(files, q.file, handle);
		} else {
			if (q.pid && q.len <= PIECE)
				n = read_memory(q.pid, q.offset, bytes, q.len);
			else if (q.file < MAX_FILES && q.len <= PIECE)
				n = pread(files[q.file], bytes, q.len, (off_t)q.offset);
			a.result = n < 0 ? -errno : n;
			parts[1].iov_len = n < 0 ? 0 : (size_t)n;
		}
		if (sendmsg(0, &message, 0) < 0)
			break;
	}
	_exit(0);
}

/* --- asking it -------------------------------------------------------------------------------- */

/* Its lock and its files stay as they are: others may hold it. 0 or negative errno. */
static int reader__start(struct reader *r, uint64_t device)
{
	int pair[2];

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair))
		return -errno;
	r->pid = fork();
	if (!r->pid)
		serve(pair[1], device >= MEMORY_OF);
	close(pair[1]);
	if (r->pid < 0) {
		close(pair[0]);
		return -EAGAIN;
	}
	r->device = device;
	r->socket = pair[0];
	r->born = clock__now_ns();
	r->waited = 0;
	r->silent = r->dead = false;
	return 0;
}

static void send_question(struct reader *r, struct question *q, int handle)
{
	char control[CMSG_SPACE(sizeof(int))] = "";
	struct iovec part = { q, sizeof(*q) };
	struct msghdr message = { .msg_iov = &part, .msg_iovlen = 1 };
	struct cmsghdr *c;

	q->nr = ++r->asked;
	if (handle >= 0) {
		message.msg_control = control;
		message.msg_controllen = sizeof(control);
		c = CMSG_FIRSTHDR(&message);
		c->cmsg_level = SOL_SOCKET;
		c->cmsg_type = SCM_RIGHTS;
		c->cmsg_len = CMSG_LEN(sizeof(int));
		memcpy(CMSG_DATA(c), &handle, sizeof(handle));
	}
	/* It is fresh, or has answered all: there is room. */
	sendmsg(r->socket, &message, MSG_NOSIGNAL | MSG_DONTWAIT);
}

/* The answer to the last question; -ETIMEDOUT: none within `ms`, -EPIPE: there will be none. */
static int64_t await(struct reader *r, void *buf, size_t len, int ms)
{
	struct pollfd p = { .fd = r->socket, .events = POLLIN };
	uint64_t start = clock__now_ns();
	struct answer a;
	struct iovec parts[] = { { &a, sizeof(a) }, { buf, len } };
	struct msghdr message = { .msg_iov = parts, .msg_iovlen = 2 };
	ssize_t n;

	do {
		if (poll(&p, 1, ms) <= 0) {
			r->waited += clock__now_ns() - start;
			r->silent = true;
			return -ETIMEDOUT;
		}
		n = recvmsg(r->socket, &message, MSG_DONTWAIT);
		if (n < (ssize_t)sizeof(a)) {
			r->dead = true;
			return -EPIPE;
		}
	} while (a.nr != r->asked);
	r->waited += clock__now_ns() - start;
	r->silent = false;
	if (a.result > n - (ssize_t)sizeof(a))
		return -EIO;
	return a.result;
}

static bool is_patient(const struct reader *r)
{
	return r->waited < PATIENCE_NS + (clock__now_ns() - r->born) / PATIENCE_PART;
}

/* What comes late is for nobody. */
static bool is_stuck(struct reader *r)
{
	char nothing;

	return r->silent && await(r, &nothing, sizeof(nothing), 0) == -ETIMEDOUT;
}

/* The caller holds its lock. */
static int64_t ask(struct reader *r, struct question *q, int handle, void *buf, size_t len)
{
	if (is_stuck(r) || !is_patient(r))
		return -ETIMEDOUT;
	send_question(r, q, handle);
	return await(r, buf, len, FAR_WAIT_MS);
}

static struct reader *start_reader(uint64_t device)
{
	bool memory = device >= MEMORY_OF;
	struct reader *r = &readers[nr_readers];

	if (memory ? nr_memory == MAX_MEMORY_READERS : nr_readers - nr_memory == MAX_READERS)
		return NULL;
	pthread_mutex_init(&r->lock, NULL);
	if (reader__start(r, device))
		return NULL;
	nr_readers++;
	nr_memory += memory;
	return r;
}

static struct reader *reader_of(uint64_t device)
{
	uint32_t i;

	for (i = 0; i < nr_readers; i++)
		if (readers[i].device == device)
			return &readers[i];
	return start_reader(device);
}

/* One that can be asked about this process, of those of its user's memory; *nr: how many there are. */
static struct reader *choose(uint64_t device, pid_t pid, struct reader **dead, uint32_t *nr)
{
	struct reader *r, *ready = NULL, *busy = NULL, *same = NULL;

	for (r = readers; r < readers + nr_readers; r++) {
		if (r->device != device)
			continue;
		++*nr;
		if (pthread_mutex_trylock(&r->lock)) {
			busy = r;
			continue;
		}
		if (r->dead)
			*dead = r;
		else if (!is_stuck(r) && is_patient(r))
			ready = r;
		else if (r->about == pid)
			same = r;
		pthread_mutex_unlock(&r->lock);
	}
	return same ? same : ready ? ready : busy;
}

/*
 * One process of a user's whose memory doesn't answer must not hide the others. A reader ends with the
 * thread that started it, so only the first one does. NULL: there is none.
 */
static struct reader *memory_reader_of(uint64_t device, pid_t pid)
{
	struct reader *dead = NULL, *r;
	uint32_t nr = 0;

	r = choose(device, pid, &dead, &nr);
	if (r || gettid() != getpid())
		return r;
	if (!dead)
		return nr == MAX_STUCK ? NULL : start_reader(device);
	close(dead->socket);
	waitpid(dead->pid, NULL, WNOHANG);
	return reader__start(dead, device) ? NULL : dead;
}

static const struct far_file *find(int fd)
{
	size_t i;

	for (i = 0; i < nr_far; i++)
		if (far_files[i].fd == fd)
			return &far_files[i];
	return NULL;
}

/* --- files -------------------------------------------------------------------------------------- */

/* Gives it to a reader: its number there, or negative errno. */
static int give(struct reader *r, int handle)
{
	struct question q = { .file = r->nr_files };
	uint64_t asked = r->asked;
	int64_t err;

	if (r->nr_files == MAX_FILES)
		return -EMFILE;
	err = ask(r, &q, handle, NULL, 0);
	if (err && (err != -ETIMEDOUT || r->asked == asked))
		return (int)err;
	return (int)r->nr_files++;
}

static int keep(struct far_file f)
{
	int err = 0;

	f.fd = memfd_create("far", MFD_CLOEXEC);
	if (f.fd < 0)
		return -errno;
	pthread_mutex_lock(&lock);
	if (array__reserve((void **)&far_files, &far_size, nr_far, sizeof(*far_files))) {
		err = -ENOMEM;
	} else {
		far_files[nr_far] = f;
		__atomic_store_n(&nr_far, nr_far + 1, __ATOMIC_RELEASE);
	}
	pthread_mutex_unlock(&lock);
	if (err)
		close(f.fd);
	return err ? err : f.fd;
}

int far__open(int handle, uint64_t device, uint64_t size)
{
	struct reader *r;
	int file;

	pthread_mutex_lock(&lock);
	r = reader_of(device);
	pthread_mutex_unlock(&lock);
	if (!r)
		return -EMFILE;
	pthread_mutex_lock(&r->lock);
	file = give(r, handle);
	pthread_mutex_unlock(&r->lock);
	if (file < 0)
		return file;
	return keep((struct far_file){ -1, (uint32_t)(r - readers), (uint32_t)file, size });
}

void far__close(int fd)
{
	struct far_file *f;

	pthread_mutex_lock(&lock);
	f = (struct far_file *)find(fd);
	if (f) {
		*f = far_files[nr_far - 1];
		__atomic_store_n(&nr_far, nr_far - 1, __ATOMIC_RELEASE);
	}
	close(fd);
	pthread_mutex_unlock(&lock);
}

static int64_t ask_alone(struct reader *r, struct question *q, void *buf)
{
	int64_t n;

	pthread_mutex_lock(&r->lock);
	if (q->pid && !r->silent)
		r->about = q->pid;
	n = ask(r, q, -1, buf, q->len);
	pthread_mutex_unlock(&r->lock);
	return n;
}

static int64_t read_file(const struct far_file *f, void *buf, size_t len, uint64_t offset)
{
	struct question q = { .file = f->file, .offset = offset };

	if (offset >= f->size)
		return 0;
	if (len > f->size - offset)
		len = (size_t)(f->size - offset);
	q.len = len < PIECE ? (uint32_t)len : PIECE;
	return q.len ? ask_alone(&readers[f->reader], &q, buf) : 0;
}

ssize_t far__read(int fd, void *buf, size_t len, uint64_t offset)
{
	const struct far_file *found;
	struct far_file f;
	int64_t n;

	if (!__atomic_load_n(&nr_far, __ATOMIC_ACQUIRE))
		return pread(fd, buf, len, (off_t)offset);
	pthread_mutex_lock(&lock);
	found = find(fd);
	if (found)
		f = *found;
	pthread_mutex_unlock(&lock);
	if (!found)
		return pread(fd, buf, len, (off_t)offset);
	n = read_file(&f, buf, len, offset);
	if (n >= 0)
		return n;
	errno = (int)-n;
	return -1;
}

/* Of whose memory it is; 0 or negative errno. */
static int memory_reader(pid_t pid, struct reader **r)
{
	char path[32];
	struct stat st;

	snprintf(path, sizeof(path), "/proc/%d", (int)pid);
	if (stat(path, &st))
		return -ESRCH;
	pthread_mutex_lock(&lock);
	*r = memory_reader_of(MEMORY_OF | st.st_uid, pid);
	pthread_mutex_unlock(&lock);
	return *r ? 0 : -ETIMEDOUT;
}

int far__expect_memory(pid_t pid)
{
	struct reader *r;

	return memory_reader(pid, &r);
}

ssize_t far__read_memory(pid_t pid, uint64_t addr, void *buf, size_t len)
{
	struct question q = { .pid = pid };
	struct reader *r;
	size_t done = 0;
	int64_t n = memory_reader(pid, &r);

	while (!n && done < len) {
		q.offset = addr + done;
		q.len = len - done < PIECE ? (uint32_t)(len - done) : PIECE;
		n = ask_alone(r, &q, (char *)buf + done);
		if (n <= 0)
			break;
		done += (size_t)n;
		n = 0;
	}
	if (done || n >= 0)
		return (ssize_t)done;
	errno = (int)-n;
	return -1;
}

int64_t far__size(int fd)
{
	const struct far_file *f;
	int64_t size = -1;
	struct stat st;

	pthread_mutex_lock(&lock);
	f = find(fd);
	if (f)
		size = f->size > INT64_MAX ? INT64_MAX : (int64_t)f->size;
	pthread_mutex_unlock(&lock);
	if (f)
		return size;
	if (fstat(fd, &st))
		return -1;
	if (S_ISREG(st.st_mode))
		return st.st_size;
	errno = EISDIR;
	return -1;
}
