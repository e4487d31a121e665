// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* U-01: the last instruction of a function is a call that never returns, so the
 * return address is the first byte of the next function, whose frame is larger. */
#include "../common/stop.h"
static volatile unsigned long sink;

__attribute__((noreturn, noinline)) void never_returns(void)
{
    for (;;)
        sink++;
}

NOINLINE void ends_in_call(unsigned long *p)
{
    unsigned long kept[3] = { *p, 2, 3 };
    __asm__ volatile("" : : "r"(kept) : "memory");
    never_returns();
}

/* Lies directly behind ends_in_call and has another frame size. */
NOINLINE void bystander(unsigned long *p)
{
    unsigned long big[200];
    memset(big, (int)*p, sizeof big);
    __asm__ volatile("" : : "r"(big) : "memory");
    sink += big[7];
}

int main(int argc, char **argv)
{
    unsigned long seed = (unsigned long)argc;
    (void)argv;
    stop_after(10);
    if (argc > 5)
        bystander(&seed);
    ends_in_call(&seed);
    return 1;
}
