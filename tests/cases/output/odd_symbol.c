// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* O-03: its symbols are renamed after the build to texts that break formats (see odd_symbol.sh). */
#include "../common/stop.h"
static volatile unsigned long sink;

NOINLINE void rename_me_1(unsigned long n) { for (unsigned long i = 0; i < n; i++) sink++; }
NOINLINE void rename_me_2(unsigned long n) { for (unsigned long i = 0; i < n; i++) sink += 2; }
NOINLINE void rename_me_3(unsigned long n) { for (unsigned long i = 0; i < n; i++) sink += 3; }
NOINLINE void rename_me_4(unsigned long n) { for (unsigned long i = 0; i < n; i++) sink += 4; }
NOINLINE void rename_me_5(unsigned long n) { for (unsigned long i = 0; i < n; i++) sink += 5; }

int main(void)
{
    stop_after(10);
    for (;;) {
        rename_me_1(20000000);
        rename_me_2(20000000);
        rename_me_3(20000000);
        rename_me_4(20000000);
        rename_me_5(20000000);
    }
}
