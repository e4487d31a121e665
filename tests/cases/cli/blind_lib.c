// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* C-02: a library that is stripped and has no unwind tables. */
static volatile unsigned long sink;
static __attribute__((noinline)) void hidden_inner(unsigned long n)
{
    for (unsigned long i = 0; i < n; i++)
        sink++;
}
void blind_entry(unsigned long n)
{
    volatile char room[72];
    room[1] = 1;
    hidden_inner(n);
    room[2] = room[1];
}
