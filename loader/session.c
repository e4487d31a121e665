// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "loader/session.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "loader/base/clock.h"
#include "loader/base/fault.h"
#include "loader/base/log.h"
#include "loader/exit_codes.h"
#include "loader/progress.h"
#include "loader/session_state.h"

int session__fail(int err, char *why, const char *doing)
{
	if (why)
		log_error("%s", why);
	else
		log_error("%s: %s", doing, strerror(-err));
	free(why);
	return err == -EPERM || err == -EACCES || err == -EOPNOTSUPP ? EXIT_NO_PERMISSION :
	       EXIT_OWN_FAILURE;
}

bool session__wants_launches(const struct options *o)
{
	return !o->no_gpu;
}

/* --- events ------------------------------------------------------------------------------- */

/*
 * The terminal sends Ctrl-C to the command, too: the first is its own business. So is the first after the
 * time of -d, and any when nothing but its end is waited for: whoever gave a time need not stop us.
 */
static bool is_commands(const struct session *s, uint32_t signal)
{
	return s->command && signal == SIGINT && (s->signals == 1 || (s->time_over && s->waiting));
}

/* A key that seems to do nothing makes people press it harder. */
static void say_whose(struct session *s, bool key)
{
	if (!s->waiting || ++s->unheard != 2)
		return;
	if (key)
		log__key_shown();
	log_info("waiting for the end of the command, process %d, whose own Ctrl-C is; kill %d ends the "
		 "waiting", (int)command__pid(s->command), (int)getpid());
}

/* What becomes of the result, and of the command. */
static void say_aborted(struct session *s)
{
	bool runs = s->command && !command__ended(s->command, &s->status);

	if (s->waiting && runs)
		log_info("the command, process %d, goes on; its end is not waited for any longer",
			 (int)command__pid(s->command));
	else if (!s->waiting && runs)
		log_warn("the result is given up, and the command, process %d, goes on",
			 (int)command__pid(s->command));
	else if (!s->waiting)
		log_warn("the result is given up");
}

static void on_abort(struct session *s)
{
	if (!s->aborted)
		say_aborted(s);
	s->aborted = true;
}

void session__on_signal(struct session *s)
{
	struct signalfd_siginfo info;
	bool key;

	if (read(s->signal_fd, &info, sizeof(info)) != sizeof(info))
		return;
	if (info.ssi_signo == SIGUSR1) {
		s->write_now = true;
		return;
	}
	s->signals++;
	/* A terminal that goes away tells the first process of its session alone: without us the command. */
	if (s->command && info.ssi_signo == SIGHUP && info.ssi_code == SI_KERNEL && getsid(0) == getpid())
		command__signal(s->command, SIGHUP);
	key = info.ssi_signo == SIGINT && info.ssi_code == SI_KERNEL;
	if (is_commands(s, info.ssi_signo)) {
		say_whose(s, key);
		return;
	}
	if (key)
		log__key_shown();
	if (s->stop)
		on_abort(s);
	s->stop = true;
}

void session__read_mappings(struct session *s)
{
	s->mappings_lost += sampling__read(s->sampling, session__on_mapping, s, &s->mappings_missed);
}

void session__catch_up(void *ctx)
{
	struct session *s = ctx;

	if (s->sampling)
		session__read_mappings(s);
}

static void on_second(struct session *s)
{
	unsigned int came = sampling__rescan(s->sampling);

	s->cpus_came += came;
	/* Not more often: a flood of mappings must not make us read all there are over and over. */
	if (came || s->mappings_missed)
		processes__doubt(s->processes);
	s->mappings_missed = false;
	processes__sweep(s->processes);
	session__look_for_targets(s);
	thread_names__look_again(s->threads, s->processes);
	progress__show(s->options, s->collect, s->probes, clock__now_ns() - s->started);
}

static void on_tick(struct session *s)
{
	uint64_t n;

	if (read(s->tick_fd, &n, sizeof(n)) != sizeof(n))
		return;
	FAULT_POINT("tick");
	python__tick(s->python);
	if (s->python_frees)
		python_frees__tick(s->python_frees);
	if (s->launches)
		launches__poll(s->launches);
	if (s->attach)
		attach__step(s->attach);
	if (++s->ticks % TICKS_PER_SECOND == 0)
		on_second(s);
}

static void on_event(struct session *s, uint64_t what)
{
	switch (what) {
	case EVENT_RING:
	case EVENT_MAPPED:
		break;		/* read after every wait */
	case EVENT_SIGNAL:
		session__on_signal(s);
		break;
	case EVENT_TICK:
		on_tick(s);
		break;
	case EVENT_COMMAND:
		if (command__ended(s->command, &s->status))
			s->command_ended = s->stop = true;
		break;
	case EVENT_END:
		s->stop = s->time_over = true;
		s->signals = 0;
		break;
	case EVENT_ATTACH:
		if (s->attach)
			attach__step(s->attach);
		break;
	}
}

int session__wait(struct session *s)
{
	struct epoll_event events[16];
	int n, i;

	n = epoll_wait(s->epoll_fd, events, 16, -1);
	if (n < 0)
		return errno == EINTR ? 0 : -errno;
	FAULT_POINT("woken");
	/*
	 * What was mapped is known before the stacks that met it are looked at; the mappings are read after
	 * the ring, in which an exec says that they are another program's.
	 */
	session__read_mappings(s);
	collect__read(s->collect);
	for (i = 0; i < n; i++)
		on_event(s, events[i].data.u64);
	collect__refresh(s->collect);
	return 0;
}

