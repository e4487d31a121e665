// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* S-03: user of highlib. */
#include "../common/stop.h"
extern void high_library_entry(unsigned long);
int main(void)
{
    stop_after(10);
    for (;;)
        high_library_entry(50000000);
}
