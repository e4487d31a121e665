// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The closing summary for scripts: the same facts as the text has, none of them rounded. */
#include "loader/output/closing.h"

#include <math.h>

#include "loader/base/json.h"
#include "loader/output/kernels.h"
#include "loader/output/quality.h"
#include "loader/output/shares.h"

static bool recorded(const struct profile *p, enum profile_metric metric)
{
	return profile__run_const(p)->metrics & 1u << metric;
}

static bool recorded_samples(const struct profile *p)
{
	return recorded(p, PROFILE_CPU_NS) || recorded(p, PROFILE_CPU_SAMPLES);
}

static void add(uint64_t *sum, uint64_t n)
{
	if (__builtin_add_overflow(*sum, n, sum))
		*sum = UINT64_MAX;
}

static struct closing_part part_of(const struct profile *p, enum profile_metric metric, unsigned int flags,
				   unsigned int mask)
{
	struct closing_part part = { 0 };
	struct profile_value v;
	size_t pos = 0;

	while (profile__next(p, &pos, &v)) {
		if (v.metric != metric || (v.flags & mask) != flags)
			continue;
		add(&part.ns, v.value);
		add(&part.launches, v.count);
		part.variance += v.variance;
	}
	return part;
}

struct closing_part closing__gpu_part(const struct profile *p, unsigned int flags, unsigned int mask)
{
	return part_of(p, PROFILE_GPU_NS, flags, mask);
}

struct closing_part closing__wait_part(const struct profile *p, unsigned int flags, unsigned int mask)
{
	return part_of(p, PROFILE_WAIT_NS, flags, mask);
}

/* Of launches, not of copies. */
static struct closing_part of_launches(const struct profile *p, enum profile_value_flags flag)
{
	return closing__gpu_part(p, flag, flag | PROFILE_OF_COPIES);
}

static void number_if(struct text *t, bool known, const char *key, uint64_t value)
{
	if (known)
		json__number(t, key, value);
	else
		json__null(t, key);
}

static void add_output(struct text *t, const struct closing_options *o)
{
	static const char *const results[] = {
		[CLOSING_WRITTEN] = "written", [CLOSING_SAVED] = "saved",
		[CLOSING_EMPTY] = "empty", [CLOSING_FAILED] = "failed",
	};
	static const char *const metrics[NR_PROFILE_METRICS] = {
		[PROFILE_GPU_NS] = "gpu", [PROFILE_CPU_NS] = "cpu", [PROFILE_LAUNCHES] = "launches",
		[PROFILE_CPU_SAMPLES] = "samples", [PROFILE_BYTES] = "bytes",
		[PROFILE_WAIT_NS] = "wait",
	};
	bool time = o->metric == PROFILE_GPU_NS || o->metric == PROFILE_CPU_NS ||
		    o->metric == PROFILE_WAIT_NS;

	json__string(t, "result", results[o->result]);
	json__string(t, "file", o->written);
	json__string(t, "metric", metrics[o->metric]);
	json__string(t, "unit", time ? "nanoseconds" : o->metric == PROFILE_BYTES ? "bytes" : "count");
	number_if(t, o->stats, "stacks", o->stats ? o->stats->lines : 0);
	number_if(t, o->stats, "bytes", o->stats ? o->stats->bytes : 0);
}

