// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* U-03: a frame realigned to 128 bytes with a variable-length array; its CFA is
 * given by a DWARF expression. usage: realign [tight]
 *   (none)  spin below one such frame
 *   tight   call such a function in a loop so that samples land in its first and last
 *           instructions */
#include "../common/stop.h"
static volatile unsigned long sink;

NOINLINE void leaf(const char *p, int n)
{
    for (unsigned long i = 0;; i++)
        sink += (unsigned long)p[i % (unsigned long)n];
}

NOINLINE void realigned_frame(int n, int a, int b, int c, int d, int e, int f, int g)
{
    _Alignas(128) char fixed[256];
    char vla[n + g];
    (void)a, (void)b, (void)c, (void)d, (void)e, (void)f;
    memset(fixed, 1, sizeof fixed);
    memset(vla, 1, (size_t)n);
    leaf(vla, n);
    leaf(fixed, g);
}

NOINLINE unsigned realigned_small(int n, int a, int b, int c, int d, int e, int f, int g)
{
    _Alignas(128) char fixed[128];
    char vla[n];
    fixed[0] = (char)a;
    vla[0] = (char)g;
    __asm__ volatile("" : : "r"(fixed), "r"(vla) : "memory");
    return (unsigned)(fixed[0] + vla[0] + b + c + d + e + f);
}

NOINLINE void caller_of_small(int n)
{
    for (;;)
        sink += realigned_small(n, 1, 2, 3, 4, 5, 6, 7);
}

int main(int argc, char **argv)
{
    stop_after(10);
    if (argc > 1 && !strcmp(argv[1], "tight"))
        caller_of_small(16 * argc);
    else
        realigned_frame(200 + argc, 1, 2, 3, 4, 5, 6, 7);
    return 1;
}
