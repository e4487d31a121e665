// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "loader/result.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "loader/base/fault.h"
#include "loader/base/log.h"
#include "loader/base/text.h"
#include "loader/exit_codes.h"
#include "loader/launcher.h"
#include "loader/output/closing.h"
#include "loader/output/file.h"
#include "loader/output/folded.h"
#include "loader/output/summary.h"

struct result {
	const struct options *options;
	const struct caller *caller;
	enum options_destination destination;
	struct output_file *file;
	char *own_name;
	pid_t command;
	/* of the writing under way */
	const struct profile *profile;
	struct folded_stats stats;
};

static enum profile_metric metric_of(const struct options *o)
{
	switch (o->metric) {
	case METRIC_CPU: return PROFILE_CPU_NS;
	case METRIC_LAUNCHES: return PROFILE_LAUNCHES;
	case METRIC_BYTES: return PROFILE_BYTES;
	case METRIC_WAIT: return PROFILE_WAIT_NS;
	default: return PROFILE_GPU_NS;
	}
}

int result__new(const struct options *options, const struct caller *caller, int abort_fd,
		pid_t command, struct result **out, char **why)
{
	struct output_request request = {
		.path = options->output ? options->output : "-",
		.force = options->force,
		.caller = caller,
		.abort_fd = abort_fd,
	};
	struct result *r = calloc(1, sizeof(*r));
	int err;

	*why = NULL;
	if (!r)
		return -ENOMEM;
	r->options = options;
	r->caller = caller;
	r->command = command;
	r->destination = options__destination(options, isatty(STDOUT_FILENO));
	if (r->destination == DESTINATION_OWN_FILE) {
		r->own_name = output_file__own_name(options->command[0], command);
		request.path = r->own_name;
		request.numbered = true;
	}
	err = request.path ? output_file__new(&request, &r->file, why) : -ENOMEM;
	if (err) {
		result__free(r);
		return err;
	}
	*out = r;
	return 0;
}

int result__check(const struct options *options, const struct caller *caller, char **why)
{
	bool own = options__destination(options, isatty(STDOUT_FILENO)) == DESTINATION_OWN_FILE;
	struct output_request request = {
		.path = options->output ? options->output : own ? "gpucollect-NAME-PID.folded" : "-",
		.force = options->force,
		.numbered = own,
		.look_only = true,
		.caller = caller,
		.abort_fd = -1,
	};
	struct output_file *f = NULL;
	int err = output_file__new(&request, &f, why);

	output_file__free(f);
	return err;
}

int result__refusal(const struct options *options, int err)
{
	switch (-err) {
	case EACCES:
	case EPERM:
		return EXIT_NO_PERMISSION;
	/* Another name would do; where none was given it is not that. */
	case EEXIST:
	case EISDIR:
	case ENOENT:
	case ENOTDIR:
	case ENXIO:
	case ENOTBLK:
	case ENAMETOOLONG:
	case ELOOP:
	case EBADF:
	case EROFS:
		return options->output ? EXIT_USAGE : EXIT_OWN_FAILURE;
	default:
		return EXIT_OWN_FAILURE;
	}
}

void result__free(struct result *r)
{
	if (!r)
		return;
	output_file__free(r->file);
	free(r->own_name);
	free(r);
}

bool result__is_file(const struct result *r)
{
	return output_file__is_regular(r->file);
}

static unsigned int columns(void)
{
	struct winsize w;

	return ioctl(STDOUT_FILENO, TIOCGWINSZ, &w) ? 0 : w.ws_col;
}

static int write_folded(FILE *f, void *arg)
{
	struct result *r = arg;
	struct folded_options o = {
		.metric = metric_of(r->options),
		.annotate = r->options->annotate,
		.per_thread = r->options->per_thread,
	};
	int err;

	FAULT_POINT("writing");
	err = folded__write(r->profile, &o, f, &r->stats);
	FAULT_POINT("text-written");
	return err;
}

static int write_summary(FILE *f, void *arg)
{
	struct result *r = arg;
	struct summary_options o = {
		.columns = columns(), .bytes = metric_of(r->options) == PROFILE_BYTES,
		.again = "gpucollect … | speedscope -",
	};

	return summary__write(r->profile, &o, f);
}

/* Why nothing was launched, as far as is known, and what to do about it. */
static const char *without_launches(const struct result *r)
{
	const char *advice = r->command ? launcher__advice(r->options->command[0]) : NULL;

	if (advice)
		return advice;
	if (!profile__run_const(r->profile)->driver_seen)
		return "no process loaded libcuda, so nothing used CUDA; --metric cpu shows CPU time";
	if (profile__run_const(r->profile)->all_left_alone)
		return "what loaded libcuda is left alone, see above; --metric cpu shows CPU time";
	return "libcuda was loaded, but nothing was launched; --metric cpu shows CPU time";
}

