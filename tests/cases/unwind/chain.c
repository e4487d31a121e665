// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Plain three-deep call chain, the base of several inputs (U-04, U-05, O-04 ...). */
#include "../common/stop.h"
static volatile unsigned long sink;

NOINLINE void chain_c(unsigned long n)
{
    for (unsigned long i = 0; i < n; i++)
        sink++;
    KEEP();
}

NOINLINE void chain_b(unsigned long n)
{
    char room[200];
    __asm__ volatile("" : : "r"(room) : "memory");
    chain_c(n);
    KEEP();
}

NOINLINE void chain_a(unsigned long n)
{
    chain_b(n);
    KEEP();
}

int main(void)
{
    stop_after(10);
    for (;;)
        chain_a(50000000);
}
