// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "loader/session.h"

#include <errno.h>
#include <linux/types.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/timerfd.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "loader/attach.h"
#include "loader/base/log.h"
#include "loader/collect.h"
#include "loader/command.h"
#include "loader/exit_codes.h"
#include "loader/facts.h"
#include "loader/library.h"
#include "loader/output/caller.h"
#include "loader/precheck.h"
#include "loader/probes.h"
#include "loader/report.h"
#include "loader/result.h"
#include "loader/sampling.h"

#define TICK_MS 20		/* channels are read this often */
#define TICKS_PER_SECOND (1000 / TICK_MS)
#define STOP_MS 500		/* what the libraries get to restore their slots */

enum { EVENT_RING, EVENT_MAPPED, EVENT_SIGNAL, EVENT_TICK, EVENT_COMMAND, EVENT_END };

struct session {
	const struct options *options;
	struct caller caller;
	struct result *result;
	struct probes *probes;
	struct files *files;
	struct processes *processes;
	struct stacks *stacks;
	struct tally *tally;
	struct launches *launches;
	struct library *library;
	struct attach *attach;
	struct collect *collect;
	struct sampling *sampling;
	struct command *command;
	int epoll_fd, signal_fd, tick_fd, end_fd;
	bool inject;		/* the command gets the timing library */
	unsigned int ticks;
	unsigned int signals;
	uint64_t started;
	uint64_t mappings_lost;
	bool stop;		/* the capture is over */
	bool write_now;		/* SIGUSR1: write what there is and go on */
	bool aborted;
	bool command_ended;
	int status;		/* of the command, wait(2) */
};

static uint64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000ull + (uint64_t)t.tv_nsec;
}

/* Prints `why`, or what the errno says, and turns it into an exit code. */
static int fail(int err, char *why, const char *doing)
{
	if (why)
		log_error("%s", why);
	else
		log_error("%s: %s", doing, strerror(-err));
	free(why);
	return err == -EPERM || err == -EACCES || err == -EOPNOTSUPP ? EXIT_NO_PERMISSION :
	       EXIT_OWN_FAILURE;
}

static bool wants_launches(const struct options *o)
{
	return !o->no_gpu;
}

/*
 * The library goes to a command, unless something stands in its way: then a capture of GPU time is
 * refused before anything runs, any other counts launches by probes.
 */
static int decide_inject(struct session *s, char **why)
{
	const struct options *o = s->options;
	int err;

	s->inject = o->command && !o->no_gpu && !o->no_inject;
	if (!s->inject)
		return 0;
	err = precheck__environment(why);
	if (!err)
		err = precheck__driver(why);
	if (!err)
		return 0;
	if (o->metric == METRIC_GPU)
		return -EOPNOTSUPP;
	s->inject = false;
	/* Whoever asks for CPU time may well have no driver at all. */
	log__print(o->metric == METRIC_CPU ? LOG_DEBUG : LOG_WARN, "%s",
		   *why ? *why : "the timing library is not loaded");
	free(*why);
	*why = NULL;
	return 0;
}

/* --- events ------------------------------------------------------------------------------- */

static void on_mapping(void *ctx, pid_t tgid, const char *path)
{
	struct session *s = ctx;

	(void)path;
	collect__mapped(s->collect, tgid);
}

static void on_process_mapped(void *ctx, struct process *p)
{
	struct session *s = ctx;

	if (s->attach)
		attach__process(s->attach, p);
}

static void on_refused(void *ctx, struct process *p, enum channel_reason reason, uint32_t detail)
{
	struct session *s = ctx;

	attach__refused(s->attach, p, reason, detail);
}

static void on_signal(struct session *s)
{
	struct signalfd_siginfo info;

	if (read(s->signal_fd, &info, sizeof(info)) != sizeof(info))
		return;
	if (info.ssi_signo == SIGUSR1) {
		s->write_now = true;
		return;
	}
	s->signals++;
	/* The terminal sends Ctrl-C to the command, too: the first is its own business. */
	if (s->command && !s->command_ended && !s->stop && info.ssi_signo == SIGINT &&
	    s->signals == 1)
		return;
	if (s->stop)
		s->aborted = true;
	s->stop = true;
}

