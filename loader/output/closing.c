// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "loader/output/closing.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "loader/base/text.h"
#include "loader/output/quality.h"
#include "loader/output/shares.h"

#define RANKS_SHOWN 16

#define MAX_FILES 8
#define MANY_STACKS 50000	/* from here on speedscope needs minutes */
#define MANY_BYTES (20u << 20)

static const char *const units[NR_PROFILE_METRICS] = {
	[PROFILE_GPU_NS] = "nanoseconds of GPU time",
	[PROFILE_CPU_NS] = "nanoseconds of CPU time",
	[PROFILE_LAUNCHES] = "launches",
	[PROFILE_CPU_SAMPLES] = "CPU samples",
	[PROFILE_BYTES] = "bytes copied or set",
	[PROFILE_WAIT_NS] = "nanoseconds of waiting for the GPU",
};

/* One line of the summary: everything goes through here, so that no name steers the terminal. */
static void line(struct text *out, struct text *content)
{
	if (content->failed)
		out->failed = true;
	if (content->len) {
		text__add_string(out, "gpucollect: ");
		text__add_clean(out, content->data, content->len);
		text__add_string(out, "\n");
	}
	text__free(content);
}

static bool recorded(const struct profile *p, enum profile_metric metric)
{
	return profile__run_const(p)->metrics & 1u << metric;
}

/* Where CPU time is shown, launches, copies and waits are beside the point. */
static bool shows_gpu(const struct closing_options *o)
{
	return o->metric != PROFILE_CPU_NS;
}

static bool recorded_samples(const struct profile *p)
{
	return recorded(p, PROFILE_CPU_NS) || recorded(p, PROFILE_CPU_SAMPLES);
}

static void add_written(struct text *out, const struct closing_options *o)
{
	char a[TEXT_FIGURE];
	struct text t = { 0 };

	if (!o->stats)
		return;
	if (o->written)
		text__printf(&t, "wrote %s: ", o->written);
	text__add_count(&t, o->stats->lines, "stack", "stacks");
	text__printf(&t, ", %s; weights are %s", text__bytes(a, o->stats->bytes), units[o->metric]);
	line(out, &t);
	if (o->stats->lines > MANY_STACKS || o->stats->bytes > MANY_BYTES) {
		text__printf(&t, "that is much for a viewer: record shorter or fewer processes if "
				 "it is slow");
		line(out, &t);
	}
}

/* `of`: 0 launches, PROFILE_OF_COPIES copies. */
static void add_timed(struct text *t, const struct profile *p, unsigned int of)
{
	const struct closing_part all = closing__gpu_part(p, of, PROFILE_OF_COPIES);
	uint64_t estimated = closing__gpu_part(p, of | PROFILE_ESTIMATED,
					       PROFILE_OF_COPIES | PROFILE_ESTIMATED).launches;
	char a[TEXT_FIGURE];

	text__printf(t, "%s timed, ", text__count(a, all.launches));
	if (estimated)
		text__printf(t, "%s of them by an estimate, ", text__count(a, estimated));
	text__printf(t, "%s of GPU time", text__duration(a, all.ns));
}

static void add_launches(struct text *t, const struct profile *p)
{
	uint64_t launches = profile__total_count(p, PROFILE_LAUNCHES);

	text__add_string(t, ", ");
	text__add_count(t, launches, "launch", "launches");
	if (!recorded(p, PROFILE_GPU_NS))
		return;
	text__add_string(t, " (");
	add_timed(t, p, 0);
	text__add_string(t, ")");
}

/* They are no launches, and stand in none of the figures about launches. */
static void add_copies(struct text *t, const struct profile *p)
{
	uint64_t copies = profile__total_count(p, PROFILE_BYTES);
	char a[TEXT_FIGURE];

	if (!copies)
		return;
	text__add_string(t, ", ");
	text__add_count(t, copies, "copy or set", "copies and sets");
	text__printf(t, " (%s, ", text__bytes(a, profile__total(p, PROFILE_BYTES)));
	add_timed(t, p, PROFILE_OF_COPIES);
	text__add_string(t, ")");
}

