// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Setting a session up: everything that can fail does so before a command runs. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "loader/base/clock.h"
#include "loader/base/fault.h"
#include "loader/base/log.h"
#include "loader/base/text.h"
#include "loader/calibrate/store.h"
#include "loader/cgroup.h"
#include "loader/exit_codes.h"
#include "loader/precheck.h"
#include "loader/session_state.h"

#define MIN_FILES 64

/*
 * The library goes to all targets that somebody named. What a command's environment certainly forbids is
 * refused before anything runs, if GPU time is wanted; what is only likely is said.
 */
static int decide_inject(struct session *s, char **why)
{
	const struct options *o = s->options;
	bool quietly;
	int err;

	s->inject = !o->no_gpu && !o->no_inject && (!o->all || o->inject);
	if (!o->command || o->no_gpu)
		return 0;
	err = precheck__environment(&s->variables, s->inject, why);
	if (precheck__refuses(o, err))
		return -EOPNOTSUPP;
	if (!err && s->inject)
		err = precheck__driver(&s->variables, &s->caller, why);
	if (!err || err == -ENOMEM)
		return err;
	/* A program may bring a driver of its own: whether one is loaded, and which, shows later. */
	s->inject = err == -ENOENT || options__needs_library(o);
	/* Whoever asks for no GPU time may well have no driver at all. */
	quietly = o->metric == METRIC_CPU || (err == -ENOENT && o->metric == METRIC_LAUNCHES);
	log__print(quietly ? LOG_DEBUG : LOG_WARN, "%s",
		   *why ? *why : "the timing library is not loaded");
	free(*why);
	*why = NULL;
	return 0;
}

int session__watch(struct session *s, int fd, uint64_t what)
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

int session__watch_signals(struct session *s, bool requests)
{
	sigset_t set;
	int fd;

	sigemptyset(&set);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGTERM);
	if (!s->inherited.hangup_ignored)
		sigaddset(&set, SIGHUP);
	if (requests)
		sigaddset(&set, SIGUSR1);
	sigprocmask(SIG_BLOCK, &set, NULL);
	fd = signalfd(s->signal_fd, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	if (fd < 0)
		return -errno;
	s->signal_fd = fd;
	return 0;
}

static int setup_events(struct session *s)
{
	int err;

	s->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	if (s->epoll_fd < 0)
		return -errno;
	inherited__ignore(s->options->command);
	err = session__watch_signals(s, true);
	if (err)
		return err;
	s->tick_fd = timer(TICK_MS * 1000000ull, TICK_MS * 1000000ull);
	if (s->tick_fd < 0)
		return -errno;
	err = session__watch(s, s->signal_fd, EVENT_SIGNAL);
	return err ? err : session__watch(s, s->tick_fd, EVENT_TICK);
}

/*
 * Every mapped file and every process takes a descriptor. Where there are too few even for the BPF
 * side, libbpf ends with errors that say something else.
 */
static int raise_limit(const struct inherited *i, char **why)
{
	struct rlimit r = i->files;

	r.rlim_cur = r.rlim_max;
	setrlimit(RLIMIT_NOFILE, &r);
	if (r.rlim_max >= MIN_FILES)
		return 0;
	return text__why(why, -EMFILE, "only %llu descriptors are allowed, but it takes %d; allow more with "
			 "ulimit -n", (unsigned long long)r.rlim_max, MIN_FILES);
}

/* What was measured on this machine; where that can't be believed the built-in constants hold. */
static void read_calibrations(struct session *s)
{
	char *why = NULL;

	if (calibration_store__read(CALIBRATION_STORE_FILE, &s->calibrations, &why))
		log_warn("%s; times are shortened by the constants that are built in",
			 why ? why : "the calibration can't be read");
	free(why);
}

static int setup_launches(struct session *s)
{
	const struct launches_config config = {
		.tally = s->tally,
		.calibrations = &s->calibrations,
		.site = s->sites ? SITE_NOP1 : SITE_NONE,
		.every = s->options->launches_every,
		.budget_ppm = s->options->overhead_ppm,
		.refused = session__on_refused,
		.unreached = session__on_unreached,
		.armed = session__on_armed,
		.taken = session__on_taken,
		.ctx = s,
	};

	if (s->inject)
		read_calibrations(s);
	s->launches = launches__new(&config);
	if (!s->launches)
		return -ENOMEM;
	launches__only(s->launches, UINT64_MAX, UINT64_MAX);
	return 0;
}

static int setup_store(struct session *s)
{
	const struct probes_maps *maps = probes__maps(s->probes);
	struct processes_maps shared = {
		.all = s->options->all,
		.procs_fd = maps->procs_fd,
		.slots = maps->slots,
		.mappings = maps->mappings,
	};
	struct collect_config config = {
		.probes = s->probes,
		.all = s->options->all,
		.mapped = session__on_process_mapped,
		.catch_up = session__catch_up,
		.ctx = s,
	};

	config.files = s->files = files__new();
	config.jit = s->jit = s->files ? jit__new(s->files) : NULL;
	config.stacks = s->stacks = stacks__new();
	config.recent = s->recent = recent__new();
	config.tally = s->tally = tally__new();
	config.threads = s->threads = thread_names__new();
	if (!s->files || !s->recent || !s->jit || !s->stacks || !s->tally || !s->threads)
		return -ENOMEM;
	config.processes = s->processes = processes__new(&shared, s->files);
	if (!s->processes)
		return -ENOMEM;
	config.python = s->python = python__new(s->files, s->processes, maps->pythons);
	if (!s->python)
		return -ENOMEM;
	config.names = s->python_names = python_names__new(s->python, s->processes);
	if (!s->python_names)
		return -ENOMEM;
	if (probes__frees_program(s->probes) >= 0) {
		const struct python_frees_config frees = {
			.program_fd = probes__frees_program(s->probes),
			.freed = maps->freed,
			.files = s->files,
			.processes = s->processes,
			.python = s->python,
		};

		config.frees = s->python_frees = python_frees__new(&frees);
		if (!s->python_frees)
			return -ENOMEM;
	}
	if (session__wants_launches(s->options) && setup_launches(s))
		return -ENOMEM;
	config.launches = s->launches;
	return collect__new(&config, &s->collect);
}