static void on_tick(struct session *s)
{
	uint64_t n;

	if (read(s->tick_fd, &n, sizeof(n)) != sizeof(n))
		return;
	if (s->launches)
		launches__poll(s->launches);
	if (++s->ticks % TICKS_PER_SECOND)
		return;
	sampling__rescan(s->sampling);
	processes__sweep(s->processes);
}

static void on_event(struct session *s, uint64_t what)
{
	switch (what) {
	case EVENT_RING:
		break;		/* read after every wait */
	case EVENT_MAPPED:
		s->mappings_lost += sampling__read(s->sampling, on_mapping, s);
		collect__refresh(s->collect);
		break;
	case EVENT_SIGNAL:
		on_signal(s);
		break;
	case EVENT_TICK:
		on_tick(s);
		break;
	case EVENT_COMMAND:
		if (command__ended(s->command, &s->status))
			s->command_ended = s->stop = true;
		break;
	case EVENT_END:
		s->stop = true;
		break;
	}
}

static int wait_events(struct session *s)
{
	struct epoll_event events[16];
	int n, i;

	n = epoll_wait(s->epoll_fd, events, 16, -1);
	if (n < 0)
		return errno == EINTR ? 0 : -errno;
	/* Mappings first: stacks that come with the same wake-up may need them. */
	for (i = 0; i < n; i++)
		if (events[i].data.u64 == EVENT_MAPPED)
			on_event(s, EVENT_MAPPED);
	collect__read(s->collect);
	for (i = 0; i < n; i++)
		if (events[i].data.u64 != EVENT_MAPPED)
			on_event(s, events[i].data.u64);
	return 0;
}

static int finish(struct session *s);

static void write_now(struct session *s)
{
	s->write_now = false;
	if (result__is_file(s->result))
		finish(s);
	else
		log_warn("SIGUSR1 writes files only; give one with -o");
}

static int capture(struct session *s)
{
	int err = 0;

	while (!s->stop && !err) {
		err = wait_events(s);
		if (s->write_now)
			write_now(s);
		if (!s->options->command && !s->options->all && !processes__alive(s->processes))
			s->stop = true;
	}
	return err;
}

/* --- setting up --------------------------------------------------------------------------- */

static int watch(struct session *s, int fd, uint64_t what)
{
	struct epoll_event event = { .events = EPOLLIN, .data.u64 = what };

	return epoll_ctl(s->epoll_fd, EPOLL_CTL_ADD, fd, &event) ? -errno : 0;
}

static int timer(uint64_t first_ns, uint64_t every_ns)
{
	struct itimerspec t = {
		.it_value = { (time_t)(first_ns / 1000000000), (long)(first_ns % 1000000000) },
		.it_interval = { (time_t)(every_ns / 1000000000), (long)(every_ns % 1000000000) },
	};
	int fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);

	if (fd >= 0 && timerfd_settime(fd, 0, &t, NULL)) {
		close(fd);
		return -1;
	}
	return fd;
}

static int setup_events(struct session *s)
{
	sigset_t set;
	int err;

	s->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	if (s->epoll_fd < 0)
		return -errno;
	sigemptyset(&set);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGHUP);
	sigaddset(&set, SIGUSR1);
	sigprocmask(SIG_BLOCK, &set, NULL);
	signal(SIGPIPE, SIG_IGN);
	s->signal_fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	s->tick_fd = timer(TICK_MS * 1000000ull, TICK_MS * 1000000ull);
	if (s->signal_fd < 0 || s->tick_fd < 0)
		return -errno;
	err = watch(s, s->signal_fd, EVENT_SIGNAL);
	return err ? err : watch(s, s->tick_fd, EVENT_TICK);
}

