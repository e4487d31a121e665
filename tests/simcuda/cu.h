/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The part of the CUDA driver interface that the virtual device offers and the test programs use.
 * Own text, independent of the toolkit's header and of the one in gpu_timing/, so that a mistake
 * there shows in a test instead of being shared. Works with the virtual device and with a real
 * libcuda.so.1. Layouts and positions: CUDA 13.0.
 */
#ifndef SIMCUDA_CU_H
#define SIMCUDA_CU_H
#include <stddef.h>
#include <stdint.h>

typedef int CUresult;
typedef int CUdevice;
typedef struct CUctx_st *CUcontext;
typedef struct CUmod_st *CUmodule;
typedef struct CUfunc_st *CUfunction;
typedef struct CUlib_st *CUlibrary;
typedef struct CUkern_st *CUkernel;
typedef struct CUstream_st *CUstream;
typedef struct CUevent_st *CUevent;
typedef struct CUgraph_st *CUgraph;
typedef struct CUgraphNode_st *CUgraphNode;
typedef struct CUgraphExec_st *CUgraphExec;
typedef struct CUarray_st *CUarray;
typedef unsigned long long CUdeviceptr;
typedef void (*CUhostFn)(void *);
typedef void (*CUstreamCallback)(CUstream, CUresult, void *);
typedef void (*CUlogsCallback)(void *, int level, char *message, size_t length);

enum {
	CU_OK = 0,
	CU_INVALID_VALUE = 1,
	CU_NOT_INITIALIZED = 3,
	CU_DEINITIALIZED = 4,
	CU_NO_DEVICE = 100,
	CU_INVALID_DEVICE = 101,
	CU_INVALID_IMAGE = 200,
	CU_INVALID_CONTEXT = 201,
	CU_PRIMARY_CONTEXT_ACTIVE = 708,
	CU_FILE_NOT_FOUND = 301,
	CU_INVALID_HANDLE = 400,
	CU_ILLEGAL_STATE = 401,
	CU_NOT_FOUND = 500,
	CU_NOT_READY = 600,
	CU_ILLEGAL_ADDRESS = 700,
	CU_CONTEXT_IS_DESTROYED = 709,
	CU_LAUNCH_FAILED = 719,
	CU_NOT_SUPPORTED = 801,
	CU_CAPTURE_UNSUPPORTED = 900,
	CU_CAPTURE_INVALIDATED = 901,
	CU_CAPTURE_MERGE = 902,
	CU_CAPTURE_UNMATCHED = 903,
	CU_CAPTURE_UNJOINED = 904,
	CU_CAPTURE_ISOLATION = 905,
	CU_CAPTURE_IMPLICIT = 906,
	CU_CAPTURED_EVENT = 907,
	CU_CAPTURE_WRONG_THREAD = 908,
	CU_GRAPH_EXEC_UPDATE_FAILURE = 910,
};

enum { CU_MODE_GLOBAL = 0, CU_MODE_THREAD = 1, CU_MODE_RELAXED = 2 };
enum { CU_CAPTURE_NONE = 0, CU_CAPTURE_ACTIVE = 1, CU_CAPTURE_DEAD = 2 };
enum { CU_STREAM_NONBLOCKING = 1 };
enum { CU_EVENT_BLOCKING_SYNC = 1, CU_EVENT_DISABLE_TIMING = 2 };
enum { CU_EVENT_RECORD_EXTERNAL = 1, CU_EVENT_WAIT_EXTERNAL = 1 };
enum { CU_WAIT_GEQ = 0, CU_WAIT_EQ = 1, CU_WAIT_AND = 2, CU_WAIT_NOR = 3 };
enum { CU_ATTR_PDL = 6, CU_ATTR_PROGRAMMATIC_EVENT = 7, CU_ATTR_COMPLETION_EVENT = 12 };
enum {
	CU_NODE_KERNEL = 0, CU_NODE_MEMCPY = 1, CU_NODE_MEMSET = 2, CU_NODE_HOST = 3,
	CU_NODE_GRAPH = 4, CU_NODE_EMPTY = 5, CU_NODE_WAIT_EVENT = 6, CU_NODE_EVENT_RECORD = 7,
};
#define CU_STREAM_LEGACY_HANDLE ((CUstream)1)
#define CU_STREAM_PER_THREAD ((CUstream)2)

/* The value is 64 bytes at +8; only the members that are used here are named. */
typedef struct {
	int id;
	char pad[4];
	union {
		char room[64];
		int allowed;			/* CU_ATTR_PDL */
		struct {			/* CU_ATTR_PROGRAMMATIC_EVENT, _COMPLETION_EVENT */
			CUevent event;
			int flags;
			int trigger_at_start;
		} event;
	} value;
} CUlaunchAttribute;