static void write_now(struct session *s)
{
	uint64_t started = clock__now_ns(), ended;

	s->write_now = false;
	if (result__is_file(s->result))
		session__write(s, false);
	else
		log_warn_some("SIGUSR1 writes files only; give one with -o");
	/* However many of these signals come, half of the time is the capture's. */
	ended = clock__now_ns();
	s->write_after = ended + (ended - started);
}

static int capture(struct session *s)
{
	int err = 0;

	while (!s->stop && !err) {
		err = session__wait(s);
		if (s->write_now && clock__now_ns() >= s->write_after)
			write_now(s);
		if (s->options->command || s->options->all || processes__alive(s->processes))
			continue;
		s->ended_early = s->options->duration_ns && !s->stop;
		s->stop = true;
	}
	return err;
}

/* --- the end ------------------------------------------------------------------------------ */

static void close_fd(int fd)
{
	if (fd >= 0)
		close(fd);
}

/* A command that outlives the capture: its status is worth waiting for, our probes are gone. */
static void await_command(struct session *s)
{
	struct pollfd fds[] = {
		{ .fd = command__pidfd(s->command), .events = POLLIN },
		{ .fd = s->signal_fd, .events = POLLIN },
	};

	s->waiting = true;
	s->command_ended = command__ended(s->command, &s->status);
	if (!s->command_ended && !s->aborted)
		log_info("the command goes on; waiting for its end");
	while (!s->command_ended && !s->aborted) {
		if (poll(fds, 2, -1) < 0 && errno != EINTR)
			return;
		s->command_ended = command__ended(s->command, &s->status);
		session__on_signal(s);
	}
}

static void unload(struct session *s)
{
	epoll_ctl(s->epoll_fd, EPOLL_CTL_DEL, probes__ring_fd(s->probes), NULL);
	collect__free(s->collect);
	s->collect = NULL;
	python_frees__free(s->python_frees);
	s->python_frees = NULL;
	probes__free(s->probes);
	s->probes = NULL;
}

static void teardown(struct session *s)
{
	sampling__free(s->sampling);
	python_frees__free(s->python_frees);
	command__free(s->command);
	attach__free(s->attach);
	collect__free(s->collect);
	launches__free(s->launches);
	calibrations__free(&s->calibrations);
	processes__free(s->processes);
	probes__free(s->probes);
	sites__free(s->sites);
	library__free(s->library);
	tally__free(s->tally);
	thread_names__free(s->threads);
	stacks__free(s->stacks);
	jit__free(s->jit);
	python_names__free(s->python_names);
	python__free(s->python);
	debuginfod__free(s->debuginfod);
	files__free(s->files);
	recent__free(s->recent);
	result__free(s->result);
	variables__free(&s->variables);
	caller__free(&s->caller);
	close_fd(s->epoll_fd);
	close_fd(s->signal_fd);
	close_fd(s->tick_fd);
	close_fd(s->end_fd);
	close_fd(s->cgroup_fd);
}

/* Stopped while those that run already were entered. */
static int give_up(struct session *s)
{
	s->stopped = clock__now_ns();
	session__drain(s);
	log_error("stopped before anything was recorded");
	return s->aborted ? EXIT_ABORTED : EXIT_EMPTY;
}

static int run(struct session *s)
{
	char *why = NULL;
	int code, err;

	err = caller__get(&s->caller);
	if (err)
		return session__fail(err, NULL, CALLER_FAILS);
	err = variables__new(&s->caller, &s->variables);
	if (err)
		return session__fail(err, NULL, "the command's environment");
	code = session__setup(s);
	if (code)
		return code;
	err = result__new(s->options, &s->caller, s->signal_fd,
			  s->command ? command__pid(s->command) : 0, &s->result, &why);
	if (err) {
		session__fail(err, why, "the output");
		return result__refusal(s->options, err);
	}
	FAULT_POINT("output-ready");
	code = session__enter_targets(s);
	if (!code && s->stop && !s->command)
		return give_up(s);
	if (!code)
		code = session__start(s);
	if (code)
		return code;
	err = capture(s);
	FAULT_POINT("captured");
	s->stopped = clock__now_ns();
	s->cpu_stopped = clock__ns(CLOCK_PROCESS_CPUTIME_ID);
	if (err)
		log_error("waiting for events: %s", strerror(-err));
	session__drain(s);
	FAULT_POINT("drained");
	/* Whatever comes now ends the writing, so it must not be a request to write. */
	session__watch_signals(s, false);
	code = s->aborted ? EXIT_ABORTED : session__write(s, true);
	/* Writing ends when there is a signal to be read. */
	if (code == EXIT_ABORTED)
		on_abort(s);
	if (s->ended_early) {
		log_warn("the target ended before the time that -d gives was over");
		code = code == EXIT_COMPLETE ? EXIT_PARTIAL : code;
	}
	FAULT_POINT("written");
	unload(s);
	FAULT_POINT("unloaded");
	if (s->command)
		await_command(s);
	return session__exit_code(s, code);
}

int session__run(const struct options *options)
{
	struct session s = {
		.options = options,
		.epoll_fd = -1, .signal_fd = -1, .tick_fd = -1, .end_fd = -1,
		.cgroup_fd = -1,
	};
	int code = run(&s);

	log__progress_end();
	teardown(&s);
	return code;
}