/* Every mapped file and every process takes a descriptor. */
static void raise_limits(void)
{
	struct rlimit r;

	if (!getrlimit(RLIMIT_NOFILE, &r)) {
		r.rlim_cur = r.rlim_max;
		setrlimit(RLIMIT_NOFILE, &r);
	}
	r.rlim_cur = r.rlim_max = RLIM_INFINITY;
	setrlimit(RLIMIT_MEMLOCK, &r);	/* counts BPF maps before Linux 5.11 only */
}

static int setup_store(struct session *s)
{
	const struct probes_maps *maps = probes__maps(s->probes);
	struct processes_maps shared = {
		.procs_fd = maps->procs_fd,
		.slots = maps->slots,
		.mappings = maps->mappings,
	};
	struct collect_config config = {
		.probes = s->probes,
		.all = s->options->all,
		.mapped = on_process_mapped,
		.ctx = s,
	};

	config.files = s->files = files__new();
	config.stacks = s->stacks = stacks__new();
	config.tally = s->tally = tally__new();
	if (!s->files || !s->stacks || !s->tally)
		return -ENOMEM;
	config.processes = s->processes = processes__new(&shared, s->files);
	if (!s->processes)
		return -ENOMEM;
	if (wants_launches(s->options)) {
		struct launches_config launches = {
			.tally = s->tally,
			.site = s->library ? library__site(s->library) : SITE_NONE,
			.refused = on_refused,
			.ctx = s,
		};

		config.launches = s->launches = launches__new(&launches);
		if (!s->launches)
			return -ENOMEM;
	}
	return collect__new(&config, &s->collect);
}

static int setup_probes(struct session *s, char **why)
{
	struct probes_config config = {
		.all = s->options->all,
		.cpu = !s->options->no_cpu,
		.launches = wants_launches(s->options),
	};
	int err = decide_inject(s, why);

	if (!err)
		err = probes__new(&config, &s->probes, why);
	if (err || !s->inject)
		return err;
	err = library__new(&s->library, why);
	return err ? err : library__attach(s->library, s->probes);
}

static int setup_sampling(struct session *s, char **why)
{
	struct sampling_config config = {
		.program_fd = s->options->no_cpu ? -1 : probes__sample_program(s->probes),
		.frequency = s->options->frequency,
		.epoll_fd = s->epoll_fd,
		.epoll_data = EVENT_MAPPED,
	};

	return sampling__new(&config, &s->sampling, why);
}

static int setup_command(struct session *s)
{
	char injection[300];
	const char *set[] = { NULL, NULL };
	struct command_request request = {
		.argv = s->options->command,
		.set = set,
		.caller = &s->caller,
	};
	struct process *child;
	int err;

	if (s->library) {
		snprintf(injection, sizeof(injection), "CUDA_INJECTION64_PATH=%s",
			 library__path(s->library));
		set[0] = injection;
	}
	err = command__new(&request, &s->command);
	if (err)
		return err;
	child = processes__get(s->processes, command__pid(s->command), true);
	if (!child)
		return -ENOMEM;
	child->ours = true;
	return watch(s, command__pidfd(s->command), EVENT_COMMAND);
}

static int setup_pids(struct session *s)
{
	size_t i;

	for (i = 0; i < s->options->nr_pids; i++) {
		pid_t pid = s->options->pids[i];
		struct process *p;

		if (kill(pid, 0) && errno == ESRCH) {
			log_error("there is no process %d; ps -e lists those that run", (int)pid);
			return -ESRCH;
		}
		p = processes__get(s->processes, pid, true);
		if (!p)
			return -ENOMEM;
		on_process_mapped(s, p);
	}
	return 0;
}