static void add_captured(struct text *t, const struct profile *p)
{
	const struct profile_run *run = profile__run_const(p);
	bool samples = recorded_samples(p), launches = recorded(p, PROFILE_LAUNCHES);
	const struct closing_part timed = closing__gpu_part(p, 0, PROFILE_OF_COPIES);
	const struct closing_part uncalibrated = of_launches(p, PROFILE_UNCALIBRATED);
	const struct closing_part estimated = of_launches(p, PROFILE_ESTIMATED);
	const struct closing_part split = of_launches(p, PROFILE_SHARED);
	const struct closing_part copies = closing__gpu_part(p, PROFILE_OF_COPIES, PROFILE_OF_COPIES);
	const struct closing_part waited = closing__wait_part(p, 0, 0);
	bool times = recorded(p, PROFILE_GPU_NS), bytes = recorded(p, PROFILE_BYTES);
	bool waits = recorded(p, PROFILE_WAIT_NS);

	json__number(t, "duration_ns", run->duration_ns);
	number_if(t, samples, "frequency_hz", run->frequency);
	number_if(t, samples, "cpu_samples", profile__nr_samples(p));
	json__bool(t, "driver_seen", run->driver_seen);
	number_if(t, launches, "launches", profile__total_count(p, PROFILE_LAUNCHES));
	number_if(t, times, "timed", timed.launches);
	number_if(t, times, "gpu_ns", timed.ns);
	number_if(t, times, "uncalibrated", uncalibrated.launches);
	number_if(t, times, "uncalibrated_ns", uncalibrated.ns);
	number_if(t, times, "estimated", estimated.launches);
	number_if(t, times, "estimated_ns", estimated.ns);
	number_if(t, times, "split_ns", split.ns);
	number_if(t, run->looked_at, "looked_at", run->looked_at);
	number_if(t, run->looked_at, "looked_at_of", run->made);
	number_if(t, times && run->looked_at, "gpu_error_ns",
		  run->gpu_variance < 1e36 ? (uint64_t)sqrt(run->gpu_variance) : UINT64_MAX);
	number_if(t, bytes, "copies", profile__total_count(p, PROFILE_BYTES));
	number_if(t, bytes, "copied_bytes", profile__total(p, PROFILE_BYTES));
	number_if(t, bytes, "copies_timed", copies.launches);
	number_if(t, bytes, "copies_ns", copies.ns);
	number_if(t, waits, "waits", waited.launches);
	number_if(t, waits, "waits_ns", waited.ns);
	number_if(t, waits, "waits_estimated_ns",
		  closing__wait_part(p, PROFILE_ESTIMATED, PROFILE_ESTIMATED).ns);
	number_if(t, waits, "waits_error_ns",
		  waited.variance < 1e36 ? (uint64_t)sqrt(waited.variance) : UINT64_MAX);
	number_if(t, times && run->gpu_busy_known, "gpu_busy_ns", run->gpu_busy_ns);
	json__share(t, "lost_share", profile__lost_share(p));
}

static void add_counters(struct text *t, const struct profile *p)
{
	static const char *const kinds[NR_PROFILE_COUNTER_KINDS] = {
		[PROFILE_LOST_SAMPLES] = "lost samples", [PROFILE_LOST_LAUNCHES] = "lost launches",
		[PROFILE_LOST_OTHER] = "lost", [PROFILE_UNTIMED] = "not timed",
		[PROFILE_INFO] = "info", [PROFILE_INFO_GPU] = "info",
	};
	size_t i;

	json__open(t, "counters", '[');
	for (i = 0; i < profile__nr_counters(p); i++) {
		const struct profile_counter *c = profile__counter_at(p, i);

		if (!c->value)
			continue;
		json__open(t, NULL, '{');
		json__string(t, "kind", kinds[c->kind]);
		json__string(t, "what", c->what);
		json__number(t, "count", c->value);
		json__close(t, '}');
	}
	json__close(t, ']');
}

static void add_files(struct text *t, const struct quality *q)
{
	size_t i;

	json__open(t, "files", '[');
	for (i = 0; i < q->nr_files; i++) {
		json__open(t, NULL, '{');
		json__string(t, "file", q->files[i].module);
		json__number(t, "events_no_unwind_info", q->files[i].no_unwind_info);
		json__number(t, "frames_no_symbols", q->files[i].no_symbols);
		json__close(t, '}');
	}
	json__close(t, ']');
}

