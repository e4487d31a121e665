/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The types that came with CUDA 12.8, for cuda_types.h where there is no cuda.h or an older one. */
#ifndef GPU_TIMING_CUDA_TYPES_BATCH_H
#define GPU_TIMING_CUDA_TYPES_BATCH_H

typedef enum {
	CU_MEMCPY_OPERAND_TYPE_POINTER = 1,
	CU_MEMCPY_OPERAND_TYPE_ARRAY = 2,
} CUmemcpy3DOperandType;

typedef struct {
	size_t x;
	size_t y;
	size_t z;
} CUoffset3D;

typedef struct {
	size_t width;
	size_t height;
	size_t depth;
} CUextent3D;

typedef struct {
	CUmemcpy3DOperandType type;
	union {
		struct {
			CUdeviceptr ptr;
			size_t rowLength;
			size_t layerHeight;
			struct {
				int type;
				int id;
			} locHint;
		} ptr;
		struct {
			CUarray array;
			CUoffset3D offset;
		} array;
	} op;
} CUmemcpy3DOperand;

typedef struct {
	CUmemcpy3DOperand src;
	CUmemcpy3DOperand dst;
	CUextent3D extent;
	int srcAccessOrder;
	unsigned int flags;
} CUDA_MEMCPY3D_BATCH_OP;

#endif