static int setup_targets(struct session *s)
{
	struct attach_config config = {
		.probes = s->probes,
		.files = s->files,
		.options = s->options,
		.library = s->inject,
	};
	int err = 0;

	if (wants_launches(s->options)) {
		s->attach = attach__new(&config);
		if (!s->attach)
			return -ENOMEM;
	}
	if (s->options->command)
		err = setup_command(s);
	if (!err)
		err = setup_pids(s);
	if (!err && s->attach)
		err = attach__before(s->attach);
	return err;
}

static int start(struct session *s)
{
	int err;

	s->started = now_ns();
	if (s->options->duration_ns) {
		s->end_fd = timer(s->options->duration_ns, 0);
		if (s->end_fd < 0 || watch(s, s->end_fd, EVENT_END))
			return fail(-errno, NULL, "setting the duration");
	}
	if (!s->command)
		return 0;
	err = command__release(s->command);
	if (!err)
		return 0;
	s->command_ended = true;
	log_error("can't run %s: %s", s->options->command[0], strerror(-err));
	return err == -ENOENT ? EXIT_NOT_FOUND : EXIT_NOT_EXECUTABLE;
}

/* 0 or an exit code. */
static int setup(struct session *s)
{
	char *why = NULL;
	int err;

	raise_limits();
	err = setup_events(s);
	if (err)
		return fail(err, NULL, "setting up");
	err = setup_probes(s, &why);
	if (err)
		return fail(err, why, "setting up the probes");
	err = setup_store(s);
	if (!err)
		err = watch(s, probes__ring_fd(s->probes), EVENT_RING);
	if (err)
		return fail(err, NULL, "setting up");
	err = setup_sampling(s, &why);
	if (err)
		return fail(err, why, "sampling");
	err = setup_targets(s);
	if (err == -ESRCH)
		return EXIT_EMPTY;
	return err ? fail(err, NULL, "setting up the targets") : 0;
}

/* --- the end ------------------------------------------------------------------------------ */

static void drain(struct session *s)
{
	s->mappings_lost += sampling__read(s->sampling, on_mapping, s);
	collect__refresh(s->collect);
	while (collect__read(s->collect) > 0)
		;
	if (s->launches)
		launches__stop(s->launches, STOP_MS);
	while (collect__read(s->collect) > 0)
		;
}

static int add_files(const struct session *s, struct symbols *symbols)
{
	uint32_t i, nr = files__count(s->files);
	const void *image;
	size_t size;
	int err = 0;

	image = files__vdso(s->files, &size);
	if (image && size)
		err = symbols__add_image(symbols, FILES_VDSO, image, size, "[vdso]");
	for (i = FILES_VDSO + 1; i <= nr && !err; i++)
		err = symbols__add_file(symbols, i, files__fd(s->files, i), files__path(s->files, i));
	return err;
}

static uint32_t library_file(const struct session *s)
{
	uint32_t i;

	for (i = 1; s->library && i <= files__count(s->files); i++)
		if (!strcmp(files__path(s->files, i), library__path(s->library)))
			return i;
	return 0;
}

static int build_profile(struct session *s, struct symbols *symbols, struct profile *p)
{
	struct report_input in = {
		.tally = s->tally,
		.stacks = s->stacks,
		.processes = s->processes,
		.launches = s->launches,
		.symbols = symbols,
		.library_file = library_file(s),
		.period_ns = 1000000000ull / s->options->frequency,
	};
	struct facts_input facts = {
		.probes = s->probes,
		.collect = s->collect,
		.launches = s->launches,
		.mappings_lost = s->mappings_lost,
	};
	struct profile_run *run = profile__run(p);
	int err = add_files(s, symbols);

	if (!err)
		err = report__build(&in, p);
	if (!err)
		err = facts__add(&facts, p);
	run->duration_ns = now_ns() - s->started;
	run->frequency = s->options->no_cpu ? 0 : s->options->frequency;
	run->metrics = (s->options->no_cpu ? 0 : 1u << PROFILE_CPU_NS | 1u << PROFILE_CPU_SAMPLES) |
		       (wants_launches(s->options) ? 1u << PROFILE_LAUNCHES : 0) |
		       (s->library ? 1u << PROFILE_GPU_NS : 0);
	return err;
}

