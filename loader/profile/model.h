/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The inside of struct profile, for the files of this folder. */
#ifndef PROFILE_MODEL_H
#define PROFILE_MODEL_H

#include <stddef.h>
#include <stdint.h>

#include "loader/base/index.h"
#include "loader/profile/profile.h"
#include "loader/profile/strings.h"

struct table;

struct profile_node {
	uint32_t parent;
	uint32_t frame;
};

struct profile {
	struct strings strings;
	struct index frame_index, node_index, label_index, value_index;
	struct profile_frame *frames;
	struct profile_node *nodes;
	struct profile_labels *labels;
	struct profile_value *values;
	size_t nr_frames, nr_nodes, nr_labels, nr_values;
	size_t frames_size, nodes_size, labels_size, values_size;
	struct table *thread_names;	/* pid << 32 | tid -> address of an interned string */
	struct profile_run run;
	struct profile_counter *counters;
	const char **notes;
	size_t nr_counters, nr_notes;
	size_t counters_size, notes_size;
	uint64_t seed;
};

#endif