static int setup_sites(struct session *s)
{
	int fd = open(library__path(s->library), O_RDONLY | O_CLOEXEC), err;

	if (fd < 0)
		return -errno;
	s->sites = sites__new(s->probes);
	err = s->sites ? sites__attach(s->sites, fd, NULL) : -ENOMEM;
	close(fd);
	return err;
}

static int setup_probes(struct session *s, char **why)
{
	struct probes_config config = {
		.all = s->options->all,
		.cpu = !s->options->no_cpu,
		.launches = session__wants_launches(s->options),
		.cgroup_fd = s->cgroup_fd,
	};
	int err = decide_inject(s, why);

	FAULT_POINT("driver-checked");
	config.library = s->inject;
	/* A command without the library launches before probes could follow it. */
	config.one_process = s->inject || !(s->options->all || s->options->command);
	if (!err)
		err = probes__new(&config, &s->probes, why);
	if (err || !s->inject)
		return err;
	err = library__new(&s->library, why);
	return err ? err : setup_sites(s);
}

static int setup_sampling(struct session *s, char **why)
{
	struct sampling_config config = {
		.program_fd = s->options->no_cpu ? -1 : probes__sample_program(s->probes),
		.frequency = s->options->frequency,
		.epoll_fd = s->epoll_fd,
		.epoll_data = EVENT_MAPPED,
		.lazy = s->options->all,
	};

	return sampling__new(&config, &s->sampling, why);
}

/* From here on nothing is missed; and who pipes into a reader is told how not to lose it. */
static void say_recording(const struct options *o)
{
	struct stat st;

	if (o->duration_ns)
		log_info("recording");
	else
		log_info("recording; Ctrl-C stops and writes");
	if (!o->duration_ns && !o->output && !fstat(STDOUT_FILENO, &st) && S_ISFIFO(st.st_mode))
		log_warn("Ctrl-C also ends the reader of this pipe; better give the time with -d");
}

int session__start(struct session *s)
{
	int err;

	s->started = clock__now_ns();
	s->cpu_started = clock__ns(CLOCK_PROCESS_CPUTIME_ID);
	collect__begin(s->collect, s->started);
	if (s->launches)
		launches__only(s->launches, s->started, UINT64_MAX);
	if (!s->command)
		say_recording(s->options);
	if (s->options->duration_ns) {
		s->end_fd = timer(s->options->duration_ns, 0);
		if (s->end_fd < 0 || session__watch(s, s->end_fd, EVENT_END))
			return session__fail(-errno, NULL, "setting the duration");
	}
	if (!s->command)
		return 0;
	err = command__release(s->command);
	FAULT_POINT("command-released");
	if (!err)
		return 0;
	s->command_ended = true;
	log_error("can't run %s: %s", s->options->command[0], strerror(-err));
	return err == -ENOENT ? EXIT_NOT_FOUND : EXIT_NOT_EXECUTABLE;
}

static int setup_cgroup(struct session *s)
{
	char *why = NULL;
	int code;

	if (!s->options->cgroup)
		return 0;
	s->cgroup_fd = cgroup__open(s->options->cgroup, &why);
	if (s->cgroup_fd >= 0)
		return 0;
	code = session__fail(s->cgroup_fd, why, "the control group");
	return s->cgroup_fd == -ENOENT ? EXIT_EMPTY : s->cgroup_fd == -EINVAL ? EXIT_USAGE : code;
}

/* 0 or an exit code. */
int session__setup(struct session *s)
{
	char *why = NULL;
	int code, err;

	err = inherited__save(&s->inherited);
	if (err)
		return session__fail(err, NULL, "setting up");
	err = raise_limit(&s->inherited, &why);
	if (err)
		return session__fail(err, why, "setting up");
	err = setup_events(s);
	FAULT_POINT("events-set-up");
	if (err)
		return session__fail(err, NULL, "setting up");
	code = setup_cgroup(s);
	if (code)
		return code;
	/* As long as there is little that its process would inherit. */
	if (s->options->debuginfod)
		err = debuginfod__new(&s->caller, &s->variables, &s->debuginfod, &why);
	if (err)
		return session__fail(err, why, "setting up debuginfod");
	err = setup_probes(s, &why);
	if (err)
		return session__fail(err, why, "setting up the probes");
	err = setup_store(s);
	FAULT_POINT("store-set-up");
	if (!err)
		err = session__watch(s, probes__ring_fd(s->probes), EVENT_RING);
	if (err)
		return session__fail(err, NULL, "setting up");
	err = setup_sampling(s, &why);
	if (err)
		return session__fail(err, why, "sampling");
	err = session__setup_targets(s);
	FAULT_POINT("targets-set-up");
	if (err == -ESRCH)
		return EXIT_EMPTY;
	return err ? session__fail(err, NULL, "setting up the targets") : 0;
}