typedef struct {
	unsigned gridX, gridY, gridZ, blockX, blockY, blockZ, sharedBytes;
	CUstream stream;
	void *attrs;
	unsigned numAttrs;
} CUlaunchConfig;

typedef struct {
	CUfunction func;
	unsigned gridX, gridY, gridZ, blockX, blockY, blockZ, sharedBytes;
	void **params;
	void **extra;
	CUkernel kern;
	CUcontext ctx;
} CUkernelNodeParams;			/* the _v2 layout */

typedef struct {
	int type, reserved0[3];
	union {
		CUkernelNodeParams kernel;
		CUgraph child;
		long long room[29];
	};
	long long reserved2;
} CUgraphNodeParams;

typedef struct {
	CUfunction func;
	unsigned gridX, gridY, gridZ, blockX, blockY, blockZ, sharedBytes;
	CUstream stream;
	void **params;
} CUmultiDeviceLaunch;			/* CUDA_LAUNCH_PARAMS */

typedef struct {
	int result;
	CUgraphNode from, node;
} CUgraphUpdateInfo;

enum { CU_MEMORY_HOST = 1, CU_MEMORY_DEVICE = 2, CU_MEMORY_ARRAY = 3, CU_MEMORY_UNIFIED = 4 };
enum { CU_FORMAT_UINT8 = 1, CU_FORMAT_UINT16 = 2, CU_FORMAT_UINT32 = 3, CU_FORMAT_FLOAT = 0x20 };
enum { CU_OPERAND_POINTER = 1, CU_OPERAND_ARRAY = 2 };
enum { CU_ORDER_STREAM = 1, CU_ORDER_CALL = 2, CU_ORDER_ANY = 3 };

typedef struct {
	size_t width, height, depth;		/* in elements; 0: that dimension isn't there */
	int format;
	unsigned channels, flags;
} CUarrayShape;				/* CUDA_ARRAY3D_DESCRIPTOR */

typedef struct {
	size_t x, y;
	int type;
	const void *host;
	CUdeviceptr device;
	CUarray array;
	size_t pitch;
} CUside2D;

typedef struct {
	CUside2D from, to;
	size_t width, height;			/* width in bytes */
} CUcopy2D;				/* CUDA_MEMCPY2D */

typedef struct {
	size_t x, y, z, lod;
	int type;
	const void *host;
	CUdeviceptr device;
	CUarray array;
	CUcontext context;			/* NULL but of a copy between contexts */
	size_t pitch, height;
} CUside3D;

typedef struct {
	CUside3D from, to;
	size_t width, height, depth;
} CUcopy3D;				/* CUDA_MEMCPY3D, CUDA_MEMCPY3D_PEER */

typedef struct {
	int order;
	int from_hint[2], to_hint[2];
	unsigned flags;
} CUcopyAttributes;			/* CUmemcpyAttributes */

typedef struct {
	int type;
	union {
		struct {
			CUdeviceptr at;
			size_t row, layer;
			int hint[2];
		} pointer;
		struct {
			CUarray array;
			size_t x, y, z;
		} array;
	} op;
} CUoperand;				/* CUmemcpy3DOperand */

typedef struct {
	CUoperand from, to;
	size_t width, height, depth;		/* in elements */
	int order;
	unsigned flags;
} CUbatchCopy;				/* CUDA_MEMCPY3D_BATCH_OP */

_Static_assert(sizeof(CUarrayShape) == 40, "array descriptor");
_Static_assert(sizeof(CUcopy2D) == 128 && offsetof(CUcopy2D, width) == 112, "2D copy");
_Static_assert(sizeof(CUcopy3D) == 200 && offsetof(CUcopy3D, width) == 176, "3D copy");
_Static_assert(sizeof(CUcopyAttributes) == 24 && sizeof(CUbatchCopy) == 112, "batches");
_Static_assert(sizeof(CUlaunchAttribute) == 72, "launch attribute");
_Static_assert(sizeof(CUlaunchConfig) == 56, "launch configuration");
_Static_assert(sizeof(CUkernelNodeParams) == 72, "kernel node");
_Static_assert(sizeof(CUgraphNodeParams) == 256 && offsetof(CUgraphNodeParams, kernel) == 16, "any node");
_Static_assert(sizeof(CUmultiDeviceLaunch) == 56, "launch parameters");

#define CU_LAUNCH_ARGS \
	CUfunction, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, CUstream

#define ENTRY(symbol, base, since, ...) CUresult symbol(__VA_ARGS__);
#include "entries.def"
#undef ENTRY

#endif