/* Time of the host: nothing in it is time of the GPU, or the other way round. */
static void add_waits(struct text *t, const struct profile *p)
{
	const struct closing_part all = closing__wait_part(p, 0, 0);
	uint64_t estimated = closing__wait_part(p, PROFILE_ESTIMATED, PROFILE_ESTIMATED).ns;
	char a[TEXT_FIGURE];

	if (!all.launches)
		return;
	text__add_string(t, ", ");
	text__add_count(t, all.launches, "wait for the GPU", "waits for the GPU");
	text__printf(t, " (%s", text__duration(a, all.ns));
	if (estimated && all.ns)
		text__printf(t, ", %s of it estimated, standard error %.2g %%",
			     text__share(a, estimated, all.ns), 100 * sqrt(all.variance) / (double)all.ns);
	text__add_string(t, ")");
}

static void add_captured(struct text *out, const struct profile *p, bool gpu)
{
	const struct profile_run *run = profile__run_const(p);
	char a[TEXT_FIGURE];
	struct text t = { 0 };

	text__printf(&t, "captured %s", text__duration(a, run->duration_ns));
	if (recorded_samples(p)) {
		text__add_string(&t, ", ");
		text__add_count(&t, profile__nr_samples(p), "CPU sample", "CPU samples");
		text__printf(&t, " at %" PRIu32 " Hz", run->frequency);
	}
	if (gpu) {
		if (recorded(p, PROFILE_LAUNCHES))
			add_launches(&t, p);
		add_copies(&t, p);
		add_waits(&t, p);
	}
	line(out, &t);
}

/* How a duration came about, where it isn't simply a calibrated measurement. */
static void add_gpu_time(struct text *out, const struct profile *p)
{
	uint64_t total = profile__total(p, PROFILE_GPU_NS);
	uint64_t uncalibrated = closing__gpu_part(p, PROFILE_UNCALIBRATED, PROFILE_UNCALIBRATED).ns;
	uint64_t estimated = closing__gpu_part(p, PROFILE_ESTIMATED, PROFILE_ESTIMATED).ns;
	uint64_t shared = closing__gpu_part(p, PROFILE_SHARED, PROFILE_SHARED).ns;
	const struct profile_run *run = profile__run_const(p);
	char a[TEXT_FIGURE];
	struct text t = { 0 };

	if (!recorded(p, PROFILE_GPU_NS) || !total)
		return;
	text__printf(&t, "GPU time is event-timed");
	if (uncalibrated)
		text__printf(&t, "; uncalibrated (no constant is known, see gpucollect calibrate): %s",
			     text__share(a, uncalibrated, total));
	if (estimated)
		text__printf(&t, "; estimated: %s", text__share(a, estimated, total));
	if (shared)
		text__printf(&t, "; of graphs, split among what they run by an estimate: %s",
			     text__share(a, shared, total));
	if (run->looked_at)
		text__printf(&t, ", standard error of the sum: %.2g %%",
			     100 * sqrt(run->gpu_variance) / (double)total);
	line(out, &t);
	if (run->looked_at) {
		text__printf(&t, "looked at %s", text__count(a, run->looked_at));
		text__add_string(&t, " of ");
		text__add_count(&t, run->made, "launch or copy", "launches and copies");
		text__add_string(&t, ", chosen at random: numbers by path and times are estimates "
				     "(--launches all looks at each)");
		line(out, &t);
	}
	if (run->gpu_busy_known)
		text__printf(&t, "device busy for %s; ", text__duration(a, run->gpu_busy_ns));
	else
		text__printf(&t, "device busy time: not known; ");
	text__printf(&t, "kernels that overlap are each shown in full, so the sum may exceed wall "
			 "time");
	line(out, &t);
}

/* What is counted: one of it, several. */
struct noun {
	const char *one, *many;
};

static const struct noun sample = { "CPU sample", "CPU samples" };
static const struct noun launch = { "launch", "launches" };

