// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* P-09: no Python at all; the program only contains texts and exports names that a search
 * for an interpreter may stumble over. */
#include "../common/stop.h"
__attribute__((used)) const char version_text[] =
    "3.11.4 (main, Jan  1 2024, 00:00:00) [GCC 12.2.0]";
__attribute__((used)) const char other_text[] = "libpython3.11.so.1.0";
__attribute__((used)) unsigned long Py_Version = 0x030b04f0;
__attribute__((used)) char _PyRuntime[64] = { 1, 2, 3, 4 };
static volatile unsigned long sink;

NOINLINE void plain_c_loop(void)
{
    for (;;)
        sink++;
}

int main(void)
{
    stop_after(10);
    plain_c_loop();
    return 1;
}
