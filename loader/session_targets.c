// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Who is recorded: the command, processes that run, their children; and how the library gets there. */
#include <errno.h>
#include <sys/resource.h>
#include <unistd.h>

#include "loader/base/clock.h"
#include "loader/base/fault.h"
#include "loader/base/log.h"
#include "loader/base/text.h"
#include "loader/cgroup.h"
#include "loader/driver.h"
#include "loader/exit_codes.h"
#include "loader/launcher.h"
#include "loader/maps.h"
#include "loader/named.h"
#include "loader/pids.h"
#include "loader/preset.h"
#include "loader/session_state.h"
#include "loader/verdict.h"

/* What the libraries of those that run already get to begin; the tracer itself gives up after 3 s. */
#define CAPTURE_NICE (-20)
#define ENTERING_NS 5000000000ull
/* What a Python may take whose threads were in the midst of a change when it was looked at. */
#define PYTHON_NS 100000000ull

/* --- callbacks of the parts ------------------------------------------------------------------- */

void session__on_process_mapped(void *ctx, struct process *p)
{
	struct session *s = ctx;

	jit__mapped(s->jit, p);
	python__mapped(s->python, p);
	if (s->attach)
		attach__process(s->attach, p);
}

void session__on_armed(void *ctx, struct process *p)
{
	struct session *s = ctx;

	if (s->attach)
		attach__armed(s->attach, p);
}

void session__on_refused(void *ctx, struct process *p, enum channel_reason reason, uint32_t detail)
{
	struct session *s = ctx;

	if (s->attach)
		attach__refused(s->attach, p, reason, detail);
}

void session__on_unreached(void *ctx, struct process *p, int err)
{
	struct session *s = ctx;

	if (s->attach)
		attach__unreached(s->attach, p, err);
}

void session__on_taken(void *ctx, struct process *p, pid_t holder)
{
	struct session *s = ctx;

	if (s->attach)
		attach__taken(s->attach, p, holder);
}

/* --- setting up ----------------------------------------------------------------------------- */

static int setup_command(struct session *s)
{
	struct command_request request = {
		.argv = s->options->command,
		.caller = &s->caller,
		.inherited = &s->inherited,
	};
	const char *advice = launcher__advice(s->options->command[0]);
	struct process *child;
	int err;

	if (advice)
		log_warn("%s: %s", s->options->command[0], advice);
	err = s->library ? variables__set(&s->variables, PRESET_VARIABLE, library__path(s->library)) : 0;
	if (err)
		return err;
	request.environment = s->variables.list;
	err = command__new(&request, &s->command);
	if (err)
		return err;
	child = processes__get(s->processes, command__pid(s->command), true);
	if (!child)
		return -ENOMEM;
	child->ours = true;
	return session__watch(s, command__pidfd(s->command), EVENT_COMMAND);
}

static int add_target(void *ctx, pid_t pid)
{
	struct session *s = ctx;

	return processes__get(s->processes, pid, true) ? 0 : -ENOMEM;
}

static int setup_cgroup(struct session *s)
{
	int err = cgroup__each(s->cgroup_fd, add_target, s);
	char name[TEXT_NAME];

	if (err || processes__alive(s->processes))
		return err;
	log_error("there is no process in --cgroup %s or below it", text__name(name, s->options->cgroup));
	return -ESRCH;
}

static int note_driver(const struct maps_line *line, void *arg)
{
	bool *found = arg;

	*found = driver__is_named(line->path);
	return *found;
}

/* With -a, where a process becomes known when it runs: one that launches may hardly need a CPU. */
static int look_for_driver(void *ctx, pid_t pid)
{
	struct session *s = ctx;
	bool found = false;

	maps__read(pid, note_driver, &found);
	return !found || pid == getpid() || processes__get(s->processes, pid, false) ? 0 : -ENOMEM;
}

