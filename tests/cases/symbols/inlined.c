// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* S-08: two levels of inlining below a real function; built with debug information in the
 * file, compressed, and in a separate .dwo file. */
#include "../common/stop.h"
static volatile unsigned long sink;

static inline __attribute__((always_inline)) void inline_deepest(unsigned long i) { sink += i * 3; }

static inline __attribute__((always_inline)) void inline_between(unsigned long n)
{
    for (unsigned long i = 0; i < n; i++)
        inline_deepest(i);
}

NOINLINE void real_function(unsigned long n)
{
    inline_between(n);
    KEEP();
}

int main(void)
{
    stop_after(10);
    for (;;)
        real_function(50000000);
}
