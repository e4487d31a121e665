// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* S-05: two libraries are loaded and unloaded by turns; both get the same address.
 * usage: swap DIR   Prints the first six addresses. */
#include "../common/stop.h"
#include <dlfcn.h>
#include <stdio.h>

NOINLINE void one_turn(const char *dir, int odd, int show)
{
    char path[4096];
    void *lib;
    void (*fn)(unsigned long);

    snprintf(path, sizeof path, "%s/%s", dir, odd ? "libswap_b.so" : "libswap_a.so");
    lib = dlopen(path, RTLD_NOW);
    if (!lib) {
        fprintf(stderr, "%s\n", dlerror());
        exit(1);
    }
    fn = (void (*)(unsigned long))dlsym(lib, odd ? "swap_b_fn" : "swap_a_fn");
    if (show) {
        printf("%s %p\n", odd ? "b" : "a", (void *)fn);
        fflush(stdout);
    }
    fn(400000000UL);
    dlclose(lib);
}

int main(int argc, char **argv)
{
    stop_after(10);
    for (int turn = 0;; turn++)
        one_turn(argc > 1 ? argv[1] : ".", turn & 1, turn < 6);
}
