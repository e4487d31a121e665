// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* U-06: the one file of the program that is built without any unwind table. */
extern void leaf_below(void);
__attribute__((noinline)) void no_tables(void)
{
    volatile char room[88];
    room[0] = 1;
    leaf_below();
    room[1] = room[0];
}
