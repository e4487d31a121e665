// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* S-07: four symbols at one address: global, weak, a second global and a local one. */
#include "../common/stop.h"
static volatile unsigned long sink;

NOINLINE void true_name(void)
{
    for (;;)
        sink++;
}
void a_weak_name(void) __attribute__((weak, alias("true_name")));
void zz_other_name(void) __attribute__((alias("true_name")));
static void local_name(void) __attribute__((used, alias("true_name")));

int main(void)
{
    stop_after(10);
    a_weak_name();
    return 1;
}
