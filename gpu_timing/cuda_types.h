/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The few types and constants of the CUDA driver interface that the library needs: the toolkit's
 * own where its header was found (HAVE_CUDA_H), else these, with the same names, sizes and values
 * (CUDA 13.0; a unit test compares them wherever there is a cuda.h). Handles are opaque.
 */
#ifndef GPU_TIMING_CUDA_TYPES_H
#define GPU_TIMING_CUDA_TYPES_H

#ifdef HAVE_CUDA_H
#include <cuda.h>
#else
#include "gpu_timing/cuda_types_own.h"
#endif
#if !defined(HAVE_CUDA_H) || CUDA_VERSION < 12080
#include "gpu_timing/cuda_types_batch.h"
#endif

#endif
