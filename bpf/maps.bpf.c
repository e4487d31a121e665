// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#define GPUCOLLECT_DEFINE_MAPS
#include "bpf/common.bpf.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";
