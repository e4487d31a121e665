// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* S-05: built twice under two function names. */
static volatile unsigned long sink;
__attribute__((noinline)) void FUNCTION(unsigned long n)
{
    for (unsigned long i = 0; i < n; i++)
        sink++;
}
