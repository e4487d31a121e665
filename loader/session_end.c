// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The end of a capture: what is still on its way, names, the result. */
#include <errno.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>

#include "loader/base/clock.h"
#include "loader/base/fault.h"
#include "loader/base/log.h"
#include "loader/driver.h"
#include "loader/exit_codes.h"
#include "loader/facts.h"
#include "loader/report.h"
#include "loader/session_state.h"

#define RING_RECORDS (1 << 20)	/* more than the ring can hold */
#define STOP_MS 500		/* what the libraries get to restore their slots, at most */

/* Launches that driver probes see go on meanwhile: what comes later is none of this capture's. */
static void read_all(struct session *s)
{
	int left = RING_RECORDS, n;

	do {
		n = collect__read(s->collect);
		left -= n;
	} while (n > 0 && left > 0);
}

/* The libraries restore their slots: bounded, since a target may be stopped. */
static void await_libraries(struct session *s)
{
	const struct timespec pause = { .tv_nsec = 1000000 };
	int ms = STOP_MS;

	while (!launches__stopped(s->launches) && ms--) {
		collect__read(s->collect);
		launches__poll(s->launches);
		nanosleep(&pause, NULL);
	}
}

/*
 * Those that are on their way into a process give up, which may take them a second. What the libraries
 * elsewhere have recorded is read meanwhile: they don't keep it much longer.
 */
static void await_tracers(struct session *s, struct attach *attach)
{
	const struct timespec pause = { .tv_nsec = 1000000 };

	while (!attach__give_up(attach) && !s->aborted) {
		collect__read(s->collect);
		if (s->launches)
			launches__poll(s->launches);
		session__on_signal(s);
		nanosleep(&pause, NULL);
	}
}

static double ms_since(uint64_t ns)
{
	return (double)(clock__now_ns() - ns) / 1e6;
}

/*
 * First whatever produces is stopped, the libraries and samples; only then is it known that the rings
 * hold all there will ever be. No probe is left before names are looked up: that may take long. Those that
 * count frees go meanwhile: the kernel takes some 80 ms for each, one after the other.
 */
void session__drain(struct session *s)
{
	struct attach *attach = s->attach;
	double sampled, passive;

	session__read_mappings(s);
	collect__refresh(s->collect);
	FAULT_POINT("stopping");
	if (s->launches) {
		launches__only(s->launches, s->started, s->stopped);
		launches__stop(s->launches);
	}
	if (attach)
		attach__counts(attach, &s->reached);
	s->attach = NULL;	/* nobody is let in any more */
	if (attach)
		await_tracers(s, attach);
	attach__free(attach);
	sampling__free(s->sampling);
	s->sampling = NULL;
	FAULT_POINT("sampling-ended");
	sampled = ms_since(s->stopped);
	if (s->launches)
		await_libraries(s);
	passive = ms_since(s->stopped);
	read_all(s);
	FAULT_POINT("ring-drained");
	if (s->launches)
		launches__finish(s->launches);
	if (s->python_frees)
		python_frees__stop(s->python_frees);
	probes__detach(s->probes);
	log_debug("detached: sampling ended after %.1f ms, slots restored after %.1f, probes gone after %.1f",
		  sampled, passive, ms_since(s->stopped));
	setpriority(PRIO_PROCESS, 0, s->nice);
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
	for (i = FILES_VDSO + 1; i <= nr && !err; i++) {
		const char *path;
		int root = files__place(s->files, i, &path);

		err = symbols__add_file(symbols, i, files__fd(s->files, i), files__path(s->files, i));
		if (!err)
			err = symbols__set_place(symbols, i, root, path);
	}
	return err;
}

static bool driver_seen(const struct session *s)
{
	uint32_t i;

	for (i = 1; i <= files__count(s->files); i++)
		if (driver__is_named(files__path(s->files, i)))
			return true;
	return false;
}