/* Names, output, closing summary: an exit code. */
static int finish(struct session *s)
{
	struct symbols *symbols = symbols__new();
	struct profile *p = profile__new();
	int code = EXIT_OWN_FAILURE, err = -ENOMEM;

	if (symbols && p)
		err = build_profile(s, symbols, p);
	if (err)
		log_error("making the result: %s", strerror(-err));
	else
		code = result__write(s->result, p);
	profile__free(p);
	symbols__free(symbols);
	return code;
}

/* With a command its own status is ours, unless there is nothing to show for it. */
static int exit_code(struct session *s, int code)
{
	if (s->aborted)
		return EXIT_ABORTED;
	if (!s->command || code >= EXIT_USAGE)
		return code;
	if (!s->command_ended)
		return code;
	if (WIFSIGNALED(s->status))
		return EXIT_SIGNAL + WTERMSIG(s->status);
	if (WEXITSTATUS(s->status))
		return WEXITSTATUS(s->status);
	return code == EXIT_EMPTY ? EXIT_EMPTY : EXIT_COMPLETE;
}

static void close_fd(int fd)
{
	if (fd >= 0)
		close(fd);
}

/* A command that outlives the capture: its status is worth waiting for, our probes are gone. */
static void await_command(struct session *s)
{
	struct epoll_event event;

	while (!s->command_ended && !s->aborted) {
		if (epoll_wait(s->epoll_fd, &event, 1, -1) < 0 && errno != EINTR)
			return;
		if (event.data.u64 == EVENT_COMMAND)
			s->command_ended = command__ended(s->command, &s->status);
		else if (event.data.u64 == EVENT_SIGNAL)
			on_signal(s);
		else
			epoll_ctl(s->epoll_fd, EPOLL_CTL_DEL, s->tick_fd, NULL);
	}
}

static void detach(struct session *s)
{
	/* Producers first, then what they produce into. */
	sampling__free(s->sampling);
	s->sampling = NULL;
	epoll_ctl(s->epoll_fd, EPOLL_CTL_DEL, probes__ring_fd(s->probes), NULL);
	collect__free(s->collect);
	s->collect = NULL;
	probes__free(s->probes);
	s->probes = NULL;
}

static void teardown(struct session *s)
{
	sampling__free(s->sampling);
	command__free(s->command);
	attach__free(s->attach);
	collect__free(s->collect);
	launches__free(s->launches);
	processes__free(s->processes);
	probes__free(s->probes);
	library__free(s->library);
	tally__free(s->tally);
	stacks__free(s->stacks);
	files__free(s->files);
	result__free(s->result);
	caller__free(&s->caller);
	close_fd(s->epoll_fd);
	close_fd(s->signal_fd);
	close_fd(s->tick_fd);
	close_fd(s->end_fd);
}

static int run(struct session *s)
{
	char *why = NULL;
	int code, err;

	err = caller__get(&s->caller);
	if (err)
		return fail(err, NULL, "finding out who calls (SUDO_UID, SUDO_GID)");
	code = setup(s);
	if (code)
		return code;
	err = result__new(s->options, &s->caller, s->signal_fd,
			  s->command ? command__pid(s->command) : 0, &s->result, &why);
	if (err)
		return fail(err, why, "the output");
	code = start(s);
	if (code)
		return code;
	err = capture(s);
	if (err)
		log_error("waiting for events: %s", strerror(-err));
	drain(s);
	code = s->aborted ? EXIT_ABORTED : finish(s);
	detach(s);
	if (s->command)
		await_command(s);
	return exit_code(s, code);
}

int session__run(const struct options *options)
{
	struct session s = {
		.options = options,
		.epoll_fd = -1, .signal_fd = -1, .tick_fd = -1, .end_fd = -1,
	};
	int code = run(&s);

	teardown(&s);
	return code;
}
