/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* S-06: a loop behind a label without size and type, between two sized functions. */
        .text
        .globl  sized_before
        .type   sized_before, @function
sized_before:
        .cfi_startproc
        ret
        .cfi_endproc
        .size   sized_before, .-sized_before

        .globl  label_without_size
label_without_size:
        .cfi_startproc
1:      incq    %rax
        jmp     1b
        .cfi_endproc

        .globl  sized_behind
        .type   sized_behind, @function
sized_behind:
        .cfi_startproc
        ret
        .cfi_endproc
        .size   sized_behind, .-sized_behind
        .section .note.GNU-stack, "", @progbits
