// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "loader/output/summary.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "loader/base/array.h"
#include "loader/base/text.h"
#include "loader/output/names.h"
#include "loader/output/shares.h"

#define DEFAULT_ROWS 10
#define DEFAULT_COLUMNS 80
#define MIN_NAME 20		/* columns that a name gets also on a narrow terminal */
#define SIZES_COLUMNS 100	/* from this width on kernels are shown with what they take of the device */

/* From the least to the most of the kernels that a row stands for; both 0: not known. */
struct range {
	uint32_t low, high;
};

/* What ends stacks: one row of a table. */
struct row {
	const char *name;
	uint64_t value;
	uint64_t count;
	struct range registers, shared;
	uint64_t counted;	/* of the value what the count belongs to: not parts of graphs */
};

struct table_of {
	struct row *rows;
	size_t nr, size;
	uint64_t value;		/* of all rows */
	uint64_t count;
	uint64_t copies;	/* of these, what are no launches */
	bool sized;		/* registers are known of some */
};

static int name_cmp(const void *a, const void *b)
{
	const struct row *x = a, *y = b;

	return strcmp(x->name, y->name);
}

static int value_cmp(const void *a, const void *b)
{
	const struct row *x = a, *y = b;

	if (x->value != y->value)
		return x->value < y->value ? 1 : -1;
	return strcmp(x->name, y->name);
}

static uint64_t sum(uint64_t a, uint64_t b)
{
	return __builtin_add_overflow(a, b, &a) ? UINT64_MAX : a;
}

static struct row new_row(const struct profile *p, const struct names *names, const struct profile_value *v)
{
	uint32_t frame = profile__node_frame(p, v->node);
	const struct profile_frame *f = profile__frame_at(p, frame);

	return (struct row){
		.name = names__of(names, frame), .value = v->value, .count = v->count,
		.counted = v->flags & PROFILE_SHARED ? 0 : v->value,
		.registers = { f->registers, f->registers },
		.shared = { f->shared_bytes, f->shared_bytes },
	};
}

static void widen(struct range *to, const struct range *by)
{
	to->low = by->low < to->low ? by->low : to->low;
	to->high = by->high > to->high ? by->high : to->high;
}

static void merge(struct row *to, const struct row *r)
{
	to->value = sum(to->value, r->value);
	to->count = sum(to->count, r->count);
	to->counted = sum(to->counted, r->counted);
	if (!r->registers.high)
		return;
	if (to->registers.high) {
		widen(&to->registers, &r->registers);
		widen(&to->shared, &r->shared);
	} else {
		to->registers = r->registers;
		to->shared = r->shared;
	}
}

/* All values of a metric by the innermost frame, largest first. */
static int collect(const struct profile *p, const struct names *names, enum profile_metric metric,
		   struct table_of *t)
{
	struct profile_value v;
	size_t pos = 0, i, kept = 0;

	memset(t, 0, sizeof(*t));
	while (profile__next(p, &pos, &v)) {
		if (v.metric != metric)
			continue;
		t->count = sum(t->count, v.count);
		if (v.flags & PROFILE_OF_COPIES)
			t->copies = sum(t->copies, v.count);
		if (!v.value)
			continue;
		if (array__reserve((void **)&t->rows, &t->size, t->nr, sizeof(*t->rows)))
			return -ENOMEM;
		t->rows[t->nr++] = new_row(p, names, &v);
		t->sized |= t->rows[t->nr - 1].registers.high != 0;
		t->value = sum(t->value, v.value);
	}
	if (!t->nr)
		return 0;
	qsort(t->rows, t->nr, sizeof(*t->rows), name_cmp);
	for (i = 0; i < t->nr; i++) {
		struct row *r = &t->rows[i];

		if (kept && !strcmp(t->rows[kept - 1].name, r->name))
			merge(&t->rows[kept - 1], r);
		else
			t->rows[kept++] = *r;
	}
	t->nr = kept;
	qsort(t->rows, t->nr, sizeof(*t->rows), value_cmp);
	return 0;
}

/* A name, harmless already, in at most `room` columns. */
static void add_name(struct text *out, const char *name, size_t room)
{
	static const char gpu[] = "[GPU] ";
	size_t columns = 0, i = 0, len;

	if (!strncmp(name, gpu, sizeof(gpu) - 1))
		name += sizeof(gpu) - 1;
	len = strlen(name);
	if (text__columns(name, len) <= room) {
		text__add(out, name, len);
		return;
	}
	for (; columns + 1 < room; columns++)
		i += text__utf8(name + i, len - i);
	text__add(out, name, i);
	text__add_string(out, "\xe2\x80\xa6");
}