/* The counters of one kind on one line: "lost: 12 of 1,544 CPU samples (0.8 %): cause 10, …". */
static void add_counters(struct text *out, const struct profile *p, enum profile_counter_kind kind,
			 const char *what, const struct noun *of, uint64_t kept)
{
	char a[TEXT_FIGURE], b[TEXT_FIGURE];
	struct text t = { 0 };
	uint64_t sum = 0;
	size_t i, nr = 0;

	for (i = 0; i < profile__nr_counters(p); i++)
		if (profile__counter_at(p, i)->kind == kind)
			sum += profile__counter_at(p, i)->value;
	if (!sum)
		return;
	text__printf(&t, "%s: %s", what, text__count(a, sum));
	if (of) {
		text__add_string(&t, " of ");
		text__add_count(&t, sum + kept, of->one, of->many);
		text__printf(&t, " (%s)", text__share(a, sum, sum + kept));
	}
	for (i = 0; i < profile__nr_counters(p); i++) {
		const struct profile_counter *counter = profile__counter_at(p, i);

		if (counter->kind != kind || !counter->value)
			continue;
		text__printf(&t, "%s %s (%s)", nr++ ? "," : ":", counter->what,
			     text__count(b, counter->value));
	}
	line(out, &t);
}

/* What was lost is said whatever is shown: it may be why the status is not 0. */
static void add_losses(struct text *out, const struct profile *p, bool gpu)
{
	uint64_t launches = profile__total_count(p, PROFILE_LAUNCHES);
	uint64_t timed = closing__gpu_part(p, 0, PROFILE_OF_COPIES).launches;
	char a[TEXT_FIGURE];
	struct text t = { 0 };
	size_t i;

	add_counters(out, p, PROFILE_LOST_SAMPLES, "lost", &sample, profile__nr_samples(p));
	add_counters(out, p, PROFILE_LOST_LAUNCHES, "lost", &launch, launches);
	add_counters(out, p, PROFILE_LOST_OTHER, "lost", NULL, 0);
	if (gpu)
		add_counters(out, p, PROFILE_UNTIMED, "counted, not timed", &launch, timed);
	for (i = 0; i < profile__nr_counters(p); i++) {
		const struct profile_counter *c = profile__counter_at(p, i);

		if (!c->value || !(c->kind == PROFILE_INFO || (gpu && c->kind == PROFILE_INFO_GPU)))
			continue;
		text__printf(&t, "%s: %s", c->what, text__count(a, c->value));
		line(out, &t);
	}
}

static const char *base_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash && slash[1] ? slash + 1 : path;
}

static void add_files(struct text *out, const struct quality *q, const char *events)
{
	char a[TEXT_FIGURE];
	struct text t = { 0 };
	size_t i;

	for (i = 0; i < q->nr_files && i < MAX_FILES; i++) {
		const struct quality_file *f = &q->files[i];

		text__printf(&t, "%s: ", base_name(f->module));
		if (f->no_unwind_info)
			text__printf(&t, "no usable unwind information in %s of the %s",
				     text__share(a, f->no_unwind_info, q->events), events);
		if (f->no_symbols)
			text__printf(&t, "%sno symbols for %s of the frames of %s",
				     f->no_unwind_info ? ", " : "",
				     text__share(a, f->no_symbols, q->frames), events);
		line(out, &t);
	}
	if (q->nr_files > MAX_FILES) {
		text__add_string(&t, "and ");
		text__add_count(&t, q->nr_files - MAX_FILES, "more file", "more files");
		text__add_string(&t, " without symbols or unwind information");
		line(out, &t);
	}
}

/* Whether stacks are whole. */
static void add_stacks(struct text *out, const struct quality *q, const char *events)
{
	char a[TEXT_FIGURE], b[TEXT_FIGURE], mark[QUALITY_MARK];
	const char *others = "; others: ";
	struct text t = { 0 };
	int i;

	text__printf(&t, "stacks of %s from their root: %s", events,
		     text__share(a, q->complete, q->events));
	for (i = 0; i < NR_PROFILE_MARKS; i++) {
		if (!q->marks[i])
			continue;
		text__printf(&t, "%s%s %s (%s)", others, quality__mark(mark, (enum profile_mark)i),
			     text__count(a, q->marks[i]), text__share(b, q->marks[i], q->events));
		others = ", ";
	}
	if (q->guessed)
		text__printf(&t, "%sguessed by frame pointer %s (%s)", others,
			     text__count(a, q->guessed), text__share(b, q->guessed, q->events));
	line(out, &t);
}

