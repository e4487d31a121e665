/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The driver's entries that the channel speaks of, by number and by name. Part of channel.h. */
#ifndef GPUCOLLECT_CHANNEL_SLOTS_H
#define GPUCOLLECT_CHANNEL_SLOTS_H

/* The driver's entry points that launch; `_ptsz`: NULL means the thread's own default stream. */
enum launch_entry {
	ENTRY_UNKNOWN = 0,
	ENTRY_LAUNCH_KERNEL = 1,
	ENTRY_LAUNCH_KERNEL_PTSZ = 2,
	ENTRY_LAUNCH_KERNEL_EX = 3,
	ENTRY_LAUNCH_KERNEL_EX_PTSZ = 4,
	ENTRY_COOPERATIVE = 5,
	ENTRY_COOPERATIVE_PTSZ = 6,
	ENTRY_COOPERATIVE_MULTI = 7,	/* one launch (and id) for each element of its list */
	ENTRY_LAUNCH = 8,		/* the old three: the block's shape isn't known */
	ENTRY_LAUNCH_GRID = 9,
	ENTRY_LAUNCH_GRID_ASYNC = 10,
	ENTRY_GRAPH_LAUNCH = 11,
	ENTRY_GRAPH_LAUNCH_PTSZ = 12,
	NR_LAUNCH_ENTRIES,
};

/* The entries whose slots are swapped: the launches, by enum launch_entry, then these. */
enum channel_slot {
	SLOT_MODULE_UNLOAD = NR_LAUNCH_ENTRIES,
	SLOT_LIBRARY_UNLOAD,
	SLOT_STREAM_DESTROY,
	SLOT_STREAM_DESTROY_V2,
	SLOT_CTX_DESTROY,
	SLOT_CTX_DESTROY_V2,
	SLOT_CTX_DETACH,
	SLOT_PRIMARY_RETAIN,
	SLOT_PRIMARY_RESET,
	SLOT_PRIMARY_RESET_V2,
	SLOT_PRIMARY_RELEASE,
	SLOT_PRIMARY_RELEASE_V2,
	SLOT_GREEN_DESTROY,
	SLOT_MODULE_GET_FUNCTION,
	SLOT_KERNEL_GET_FUNCTION,
	SLOT_STREAM_SYNC,
	SLOT_STREAM_SYNC_PTSZ,
	SLOT_CTX_SYNC,
	SLOT_EVENT_SYNC,
	SLOT_HOLDS,	/* from here on: what may hold a stream till the program lets it go; may be missing */
	SLOT_WAIT_VALUE32 = SLOT_HOLDS,
	SLOT_WAIT_VALUE32_PTSZ,
	SLOT_WAIT_VALUE32_V2,
	SLOT_WAIT_VALUE32_V2_PTSZ,
	SLOT_WAIT_VALUE64,
	SLOT_WAIT_VALUE64_PTSZ,
	SLOT_WAIT_VALUE64_V2,
	SLOT_WAIT_VALUE64_V2_PTSZ,
	SLOT_BATCH_MEM_OP,
	SLOT_BATCH_MEM_OP_PTSZ,
	SLOT_BATCH_MEM_OP_V2,
	SLOT_BATCH_MEM_OP_V2_PTSZ,
	SLOT_HOST_FUNC,
	SLOT_HOST_FUNC_PTSZ,
	SLOT_HOST_FUNC_V2,	/* CUDA 13.2 */
	SLOT_HOST_FUNC_V2_PTSZ,
	SLOT_CALLBACK,
	SLOT_CALLBACK_PTSZ,
	SLOT_WAIT_EXTERNAL,
	SLOT_WAIT_EXTERNAL_PTSZ,
	SLOT_COPIES,	/* from here on: what copies or sets memory; may be missing, too */
	SLOT_HTOD_ASYNC = SLOT_COPIES,
	SLOT_HTOD_ASYNC_PTSZ,
	SLOT_DTOH_ASYNC,
	SLOT_DTOH_ASYNC_PTSZ,
	SLOT_DTOD_ASYNC,
	SLOT_DTOD_ASYNC_PTSZ,
	SLOT_COPY_ASYNC,
	SLOT_COPY_ASYNC_PTSZ,
	SLOT_PEER_ASYNC,
	SLOT_PEER_ASYNC_PTSZ,
	SLOT_SET8_ASYNC,
	SLOT_SET8_ASYNC_PTSZ,
	SLOT_SET16_ASYNC,
	SLOT_SET16_ASYNC_PTSZ,
	SLOT_SET32_ASYNC,
	SLOT_SET32_ASYNC_PTSZ,
	/* Those without a stream: in the default one, or in the thread's own. */
	SLOT_HTOD,
	SLOT_HTOD_PTDS,
	SLOT_DTOH,
	SLOT_DTOH_PTDS,
	SLOT_DTOD,
	SLOT_DTOD_PTDS,
	SLOT_COPY,
	SLOT_COPY_PTDS,
	SLOT_PEER,
	SLOT_PEER_PTDS,
	SLOT_SET8,
	SLOT_SET8_PTDS,
	SLOT_SET16,
	SLOT_SET16_PTDS,
	SLOT_SET32,
	SLOT_SET32_PTDS,
	NR_CHANNEL_SLOTS,
};

