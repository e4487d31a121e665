// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* S-06: calls the label of nosize.S. */
#include "../common/stop.h"
extern void label_without_size(void);
int main(void)
{
    stop_after(10);
    label_without_size();
    return 1;
}
