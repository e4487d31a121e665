// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "loader/calibrate/process.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "loader/calibrate/bench.h"

#define SILENT_MS 60000		/* a series takes a second or two */
#define MOST_DEVICES 64

/* --- in the process ------------------------------------------------------------------------- */

struct worker {
	int out;
	struct calibrate_driver driver;
	struct bench bench;
	int device;
	char names[MOST_DEVICES][CALIBRATE_TEXT];	/* of devices that were measured */
	size_t nr_names;
};

static struct calibrate_record record_of(const struct worker *w, enum calibrate_kind kind)
{
	return (struct calibrate_record){
		.kind = kind, .device = w->device, .version = (uint32_t)w->driver.version,
	};
}

/* Shorter than what a pipe takes in one piece. */
static void tell(const struct worker *w, const struct calibrate_record *r)
{
	if (write(w->out, r, sizeof(*r)) != sizeof(*r))
		_exit(1);
}

static void tell_text(const struct worker *w, enum calibrate_kind kind, const char *text)
{
	struct calibrate_record r = record_of(w, kind);

	snprintf(r.text, sizeof(r.text), "%s", text);
	tell(w, &r);
}

static void tell_series(void *ctx, const struct calibrate_series *s)
{
	const struct worker *w = ctx;
	struct calibrate_record r = record_of(w, CALIBRATE_SERIES);

	r.step_ns = w->bench.step_ns < UINT32_MAX ? (uint32_t)w->bench.step_ns : 0;
	r.series = *s;
	tell(w, &r);
}

static bool is_known(const struct worker *w, const char *name)
{
	size_t i;

	for (i = 0; i < w->nr_names; i++)
		if (!strcmp(w->names[i], name))
			return true;
	return false;
}

static void measure(struct worker *w, const char *name, CUdevice device)
{
	char why[CALIBRATE_DRIVER_WHY];
	struct calibration known;
	int err;

	if (is_known(w, name)) {
		tell_text(w, CALIBRATE_SAME, name);
		return;
	}
	tell_text(w, CALIBRATE_DEVICE, name);
	calibration__builtin(name, strlen(name), (uint32_t)w->driver.version, &known);
	memset(&w->bench, 0, sizeof(w->bench));
	err = bench__open(&w->bench, &w->driver, device);
	if (err) {
		bench__why(&w->bench, why);
		tell_text(w, CALIBRATE_MISSING, why);
	} else {
		err = calibrate_series__measure(&w->bench, known.no_gap, tell_series, w);
		if (err) {
			bench__why(&w->bench, why);
			tell_text(w, CALIBRATE_FAILED, why);
		} else {
			snprintf(w->names[w->nr_names++], CALIBRATE_TEXT, "%s", name);
		}
	}
	bench__close(&w->bench);
}

static void measure_number(struct worker *w, int ordinal)
{
	char name[CALIBRATE_TEXT] = "", why[CALIBRATE_DRIVER_WHY];
	CUdevice device;
	CUresult r;

	w->device = ordinal;
	r = w->driver.device_get(&device, ordinal);
	if (!r)
		r = w->driver.device_name(name, sizeof(name), device);
	if (r) {
		snprintf(why, sizeof(why), "the driver doesn't tell of it: %s (%d)",
			 calibrate_driver__error(&w->driver, r), (int)r);
		tell_text(w, CALIBRATE_MISSING, why);
	} else {
		measure(w, name, device);
	}
}

static void work(struct worker *w, int device)
{
	char why[CALIBRATE_DRIVER_WHY];
	int nr = 0, i;
	CUresult r;

	w->device = -1;
	if (calibrate_driver__load(&w->driver, why)) {
		tell_text(w, CALIBRATE_MISSING, why);
		return;
	}
	r = w->driver.device_count(&nr);
	if (r || nr <= 0 || device >= nr) {
		if (r || nr <= 0)
			snprintf(why, sizeof(why), "the driver sees no device; nvidia-smi shows why");
		else
			snprintf(why, sizeof(why), "--device %d: the driver sees %d, from 0 on", device, nr);
		tell_text(w, CALIBRATE_MISSING, why);
		return;
	}
	if (device >= 0)
		measure_number(w, device);
	for (i = 0; device < 0 && i < nr && i < MOST_DEVICES; i++)
		measure_number(w, i);
}