#define CHANNEL_SLOT_LIST(X)						\
	X(ENTRY_LAUNCH_KERNEL, "cuLaunchKernel")			\
	X(ENTRY_LAUNCH_KERNEL_PTSZ, "cuLaunchKernel_ptsz")		\
	X(ENTRY_LAUNCH_KERNEL_EX, "cuLaunchKernelEx")			\
	X(ENTRY_LAUNCH_KERNEL_EX_PTSZ, "cuLaunchKernelEx_ptsz")		\
	X(ENTRY_COOPERATIVE, "cuLaunchCooperativeKernel")		\
	X(ENTRY_COOPERATIVE_PTSZ, "cuLaunchCooperativeKernel_ptsz")	\
	X(ENTRY_COOPERATIVE_MULTI, "cuLaunchCooperativeKernelMultiDevice") \
	X(ENTRY_LAUNCH, "cuLaunch")					\
	X(ENTRY_LAUNCH_GRID, "cuLaunchGrid")				\
	X(ENTRY_LAUNCH_GRID_ASYNC, "cuLaunchGridAsync")			\
	X(ENTRY_GRAPH_LAUNCH, "cuGraphLaunch")				\
	X(ENTRY_GRAPH_LAUNCH_PTSZ, "cuGraphLaunch_ptsz")		\
	X(SLOT_MODULE_UNLOAD, "cuModuleUnload")				\
	X(SLOT_LIBRARY_UNLOAD, "cuLibraryUnload")			\
	X(SLOT_STREAM_DESTROY, "cuStreamDestroy")			\
	X(SLOT_STREAM_DESTROY_V2, "cuStreamDestroy_v2")			\
	X(SLOT_CTX_DESTROY, "cuCtxDestroy")				\
	X(SLOT_CTX_DESTROY_V2, "cuCtxDestroy_v2")			\
	X(SLOT_CTX_DETACH, "cuCtxDetach")				\
	X(SLOT_PRIMARY_RETAIN, "cuDevicePrimaryCtxRetain")		\
	X(SLOT_PRIMARY_RESET, "cuDevicePrimaryCtxReset")		\
	X(SLOT_PRIMARY_RESET_V2, "cuDevicePrimaryCtxReset_v2")		\
	X(SLOT_PRIMARY_RELEASE, "cuDevicePrimaryCtxRelease")		\
	X(SLOT_PRIMARY_RELEASE_V2, "cuDevicePrimaryCtxRelease_v2")	\
	X(SLOT_GREEN_DESTROY, "cuGreenCtxDestroy")			\
	X(SLOT_MODULE_GET_FUNCTION, "cuModuleGetFunction")		\
	X(SLOT_KERNEL_GET_FUNCTION, "cuKernelGetFunction")		\
	X(SLOT_STREAM_SYNC, "cuStreamSynchronize")			\
	X(SLOT_STREAM_SYNC_PTSZ, "cuStreamSynchronize_ptsz")		\
	X(SLOT_CTX_SYNC, "cuCtxSynchronize")				\
	X(SLOT_EVENT_SYNC, "cuEventSynchronize")			\
	X(SLOT_WAIT_VALUE32, "cuStreamWaitValue32")			\
	X(SLOT_WAIT_VALUE32_PTSZ, "cuStreamWaitValue32_ptsz")		\
	X(SLOT_WAIT_VALUE32_V2, "cuStreamWaitValue32_v2")		\
	X(SLOT_WAIT_VALUE32_V2_PTSZ, "cuStreamWaitValue32_v2_ptsz")	\
	X(SLOT_WAIT_VALUE64, "cuStreamWaitValue64")			\
	X(SLOT_WAIT_VALUE64_PTSZ, "cuStreamWaitValue64_ptsz")		\
	X(SLOT_WAIT_VALUE64_V2, "cuStreamWaitValue64_v2")		\
	X(SLOT_WAIT_VALUE64_V2_PTSZ, "cuStreamWaitValue64_v2_ptsz")	\
	X(SLOT_BATCH_MEM_OP, "cuStreamBatchMemOp")			\
	X(SLOT_BATCH_MEM_OP_PTSZ, "cuStreamBatchMemOp_ptsz")		\
	X(SLOT_BATCH_MEM_OP_V2, "cuStreamBatchMemOp_v2")		\
	X(SLOT_BATCH_MEM_OP_V2_PTSZ, "cuStreamBatchMemOp_v2_ptsz")	\
	X(SLOT_HOST_FUNC, "cuLaunchHostFunc")				\
	X(SLOT_HOST_FUNC_PTSZ, "cuLaunchHostFunc_ptsz")			\
	X(SLOT_HOST_FUNC_V2, "cuLaunchHostFunc_v2")			\
	X(SLOT_HOST_FUNC_V2_PTSZ, "cuLaunchHostFunc_v2_ptsz")		\
	X(SLOT_CALLBACK, "cuStreamAddCallback")				\
	X(SLOT_CALLBACK_PTSZ, "cuStreamAddCallback_ptsz")		\
	X(SLOT_WAIT_EXTERNAL, "cuWaitExternalSemaphoresAsync")		\
	X(SLOT_WAIT_EXTERNAL_PTSZ, "cuWaitExternalSemaphoresAsync_ptsz") \
	X(SLOT_HTOD_ASYNC, "cuMemcpyHtoDAsync_v2")			\
	X(SLOT_HTOD_ASYNC_PTSZ, "cuMemcpyHtoDAsync_v2_ptsz")		\
	X(SLOT_DTOH_ASYNC, "cuMemcpyDtoHAsync_v2")			\
	X(SLOT_DTOH_ASYNC_PTSZ, "cuMemcpyDtoHAsync_v2_ptsz")		\
	X(SLOT_DTOD_ASYNC, "cuMemcpyDtoDAsync_v2")			\
	X(SLOT_DTOD_ASYNC_PTSZ, "cuMemcpyDtoDAsync_v2_ptsz")		\
	X(SLOT_COPY_ASYNC, "cuMemcpyAsync")				\
	X(SLOT_COPY_ASYNC_PTSZ, "cuMemcpyAsync_ptsz")			\
	X(SLOT_PEER_ASYNC, "cuMemcpyPeerAsync")				\
	X(SLOT_PEER_ASYNC_PTSZ, "cuMemcpyPeerAsync_ptsz")		\
	X(SLOT_SET8_ASYNC, "cuMemsetD8Async")				\
	X(SLOT_SET8_ASYNC_PTSZ, "cuMemsetD8Async_ptsz")			\
	X(SLOT_SET16_ASYNC, "cuMemsetD16Async")				\
	X(SLOT_SET16_ASYNC_PTSZ, "cuMemsetD16Async_ptsz")		\
	X(SLOT_SET32_ASYNC, "cuMemsetD32Async")				\
	X(SLOT_SET32_ASYNC_PTSZ, "cuMemsetD32Async_ptsz")		\
	X(SLOT_HTOD, "cuMemcpyHtoD_v2")					\
	X(SLOT_HTOD_PTDS, "cuMemcpyHtoD_v2_ptds")			\
	X(SLOT_DTOH, "cuMemcpyDtoH_v2")					\
	X(SLOT_DTOH_PTDS, "cuMemcpyDtoH_v2_ptds")			\
	X(SLOT_DTOD, "cuMemcpyDtoD_v2")					\
	X(SLOT_DTOD_PTDS, "cuMemcpyDtoD_v2_ptds")			\
	X(SLOT_COPY, "cuMemcpy")					\
	X(SLOT_COPY_PTDS, "cuMemcpy_ptds")				\
	X(SLOT_PEER, "cuMemcpyPeer")					\
	X(SLOT_PEER_PTDS, "cuMemcpyPeer_ptds")				\
	X(SLOT_SET8, "cuMemsetD8_v2")					\
	X(SLOT_SET8_PTDS, "cuMemsetD8_v2_ptds")				\
	X(SLOT_SET16, "cuMemsetD16_v2")					\
	X(SLOT_SET16_PTDS, "cuMemsetD16_v2_ptds")			\
	X(SLOT_SET32, "cuMemsetD32_v2")					\
	X(SLOT_SET32_PTDS, "cuMemsetD32_v2_ptds")

#endif
