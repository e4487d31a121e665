/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Records of the BPF ring (bpf/gpucollect.h). */
#ifndef LOADER_RECORDS_H
#define LOADER_RECORDS_H

#include <stddef.h>
#include <stdint.h>

/* The least size of a record of a type, bytes; SIZE_MAX: there is no such type. */
size_t records__least(uint16_t type);

#endif