void session__on_mapping(void *ctx, const struct sampling_event *event)
{
	struct session *s = ctx;
	bool driver = !event->exec && driver__is_named(event->path);
	bool python = !event->exec && python__is_named(event->path);
	struct process *p;

	recent__add(s->recent, event);
	if (event->exec)
		return;
	if (s->options->all && driver && !processes__find(s->processes, event->tgid))
		processes__get(s->processes, event->tgid, false);
	if (driver && s->launches && (p = processes__find(s->processes, event->tgid)))
		processes__ask_rank(p);
	/* An interpreter that is known before it has started has its first frames shown, too. */
	collect__mapped(s->collect, event, driver || python);
}

static int look_at_target(void *ctx, pid_t pid)
{
	struct session *s = ctx;
	struct process *p;

	if (processes__find(s->processes, pid))
		return 0;
	p = processes__get(s->processes, pid, true);
	if (p)
		session__on_process_mapped(s, p);
	return 0;
}

void session__look_for_targets(struct session *s)
{
	if (s->cgroup_fd >= 0)
		cgroup__each(s->cgroup_fd, look_at_target, s);
}

int session__setup_targets(struct session *s)
{
	struct attach_config config = {
		.probes = s->probes,
		.files = s->files,
		.processes = s->processes,
		.options = s->options,
		.library_path = variables__get(&s->variables, "LD_LIBRARY_PATH"),
		.caller = &s->caller,
		.sites = s->sites,
		.library = s->library && s->options->command ? library__path(s->library) : NULL,
		.epoll_fd = s->epoll_fd,
		.epoll_data = EVENT_ATTACH,
	};
	int err = 0;

	if (session__wants_launches(s->options))
		err = attach__new(&config, &s->attach);
	if (!err && s->options->command)
		err = setup_command(s);
	FAULT_POINT("command-forked");
	/* The BPF side follows the children that come from now on, so that none falls between. */
	if (!err)
		err = named__each(s->options, add_target, s);
	if (!err && s->cgroup_fd >= 0)
		err = setup_cgroup(s);
	if (!err && s->options->all && s->attach)
		err = pids__all(look_for_driver, s);
	FAULT_POINT("targets-known");
	if (!err && s->attach)
		err = attach__before(s->attach);
	return err;
}

/* --- getting in ----------------------------------------------------------------------------- */

/* 0 or an exit code. */
static int judge(const struct session *s)
{
	struct attach_counts counts;

	if (s->options->all || s->options->command || s->stop)
		return 0;
	attach__counts(s->attach, &counts);
	return verdict__targets(s->options, &counts, processes__alive(s->processes),
				attach__pending(s->attach));
}

/*
 * As one among hundreds of threads that want the CPU we would fall so far behind that libraries take us
 * for dead, and hold a borrowed thread for as long as we wait. It costs no more CPU time, only sooner;
 * where it isn't allowed, so be it.
 */
static void hurry(struct session *s)
{
	s->nice = getpriority(PRIO_PROCESS, 0);
	setpriority(PRIO_PROCESS, 0, CAPTURE_NICE);
}

/*
 * Those that run already get the library before the capture begins, and their Python is known: so that it
 * begins for all of them at once, and whoever waits for "recording" can count on it.
 */
int session__enter_targets(struct session *s)
{
	uint64_t now = clock__now_ns(), deadline = now + ENTERING_NS, soon = now + PYTHON_NS;
	uint32_t i;
	int err = 0;

	hurry(s);
	for (i = 0; i < processes__count(s->processes); i++)
		session__on_process_mapped(s, processes__at(s->processes, i));
	while (!err && !s->stop && s->attach && attach__pending(s->attach) && clock__now_ns() < deadline)
		err = session__wait(s);
	while (!err && !s->stop && python__asks(s->python) && clock__now_ns() < soon)
		err = session__wait(s);
	FAULT_POINT("targets-entered");
	if (err)
		return session__fail(err, NULL, "waiting for events");
	return s->attach ? judge(s) : 0;
}
