// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* U-10: code written to anonymous memory calls back into the program.
 * usage: anoncode fp|nofp
 *   fp    the generated code keeps a frame pointer
 *   nofp  it moves the stack pointer by 40 bytes and keeps none */
#include "../common/stop.h"
#include <sys/mman.h>
static volatile unsigned long sink;

static const unsigned char with_fp[] = {
    0x55,                   /* push %rbp           */
    0x48, 0x89, 0xe5,       /* mov  %rsp,%rbp      */
    0xff, 0xd7,             /* call *%rdi          */
    0x5d,                   /* pop  %rbp           */
    0xc3                    /* ret                 */
};
static const unsigned char without_fp[] = {
    0x48, 0x83, 0xec, 0x28, /* sub  $40,%rsp       */
    0xff, 0xd7,             /* call *%rdi          */
    0x48, 0x83, 0xc4, 0x28, /* add  $40,%rsp       */
    0xc3                    /* ret                 */
};

NOINLINE void called_back(void)
{
    for (;;)
        sink++;
}

NOINLINE void run_generated(void (*code)(void (*)(void)))
{
    code(called_back);
    KEEP();
}

int main(int argc, char **argv)
{
    int fp = argc < 2 || strcmp(argv[1], "nofp");
    void *page = mmap(0, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS,
                      -1, 0);
    stop_after(10);
    if (fp)
        memcpy(page, with_fp, sizeof with_fp);
    else
        memcpy(page, without_fp, sizeof without_fp);
    run_generated((void (*)(void (*)(void)))page);
    return 1;
}
