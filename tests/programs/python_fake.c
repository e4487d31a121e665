// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Has the global state of CPython 3.11 and three threads with a frame each, and no Python: for C
 * libraries that no interpreter here was built with.
 *
 *	python_fake KEYS	makes so many keys of thread-specific data before its own
 *
 * Prints for each thread its pointer, its state and the address of its code, then waits for its end.
 */
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define THREADS 3
/* Offsets of 3.11, from its headers. */
#define RUNTIME_KEY 592
#define RUNTIME_INTERPRETERS 40
#define INTERPRETER_THREADS 16
#define THREAD_NEXT 8
#define THREAD_INTERPRETER 16
#define THREAD_CFRAME 56
#define THREAD_ID 152
#define CFRAME_TOP 8
#define FRAME_CODE 32
#define TYPE_NAME 24
#define TYPE_FLAGS 168
#define OBJECT_TYPE 8
#define CODE_FILENAME 112
#define CODE_NAME 120

#define EXPORTED __attribute__((visibility("default"), used))

EXPORTED const unsigned long Py_Version = 0x030b07f0;
EXPORTED uint64_t _PyRuntime[166688 / 8];
EXPORTED uint64_t PyCode_Type[408 / 8];

static uint64_t str_type[408 / 8], interpreter[4096 / 8], states[THREADS][512 / 8];
static uint64_t cframes[THREADS][4], frames[THREADS][16], codes[THREADS][32], text[8];
static pthread_key_t key;
static pthread_barrier_t ready;

static void set(uint64_t *object, unsigned int at, const void *value)
{
	object[at / 8] = (uint64_t)(uintptr_t)value;
}

static void make_types(void)
{
	set(PyCode_Type, TYPE_NAME, "code");
	PyCode_Type[TYPE_FLAGS / 8] = 1 << 12;
	set(str_type, TYPE_NAME, "str");
	set(text, OBJECT_TYPE, str_type);
}

static void make_thread(int i)
{
	set(states[i], THREAD_INTERPRETER, interpreter);
	if (i)
		set(states[i], THREAD_NEXT, states[i - 1]);
	set(states[i], THREAD_CFRAME, cframes[i]);
	set(cframes[i], CFRAME_TOP, frames[i]);
	set(frames[i], FRAME_CODE, codes[i]);
	set(codes[i], OBJECT_TYPE, PyCode_Type);
	set(codes[i], CODE_NAME, text);
	set(codes[i], CODE_FILENAME, text);
	states[i][THREAD_ID / 8] = (uint64_t)pthread_self();
	pthread_setspecific(key, states[i]);
}

static void *run(void *i)
{
	make_thread((int)(intptr_t)i);
	pthread_barrier_wait(&ready);
	for (;;)
		pause();
	return NULL;
}

int main(int argc, char **argv)
{
	uint32_t tss[2] = { 1, 0 };
	pthread_t thread;

	for (int i = argc > 1 ? atoi(argv[1]) : 0; i > 0; i--)
		if (pthread_key_create(&key, NULL))
			return 1;
	if (pthread_key_create(&key, NULL) || pthread_barrier_init(&ready, NULL, THREADS))
		return 1;
	tss[1] = (uint32_t)key;
	memcpy((char *)_PyRuntime + RUNTIME_KEY, tss, sizeof(tss));
	make_types();
	make_thread(0);
	for (intptr_t i = 1; i < THREADS; i++)
		if (pthread_create(&thread, NULL, run, (void *)i))
			return 1;
	pthread_barrier_wait(&ready);
	set(interpreter, INTERPRETER_THREADS, states[THREADS - 1]);
	set(_PyRuntime, RUNTIME_INTERPRETERS, interpreter);
	for (int i = 0; i < THREADS; i++)
		printf("%llu %llu %llu\n", (unsigned long long)states[i][THREAD_ID / 8],
		       (unsigned long long)(uintptr_t)states[i], (unsigned long long)(uintptr_t)codes[i]);
	fflush(stdout);
	for (;;)
		pause();
}