static int add_quality(struct text *t, const struct profile *p, bool launches)
{
	char mark[QUALITY_MARK];
	struct quality q;
	int err, i;

	err = quality__new(p, launches, &q);
	if (err)
		return err;
	json__open(t, launches ? "launch_stacks" : "sample_stacks", '{');
	json__number(t, "events", q.events);
	json__number(t, "complete", q.complete);
	json__number(t, "guessed", q.guessed);
	json__open(t, "marks", '{');
	for (i = 0; i < NR_PROFILE_MARKS; i++)
		if (q.marks[i])
			json__number(t, quality__mark(mark, (enum profile_mark)i), q.marks[i]);
	json__close(t, '}');
	json__number(t, "frames", q.frames);
	json__number(t, "named", q.unresolved[PROFILE_RESOLVED]);
	json__open(t, "unnamed", '{');
	for (i = PROFILE_RESOLVED + 1; i < NR_PROFILE_UNRESOLVED; i++)
		if (q.unresolved[i])
			json__number(t, profile__unresolved_text((enum profile_unresolved)i),
				     q.unresolved[i]);
	json__close(t, '}');
	add_files(t, &q);
	json__close(t, '}');
	quality__free(&q);
	return 0;
}

static int add_kernels(struct text *t, const struct profile *p)
{
	struct kernels k;
	size_t i;
	int err = kernels__new(p, &k);

	if (err)
		return err;
	json__open(t, "kernels", '[');
	for (i = 0; i < k.nr && i < KERNELS_SHOWN; i++) {
		const struct profile_frame *f = profile__frame_at(p, k.list[i].frame);

		json__open(t, NULL, '{');
		json__string(t, "name", f->name);
		json__string(t, "mangled", f->raw ? f->raw : f->name);
		number_if(t, f->registers, "registers", f->registers);
		number_if(t, f->registers, "static_shared_bytes", f->shared_bytes);
		json__number(t, "launches", k.list[i].launches);
		number_if(t, recorded(p, PROFILE_GPU_NS), "gpu_ns", k.list[i].ns);
		json__close(t, '}');
	}
	json__close(t, ']');
	kernels__free(&k);
	return 0;
}

static int add_shares(struct text *t, const struct profile *p)
{
	struct shares s;
	size_t i;
	int err = shares__new(p, &s);

	if (err)
		return err;
	json__open(t, "processes", '[');
	for (i = 0; i < s.nr; i++) {
		const struct share *one = &s.list[i];

		json__open(t, NULL, '{');
		number_if(t, one->rank != PROFILE_NO_LABEL, "rank", one->rank);
		json__number(t, "pid", one->pid);
		json__string(t, "name", profile__frame_at(p, one->process)->name);
		number_if(t, one->device != PROFILE_NO_LABEL, "device", one->device);
		number_if(t, one->device != PROFILE_NO_LABEL, "streams", one->streams);
		json__number(t, "launches", one->launches);
		number_if(t, recorded(p, PROFILE_BYTES), "copies", one->copies);
		number_if(t, recorded(p, PROFILE_GPU_NS), "gpu_ns", one->ns);
		json__close(t, '}');
	}
	json__close(t, ']');
	shares__free(&s);
	return 0;
}

static void add_rest(struct text *t, const struct profile *p)
{
	const struct profile_run *run = profile__run_const(p);
	size_t i;

	json__open(t, "notes", '[');
	for (i = 0; i < profile__nr_notes(p); i++)
		json__string(t, NULL, profile__note_at(p, i));
	json__close(t, ']');
	json__open(t, "own_cost", '{');
	json__number(t, "cpu_ns", run->own_cpu_ns);
	json__number(t, "before_and_after_ns", run->own_rest_ns);
	json__number(t, "bpf_ns", run->own_bpf_ns);
	json__number(t, "memory_bytes", run->own_memory);
	json__close(t, '}');
}

int closing__write_json(const struct profile *p, const struct closing_options *o, FILE *f)
{
	struct text t = { 0 };
	int err = 0;

	json__open(&t, NULL, '{');
	json__string(&t, "gpucollect", "summary");
	add_output(&t, o);
	add_captured(&t, p);
	add_counters(&t, p);
	if (recorded_samples(p))
		err = add_quality(&t, p, false);
	if (!err && recorded(p, PROFILE_LAUNCHES))
		err = add_quality(&t, p, true);
	if (!err && recorded(p, PROFILE_LAUNCHES))
		err = add_kernels(&t, p);
	if (!err && recorded(p, PROFILE_LAUNCHES))
		err = add_shares(&t, p);
	add_rest(&t, p);
	json__close(&t, '}');
	text__add_string(&t, "\n");
	if (!err)
		err = text__write(&t, f);
	text__free(&t);
	return err;
}