/* Whether functions have names. */
static void add_names(struct text *out, const struct quality *q, const char *events)
{
	const char *others = "; others: ";
	struct text t = { 0 };
	char a[TEXT_FIGURE];
	int i;

	if (q->unresolved[PROFILE_RESOLVED] == q->frames)
		return;
	text__printf(&t, "frames of %s with a name: %s", events,
		     text__share(a, q->unresolved[PROFILE_RESOLVED], q->frames));
	for (i = PROFILE_RESOLVED + 1; i < NR_PROFILE_UNRESOLVED; i++) {
		if (!q->unresolved[i])
			continue;
		text__printf(&t, "%s%s %s", others,
			     profile__unresolved_text((enum profile_unresolved)i),
			     text__share(a, q->unresolved[i], q->frames));
		others = ", ";
	}
	line(out, &t);
}

/* How good the stacks are, and whose fault it is where not. */
static int add_quality(struct text *out, const struct profile *p, bool launches)
{
	const char *events = launches ? launch.many : sample.many;
	struct quality q;
	int err;

	err = quality__new(p, launches, &q);
	if (err)
		return err;
	if (q.events)
		add_stacks(out, &q, events);
	add_names(out, &q, events);
	add_files(out, &q, events);
	quality__free(&q);
	return 0;
}

/* Which process is which: the stacks have the process alone. */
static int add_ranks(struct text *out, const struct profile *p)
{
	size_t i, nr = 0, shown = 0;
	struct text t = { 0 };
	struct shares s;
	int err = shares__new(p, &s);

	if (err)
		return err;
	for (i = 0; i < s.nr && s.list[i].rank != PROFILE_NO_LABEL; i++) {
		if (i && s.list[i - 1].rank == s.list[i].rank && s.list[i - 1].pid == s.list[i].pid)
			continue;
		if (nr++ >= RANKS_SHOWN)
			continue;
		text__printf(&t, "%s%" PRIu32 " is pid %" PRIu32, shown++ ? ", " : "ranks: ", s.list[i].rank,
			     s.list[i].pid);
	}
	if (nr > shown)
		text__printf(&t, " and %zu more", nr - shown);
	if (nr)
		line(out, &t);
	shares__free(&s);
	return 0;
}

static void add_cost(struct text *out, const struct profile *p)
{
	const struct profile_run *run = profile__run_const(p);
	char a[TEXT_FIGURE], b[TEXT_FIGURE];
	struct text t = { 0 };

	if (run->own_cpu_ns)
		text__printf(&t, " %s of CPU time while capturing (%s of one CPU)",
			     text__duration(a, run->own_cpu_ns),
			     text__share(b, run->own_cpu_ns, run->duration_ns));
	if (run->own_rest_ns)
		text__printf(&t, "%s %s before and after", t.len ? "," : "",
			     text__duration(a, run->own_rest_ns));
	if (run->own_bpf_ns)
		text__printf(&t, "%s %s in BPF programs (%s)", t.len ? "," : "",
			     text__duration(a, run->own_bpf_ns),
			     text__share(b, run->own_bpf_ns, run->duration_ns));
	if (run->own_memory)
		text__printf(&t, "%s %s of memory", t.len ? "," : "", text__bytes(a, run->own_memory));
	if (t.len) {
		struct text whole = { 0 };

		text__printf(&whole, "own cost:%s", t.data);
		line(out, &whole);
	}
	text__free(&t);
}

static int write_text(const struct profile *p, const struct closing_options *o, FILE *f)
{
	struct text out = { 0 }, t = { 0 };
	bool gpu = shows_gpu(o);
	size_t i;
	int err = 0;

	add_captured(&out, p, gpu);
	add_losses(&out, p, gpu);
	if (recorded_samples(p))
		err = add_quality(&out, p, false);
	if (!err && gpu && recorded(p, PROFILE_LAUNCHES))
		err = add_quality(&out, p, true);
	if (gpu)
		add_gpu_time(&out, p);
	if (!err)
		err = add_ranks(&out, p);
	for (i = 0; i < profile__nr_notes(p); i++) {
		text__add_string(&t, profile__note_at(p, i));
		line(&out, &t);
	}
	add_cost(&out, p);
	add_written(&out, o);
	if (!err)
		err = text__write(&out, f);
	text__free(&out);
	return err;
}

int closing__write(const struct profile *p, const struct closing_options *o, FILE *f)
{
	return o->json ? closing__write_json(p, o, f) : write_text(p, o, f);
}