struct layout {
	const char *title;
	const char *what;	/* head of the last column */
	const char *counted;	/* what is counted; NULL: the values are the counts */
	const char *one;	/* the same of one */
	const char *column;	/* head of the count column, where no copies are among them */
	const char *other, *others;	/* "… and 12 more kernels" */
	const char *note;	/* below the table; NULL: none */
	const char *value;	/* head of the column of values */
	const char *(*figure)(char *buf, uint64_t value);
	bool mean;		/* with the mean of each count */
};

static void add_head(struct text *out, const struct layout *l, const struct table_of *t)
{
	char a[TEXT_FIGURE];

	text__printf(out, "%s: %s", l->title, l->figure(a, t->value));
	if (l->counted) {
		text__add_string(out, " in ");
		text__add_count(out, t->count - t->copies, l->one, l->counted);
	}
	if (t->copies) {
		text__add_string(out, " and ");
		text__add_count(out, t->copies, "copy or set", "copies and sets");
	}
	text__printf(out, "\n%9s", "share");
	if (l->counted)
		text__printf(out, " %10s", l->value);
	text__printf(out, " %12s", t->copies ? "calls" : l->column);
	if (l->mean)
		text__printf(out, " %9s", "mean");
	if (t->sized)
		text__printf(out, " %7s %13s", "regs", "static smem");
	text__printf(out, "  %s\n", l->what);
}

static const char *of_range(char *buf, const struct row *row, const struct range *r)
{
	if (!row->registers.high)
		return "";
	snprintf(buf, TEXT_FIGURE, r->low == r->high ? "%" PRIu32 : "%" PRIu32 "-%" PRIu32, r->low, r->high);
	return buf;
}

static void add_table(struct text *out, const struct layout *l, const struct table_of *t,
		      const struct summary_options *o)
{
	size_t rows = o->rows ? o->rows : DEFAULT_ROWS, i, used;
	size_t columns = o->columns ? o->columns : DEFAULT_COLUMNS;
	char a[TEXT_FIGURE], b[TEXT_FIGURE];

	if (!t->nr)
		return;
	add_head(out, l, t);
	for (i = 0; i < t->nr && i < rows; i++) {
		const struct row *r = &t->rows[i];
		size_t start = out->len;

		text__printf(out, "%9s", text__share(a, r->value, t->value));
		if (l->counted)
			text__printf(out, " %10s", l->figure(a, r->value));
		text__printf(out, " %12s", text__count(a, r->count));
		/* What a graph runs has no launches of its own. */
		if (l->mean)
			text__printf(out, " %9s", r->count ? l->figure(a, r->counted / r->count) : "-");
		if (t->sized)
			text__printf(out, " %7s %13s", of_range(a, r, &r->registers),
				     of_range(b, r, &r->shared));
		text__add_string(out, "  ");
		used = out->len - start;
		add_name(out, r->name, columns > used + MIN_NAME ? columns - used : MIN_NAME);
		text__add_string(out, "\n");
	}
	if (t->nr > rows) {
		text__printf(out, "%9s and ", "");
		text__add_count(out, t->nr - rows, l->other, l->others);
		text__add_string(out, "\n");
	}
	if (l->note)
		text__printf(out, "%s\n", l->note);
	text__add_string(out, "\n");
}

static int add_metric(struct text *out, const struct profile *p, const struct names *names,
		      enum profile_metric metric, const struct layout *l,
		      const struct summary_options *o)
{
	struct table_of t;
	int err = collect(p, names, metric, &t);

	t.sized &= o->columns >= SIZES_COLUMNS;
	if (!err)
		add_table(out, l, &t, o);
	free(t.rows);
	return err;
}

static const struct layout gpu_layout = {
	.title = "GPU time by kernel", .what = "kernel", .counted = "launches", .one = "launch",
	.column = "launches", .other = "more kernel", .others = "more kernels", .value = "time",
	.figure = text__duration, .mean = true,
	.note = "Kernels that overlap each count in full: the sum may exceed wall time.",
};

