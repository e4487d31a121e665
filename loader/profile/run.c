// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* What is to be known about the run: facts, counters by cause, notes, and the texts of marks. */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "loader/base/array.h"
#include "loader/profile/model.h"
#include "loader/profile/profile.h"

static const char *const mark_texts[NR_PROFILE_MARKS] = {
	[PROFILE_MARK_UNKNOWN] = "[unknown]",
	[PROFILE_MARK_TRUNCATED] = "[truncated]",
	[PROFILE_MARK_NO_UNWIND_INFO] = "[no unwind info: %s]",
	[PROFILE_MARK_NO_UNWIND_RULE] = "[unusable unwind info: %s]",
	[PROFILE_MARK_STACK_UNREADABLE] = "[stack unreadable]",
	[PROFILE_MARK_STACK_LOOPS] = "[stack loops]",
	[PROFILE_MARK_NOT_CODE] = "[return address is not code]",
	[PROFILE_MARK_GENERATED] = "[generated code without frame pointer]",
	[PROFILE_MARK_NO_STACK] = "[no stack]",
	[PROFILE_MARK_PYTHON_UNKNOWN] = "[unknown Python function]",
	[PROFILE_MARK_PYTHON_CUT] = "[more Python frames]",
	[PROFILE_MARK_PYTHON_PLACE] = "[Python frames out of place]",
};

static const char *const unresolved_texts[NR_PROFILE_UNRESOLVED] = {
	[PROFILE_RESOLVED] = "resolved",
	[PROFILE_NO_SYMBOL] = "no symbol covers the address",
	[PROFILE_NO_SYMBOLS] = "file without symbols",
	[PROFILE_FILE_UNREADABLE] = "file unreadable",
	[PROFILE_GENERATED] = "generated code",
	[PROFILE_KERNEL_HIDDEN] = "kernel addresses hidden (kptr_restrict)",
	[PROFILE_MAPPING_GONE] = "mapping gone",
};

const char *profile__mark_text(enum profile_mark mark)
{
	return mark_texts[mark];
}

const char *profile__unresolved_text(enum profile_unresolved why)
{
	return unresolved_texts[why];
}

struct profile_run *profile__run(struct profile *p)
{
	return &p->run;
}

const struct profile_run *profile__run_const(const struct profile *p)
{
	return &p->run;
}

int profile__count(struct profile *p, enum profile_counter_kind kind, const char *what,
		   uint64_t n)
{
	struct profile_counter *c;
	const char *text;
	size_t i;

	if (kind >= NR_PROFILE_COUNTER_KINDS)
		return -EINVAL;
	if (strings__intern(&p->strings, what, &text))
		return -ENOMEM;
	for (i = 0; i < p->nr_counters; i++) {
		c = &p->counters[i];
		if (c->kind != kind || c->what != text)
			continue;
		if (__builtin_add_overflow(c->value, n, &c->value))
			c->value = UINT64_MAX;
		return 0;
	}
	if (array__reserve((void **)&p->counters, &p->counters_size, p->nr_counters,
			   sizeof(*p->counters)))
		return -ENOMEM;
	p->counters[p->nr_counters++] = (struct profile_counter){
		.what = text, .kind = kind, .value = n,
	};
	return 0;
}

size_t profile__nr_counters(const struct profile *p)
{
	return p->nr_counters;
}

const struct profile_counter *profile__counter_at(const struct profile *p, size_t i)
{
	return &p->counters[i];
}

static double share_lost(const struct profile *p, enum profile_counter_kind kind, uint64_t kept)
{
	double lost = 0;
	size_t i;

	for (i = 0; i < p->nr_counters; i++)
		if (p->counters[i].kind == kind)
			lost += (double)p->counters[i].value;
	return lost > 0 ? lost / (lost + (double)kept) : 0;
}

double profile__lost_share(const struct profile *p)
{
	double samples = share_lost(p, PROFILE_LOST_SAMPLES, profile__nr_samples(p));
	double launches = share_lost(p, PROFILE_LOST_LAUNCHES,
				     profile__total_count(p, PROFILE_LAUNCHES));

	return samples > launches ? samples : launches;
}

int profile__note(struct profile *p, const char *fmt, ...)
{
	const char *text;
	char *line;
	va_list ap;
	size_t i;
	int n;

	va_start(ap, fmt);
	n = vasprintf(&line, fmt, ap);
	va_end(ap);
	if (n < 0)
		return -ENOMEM;
	n = strings__intern(&p->strings, line, &text);
	free(line);
	if (n)
		return n;
	for (i = 0; i < p->nr_notes; i++)
		if (p->notes[i] == text)
			return 0;
	if (array__reserve((void **)&p->notes, &p->notes_size, p->nr_notes, sizeof(*p->notes)))
		return -ENOMEM;
	p->notes[p->nr_notes++] = text;
	return 0;
}

size_t profile__nr_notes(const struct profile *p)
{
	return p->nr_notes;
}

const char *profile__note_at(const struct profile *p, size_t i)
{
	return p->notes[i];
}
