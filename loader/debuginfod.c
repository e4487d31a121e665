// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "loader/debuginfod.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <grp.h>
#include <linux/capability.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "loader/base/clock.h"
#include "loader/base/log.h"

#define LIBRARY "libdebuginfod.so.1"
#define URLS "DEBUGINFOD_URLS"
#define PULSE_MS 100
#define START_MS 10000
#define NOBODY 65534
#define QUIET_SECONDS "10"	/* how long a server may say nothing, if the caller hasn't said it */

struct debuginfod {
	const struct caller *caller;
	pid_t pid;		/* 0: ended */
	int sock;
	uint64_t left_ms;
	bool (*pulse)(void *ctx);
	void *ctx;
	bool said;		/* that something went wrong */
	char cache[64];		/* to be removed; "": the caller's own */
};

/* --- in the process ------------------------------------------------------------------------- */

/* As elfutils 0.178 and later have them. */
struct library {
	void *(*begin)(void);
	int (*find)(void *client, const unsigned char *id, int len, char **path);
};

/* What a user who isn't root may have got from the program file. */
static int drop_capabilities(void)
{
	struct __user_cap_header_struct head = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct none[_LINUX_CAPABILITY_U32S_3] = {};

	return syscall(SYS_capset, &head, none) ? -errno : 0;
}

static int become(const struct caller *c)
{
	uid_t uid = c->uid ? c->uid : NOBODY;
	gid_t gid = c->uid ? c->gid : NOBODY;

	if (geteuid())
		return drop_capabilities();
	return setgroups(c->uid ? c->nr_groups : 0, c->groups) || setresgid(gid, gid, gid) ||
	       setresuid(uid, uid, uid) ? -errno : 0;
}

static int keep_only(int sock)
{
	int null = open("/dev/null", O_RDWR), high = fcntl(sock, F_DUPFD, 4);

	if (null < 0 || high < 0)
		return -errno;
	for (int fd = 0; fd <= 2; fd++)
		if (dup2(null, fd) < 0)
			return -errno;
	if (dup2(high, 3) < 0 || syscall(SYS_close_range, 4, ~0u, 0) || chdir("/"))
		return -errno;
	return 0;
}

static int load(struct library *l)
{
	void *handle = dlopen(LIBRARY, RTLD_NOW);
	void *begin = handle ? dlsym(handle, "debuginfod_begin") : NULL;
	void *find = handle ? dlsym(handle, "debuginfod_find_debuginfo") : NULL;

	/* Between pointers to data and to functions POSIX allows this way only. */
	memcpy(&l->begin, &begin, sizeof(begin));
	memcpy(&l->find, &find, sizeof(find));
	return begin && find ? 0 : -ENOENT;
}

static int send_answer(int sock, int fd)
{
	union {
		struct cmsghdr head;
		char room[CMSG_SPACE(sizeof(int))];
	} control = {};
	struct iovec data = { &fd, sizeof(fd) };
	struct msghdr m = { .msg_iov = &data, .msg_iovlen = 1 };

	if (fd >= 0) {
		m.msg_control = &control;
		m.msg_controllen = sizeof(control);
		control.head = (struct cmsghdr){
			.cmsg_len = CMSG_LEN(sizeof(int)), .cmsg_level = SOL_SOCKET,
			.cmsg_type = SCM_RIGHTS,
		};
		memcpy(CMSG_DATA(&control.head), &fd, sizeof(fd));
	}
	return sendmsg(sock, &m, MSG_NOSIGNAL) < 0 ? -errno : 0;
}

static void serve(int sock)
{
	struct library library;
	void *client = NULL;
	struct build_id id;
	int fd = load(&library);

	if (!fd)
		client = library.begin();
	if (!fd && !client)
		fd = -ENOMEM;
	if (send_answer(sock, fd ? fd : -1) || fd)
		return;
	while (recv(sock, &id, sizeof(id), 0) == sizeof(id)) {
		fd = library.find(client, id.bytes, (int)id.len, NULL);
		if (send_answer(sock, fd))
			return;
		if (fd >= 0)
			close(fd);
	}
}

static void run(const struct caller *caller, char **environment, const char *cache, int sock,
		pid_t parent)
{
	const struct rlimit none = { 0, 0 };

	setrlimit(RLIMIT_CORE, &none);
	if (keep_only(sock) || become(caller))
		_exit(1);
	/* Losing rights forgets this, so it comes after; the parent may have ended meanwhile. */
	if (prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) || getppid() != parent)
		_exit(1);
	environ = environment;
	if (setenv("DEBUGINFOD_TIMEOUT", QUIET_SECONDS, 0) || unsetenv("DEBUGINFOD_PROGRESS") ||
	    unsetenv("DEBUGINFOD_VERBOSE") ||
	    (cache[0] && setenv("DEBUGINFOD_CACHE_PATH", cache, 1)))
		_exit(1);
	serve(3);
	_exit(0);
}

/* --- outside of it -------------------------------------------------------------------------- */

