// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Blocks in one system call and says how it ended, for tests of who is stopped in it:
 *
 *	trace_calls NAME	prints "ready PID", blocks, prints what came of it
 *	trace_calls -l		lists the names
 *
 * A byte on standard input makes a second process end the wait. Calls with a time limit (their names
 * end in "_timed") last 1.5 s by themselves. Printed are the results of the call, errno, whether it
 * lasted as long as it should have, and the mask of blocked signals and the handler's count after it.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <linux/io_uring.h>
#include <poll.h>
#include <pty.h>
#include <semaphore.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/file.h>
#include <sys/inotify.h>
#include <sys/mman.h>
#include <sys/msg.h>
#include <sys/select.h>
#include <sys/sem.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define LIMIT_NS 1480000000ll	/* 1.5 s, of which preparing may take some */

/* Two processes' common ground: what the waker needs. */
static struct shared {
	int word;
	pid_t waiter;
} *shared;
static int ends[2] = { -1, -1 };	/* [0] waited on, [1] written by the waker */
static volatile sig_atomic_t handled;
static char path[64];

static const struct timespec limit = { 1, 500000000 };

static void on_signal(int signal)
{
	(void)signal;
	handled++;
}

static void must(long result, const char *what)
{
	if (result < 0) {
		perror(what);
		exit(77);
	}
}

/* --- how the waker ends a wait ------------------------------------------------------------ */

static void wake_write(void)
{
	must(write(ends[1], "1234567\n", 8), "write");
}

static void wake_futex(void)
{
	__atomic_store_n(&shared->word, 1, __ATOMIC_SEQ_CST);
	must(syscall(SYS_futex, &shared->word, FUTEX_WAKE, 1, NULL, NULL, 0), "futex");
}

static void wake_signal(void)
{
	must(kill(shared->waiter, SIGUSR1), "kill");
}

static void wake_exit(void)
{
	_exit(7);
}

static void wake_unlock(void)
{
	must(flock(ends[1], LOCK_UN), "flock");
	_exit(0);
}

static void wake_open(void)
{
	must(open(path, O_RDONLY), "open");
}

static void wake_read(void)
{
	static char bytes[1 << 21];

	close(ends[0]);
	while (read(ends[1], bytes, sizeof(bytes)) > 0)
		;
}

/* --- the waits ------------------------------------------------------------------------------ */

static void make_pipe(void)
{
	must(pipe(ends), "pipe");
}

static void make_sockets(void)
{
	must(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), "socketpair");
}

static void make_limited_sockets(void)
{
	struct timeval t = { 1, 500000 };

	make_sockets();
	must(setsockopt(ends[0], SOL_SOCKET, SO_RCVTIMEO, &t, sizeof(t)), "setsockopt");
}

static void make_eventfd(void)
{
	ends[0] = ends[1] = eventfd(0, 0);
}

static void make_signalfd(void)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGUSR1);
	sigprocmask(SIG_BLOCK, &set, NULL);
	ends[0] = signalfd(-1, &set, 0);
}

static void make_timerfd(void)
{
	const struct itimerspec t = { .it_value = limit };

	ends[0] = timerfd_create(CLOCK_MONOTONIC, 0);
	must(timerfd_settime(ends[0], 0, &t, NULL), "timerfd");
}

static void make_inotify(void)
{
	snprintf(path, sizeof(path), "/proc/self/comm");
	ends[0] = inotify_init();
	snprintf(path, sizeof(path), "/tmp/trace_calls.%d", (int)getpid());
	must(close(open(path, O_CREAT | O_RDWR, 0600)), path);
	must(inotify_add_watch(ends[0], path, IN_OPEN), "inotify");
}

static void make_tty(void)
{
	must(openpty(&ends[1], &ends[0], NULL, NULL, NULL), "openpty");
}

static void make_full_pipe(void)
{
	int other[2];

	must(pipe(other), "pipe");
	ends[0] = other[1];	/* written by the waiter */
	ends[1] = other[0];
}

