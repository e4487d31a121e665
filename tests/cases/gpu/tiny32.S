/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* G-02: a 32-bit program without libraries: writes a line and ends. */
        .text
        .globl  _start
_start:
        movl    $60000000, %ecx
1:      decl    %ecx
        jnz     1b
        movl    $4, %eax
        movl    $1, %ebx
        movl    $text, %ecx
        movl    $text_end - text, %edx
        int     $0x80
        movl    $1, %eax
        xorl    %ebx, %ebx
        int     $0x80
        .data
text:   .ascii  "thirty-two bit\n"
text_end:
        .section .note.GNU-stack, "", @progbits
