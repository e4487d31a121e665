// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "loader/verdict.h"

#include "loader/base/log.h"
#include "loader/exit_codes.h"

int verdict__targets(const struct options *options, const struct attach_counts *counts, bool left,
		     bool pending)
{
	if (counts->taken && !left)
		return EXIT_NO_PERMISSION;
	if (!options__needs_library(options) || counts->timed || counts->later)
		return 0;
	if (counts->untimed) {
		log_error("no GPU work can be timed, see above: %s--metric cpu shows CPU time",
			  counts->untimed > counts->kept_out ? "--metric launches counts it, " : "");
		return EXIT_NO_PERMISSION;
	}
	if (pending) {
		log_warn("the timing library is still on its way in: what is launched before it is there is "
			 "left out");
		return 0;
	}
	log_warn("none of %s processes has loaded the CUDA driver: there will be no GPU time unless one "
		 "does; --metric cpu shows CPU time", counts->taken ? "the other" : "these");
	return 0;
}
