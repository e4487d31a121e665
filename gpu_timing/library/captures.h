/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Which node of a graph a captured launch has become: its stack tells where the node comes from. A capture
 * happens once, after a program's warm-up, so its launches are looked at whichever others are. Nodes are
 * known by their handles, which come again: they are forgotten when their graph goes, or may go unseen.
 */
#ifndef LIBRARY_CAPTURES_H
#define LIBRARY_CAPTURES_H

#include <linux/types.h>
#include <stdbool.h>
#include <stdint.h>

#include "gpu_timing/cuda_types.h"
#include "gpu_timing/library/thread.h"

#define MAX_CAPTURED 65536
#define CAPTURED_PROBES 32
#define CAPTURED_GRAPHS 1024

struct captured {
	uint64_t node;		/* 0: free */
	uint64_t graph;
	uint64_t launch;
	uint64_t epoch;
	uint64_t kernel;	/* bool: else a copy */
};

struct capture_table {
	uint32_t usable;	/* bool: all that ends graphs and their nodes is seen */
	uint32_t under_way;	/* captures begun and not ended, about */
	uint64_t epoch;		/* from 1; what is of another is forgotten */
	uint64_t graphs[CAPTURED_GRAPHS];	/* that have nodes below, each at its place; 0: none */
	struct captured at[MAX_CAPTURED];
};

/* A session begins; our hooks are in. */
void captures__begin(void);
void captures__armed(void);
void captures__forget_all(void);
/* A stream is about to be destroyed, and a capture in it with its graph. */
void captures__stream_goes(void);

/* What the driver has said of a stream, if it was asked: each failure leaves a line in its error log. */
struct capture_answer {
	bool asked;
	CUresult error;
	CUstreamCaptureStatus status;
};

bool capture__asks(struct thread *t, CUstream stream, struct capture_answer *answer);
/* Does t->launch go into a capture, and is to be looked at for that? For itself alone. */
static inline bool capture__takes(struct thread *t, CUstream stream, struct capture_answer *answer)
{
	answer->asked = false;
	return __builtin_expect(t->captures, 0) && capture__asks(t, stream, answer);
}

/* t->launch has gone into the capture of that stream. */
void capture__note(struct thread *t, CUstream stream);
/* The launch of a kernel, or the copy, that this node of the graph was captured as; 0: not known. */
uint64_t capture__launch(CUgraphNode node, CUgraph graph, bool kernel);

#endif
