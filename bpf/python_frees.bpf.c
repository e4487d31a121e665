// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Counts the code objects that interpreters free; see struct python_freed. */
#include "bpf/common.bpf.h"

/* The cookie is the element of the process that the probe is for: whichever of its threads runs here. */
SEC("uprobe")
int gpucollect_free(struct pt_regs *ctx)
{
	__u32 index = bpf_get_attach_cookie(ctx);
	struct python_freed *freed = bpf_map_lookup_elem(&python_freed, &index);

	if (freed)
		__sync_fetch_and_add(&freed->nr, 1);
	return 0;
}
