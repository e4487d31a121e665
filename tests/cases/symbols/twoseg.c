// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* S-04: two executable segments, each with its own difference between address and file offset. */
#include "../common/stop.h"
static volatile unsigned long sink;

__attribute__((noinline, section(".farcode"))) void in_far_segment(void)
{
    for (unsigned long i = 0; i < 100000000UL; i++)
        sink++;
}

NOINLINE void in_normal_segment(void)
{
    for (unsigned long i = 0; i < 100000000UL; i++)
        sink++;
}

int main(void)
{
    stop_after(10);
    for (;;) {
        in_far_segment();
        in_normal_segment();
    }
}
