// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* C-02: two thirds of the time in blind_lib, one third here. */
#include "../common/stop.h"
static volatile unsigned long sink;
extern void blind_entry(unsigned long);

NOINLINE void seen_fn(unsigned long n)
{
    for (unsigned long i = 0; i < n; i++)
        sink++;
}

int main(void)
{
    stop_after(10);
    for (;;) {
        blind_entry(40000000);
        seen_fn(20000000);
    }
}
