// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "loader/calibrate/found.h"

#include <inttypes.h>
#include <string.h>

#include "loader/base/json.h"

static const char *const works[NR_CALIBRATION_WORKS] = {
	[CALIBRATION_KERNEL] = "kernel", [CALIBRATION_HTOD] = "memcpy HtoD",
	[CALIBRATION_DTOH] = "memcpy DtoH", [CALIBRATION_DTOD] = "memcpy DtoD",
	[CALIBRATION_SET] = "memset",
};

static const char *const loads[] = { [LOAD_BUSY] = "busy", [LOAD_IDLE] = "idle" };

/* NULL: it's a constant, *ns; else why not. */
static const char *constant(const struct calibrate_found *f, enum calibration_work work,
			    enum launch_load load, const struct calibrate_series **s, uint32_t *ns)
{
	*s = calibrate_series__middle(f->series, f->nr, work, load);
	return calibrate_series__constant(*s, ns);
}

int calibrate_found__settle(const struct calibrate_found *f, struct calibrations *c, unsigned int *missing)
{
	const struct calibrate_series *s;
	int work, err = 0;

	*missing = 0;
	for (work = 0; !err && work < NR_CALIBRATION_WORKS; work++) {
		struct calibrations_entry e = {
			.version = f->version, .work = (enum calibration_work)work,
		};

		memcpy(e.device, f->name, sizeof(e.device));
		if (constant(f, e.work, LOAD_BUSY, &s, &e.busy_ns) ||
		    constant(f, e.work, LOAD_IDLE, &s, &e.idle_ns))
			++*missing;
		else
			err = calibrations__set(c, &e);
	}
	return err;
}

/* "10.0 us" of a kernel, "64 KiB" of a copy. */
static const char *size_of(char *buf, const struct calibrate_series *s)
{
	return s->work == CALIBRATION_KERNEL ? text__duration(buf, s->size) : text__bytes(buf, s->size);
}

static void print_situation(const struct calibrate_found *f, struct text *t, enum calibration_work work,
			    enum launch_load load)
{
	const struct calibrate_series *s;
	char figure[TEXT_FIGURE];
	const char *why;
	uint32_t ns;
	size_t i;

	why = constant(f, work, load, &s, &ns);
	text__printf(t, "  %-11s  %s  ", works[work], loads[load]);
	if (why)
		text__printf(t, "       -  %s\n", why);
	else
		text__printf(t, "%5" PRIu32 " ns\n", ns);
	for (i = 0; i < f->nr; i++) {
		s = &f->series[i];
		if (s->work != work || s->load != load)
			continue;
		text__printf(t, "      of %-8s %6d ns, half of them %d to %d, %u of %u rounds\n",
			     size_of(figure, s), s->median, s->low, s->high, s->rounds, s->wanted);
	}
}

void calibrate_found__print(const struct calibrate_found *f, struct text *t)
{
	int work, load;

	text__printf(t, "device %d: %s, CUDA %u.%u, its timer in steps of %u ns\n", f->device, f->name,
		     f->version / 1000, f->version % 1000 / 10, f->step_ns);
	for (work = 0; work < NR_CALIBRATION_WORKS; work++)
		for (load = LOAD_BUSY; load <= LOAD_IDLE; load++)
			print_situation(f, t, (enum calibration_work)work, (enum launch_load)load);
}

static void add_series(const struct calibrate_found *f, struct text *t, enum calibration_work work,
		       enum launch_load load)
{
	size_t i;

	json__open(t, "series", '[');
	for (i = 0; i < f->nr; i++) {
		const struct calibrate_series *s = &f->series[i];

		if (s->work != work || s->load != load)
			continue;
		json__open(t, NULL, '{');
		json__number(t, work == CALIBRATION_KERNEL ? "length_ns" : "bytes", s->size);
		json__signed(t, "low_ns", s->low);
		json__signed(t, "median_ns", s->median);
		json__signed(t, "high_ns", s->high);
		json__number(t, "rounds", s->rounds);
		json__number(t, "wanted", s->wanted);
		json__close(t, '}');
	}
	json__close(t, ']');
}

static void add_situation(const struct calibrate_found *f, struct text *out, enum calibration_work work,
			  enum launch_load load)
{
	struct text line = { 0 }, *t = &line;
	const struct calibrate_series *s;
	const char *why;
	uint32_t ns;

	why = constant(f, work, load, &s, &ns);
	json__open(t, NULL, '{');
	json__string(t, "gpucollect", "constant");
	json__number(t, "device", (uint64_t)f->device);
	json__string(t, "name", f->name);
	json__number(t, "cuda_version", f->version);
	json__number(t, "timer_step_ns", f->step_ns);
	json__string(t, "work", works[work]);
	json__string(t, "stream", loads[load]);
	if (why)
		json__null(t, "constant_ns");
	else
		json__number(t, "constant_ns", ns);
	json__string(t, "why_not", why);
	add_series(f, t, work, load);
	json__close(t, '}');
	text__add_string(t, "\n");
	if (t->failed)
		out->failed = true;
	else
		text__add(out, t->data, t->len);
	text__free(t);
}

void calibrate_found__print_json(const struct calibrate_found *f, struct text *t)
{
	int work, load;

	for (work = 0; work < NR_CALIBRATION_WORKS; work++)
		for (load = LOAD_BUSY; load <= LOAD_IDLE; load++)
			add_situation(f, t, (enum calibration_work)work, (enum launch_load)load);
}
