// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* S-03: linked as a shared library whose first segment has a very high address in the file. */
static volatile unsigned long sink;
__attribute__((noinline)) void high_library_fn(unsigned long n)
{
    for (unsigned long i = 0; i < n; i++)
        sink++;
}
__attribute__((noinline)) void high_library_entry(unsigned long n)
{
    high_library_fn(n);
    __asm__ volatile("");
}
