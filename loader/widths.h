/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What an entry of the tally weighs: its counts and times, measured and estimated, into the model. Where
 * only some launches were looked at, each stands for others; where some have no time, a mean does; the time
 * of those that were timed together is split among them.
 */
#ifndef LOADER_WIDTHS_H
#define LOADER_WIDTHS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "loader/profile/profile.h"
#include "loader/runs.h"
#include "loader/shares.h"
#include "loader/strata.h"
#include "loader/tally.h"

struct widths;

/*
 * All must live on. `strata` may be NULL: every record stands for itself; `runs`, too: none were timed
 * together. 0 or -ENOMEM.
 */
int widths__new(const struct tally *tally, struct strata *strata, const struct runs *runs,
		struct profile *profile, uint64_t period_ns, struct widths **widths);
void widths__free(struct widths *w);	/* NULL is fine */

/* An entry of that tally, at its place in the model; each once. 0 or -ENOMEM. */
int widths__add(struct widths *w, const struct tally_value *v, uint32_t node, uint32_t labels);
/* The same of a graph whose time is split among what it runs; weighed, nr > 0. */
int widths__add_graph(struct widths *w, const struct tally_value *v, uint32_t node, uint32_t labels,
		      const struct share *shares, size_t nr);
/* What launches of a kernel took on average, of any shape; false: none was timed. */
bool widths__mean(const struct widths *w, uint32_t process, uint32_t work, double *ns);
/* After the last one: what holds of all together, into the profile's run. */
void widths__finish(struct widths *w);

#endif
