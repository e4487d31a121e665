// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* G-02: a library of the user's own in LD_PRELOAD; says so once per process. */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
__attribute__((constructor)) static void loaded(void)
{
    const char *list = getenv("LD_PRELOAD");
    fprintf(stderr, "user library in place (%s)\n",
            list && *list ? "LD_PRELOAD set" : "LD_PRELOAD empty");
}