static void make_lock(void)
{
	snprintf(path, sizeof(path), "/tmp/trace_calls.%d", (int)getpid());
	ends[1] = open(path, O_CREAT | O_RDWR | O_CLOEXEC, 0600);
	ends[0] = open(path, O_RDWR | O_CLOEXEC);
	must(flock(ends[1], LOCK_EX), "flock");
}

static void make_listener(void)
{
	struct sockaddr_un name = { .sun_family = AF_UNIX };

	snprintf(name.sun_path + 1, sizeof(name.sun_path) - 1, "trace_calls.%d", (int)getpid());
	ends[0] = socket(AF_UNIX, SOCK_STREAM, 0);
	must(bind(ends[0], (void *)&name, sizeof(name)), "bind");
	must(listen(ends[0], 0), "listen");
}

static void wake_connect(void)
{
	struct sockaddr_un name = { .sun_family = AF_UNIX };
	socklen_t len = sizeof(name);

	must(getsockname(ends[0], (void *)&name, &len), "getsockname");
	must(connect(socket(AF_UNIX, SOCK_STREAM, 0), (void *)&name, len), "connect");
}

static long do_read(void)
{
	char bytes[512];

	return read(ends[0], bytes, sizeof(bytes));
}

static long do_recv(void)
{
	char bytes[8];

	return recv(ends[0], bytes, sizeof(bytes), 0);
}

/* Half of it is there already: a signal would end the call with that. */
static long do_recv_all(void)
{
	char bytes[16];

	must(write(ends[1], "1234567\n", 8), "write");
	return recv(ends[0], bytes, sizeof(bytes), MSG_WAITALL);
}

static long do_write(void)
{
	static char bytes[1 << 20];

	return write(ends[0], bytes, sizeof(bytes));
}

static long do_accept(void)
{
	return accept(ends[0], NULL, NULL) >= 0 ? 0 : -1;
}

static long futex(const struct timespec *t)
{
	return syscall(SYS_futex, &shared->word, FUTEX_WAIT, 0, t, NULL, 0);
}

static long do_futex(void)
{
	return futex(NULL);
}

static long do_futex_timed(void)
{
	return futex(&limit);
}

static long do_sem_timed(void)
{
	struct timespec t;
	sem_t sem;

	sem_init(&sem, 0, 0);
	clock_gettime(CLOCK_REALTIME, &t);
	t.tv_sec += 2;
	return sem_timedwait(&sem, &t);
}

static long do_pause(void)
{
	return pause();
}

static void block_signal(void)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGUSR1);
	sigaddset(&set, SIGWINCH);
	sigprocmask(SIG_BLOCK, &set, NULL);
}

static long do_sigsuspend(void)
{
	sigset_t set;

	sigemptyset(&set);
	return sigsuspend(&set);
}

/* They block what is not blocked before and after. */
static long do_sigsuspend_blocking(void)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGUSR2);
	return sigsuspend(&set);
}

static long do_ppoll_blocking(void)
{
	struct pollfd p = { .fd = ends[0], .events = POLLIN };
	sigset_t set;

	sigfillset(&set);
	return ppoll(&p, 1, NULL, &set);
}

static long sigtimed(const struct timespec *t)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGUSR1);
	return sigtimedwait(&set, NULL, t);
}

static long do_sigwait(void)
{
	return sigtimed(NULL);
}

static long do_sigwait_timed(void)
{
	return sigtimed(&limit);
}

static long do_wait4(void)
{
	int status = 0;

	return wait4(-1, &status, 0, NULL) > 0 ? WEXITSTATUS(status) : -1;
}

static long do_waitid(void)
{
	siginfo_t info = { 0 };

	return waitid(P_ALL, 0, &info, WEXITED) ? -1 : info.si_status;
}

static long do_nanosleep_timed(void)
{
	return nanosleep(&limit, NULL);
}

static long do_clock_abs_timed(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	t.tv_sec += 2;
	return clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, NULL);
}

