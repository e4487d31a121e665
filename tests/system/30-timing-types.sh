#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# The project's own copy of the driver's types is the toolkit's, wherever there is a toolkit: one
# program, compiled with each, prints the same values, sizes and offsets.
set -eu
include=$(ls -d "${CUDA_HOME:-/usr/local/cuda}/include" 2>/dev/null) || include=
[ -f "$include/cuda.h" ] || { echo "no cuda.h here"; exit 77; }

cat > "$TEST_TMP/types.c" <<'END'
#include <stddef.h>
#include <stdio.h>
#include "gpu_timing/cuda_types.h"
#define VALUE(name) printf("%s %ld\n", #name, (long)(name))
#define SIZE(type) printf("sizeof %s %zu\n", #type, sizeof(type))
#define PLACE(type, member) \
	printf("%s.%s %zu %zu\n", #type, #member, offsetof(type, member), sizeof(((type *)0)->member))
int main(void)
{
	CUlaunchAttributeValue value = { .pad = { 0 } };

	VALUE(CUDA_SUCCESS); VALUE(CUDA_ERROR_INVALID_VALUE); VALUE(CUDA_ERROR_NOT_INITIALIZED);
	VALUE(CUDA_ERROR_DEINITIALIZED); VALUE(CUDA_ERROR_INVALID_CONTEXT);
	VALUE(CUDA_ERROR_INVALID_HANDLE); VALUE(CUDA_ERROR_NOT_READY);
	VALUE(CUDA_ERROR_CONTEXT_IS_DESTROYED); VALUE(CUDA_ERROR_STREAM_CAPTURE_IMPLICIT);
	VALUE(CU_STREAM_CAPTURE_STATUS_NONE); VALUE(CU_STREAM_CAPTURE_STATUS_ACTIVE);
	VALUE(CU_STREAM_CAPTURE_STATUS_INVALIDATED); VALUE(CU_STREAM_CAPTURE_MODE_GLOBAL);
	VALUE(CU_STREAM_CAPTURE_MODE_THREAD_LOCAL); VALUE(CU_STREAM_CAPTURE_MODE_RELAXED);
	VALUE(CU_EVENT_DEFAULT); VALUE(CU_STREAM_LEGACY); VALUE(CU_STREAM_PER_THREAD);
	VALUE(CU_LAUNCH_ATTRIBUTE_COOPERATIVE);
	VALUE(CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION);
	VALUE(CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_EVENT);
	VALUE(CU_POINTER_ATTRIBUTE_MEMORY_TYPE); VALUE(CU_MEMORYTYPE_HOST);
	VALUE(CU_MEMORYTYPE_DEVICE); VALUE(CU_MEMORYTYPE_ARRAY); VALUE(CU_MEMORYTYPE_UNIFIED);
	VALUE(CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES); VALUE(CU_FUNC_ATTRIBUTE_NUM_REGS);
	SIZE(CUpointer_attribute); SIZE(CUmemorytype); SIZE(CUfunction_attribute);
	SIZE(CUresult); SIZE(CUdevice); SIZE(CUcontext); SIZE(CUgreenCtx); SIZE(CUmodule);
	SIZE(CUlibrary); SIZE(CUfunction); SIZE(CUkernel); SIZE(CUstream); SIZE(CUevent);
	SIZE(CUgraph); SIZE(CUgraphNode); SIZE(CUgraphExec); SIZE(CUstreamCaptureStatus); SIZE(CUstreamCaptureMode);
	SIZE(CUlaunchAttributeID); SIZE(CUlaunchAttributeValue); SIZE(CUlaunchAttribute);
	SIZE(CUlaunchConfig); SIZE(CUDA_LAUNCH_PARAMS);
	PLACE(CUlaunchAttribute, id); PLACE(CUlaunchAttribute, value);
	PLACE(CUlaunchConfig, gridDimX); PLACE(CUlaunchConfig, gridDimY);
	PLACE(CUlaunchConfig, gridDimZ); PLACE(CUlaunchConfig, blockDimX);
	PLACE(CUlaunchConfig, blockDimY); PLACE(CUlaunchConfig, blockDimZ);
	PLACE(CUlaunchConfig, sharedMemBytes); PLACE(CUlaunchConfig, hStream);
	PLACE(CUlaunchConfig, attrs); PLACE(CUlaunchConfig, numAttrs);
	PLACE(CUDA_LAUNCH_PARAMS, function); PLACE(CUDA_LAUNCH_PARAMS, gridDimX);
	PLACE(CUDA_LAUNCH_PARAMS, gridDimY); PLACE(CUDA_LAUNCH_PARAMS, gridDimZ);
	PLACE(CUDA_LAUNCH_PARAMS, blockDimX); PLACE(CUDA_LAUNCH_PARAMS, blockDimY);
	PLACE(CUDA_LAUNCH_PARAMS, blockDimZ); PLACE(CUDA_LAUNCH_PARAMS, sharedMemBytes);
	PLACE(CUDA_LAUNCH_PARAMS, hStream); PLACE(CUDA_LAUNCH_PARAMS, kernelParams);
	PLACE(CUlaunchAttributeValue, cooperative);
	PLACE(CUlaunchAttributeValue, programmaticStreamSerializationAllowed);
	PLACE(CUlaunchAttributeValue, programmaticEvent.event);
	PLACE(CUlaunchAttributeValue, programmaticEvent.flags);
	PLACE(CUlaunchAttributeValue, programmaticEvent.triggerAtBlockStart);
	SIZE(CUarray); SIZE(CUarray_format); SIZE(CUDA_ARRAY3D_DESCRIPTOR); SIZE(CUDA_MEMCPY2D);
	SIZE(CUDA_MEMCPY3D); SIZE(CUDA_MEMCPY3D_PEER); SIZE(CUmemcpy3DOperand);
	SIZE(CUDA_MEMCPY3D_BATCH_OP); SIZE(CUextent3D); SIZE(CUoffset3D);
	VALUE(CU_AD_FORMAT_UNSIGNED_INT8); VALUE(CU_AD_FORMAT_UNSIGNED_INT16);
	VALUE(CU_AD_FORMAT_UNSIGNED_INT32); VALUE(CU_AD_FORMAT_SIGNED_INT8);
	VALUE(CU_AD_FORMAT_SIGNED_INT16); VALUE(CU_AD_FORMAT_SIGNED_INT32);
	VALUE(CU_AD_FORMAT_HALF); VALUE(CU_AD_FORMAT_FLOAT); VALUE(CU_MEMCPY_OPERAND_TYPE_POINTER);
	VALUE(CU_MEMCPY_OPERAND_TYPE_ARRAY); PLACE(CUDA_ARRAY3D_DESCRIPTOR, Width);
	PLACE(CUDA_ARRAY3D_DESCRIPTOR, Height); PLACE(CUDA_ARRAY3D_DESCRIPTOR, Depth);
	PLACE(CUDA_ARRAY3D_DESCRIPTOR, Format); PLACE(CUDA_ARRAY3D_DESCRIPTOR, NumChannels);
	PLACE(CUDA_ARRAY3D_DESCRIPTOR, Flags); PLACE(CUDA_MEMCPY2D, srcXInBytes);
	PLACE(CUDA_MEMCPY2D, srcY); PLACE(CUDA_MEMCPY2D, srcMemoryType);
	PLACE(CUDA_MEMCPY2D, srcHost); PLACE(CUDA_MEMCPY2D, srcDevice);
	PLACE(CUDA_MEMCPY2D, srcArray); PLACE(CUDA_MEMCPY2D, srcPitch);
	PLACE(CUDA_MEMCPY2D, dstXInBytes); PLACE(CUDA_MEMCPY2D, dstY);
	PLACE(CUDA_MEMCPY2D, dstMemoryType); PLACE(CUDA_MEMCPY2D, dstHost);
	PLACE(CUDA_MEMCPY2D, dstDevice); PLACE(CUDA_MEMCPY2D, dstArray);
	PLACE(CUDA_MEMCPY2D, dstPitch); PLACE(CUDA_MEMCPY2D, WidthInBytes);
	PLACE(CUDA_MEMCPY2D, Height); PLACE(CUDA_MEMCPY3D, srcXInBytes);
	PLACE(CUDA_MEMCPY3D, srcY); PLACE(CUDA_MEMCPY3D, srcZ); PLACE(CUDA_MEMCPY3D, srcLOD);
	PLACE(CUDA_MEMCPY3D, srcMemoryType); PLACE(CUDA_MEMCPY3D, srcHost);
	PLACE(CUDA_MEMCPY3D, srcDevice); PLACE(CUDA_MEMCPY3D, srcArray);
	PLACE(CUDA_MEMCPY3D, reserved0); PLACE(CUDA_MEMCPY3D, srcPitch);
	PLACE(CUDA_MEMCPY3D, srcHeight); PLACE(CUDA_MEMCPY3D, dstXInBytes);
	PLACE(CUDA_MEMCPY3D, dstY); PLACE(CUDA_MEMCPY3D, dstZ); PLACE(CUDA_MEMCPY3D, dstLOD);
	PLACE(CUDA_MEMCPY3D, dstMemoryType); PLACE(CUDA_MEMCPY3D, dstHost);
	PLACE(CUDA_MEMCPY3D, dstDevice); PLACE(CUDA_MEMCPY3D, dstArray);
	PLACE(CUDA_MEMCPY3D, reserved1); PLACE(CUDA_MEMCPY3D, dstPitch);
	PLACE(CUDA_MEMCPY3D, dstHeight); PLACE(CUDA_MEMCPY3D, WidthInBytes);
	PLACE(CUDA_MEMCPY3D, Height); PLACE(CUDA_MEMCPY3D, Depth);
	PLACE(CUDA_MEMCPY3D_PEER, srcXInBytes); PLACE(CUDA_MEMCPY3D_PEER, srcY);
	PLACE(CUDA_MEMCPY3D_PEER, srcZ); PLACE(CUDA_MEMCPY3D_PEER, srcLOD);
	PLACE(CUDA_MEMCPY3D_PEER, srcMemoryType); PLACE(CUDA_MEMCPY3D_PEER, srcHost);
	PLACE(CUDA_MEMCPY3D_PEER, srcDevice); PLACE(CUDA_MEMCPY3D_PEER, srcArray);
	PLACE(CUDA_MEMCPY3D_PEER, srcContext); PLACE(CUDA_MEMCPY3D_PEER, srcPitch);
	PLACE(CUDA_MEMCPY3D_PEER, srcHeight); PLACE(CUDA_MEMCPY3D_PEER, dstXInBytes);
	PLACE(CUDA_MEMCPY3D_PEER, dstY); PLACE(CUDA_MEMCPY3D_PEER, dstZ);
	PLACE(CUDA_MEMCPY3D_PEER, dstLOD); PLACE(CUDA_MEMCPY3D_PEER, dstMemoryType);
	PLACE(CUDA_MEMCPY3D_PEER, dstHost); PLACE(CUDA_MEMCPY3D_PEER, dstDevice);
	PLACE(CUDA_MEMCPY3D_PEER, dstArray); PLACE(CUDA_MEMCPY3D_PEER, dstContext);
	PLACE(CUDA_MEMCPY3D_PEER, dstPitch); PLACE(CUDA_MEMCPY3D_PEER, dstHeight);
	PLACE(CUDA_MEMCPY3D_PEER, WidthInBytes); PLACE(CUDA_MEMCPY3D_PEER, Height);
	PLACE(CUDA_MEMCPY3D_PEER, Depth); PLACE(CUmemcpy3DOperand, type);
	PLACE(CUmemcpy3DOperand, op.ptr.ptr); PLACE(CUmemcpy3DOperand, op.ptr.rowLength);
	PLACE(CUmemcpy3DOperand, op.ptr.layerHeight); PLACE(CUmemcpy3DOperand, op.ptr.locHint);
	PLACE(CUmemcpy3DOperand, op.array.array); PLACE(CUmemcpy3DOperand, op.array.offset);
	PLACE(CUDA_MEMCPY3D_BATCH_OP, src); PLACE(CUDA_MEMCPY3D_BATCH_OP, dst);
	PLACE(CUDA_MEMCPY3D_BATCH_OP, extent); PLACE(CUDA_MEMCPY3D_BATCH_OP, srcAccessOrder);
	PLACE(CUDA_MEMCPY3D_BATCH_OP, flags); PLACE(CUextent3D, width); PLACE(CUextent3D, height);
	PLACE(CUextent3D, depth); PLACE(CUoffset3D, x); PLACE(CUoffset3D, y); PLACE(CUoffset3D, z);
	return value.pad[0];
}
END
cc=${CC:-gcc}
$cc -std=gnu11 -I"$TOP" -DHAVE_CUDA_H -isystem "$include" -o "$TEST_TMP/theirs" "$TEST_TMP/types.c"
$cc -std=gnu11 -I"$TOP" -o "$TEST_TMP/ours" "$TEST_TMP/types.c"
"$TEST_TMP/theirs" > "$TEST_TMP/theirs.txt"
"$TEST_TMP/ours" > "$TEST_TMP/ours.txt"
[ "$(wc -l < "$TEST_TMP/ours.txt")" -gt 150 ]
diff "$TEST_TMP/theirs.txt" "$TEST_TMP/ours.txt"
