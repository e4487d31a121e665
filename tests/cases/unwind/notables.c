// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* U-06: main -> no_tables (no unwind tables) -> leaf_below (tables). */
#include "../common/stop.h"
static volatile unsigned long sink;
extern void no_tables(void);

NOINLINE void leaf_below(void)
{
    for (;;)
        sink++;
}

int main(void)
{
    stop_after(10);
    no_tables();
    return 1;
}
