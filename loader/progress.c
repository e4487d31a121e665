// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "loader/progress.h"

#include "loader/base/log.h"
#include "loader/base/text.h"

#define NS 1000000000ull

void progress__show(const struct options *options, const struct collect *collect,
		    const struct probes *probes, uint64_t elapsed_ns)
{
	uint64_t lost[NR_COUNTERS];
	struct collect_counters c;
	char of[TEXT_FIGURE];
	struct text t = { 0 };

	if (options->command)
		return;
	collect__counters(collect, &c);
	probes__counters(probes, lost);
	text__printf(&t, "%llu s", (unsigned long long)((elapsed_ns + NS / 2) / NS));
	if (options->duration_ns)
		text__printf(&t, " of %s", text__duration(of, options->duration_ns));
	text__add_string(&t, ": ");
	if (!options->no_cpu) {
		text__add_count(&t, c.samples, "sample", "samples");
		text__add_string(&t, ", ");
	}
	/* What is lost is said of both. */
	if (!options->no_gpu && options->metric != METRIC_CPU) {
		text__add_count(&t, c.launches, "launch", "launches");
		text__add_string(&t, ", ");
	}
	text__add_count(&t, lost[LOST_SAMPLE] + lost[LOST_LAUNCH], "lost", "lost");
	if (!t.failed)
		log__progress("%s", t.data);
	text__free(&t);
}