static bool all_left_alone(const struct session *s)
{
	struct attach_counts counts = s->reached;

	if (s->attach)
		attach__counts(s->attach, &counts);
	return counts.kept_out + counts.taken && counts.kept_out + counts.taken >= counts.decided;
}

/*
 * Making a result for SIGUSR1 must not look like death to the libraries, and a second signal is to
 * end this, too.
 */
static bool pulse(void *ctx)
{
	struct session *s = ctx;

	if (s->launches)
		launches__heartbeat(s->launches);
	session__on_signal(s);
	if (s->stop && !s->command)
		log__progress("looking up names");
	return s->aborted;
}

/*
 * What may take many seconds waits for the end: while a result is made in the middle of a capture,
 * nobody reads what is recorded.
 */
static int use_slow_sources(struct session *s, struct symbols *symbols)
{
	if (s->debuginfod) {
		debuginfod__set_pulse(s->debuginfod, pulse, s);
		symbols__set_fetch(symbols, debuginfod__fetch, s->debuginfod);
	}
	return s->options->no_inlines ? 0 : symbols__use_lines(symbols, pulse, s);
}

static int build_profile(struct session *s, struct symbols *symbols, struct profile *p, bool last)
{
	struct report_input in = {
		.tally = s->tally,
		.stacks = s->stacks,
		.processes = s->processes,
		.files = s->files,
		.launches = s->launches,
		.jit = s->jit,
		.symbols = symbols,
		.python = s->python,
		.python_names = s->python_names,
		.native_python = s->options->native_python,
		.sites = s->sites,
		.period_ns = 1000000000ull / s->options->frequency,
		.pulse = pulse,
		.ctx = s,
	};
	struct facts_input facts = {
		.probes = s->probes,
		.collect = s->collect,
		.launches = s->launches,
		.processes = s->processes,
		.files = s->files,
		.mappings_lost = s->mappings_lost,
		.cpus_came = s->cpus_came,
		.cpu = s->options->metric == METRIC_CPU,
		.own_cpu_ns = (s->stopped ? s->cpu_stopped : clock__ns(CLOCK_PROCESS_CPUTIME_ID)) -
			      s->cpu_started,
	};
	struct profile_run *run = profile__run(p);
	int err = last ? use_slow_sources(s, symbols) : 0;

	if (!err)
		err = add_files(s, symbols);
	if (!err)
		err = thread_names__add(s->threads, s->processes, p);
	if (!err)
		err = report__build(&in, p);
	if (!err)
		err = facts__add(&facts, p);
	run->duration_ns = (s->stopped ? s->stopped : clock__now_ns()) - s->started;
	run->driver_seen = driver_seen(s);
	run->all_left_alone = all_left_alone(s);
	run->frequency = s->options->no_cpu ? 0 : s->options->frequency;
	run->metrics = (s->options->no_cpu ? 0 : 1u << PROFILE_CPU_NS | 1u << PROFILE_CPU_SAMPLES) |
		       (session__wants_launches(s->options) ? 1u << PROFILE_LAUNCHES : 0) |
		       (s->library ? 1u << PROFILE_GPU_NS | 1u << PROFILE_BYTES | 1u << PROFILE_WAIT_NS : 0);
	return err;
}

/* Names, output, closing summary: an exit code. `last`: the capture is over. */
int session__write(struct session *s, bool last)
{
	struct symbols *symbols = symbols__new();
	struct profile *p = profile__new();
	int code = EXIT_OWN_FAILURE, err = -ENOMEM;

	if (symbols && p)
		err = build_profile(s, symbols, p, last);
	FAULT_POINT("result-made");
	if (err == -ECANCELED)
		code = EXIT_ABORTED;
	else if (err)
		log_error("making the result: %s", strerror(-err));
	else if (last)
		code = result__write(s->result, p);
	else
		result__write_now(s->result, p);
	profile__free(p);
	symbols__free(symbols);
	return code;
}

/* With a command its own status is ours, unless there is nothing to show for it. */
int session__exit_code(const struct session *s, int code)
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