static long do_poll(void)
{
	struct pollfd p = { .fd = ends[0], .events = POLLIN };

	return poll(&p, 1, -1);
}

static long do_poll_timed(void)
{
	return poll(NULL, 0, 1500);
}

static long do_ppoll(void)
{
	struct pollfd p = { .fd = ends[0], .events = POLLIN };
	sigset_t set;

	sigemptyset(&set);
	return ppoll(&p, 1, NULL, &set);
}

static long do_ppoll_timed(void)
{
	struct timespec t = limit;

	return ppoll(NULL, 0, &t, NULL);
}

static long do_select(void)
{
	fd_set set;

	FD_ZERO(&set);
	FD_SET(ends[0], &set);
	return select(ends[0] + 1, &set, NULL, NULL, NULL);
}

static long do_select_timed(void)
{
	struct timeval t = { 1, 500000 };

	return select(0, NULL, NULL, NULL, &t);
}

static long epoll(int ms, const sigset_t *set)
{
	struct epoll_event event = { .events = EPOLLIN };
	int fd = epoll_create1(0);

	if (ends[0] >= 0)
		must(epoll_ctl(fd, EPOLL_CTL_ADD, ends[0], &event), "epoll_ctl");
	return epoll_pwait(fd, &event, 1, ms, set);
}

static long do_epoll(void)
{
	return epoll(-1, NULL);
}

static long do_epoll_timed(void)
{
	return epoll(1500, NULL);
}

static long do_epoll_pwait(void)
{
	sigset_t set;

	sigemptyset(&set);
	return epoll(-1, &set);
}

static long do_flock(void)
{
	return flock(ends[0], LOCK_EX);
}

static long do_semtimed(void)
{
	int id = semget(IPC_PRIVATE, 1, 0600), err;
	struct sembuf op = { 0, -1, 0 };
	long result = semtimedop(id, &op, 1, &limit);

	err = errno;
	semctl(id, 0, IPC_RMID);
	errno = err;
	return result;
}

static void make_queue(void)
{
	ends[0] = msgget(IPC_PRIVATE, 0600);
}

static void wake_queue(void)
{
	struct { long type; char text[8]; } m = { 1, "1234567" };

	must(msgsnd(ends[0], &m, 8, 0), "msgsnd");
}

static long do_msgrcv(void)
{
	struct { long type; char text[8]; } m;
	long result = msgrcv(ends[0], &m, 8, 0, 0);
	int err = errno;

	msgctl(ends[0], IPC_RMID, NULL);
	errno = err;
	return result;
}

static long do_io_uring_timed(void)
{
	struct io_uring_params p = { 0 };
	struct { uint64_t mask; uint32_t size, pad; uint64_t ts; } arg = { 0 };
	struct __kernel_timespec t = { 1, 500000000 };
	int fd = (int)syscall(SYS_io_uring_setup, 4, &p);

	if (fd < 0)
		return -1;
	arg.ts = (uint64_t)(uintptr_t)&t;
	return syscall(SYS_io_uring_enter, fd, 0, 1, IORING_ENTER_GETEVENTS | IORING_ENTER_EXT_ARG,
		       &arg, sizeof(arg));
}

