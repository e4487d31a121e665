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
	SLOT_CTX_SYNC_V2,	/* CUDA 13; no hold: as SLOT_CTX_SYNC */
	SLOT_ORDERS,	/* from here on: what makes a stream wait for another's work; may be missing, too */
	SLOT_WAIT_EVENT = SLOT_ORDERS,
	SLOT_WAIT_EVENT_PTSZ,
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
	SLOT_SHAPES,	/* and of these the copies of more than a line, of arrays, and of several at once */
	SLOT_COPY2D_ASYNC = SLOT_SHAPES,
	SLOT_COPY2D_ASYNC_PTSZ,
	SLOT_COPY2D,
	SLOT_COPY2D_PTDS,
	SLOT_COPY3D_ASYNC,
	SLOT_COPY3D_ASYNC_PTSZ,
	SLOT_COPY3D,
	SLOT_COPY3D_PTDS,
	SLOT_PEER3D_ASYNC,
	SLOT_PEER3D_ASYNC_PTSZ,
	SLOT_PEER3D,
	SLOT_PEER3D_PTDS,
	SLOT_HTOA_ASYNC,
	SLOT_HTOA_ASYNC_PTSZ,
	SLOT_HTOA,
	SLOT_HTOA_PTDS,
	SLOT_ATOH_ASYNC,
	SLOT_ATOH_ASYNC_PTSZ,
	SLOT_ATOH,
	SLOT_ATOH_PTDS,
	SLOT_SET2D8_ASYNC,
	SLOT_SET2D8_ASYNC_PTSZ,
	SLOT_SET2D8,
	SLOT_SET2D8_PTDS,
	SLOT_SET2D16_ASYNC,
	SLOT_SET2D16_ASYNC_PTSZ,
	SLOT_SET2D16,
	SLOT_SET2D16_PTDS,
	SLOT_SET2D32_ASYNC,
	SLOT_SET2D32_ASYNC_PTSZ,
	SLOT_SET2D32,
	SLOT_SET2D32_PTDS,
	SLOT_COPY2D_UNALIGNED,
	SLOT_COPY2D_UNALIGNED_PTDS,
	SLOT_ATOD,
	SLOT_ATOD_PTDS,
	SLOT_DTOA,
	SLOT_DTOA_PTDS,
	SLOT_ATOA,
	SLOT_ATOA_PTDS,
	SLOT_BATCH_ASYNC,	/* CUDA 12.8 */
	SLOT_BATCH_ASYNC_PTSZ,
	SLOT_BATCH_V2_ASYNC,	/* CUDA 13.0 */
	SLOT_BATCH_V2_ASYNC_PTSZ,
	SLOT_BATCH3D_ASYNC,
	SLOT_BATCH3D_ASYNC_PTSZ,
	SLOT_BATCH3D_V2_ASYNC,
	SLOT_BATCH3D_V2_ASYNC_PTSZ,
	SLOT_ATTRIBUTES_ASYNC,	/* CUDA 13.2 */
	SLOT_ATTRIBUTES_ASYNC_PTSZ,
	SLOT_ATTRIBUTES3D_ASYNC,
	SLOT_ATTRIBUTES3D_ASYNC_PTSZ,
	SLOT_GRAPHS,	/* from here on: what makes, changes or ends executable graphs; may be missing, too */
	SLOT_INSTANTIATE = SLOT_GRAPHS,
	SLOT_INSTANTIATE_V2,
	SLOT_INSTANTIATE_FLAGS,
	SLOT_INSTANTIATE_PARAMS,
	SLOT_INSTANTIATE_PARAMS_PTSZ,
	SLOT_EXEC_UPDATE,
	SLOT_EXEC_UPDATE_V2,
	SLOT_EXEC_DESTROY,
	SLOT_EXEC_KERNEL,
	SLOT_EXEC_KERNEL_V2,
	SLOT_EXEC_NODE,
	SLOT_EXEC_CHILD,
	SLOT_NODE_ENABLED,
	SLOT_ADD_KERNEL,
	SLOT_ADD_KERNEL_V2,
	SLOT_ADD_NODE,
	SLOT_ADD_NODE_V2,
	SLOT_SET_KERNEL,
	SLOT_SET_KERNEL_V2,
	SLOT_SET_NODE,
	SLOT_CAPTURES,	/* from here on: what begins and ends captures, and the graphs that they make */
	SLOT_CAPTURE = SLOT_CAPTURES,
	SLOT_CAPTURE_PTSZ,
	SLOT_CAPTURE_V2,
	SLOT_CAPTURE_V2_PTSZ,
	SLOT_CAPTURE_TO_GRAPH,
	SLOT_CAPTURE_TO_GRAPH_PTSZ,
	SLOT_END_CAPTURE,
	SLOT_END_CAPTURE_PTSZ,
	SLOT_GRAPH_DESTROY,
	SLOT_NODE_DESTROY,
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
	X(SLOT_CTX_SYNC_V2, "cuCtxSynchronize_v2")			\
	X(SLOT_WAIT_EVENT, "cuStreamWaitEvent")				\
	X(SLOT_WAIT_EVENT_PTSZ, "cuStreamWaitEvent_ptsz")		\
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
	X(SLOT_SET32_PTDS, "cuMemsetD32_v2_ptds")			\
	X(SLOT_COPY2D_ASYNC, "cuMemcpy2DAsync_v2")			\
	X(SLOT_COPY2D_ASYNC_PTSZ, "cuMemcpy2DAsync_v2_ptsz")		\
	X(SLOT_COPY2D, "cuMemcpy2D_v2")					\
	X(SLOT_COPY2D_PTDS, "cuMemcpy2D_v2_ptds")			\
	X(SLOT_COPY3D_ASYNC, "cuMemcpy3DAsync_v2")			\
	X(SLOT_COPY3D_ASYNC_PTSZ, "cuMemcpy3DAsync_v2_ptsz")		\
	X(SLOT_COPY3D, "cuMemcpy3D_v2")					\
	X(SLOT_COPY3D_PTDS, "cuMemcpy3D_v2_ptds")			\
	X(SLOT_PEER3D_ASYNC, "cuMemcpy3DPeerAsync")			\
	X(SLOT_PEER3D_ASYNC_PTSZ, "cuMemcpy3DPeerAsync_ptsz")		\
	X(SLOT_PEER3D, "cuMemcpy3DPeer")				\
	X(SLOT_PEER3D_PTDS, "cuMemcpy3DPeer_ptds")			\
	X(SLOT_HTOA_ASYNC, "cuMemcpyHtoAAsync_v2")			\
	X(SLOT_HTOA_ASYNC_PTSZ, "cuMemcpyHtoAAsync_v2_ptsz")		\
	X(SLOT_HTOA, "cuMemcpyHtoA_v2")					\
	X(SLOT_HTOA_PTDS, "cuMemcpyHtoA_v2_ptds")			\
	X(SLOT_ATOH_ASYNC, "cuMemcpyAtoHAsync_v2")			\
	X(SLOT_ATOH_ASYNC_PTSZ, "cuMemcpyAtoHAsync_v2_ptsz")		\
	X(SLOT_ATOH, "cuMemcpyAtoH_v2")					\
	X(SLOT_ATOH_PTDS, "cuMemcpyAtoH_v2_ptds")			\
	X(SLOT_SET2D8_ASYNC, "cuMemsetD2D8Async")			\
	X(SLOT_SET2D8_ASYNC_PTSZ, "cuMemsetD2D8Async_ptsz")		\
	X(SLOT_SET2D8, "cuMemsetD2D8_v2")				\
	X(SLOT_SET2D8_PTDS, "cuMemsetD2D8_v2_ptds")			\
	X(SLOT_SET2D16_ASYNC, "cuMemsetD2D16Async")			\
	X(SLOT_SET2D16_ASYNC_PTSZ, "cuMemsetD2D16Async_ptsz")		\
	X(SLOT_SET2D16, "cuMemsetD2D16_v2")				\
	X(SLOT_SET2D16_PTDS, "cuMemsetD2D16_v2_ptds")			\
	X(SLOT_SET2D32_ASYNC, "cuMemsetD2D32Async")			\
	X(SLOT_SET2D32_ASYNC_PTSZ, "cuMemsetD2D32Async_ptsz")		\
	X(SLOT_SET2D32, "cuMemsetD2D32_v2")				\
	X(SLOT_SET2D32_PTDS, "cuMemsetD2D32_v2_ptds")			\
	X(SLOT_COPY2D_UNALIGNED, "cuMemcpy2DUnaligned_v2")		\
	X(SLOT_COPY2D_UNALIGNED_PTDS, "cuMemcpy2DUnaligned_v2_ptds")	\
	X(SLOT_ATOD, "cuMemcpyAtoD_v2")					\
	X(SLOT_ATOD_PTDS, "cuMemcpyAtoD_v2_ptds")			\
	X(SLOT_DTOA, "cuMemcpyDtoA_v2")					\
	X(SLOT_DTOA_PTDS, "cuMemcpyDtoA_v2_ptds")			\
	X(SLOT_ATOA, "cuMemcpyAtoA_v2")					\
	X(SLOT_ATOA_PTDS, "cuMemcpyAtoA_v2_ptds")			\
	X(SLOT_BATCH_ASYNC, "cuMemcpyBatchAsync")			\
	X(SLOT_BATCH_ASYNC_PTSZ, "cuMemcpyBatchAsync_ptsz")		\
	X(SLOT_BATCH_V2_ASYNC, "cuMemcpyBatchAsync_v2")			\
	X(SLOT_BATCH_V2_ASYNC_PTSZ, "cuMemcpyBatchAsync_v2_ptsz")	\
	X(SLOT_BATCH3D_ASYNC, "cuMemcpy3DBatchAsync")			\
	X(SLOT_BATCH3D_ASYNC_PTSZ, "cuMemcpy3DBatchAsync_ptsz")		\
	X(SLOT_BATCH3D_V2_ASYNC, "cuMemcpy3DBatchAsync_v2")		\
	X(SLOT_BATCH3D_V2_ASYNC_PTSZ, "cuMemcpy3DBatchAsync_v2_ptsz")	\
	X(SLOT_ATTRIBUTES_ASYNC, "cuMemcpyWithAttributesAsync")		\
	X(SLOT_ATTRIBUTES_ASYNC_PTSZ, "cuMemcpyWithAttributesAsync_ptsz") \
	X(SLOT_ATTRIBUTES3D_ASYNC, "cuMemcpy3DWithAttributesAsync")	\
	X(SLOT_ATTRIBUTES3D_ASYNC_PTSZ, "cuMemcpy3DWithAttributesAsync_ptsz")	\
	X(SLOT_INSTANTIATE, "cuGraphInstantiate")			\
	X(SLOT_INSTANTIATE_V2, "cuGraphInstantiate_v2")			\
	X(SLOT_INSTANTIATE_FLAGS, "cuGraphInstantiateWithFlags")	\
	X(SLOT_INSTANTIATE_PARAMS, "cuGraphInstantiateWithParams")	\
	X(SLOT_INSTANTIATE_PARAMS_PTSZ, "cuGraphInstantiateWithParams_ptsz") \
	X(SLOT_EXEC_UPDATE, "cuGraphExecUpdate")			\
	X(SLOT_EXEC_UPDATE_V2, "cuGraphExecUpdate_v2")			\
	X(SLOT_EXEC_DESTROY, "cuGraphExecDestroy")			\
	X(SLOT_EXEC_KERNEL, "cuGraphExecKernelNodeSetParams")		\
	X(SLOT_EXEC_KERNEL_V2, "cuGraphExecKernelNodeSetParams_v2")	\
	X(SLOT_EXEC_NODE, "cuGraphExecNodeSetParams")			\
	X(SLOT_EXEC_CHILD, "cuGraphExecChildGraphNodeSetParams")	\
	X(SLOT_NODE_ENABLED, "cuGraphNodeSetEnabled")			\
	X(SLOT_ADD_KERNEL, "cuGraphAddKernelNode")			\
	X(SLOT_ADD_KERNEL_V2, "cuGraphAddKernelNode_v2")		\
	X(SLOT_ADD_NODE, "cuGraphAddNode")				\
	X(SLOT_ADD_NODE_V2, "cuGraphAddNode_v2")			\
	X(SLOT_SET_KERNEL, "cuGraphKernelNodeSetParams")		\
	X(SLOT_SET_KERNEL_V2, "cuGraphKernelNodeSetParams_v2")		\
	X(SLOT_SET_NODE, "cuGraphNodeSetParams")			\
	X(SLOT_CAPTURE, "cuStreamBeginCapture")				\
	X(SLOT_CAPTURE_PTSZ, "cuStreamBeginCapture_ptsz")		\
	X(SLOT_CAPTURE_V2, "cuStreamBeginCapture_v2")			\
	X(SLOT_CAPTURE_V2_PTSZ, "cuStreamBeginCapture_v2_ptsz")		\
	X(SLOT_CAPTURE_TO_GRAPH, "cuStreamBeginCaptureToGraph")		\
	X(SLOT_CAPTURE_TO_GRAPH_PTSZ, "cuStreamBeginCaptureToGraph_ptsz") \
	X(SLOT_END_CAPTURE, "cuStreamEndCapture")			\
	X(SLOT_END_CAPTURE_PTSZ, "cuStreamEndCapture_ptsz")		\
	X(SLOT_GRAPH_DESTROY, "cuGraphDestroy")				\
	X(SLOT_NODE_DESTROY, "cuGraphDestroyNode")

#endif
