/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Makes the test itself a process with an interpreter of CPython 3.11, as far as the loader asks: it is found
 * in the program's file, and its one thread is this one.
 */
#ifndef TESTS_PYTHON_SELF_H
#define TESTS_PYTHON_SELF_H

#include <pthread.h>
#include <stdint.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "loader/python.h"
#include "tests/unit/unit.h"

#define SELF_KEPT __attribute__((used))

extern const unsigned long Py_Version;
extern uint64_t _PyRuntime[166688 / 8];
extern uint64_t PyCode_Type[408 / 8];

SELF_KEPT const unsigned long Py_Version = 0x030b07f0;
SELF_KEPT uint64_t _PyRuntime[166688 / 8];
SELF_KEPT uint64_t PyCode_Type[408 / 8];

static struct python_offsets self_offsets;
static uint64_t self_interpreter[4096 / 8], self_state[512 / 8];
static struct processes *self_processes;
static struct files *self_files;
static struct python *self_python;

static inline void self__set(void *object, unsigned int at, uint64_t value)
{
	memcpy((char *)object + at, &value, sizeof(value));
}

/* From no interpreter to one that is ready. */
static inline void self__start(void)
{
	self__set(_PyRuntime, self_offsets.runtime_interpreters, (uintptr_t)self_interpreter);
}

static inline void self__make(void)
{
	const struct python_offsets *o = &self_offsets;
	pthread_key_t key;

	ck_assert_int_eq(python_offsets__of(11, false, &self_offsets), 0);
	ck_assert_int_eq(pthread_key_create(&key, NULL), 0);
	ck_assert_int_eq(pthread_setspecific(key, self_state), 0);
	self__set(_PyRuntime, o->runtime_key, 1 | (uint64_t)key << 32);
	self__set(PyCode_Type, o->type_name, (uintptr_t)"code");
	self__set(PyCode_Type, o->type_name + 18 * 8, 1 << 12);		/* tp_flags: ready */
	self__set(self_interpreter, o->interpreter_threads, (uintptr_t)self_state);
	self__set(self_state, o->thread_interpreter, (uintptr_t)self_interpreter);
	self__set(self_state, o->layout.thread_id, (uint64_t)pthread_self());
	/* a CFrame without frames: anything with zeroes */
	self__set(self_state, o->layout.cframe, (uintptr_t)self_state + 256);
}

/* The loader's side; returns this process as it knows it, which was not looked at for Python yet. */
static inline struct process *self__begin(void)
{
	static struct proc_slot slots[GPUCOLLECT_MAX_PROCS];
	static struct mapping mappings[GPUCOLLECT_MAX_MAPPINGS];
	static struct python_layout layouts[GPUCOLLECT_MAX_PYTHONS];
	struct processes_maps maps = { .procs_fd = -1, .slots = slots, .mappings = mappings };
	struct process *p;

	prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY);	/* a child of ours will read our memory */
	self__make();
	self_files = files__new();
	self_processes = processes__new(&maps, self_files);
	self_python = python__new(self_files, self_processes, layouts);
	ck_assert(self_files && self_processes && self_python);
	p = processes__get(self_processes, getpid(), true);
	ck_assert_ptr_nonnull(p);
	return p;
}

static inline void self__end(void)
{
	python__free(self_python);
	processes__free(self_processes);
	files__free(self_files);
}

#endif
