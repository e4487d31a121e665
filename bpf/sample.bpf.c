// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "vmlinux.h"
#include <bpf/bpf_helpers.h>
#include "bpf/gpucollect.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

SEC("perf_event")
int gpucollect_sample(struct bpf_perf_event_data *ctx)
{
	return 0;
}
