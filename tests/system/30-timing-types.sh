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
	SIZE(CUpointer_attribute); SIZE(CUmemorytype);
	SIZE(CUresult); SIZE(CUdevice); SIZE(CUcontext); SIZE(CUgreenCtx); SIZE(CUmodule);
	SIZE(CUlibrary); SIZE(CUfunction); SIZE(CUkernel); SIZE(CUstream); SIZE(CUevent);
	SIZE(CUgraphExec); SIZE(CUstreamCaptureStatus); SIZE(CUstreamCaptureMode);
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
	return value.pad[0];
}
END
cc=${CC:-gcc}
$cc -std=gnu11 -I"$TOP" -DHAVE_CUDA_H -isystem "$include" -o "$TEST_TMP/theirs" "$TEST_TMP/types.c"
$cc -std=gnu11 -I"$TOP" -o "$TEST_TMP/ours" "$TEST_TMP/types.c"
"$TEST_TMP/theirs" > "$TEST_TMP/theirs.txt"
"$TEST_TMP/ours" > "$TEST_TMP/ours.txt"
[ "$(wc -l < "$TEST_TMP/ours.txt")" -gt 60 ]
diff "$TEST_TMP/theirs.txt" "$TEST_TMP/ours.txt"
