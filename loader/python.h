/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The Python interpreters of the processes that are watched: found among the files that they map, known
 * once by file, made sure of in each process, and told to the BPF side.
 */
#ifndef LOADER_PYTHON_H
#define LOADER_PYTHON_H

#include <linux/types.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "loader/files.h"
#include "loader/processes.h"
#include "unwind/python_offsets.h"

struct python;

/* `layouts`: the BPF side's map pythons. NULL: out of memory. */
struct python *python__new(struct files *files, struct processes *processes, struct python_layout *layouts);
void python__free(struct python *py);	/* NULL is fine */

/* New mappings of `p`: is there an interpreter among them? One that isn't ready is asked again. */
void python__mapped(struct python *py, struct process *p);
/* Asks those that were not ready; to be called some dozen times a second. */
void python__tick(struct python *py);
/* Whether there are such that will be asked again. */
bool python__asks(const struct python *py);
/*
 * Pure: until the next such question, ns: as long again as `before` up to 1 s, longer where the last one
 * `took` its time and there are `nr` to be asked.
 */
uint64_t python__delay(uint64_t before, uint64_t took, size_t nr);

/* Pure: whether a file has the name of an interpreter: it is looked at sooner. Others may be one, too. */
bool python__is_named(const char *path);
/* Pure: whether the word's code is the interpreter's evaluation function, where that is known. */
bool python__is_call(const struct python *py, uint64_t word);
/* Pure: whether a file holds an interpreter whose frames are shown. */
bool python__is_interpreter(const struct python *py, uint32_t file);
/* Of the interpreter that struct process.python stands for; NULL: of none. */
const struct python_offsets *python__offsets(const struct python *py, uint32_t python);

/* Whether functions of such a process have no versions: before 3.12. */
bool python__needs_frees(const struct python *py, const struct process *p);
/* Asks again for the type of code objects where it wasn't known, since there was no frame to have one. */
void python__find_type(struct python *py, struct process *p);

/* For struct python_memory: reads memory of the process whose number `ctx` points to (a pid_t). */
int python__read_memory(void *ctx, uint64_t addr, void *buf, size_t len);

#endif