/* What to do where the metric saw nothing. */
static void explain_empty(const struct result *r)
{
	uint64_t launches = profile__total_count(r->profile, PROFILE_LAUNCHES);
	struct text t = { 0 };

	switch (metric_of(r->options)) {
	case PROFILE_GPU_NS:
		text__add_string(&t, "no GPU work was timed, nothing is written: ");
		if (launches) {
			text__add_count(&t, launches, "launch was", "launches were");
			text__add_string(&t, " counted; --metric launches shows where from");
		} else {
			text__add_string(&t, without_launches(r));
		}
		break;
	case PROFILE_LAUNCHES:
		text__printf(&t, "no launch was seen, nothing is written: %s", without_launches(r));
		break;
	case PROFILE_BYTES:
		text__printf(&t, "no memory was copied or set by the driver's calls, nothing is written%s%s",
			     launches ? "" : ": ", launches ? "" : without_launches(r));
		break;
	case PROFILE_WAIT_NS:
		text__printf(&t, "no thread was seen to wait for the GPU, nothing is written%s%s",
			     launches ? "" : ": ", launches ? "" : without_launches(r));
		break;
	default:
		text__add_string(&t, "no CPU sample was taken, nothing is written; record longer (-d) or "
				 "more often (-F)");
	}
	log_error("%s", t.failed ? "nothing was captured" : t.data);
	text__free(&t);
}

static void write_closing(const struct result *r, enum closing_result result, const char *name)
{
	struct closing_options o = {
		.json = r->options->json,
		.result = result,
		.metric = metric_of(r->options),
		.written = name,
		.stats = r->stats.lines ? &r->stats : NULL,
	};

	if (!r->options->quiet)
		closing__write(r->profile, &o, stderr);
}

/* The id in the name of a file of our own choice. */
static pid_t id_of(const struct result *r)
{
	if (r->command)
		return r->command;
	return r->options->nr_pids ? r->options->pids[0] : getpid();
}

/*
 * The place of the result did not take it: what was recorded must not go with it. Says both (in `why`,
 * of the first); an exit code.
 */
static int rescue(struct result *r, int failed, const char *why, char **name)
{
	const char *what = r->options->command ? r->options->command[0] : "capture";
	char *why_not = NULL;
	int err;

	err = output_file__rescue(r->caller, what, id_of(r), write_folded, r, name, &why_not);
	if (err)
		log_error("%s; and it can't be saved: %s", why, why_not ? why_not : strerror(-err));
	else if (failed == -EPIPE && output_file__is_stdout(r->file))
		log_warn("the reader of standard output has gone; saved to %s", *name);
	else
		log_error("%s; saved to %s", why, *name);
	free(why_not);
	if (err)
		return EXIT_OWN_FAILURE;
	/* That a reader leaves is its right; beside a command's own status 1 would say nothing. */
	return failed == -EPIPE || !r->command ? EXIT_PARTIAL : EXIT_OWN_FAILURE;
}

static int write_last(struct result *r)
{
	bool summary = r->destination == DESTINATION_SUMMARY;
	char *why = NULL, *rescued = NULL;
	int code = EXIT_COMPLETE, err;

	err = output_file__write(r->file, summary ? write_summary : write_folded, r, &why);
	if (err == -ECANCELED)
		code = EXIT_ABORTED;
	else if (err)
		code = rescue(r, err, why ? why : strerror(-err), &rescued);
	free(why);
	if (err && !rescued)
		r->stats = (struct folded_stats){ 0 };
	if (code != EXIT_ABORTED)
		write_closing(r, !err ? CLOSING_WRITTEN : rescued ? CLOSING_SAVED : CLOSING_FAILED,
			      !err && !output_file__is_stdout(r->file) ?
			      output_file__name(r->file) : rescued);
	free(rescued);
	if (code == EXIT_COMPLETE && profile__lost_share(r->profile) > 0.01)
		code = EXIT_PARTIAL;
	return code;
}

int result__write(struct result *r, const struct profile *p)
{
	log__progress_end();
	r->profile = p;
	if (profile__total(p, metric_of(r->options)))
		return write_last(r);
	write_closing(r, CLOSING_EMPTY, NULL);
	explain_empty(r);
	return EXIT_EMPTY;
}

void result__write_now(struct result *r, const struct profile *p)
{
	char *why = NULL;
	int err;

	r->profile = p;
	if (!profile__total(p, metric_of(r->options))) {
		log_info("nothing to write yet; recording goes on");
		return;
	}
	err = output_file__write(r->file, write_folded, r, &why);
	if (err)
		log_error("%s; recording goes on", why ? why : strerror(-err));
	else
		log_info("wrote %s; recording goes on", output_file__name(r->file));
	free(why);
}
