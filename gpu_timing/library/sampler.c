// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "gpu_timing/library/sampler.h"

#define SECOND_NS 1000000000ull
#define WINDOW_NS 4000000ull
#define GROWTH 8		/* a record stands for at most such a part of the launches before it */
#define MAX_RATE 1e7
#define MIN_RATE 0.5
#define LONGEST_NS 100000	/* that one record can cost by itself */

void pace__spend(struct pace *p, uint64_t ns)
{
	if (ns > LONGEST_NS)
		ns = LONGEST_NS;
	p->spent += ns;
	p->credit -= (int64_t)ns;
	p->records++;
	p->cost += ((double)ns - p->cost) / (p->records < 16 ? (double)p->records : 16);
}

void pace__owe(struct pace *p, uint64_t ns)
{
	p->credit -= (int64_t)ns;
}

/* A second's worth. */
static int64_t worth(struct sampling how)
{
	return (int64_t)(SECOND_NS / 1000000) * how.budget_ppm;
}

static void earn(struct pace *p, struct sampling how, uint64_t now)
{
	int64_t most = worth(how);

	if (!p->last) {
		p->rate = MAX_RATE;
		p->credit = most;
		p->window = now;
	} else if (now > p->last) {
		double earned = (double)(now - p->last) * how.budget_ppm / 1e6;

		p->credit = earned < (double)(most - p->credit) ? p->credit + (int64_t)earned : most;
	}
	p->last = now;
}

/* What was spent in the last window, against what it should have been: twice the budget down to nothing. */
static void adjust(struct pace *p, struct sampling how, uint64_t now)
{
	double most = (double)worth(how), allowed, wealth;

	if (now < p->window + WINDOW_NS)
		return;
	wealth = 1 + (double)p->credit / most;
	allowed = (double)(now - p->window) * how.budget_ppm / 1e6 * (wealth > 0.05 ? wealth : 0.05);
	if ((double)p->spent > 2 * allowed)
		p->rate *= allowed / (double)p->spent > 1 / 64.0 ? allowed / (double)p->spent : 1 / 64.0;
	else if ((double)p->spent > allowed)
		p->rate *= 0.8;
	else if ((double)p->spent < allowed * 0.8)
		p->rate *= (double)p->spent < allowed / 2 ? 2 : 1.2;
	p->rate = p->rate < MIN_RATE ? MIN_RATE : p->rate > MAX_RATE ? MAX_RATE : p->rate;
	p->window = now;
	p->spent = 0;
}

/* Records a second that half of the budget pays for. */
static double half_of(const struct pace *p, struct sampling how)
{
	return how.budget_ppm * 500.0 / (p->cost > 1 ? p->cost : 1);
}

bool pace__is_broke(struct pace *p, struct sampling how, uint64_t now)
{
	earn(p, how, now);
	return p->credit < -worth(how);
}

uint32_t pace__weight(struct pace *p, const struct stratum *s, struct sampling how, bool share,
		      uint64_t now)
{
	uint64_t most = s->launches / GROWTH, weight = how.every;

	if (how.every == 1)
		return 1;
	if (!how.every) {
		bool broke = pace__is_broke(p, how, now);

		adjust(p, how, now);
		if (s->launches < SAMPLER_FIRST)
			weight = 1;
		else if (now > s->since)
			weight = (uint64_t)(2e9 * s->weight / ((double)(now - s->since) *
							       (share ? half_of(p, how) : p->rate)));
		else
			weight = s->weight;
		/* What it owes comes before what it would like to know. */
		if (broke)
			most = CHANNEL_MAX_STANDS_FOR;
	}
	weight = weight < most ? weight : most;
	return weight < 1 ? 1 : weight > CHANNEL_MAX_STANDS_FOR ? CHANNEL_MAX_STANDS_FOR : (uint32_t)weight;
}

/* 1 to n, from 32 random bits. */
static uint32_t one_of(uint32_t n, uint32_t random)
{
	return 1 + (uint32_t)((uint64_t)random * n >> 32);
}

void stratum__begin(struct stratum *s, uint32_t weight, uint64_t random, uint64_t now)
{
	uint32_t first = one_of(2 * weight, (uint32_t)(random >> 32));
	uint32_t second = one_of(2 * weight - 1, (uint32_t)random);

	s->weight = weight;
	s->left = 2 * weight;
	s->pick[0] = first;
	s->pick[1] = second + (second >= first);
	s->blocks++;
	s->since = now;
}