static const struct layout launches_layout = {
	.title = "Launches by kernel", .what = "kernel", .column = "launches", .other = "more kernel",
	.others = "more kernels", .figure = text__count,
};

static const struct layout bytes_layout = {
	.title = "Bytes copied or set", .what = "kind", .counted = "copies and sets", .one = "copy or set",
	.column = "calls", .other = "more kind", .others = "more kinds", .value = "size",
	.figure = text__bytes, .mean = true,
};

static const struct layout wait_layout = {
	.title = "Waits for the GPU by call", .what = "call", .counted = "waits", .one = "wait",
	.column = "waits", .other = "more call", .others = "more calls", .value = "time",
	.figure = text__duration, .mean = true,
};

static const struct layout cpu_layout = {
	.title = "CPU time by function", .what = "function", .counted = "samples", .one = "sample",
	.column = "samples", .other = "more function", .others = "more functions", .value = "time",
	.figure = text__duration,
};

static const struct layout shares_layout = {
	.title = "GPU time by process and device", .what = "process", .counted = "launches", .one = "launch",
	.column = "launches", .other = "more row", .others = "more rows", .value = "time",
	.figure = text__duration,
};

/* "rank 3, train (pid 42), device 1" */
static char *share_name(const struct names *names, const struct share *s)
{
	struct text t = { 0 };

	if (s->rank != PROFILE_NO_LABEL)
		text__printf(&t, "rank %" PRIu32 ", ", s->rank);
	text__add_string(&t, names__of(names, s->process));
	if (s->device != PROFILE_NO_LABEL)
		text__printf(&t, ", device %" PRIu32, s->device);
	return text__take(&t);
}

static int share_rows(struct table_of *t, const struct names *names, const struct shares *s)
{
	for (size_t i = 0; i < s->nr; i++) {
		const struct share *one = &s->list[i];
		char *name = one->ns ? share_name(names, one) : NULL;

		if (!one->ns)
			continue;
		if (!name)
			return -ENOMEM;
		t->rows[t->nr++] = (struct row){
			.name = name, .value = one->ns, .count = sum(one->launches, one->copies),
		};
		t->value = sum(t->value, one->ns);
		t->count = sum(t->count, sum(one->launches, one->copies));
		t->copies = sum(t->copies, one->copies);
	}
	return 0;
}

/* Where there are several processes or devices. */
static int add_shares(struct text *out, const struct profile *p, const struct names *names,
		      const struct summary_options *o)
{
	struct table_of t = { 0 };
	struct shares s;
	int err = shares__new(p, &s);

	if (err)
		return err;
	t.rows = calloc(s.nr + 1, sizeof(*t.rows));
	err = t.rows ? share_rows(&t, names, &s) : -ENOMEM;
	if (!err && t.nr > 1) {
		qsort(t.rows, t.nr, sizeof(*t.rows), value_cmp);
		add_table(out, &shares_layout, &t, o);
	}
	for (size_t i = 0; i < t.nr; i++)
		free((char *)t.rows[i].name);
	free(t.rows);
	shares__free(&s);
	return err;
}

int summary__write(const struct profile *p, const struct summary_options *o, FILE *f)
{
	struct names *names = NULL;
	struct text out = { 0 };
	int err;

	err = names__new(p, false, &names);
	if (!err && o->bytes)
		err = add_metric(&out, p, names, PROFILE_BYTES, &bytes_layout, o);
	if (!err && profile__total(p, PROFILE_GPU_NS))
		err = add_metric(&out, p, names, PROFILE_GPU_NS, &gpu_layout, o);
	else if (!err)
		err = add_metric(&out, p, names, PROFILE_LAUNCHES, &launches_layout, o);
	if (!err)
		err = add_shares(&out, p, names, o);
	if (!err)
		err = add_metric(&out, p, names, PROFILE_WAIT_NS, &wait_layout, o);
	if (!err)
		err = add_metric(&out, p, names, PROFILE_CPU_NS, &cpu_layout, o);
	if (!err && !out.len)
		text__add_string(&out, "Nothing was captured.\n");
	if (!err && o->again) {
		text__add_string(&out, "All stacks: ");
		text__add_clean(&out, o->again, strlen(o->again));
		text__add_string(&out, "\n");
	}
	if (!err)
		err = text__write(&out, f);
	text__free(&out);
	names__free(names);
	return err;
}
