/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The timing library as bytes inside the program. */
	.section .rodata
	.globl embedded_timing_library, embedded_timing_library_end
	.balign 16
embedded_timing_library:
	.incbin TIMING_LIB
embedded_timing_library_end:
	.section .note.GNU-stack, "", @progbits