/* What a user who isn't root may have got from the program file. */
static int drop_capabilities(void)
{
	struct __user_cap_header_struct head = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct none[_LINUX_CAPABILITY_U32S_3] = {};

	return geteuid() && syscall(SYS_capset, &head, none) ? -errno : 0;
}

/* Standard output is the caller's data: nothing of the driver gets there. */
static int keep_only(int out)
{
	int null = open("/dev/null", O_RDWR), high = fcntl(out, F_DUPFD, 4);

	if (null < 0 || high < 0 || dup2(null, 0) < 0 || dup2(null, 1) < 0 || dup3(high, 3, O_CLOEXEC) < 0 ||
	    syscall(SYS_close_range, 4, ~0u, 0))
		return -errno;
	return 0;
}

static void run(const struct caller *caller, int device, int out, pid_t parent)
{
	static struct worker worker;

	if (keep_only(out) || caller__become(caller) || drop_capabilities())
		_exit(1);
	/* Losing rights forgets this, so it comes after; the parent may have ended meanwhile. */
	if (prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) || getppid() != parent)
		_exit(1);
	/* No other tool is at work here, no call waits for its work, and nothing is left behind. */
	if (unsetenv("CUDA_INJECTION64_PATH") || unsetenv("CUDA_LAUNCH_BLOCKING") ||
	    setenv("CUDA_CACHE_DISABLE", "1", 1))
		_exit(1);
	worker.out = 3;
	work(&worker, device);
	_exit(0);
}

/* --- outside of it -------------------------------------------------------------------------- */

static bool record_ok(const struct calibrate_record *r)
{
	const struct calibrate_series *s = &r->series;
	size_t len = strnlen(r->text, sizeof(r->text));

	if (len == sizeof(r->text))
		return false;
	switch (r->kind) {
	case CALIBRATE_DEVICE:
	case CALIBRATE_SAME:
		return calibrations__is_name(r->text, len) && r->version <= INT32_MAX;
	case CALIBRATE_SERIES:
		return s->work < NR_CALIBRATION_WORKS && (s->load == LOAD_BUSY || s->load == LOAD_IDLE) &&
		       s->low <= s->median && s->median <= s->high;
	default:
		return r->kind == CALIBRATE_MISSING || r->kind == CALIBRATE_FAILED;
	}
}

/* 1: there is one; 0: there are no more. */
static int next(int fd, struct calibrate_record *r, char **why)
{
	struct pollfd ready = { .fd = fd, .events = POLLIN };
	ssize_t n;
	int got;

	do
		got = poll(&ready, 1, SILENT_MS);
	while (got < 0 && errno == EINTR);
	if (got <= 0)
		return text__why(why, got ? -errno : -ETIMEDOUT, "the driver has not answered for %d s",
				 SILENT_MS / 1000);
	do
		n = read(fd, r, sizeof(*r));
	while (n < 0 && errno == EINTR);
	if (!n)
		return 0;
	if (n != sizeof(*r) || !record_ok(r))
		return text__why(why, -EPROTO, "the process that measures told nonsense");
	return 1;
}

static int reap(pid_t pid)
{
	int status = 0;

	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	return status;
}

static int check_end(int status, char **why)
{
	if (WIFSIGNALED(status))
		return text__why(why, -EPROTO, "the process that measures was ended by signal %d (%s)",
				 WTERMSIG(status), strsignal(WTERMSIG(status)));
	if (status)
		return text__why(why, -EPROTO, "the process that measures could not be set up");
	return 0;
}

int calibrate_process__run(const struct caller *caller, int device,
			   void (*on_record)(void *ctx, const struct calibrate_record *r), void *ctx,
			   char **why)
{
	struct calibrate_record r;
	pid_t parent = getpid(), pid;
	int fds[2], got, status;

	_Static_assert(sizeof(r) <= 512, "written in one piece: less than PIPE_BUF");
	*why = NULL;
	if (pipe2(fds, O_CLOEXEC))
		return -errno;
	pid = fork();
	if (pid < 0) {
		got = -errno;
		close(fds[0]);
		close(fds[1]);
		return got;
	}
	if (!pid)
		run(caller, device, fds[1], parent);
	close(fds[1]);
	while ((got = next(fds[0], &r, why)) > 0)
		on_record(ctx, &r);
	close(fds[0]);
	if (got < 0)
		kill(pid, SIGKILL);
	status = reap(pid);
	return got < 0 ? got : check_end(status, why);
}
