// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * A program that becomes a Python late: it loads a libpython, whose path is its first argument, and runs
 * the rest as Python's command line, in a thread of its own. Nothing in its name or file says Python.
 */
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>

#define FRAME __attribute__((noinline, noclone, no_icf))
#define KEEP_FRAME() __asm__ volatile("" ::: "memory")

struct line {
	int argc;
	char **argv;
	int status;
};

static FRAME void embed_run(struct line *l)
{
	void *library = dlopen(l->argv[0], RTLD_NOW | RTLD_GLOBAL);
	int (*run)(int argc, char **argv);

	l->status = 127;
	if (!library) {
		fprintf(stderr, "%s\n", dlerror());
		return;
	}
	*(void **)&run = dlsym(library, "Py_BytesMain");
	if (run)
		l->status = run(l->argc, l->argv);
	KEEP_FRAME();
}

static FRAME void *embed_thread(void *arg)
{
	embed_run(arg);
	KEEP_FRAME();
	return NULL;
}

int main(int argc, char **argv)
{
	struct line l = { argc - 1, argv + 1, 1 };
	pthread_attr_t attr;
	pthread_t thread;

	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, 8 << 20);
	if (argc < 2 || pthread_create(&thread, &attr, embed_thread, &l) || pthread_join(thread, NULL))
		return 126;
	return l.status;
}
