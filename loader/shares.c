// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "loader/shares.h"

void shares__weigh(struct share *shares, size_t nr)
{
	double ns = 0, known = 0, mean;
	size_t i;

	for (i = 0; i < nr; i++) {
		if (shares[i].mean < 0)
			continue;
		ns += shares[i].mean * shares[i].count;
		known += shares[i].count;
	}
	mean = known > 0 ? ns / known : 0;
	for (i = 0; i < nr; i++) {
		if (mean > 0)
			shares[i].weight = shares[i].count * (shares[i].mean < 0 ? mean : shares[i].mean);
		else
			shares[i].weight = shares[i].count;
	}
}

void shares__split(const struct share *shares, size_t nr, uint64_t total, uint64_t *parts)
{
	uint64_t given = 0, upto;
	double all = 0, sum = 0;
	size_t i;

	for (i = 0; i < nr; i++)
		all += shares[i].weight;
	for (i = 0; i < nr; i++) {
		double ns;

		sum += shares[i].weight;
		ns = sum / all * (double)total + 0.5;
		upto = i + 1 < nr && ns < (double)total ? (uint64_t)ns : total;
		parts[i] = upto > given ? upto - given : 0;
		given += parts[i];
	}
}