static const struct {
	const char *name;
	long (*call)(void);
	void (*make)(void);
	void (*wake)(void);
} calls[] = {
	{ "futex", do_futex, NULL, wake_futex },
	{ "futex_timed", do_futex_timed, NULL, NULL },
	{ "sem_timed", do_sem_timed, NULL, NULL },
	{ "pause", do_pause, NULL, wake_signal },
	{ "sigsuspend", do_sigsuspend, block_signal, wake_signal },
	{ "sigsuspend_blocking", do_sigsuspend_blocking, block_signal, wake_signal },
	{ "sigwait", do_sigwait, block_signal, wake_signal },
	{ "sigwait_timed", do_sigwait_timed, block_signal, NULL },
	{ "wait4", do_wait4, NULL, wake_exit },
	{ "waitid", do_waitid, NULL, wake_exit },
	{ "nanosleep_timed", do_nanosleep_timed, NULL, NULL },
	{ "clock_abs_timed", do_clock_abs_timed, NULL, NULL },
	{ "poll", do_poll, make_pipe, wake_write },
	{ "poll_timed", do_poll_timed, NULL, NULL },
	{ "ppoll", do_ppoll, make_pipe, wake_write },
	{ "ppoll_blocking", do_ppoll_blocking, make_pipe, wake_write },
	{ "ppoll_timed", do_ppoll_timed, NULL, NULL },
	{ "select", do_select, make_pipe, wake_write },
	{ "select_timed", do_select_timed, NULL, NULL },
	{ "epoll", do_epoll, make_pipe, wake_write },
	{ "epoll_timed", do_epoll_timed, NULL, NULL },
	{ "epoll_pwait", do_epoll_pwait, make_pipe, wake_write },
	{ "read_pipe", do_read, make_pipe, wake_write },
	{ "read_eventfd", do_read, make_eventfd, wake_write },
	{ "read_inotify", do_read, make_inotify, wake_open },
	{ "read_timerfd_timed", do_read, make_timerfd, NULL },
	{ "read_signalfd", do_read, make_signalfd, wake_signal },
	{ "read_tty", do_read, make_tty, wake_write },
	{ "read_socket", do_read, make_sockets, wake_write },
	{ "read_socket_timed", do_read, make_limited_sockets, NULL },
	{ "recv", do_recv, make_sockets, wake_write },
	{ "recv_all", do_recv_all, make_sockets, wake_write },
	{ "recv_timed", do_recv, make_limited_sockets, NULL },
	{ "accept", do_accept, make_listener, wake_connect },
	{ "write_pipe", do_write, make_full_pipe, wake_read },
	{ "flock", do_flock, make_lock, wake_unlock },
	{ "semop_timed", do_semtimed, NULL, NULL },
	{ "msgrcv", do_msgrcv, make_queue, wake_queue },
	{ "io_uring_timed", do_io_uring_timed, NULL, NULL },
};

#define NR_CALLS (sizeof(calls) / sizeof(calls[0]))

static int64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000000000ll + t.tv_nsec;
}

static uint64_t mask_now(void)
{
	uint64_t mask = 0;

	syscall(SYS_rt_sigprocmask, SIG_BLOCK, NULL, &mask, 8);
	return mask;
}

static void start_waker(void (*wake)(void))
{
	char byte;

	if (!fork()) {
		/* Without that byte the test is over. */
		if (read(STDIN_FILENO, &byte, 1) == 1)
			wake();
		_exit(0);
	}
}

static int run(size_t i)
{
	const struct sigaction action = { .sa_handler = on_signal };
	int64_t begin, took;
	long result;
	int err;

	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS,
		      -1, 0);
	shared->waiter = getpid();
	sigaction(SIGUSR1, &action, NULL);
	if (calls[i].make)
		calls[i].make();
	if (calls[i].wake)
		start_waker(calls[i].wake);
	printf("ready %d\n", (int)getpid());
	fflush(stdout);
	begin = now_ns();
	errno = 0;
	result = calls[i].call();
	err = errno;
	took = now_ns() - begin;
	if (path[0])
		unlink(path);
	printf("result %ld errno %d lasted %d handled %d mask %llx\n", result, err,
	       calls[i].wake || took >= LIMIT_NS, (int)handled,
	       (unsigned long long)mask_now());
	return 0;
}

int main(int argc, char **argv)
{
	for (size_t i = 0; i < NR_CALLS && argc > 1; i++) {
		if (!strcmp(argv[1], "-l"))
			puts(calls[i].name);
		else if (!strcmp(argv[1], calls[i].name))
			return run(i);
	}
	return argc > 1 && !strcmp(argv[1], "-l") ? 0 : 64;
}
