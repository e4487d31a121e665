// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* O-01: usage: sleeper MS   sleeps without using the CPU (0: ends at once) */
#include <stdlib.h>
#include <unistd.h>
int main(int argc, char **argv)
{
    usleep((useconds_t)(argc > 1 ? atoi(argv[1]) * 1000 : 3000000));
    return 0;
}