/* What it sent: a descriptor, else its negative errno; -ETIMEDOUT, -ECANCELED, -EPIPE. */
static int receive(struct debuginfod *d, uint64_t ms)
{
	union {
		struct cmsghdr head;
		char room[CMSG_SPACE(sizeof(int))];
	} control;
	int answer = -EPIPE, fd = -1;
	struct iovec data = { &answer, sizeof(answer) };
	struct msghdr m = {
		.msg_iov = &data, .msg_iovlen = 1, .msg_control = &control,
		.msg_controllen = CMSG_LEN(sizeof(int)),	/* room for one and no more */
	};
	struct pollfd ready = { .fd = d->sock, .events = POLLIN };
	uint64_t begin = clock__now_ns();

	while (poll(&ready, 1, PULSE_MS) <= 0) {
		if (d->pulse && d->pulse(d->ctx))
			return -ECANCELED;
		if ((clock__now_ns() - begin) / 1000000 >= ms)
			return -ETIMEDOUT;
	}
	if (recvmsg(d->sock, &m, MSG_CMSG_CLOEXEC) != sizeof(answer))
		return -EPIPE;
	if (CMSG_FIRSTHDR(&m) && control.head.cmsg_type == SCM_RIGHTS &&
	    control.head.cmsg_len == CMSG_LEN(sizeof(int)))
		memcpy(&fd, CMSG_DATA(&control.head), sizeof(fd));
	return fd >= 0 ? fd : answer < 0 ? answer : -EPIPE;
}

static void stop(struct debuginfod *d)
{
	if (!d->pid)
		return;
	close(d->sock);
	kill(d->pid, SIGKILL);
	while (waitpid(d->pid, NULL, 0) < 0 && errno == EINTR)
		;
	d->pid = 0;
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	(void)st;
	(void)type;
	(void)ftw;
	remove(path);
	return 0;
}

/* As the user who could write into it: whatever it has become meanwhile, root does nothing there. */
static void remove_cache(const struct debuginfod *d)
{
	pid_t pid = d->cache[0] ? fork() : -1;

	if (pid == 0) {
		if (!become(d->caller))
			nftw(d->cache, remove_one, 16, FTW_DEPTH | FTW_PHYS | FTW_MOUNT);
		_exit(0);
	}
	while (pid > 0 && waitpid(pid, NULL, 0) < 0 && errno == EINTR)
		;
}

void debuginfod__free(struct debuginfod *d)
{
	if (!d)
		return;
	stop(d);
	remove_cache(d);
	free(d);
}

static int start(struct debuginfod *d, char **environment)
{
	pid_t parent = getpid();
	int pair[2], err = 0;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair))
		return -errno;
	d->pid = fork();
	if (d->pid == 0)
		run(d->caller, environment, d->cache, pair[1], parent);
	if (d->pid < 0) {
		err = -errno;
		d->pid = 0;
		close(pair[0]);
	}
	close(pair[1]);
	d->sock = pair[0];
	return err;
}

/* Of root's own there is none: nobody fills it, and it would be root that reads it the next time. */
static int make_cache(struct debuginfod *d)
{
	if (geteuid() || d->caller->uid)
		return 0;
	snprintf(d->cache, sizeof(d->cache), "/tmp/gpucollect-debuginfod-XXXXXX");
	if (!mkdtemp(d->cache)) {
		d->cache[0] = '\0';
		return -errno;
	}
	return chown(d->cache, NOBODY, NOBODY) ? -errno : 0;
}

static int refuse(char **why, const char *text)
{
	*why = strdup(text);
	return -EOPNOTSUPP;
}

int debuginfod__new(const struct caller *caller, const struct variables *variables,
		    struct debuginfod **out, char **why)
{
	const char *urls = variables__get(variables, URLS);
	struct debuginfod *d;
	int err;

	if (!urls || !urls[strspn(urls, " ")])
		return refuse(why, "--debuginfod: no server is known: set " URLS ", for example to "
			      "https://debuginfod.debian.net");
	d = calloc(1, sizeof(*d));
	if (!d)
		return -ENOMEM;
	d->caller = caller;
	d->left_ms = DEBUGINFOD_TOTAL_MS;
	err = make_cache(d);
	if (!err)
		err = start(d, variables->list);
	if (!err) {
		err = receive(d, START_MS);
		err = err == -1 ? 0 : err;	/* no descriptor, no error: it is ready */
	}
	if (!err) {
		*out = d;
		return 0;
	}
	debuginfod__free(d);
	return err == -ENOENT ? refuse(why, "--debuginfod: " LIBRARY " is not installed: apt install "
				       "libdebuginfod1, or leave the option out") : err;
}

void debuginfod__set_pulse(struct debuginfod *d, bool (*pulse)(void *ctx), void *ctx)
{
	d->pulse = pulse;
	d->ctx = ctx;
}

int debuginfod__fetch(void *ctx, const struct build_id *id)
{
	struct debuginfod *d = ctx;
	uint64_t begin = clock__now_ns(), took;
	int fd = -EPIPE;

	if (!d->pid)
		return -1;
	log__progress("asking debuginfod for names");
	if (send(d->sock, id, sizeof(*id), MSG_NOSIGNAL) == sizeof(*id))
		fd = receive(d, d->left_ms < DEBUGINFOD_FILE_MS ? d->left_ms : DEBUGINFOD_FILE_MS);
	took = (clock__now_ns() - begin) / 1000000;
	d->left_ms -= took < d->left_ms ? took : d->left_ms;
	if (fd == -ETIMEDOUT || fd == -EPIPE || fd == -ECANCELED || !d->left_ms) {
		stop(d);
		if (fd != -ECANCELED)
			log_warn("debuginfod %s: names that it would have told are missing",
				 fd == -EPIPE ? "failed" : "took too long");
	} else if (fd < 0 && fd != -ENOENT && !d->said) {
		d->said = true;
		log_warn("debuginfod: no answer from the servers of " URLS " (%s): names that they would "
			 "have told are missing", strerror(-fd));
	}
	return fd < 0 ? -1 : fd;
}
