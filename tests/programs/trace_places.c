// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * A thread that waits at a place where it may be borrowed or must not be:
 *
 *	trace_places NAME [MODE]	prints "ready PID" and goes there; ends when standard input does;
 *				MODE is the library's (trace_lib.c)
 *	trace_places -l		lists the names
 *
 * All wait in read(2) of a pipe, which by itself would be no obstacle. At the end all print "calls N":
 * how often the library of these tests came.
 */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <linux/userfaultfd.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

#define CROWD 200

int trace_lib_calls, trace_lib_mode;

static char byte;

static __attribute__((noinline)) void stay(void)
{
	if (read(STDIN_FILENO, &byte, 1) < 0)
		perror("read");
}

/* --- a program with an allocator of its own: malloc itself is exported from here ---------- */

static volatile bool stay_in_malloc;
void *__libc_malloc(size_t size);

__attribute__((visibility("default"), noinline)) void *malloc(size_t size)
{
	if (stay_in_malloc) {
		stay_in_malloc = false;
		stay();
	}
	return __libc_malloc(size);
}

static void in_malloc(void)
{
	void *volatile memory;	/* or the compiler knows better */

	stay_in_malloc = true;
	memory = malloc(100);
	free(memory);
}

/* --- libc's doors that lead back into the program ------------------------------------------- */

static int compare(const void *a, const void *b)
{
	static bool stayed;

	if (!stayed) {
		stayed = true;
		stay();
	}
	return *(const int *)a - *(const int *)b;
}

static void in_qsort(void)
{
	int numbers[] = { 3, 1, 2 };

	qsort(numbers, 3, sizeof(*numbers), compare);
}

static int on_object(struct dl_phdr_info *info, size_t size, void *arg)
{
	(void)info;
	(void)size;
	(void)arg;
	stay();
	return 1;
}

static void in_iterate(void)
{
	dl_iterate_phdr(on_object, NULL);
}

static void in_once(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, stay);
}

static void in_atfork(void)
{
	pthread_atfork(stay, NULL, NULL);
	if (!fork())
		_exit(0);
}

static void in_exit(void)
{
	atexit(stay);
	exit(0);
}

static void in_stdio(void)
{
	char line[16];

	if (fgets(line, sizeof(line), stdin))
		puts("a line");
}

/* A library whose constructor waits (trace_wait_lib.c). */
static void in_dlopen(void)
{
	const char *library = getenv("TRACE_WAITING_LIBRARY");

	if (!library || !dlopen(library, RTLD_NOW))
		fprintf(stderr, "%s\n", library ? dlerror() : "no TRACE_WAITING_LIBRARY");
}

/* --- stacks --------------------------------------------------------------------------------- */

static void on_signal(int signal)
{
	(void)signal;
	stay();
}

static void in_handler(void)
{
	signal(SIGUSR2, on_signal);
	raise(SIGUSR2);
}

static void in_alternate(void)
{
	static char stack[1 << 20];
	const stack_t alternate = { .ss_sp = stack, .ss_size = sizeof(stack) };
	const struct sigaction action = { .sa_handler = on_signal, .sa_flags = SA_ONSTACK };

	sigaltstack(&alternate, NULL);
	sigaction(SIGUSR2, &action, NULL);
	raise(SIGUSR2);
}

static ucontext_t back, fiber;

static void in_fiber(void)
{
	const size_t size = 1 << 20;

	getcontext(&fiber);
	fiber.uc_stack.ss_sp = mmap(NULL, size, PROT_READ | PROT_WRITE,
				    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	fiber.uc_stack.ss_size = size;
	fiber.uc_link = &back;
	makecontext(&fiber, stay, 0);
	swapcontext(&back, &fiber);
}

static __attribute__((noinline)) void deeper(int left, int *sum)
{
	volatile char frame[64];

	memset((void *)frame, left, sizeof(frame));
	if (left)
		deeper(left - 1, sum);
	else
		stay();
	*sum += frame[left % 64];
}

static void in_deep(void)
{
	int sum = 0;

	deeper(3000, &sum);
}

/* In code that nobody can unwind: made at run time. */
static void in_generated(void)
{
	static const uint8_t code[] = { 0x48, 0x83, 0xec, 0x08, 0xff, 0xd7, 0x48, 0x83, 0xc4, 0x08,
					0xc3 };	/* sub $8; call *rdi; add $8; ret */
	void *at = mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC,
			MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	memcpy(at, code, sizeof(code));
	((void (*)(void (*)(void)))at)(stay);
}

/* --- threads: the first one waits where nobody stops it --------------------------------------- */

static void (*of_thread)(void);
static pthread_key_t key;

static void at_thread_end(void *arg)
{
	if (arg)
		of_thread();
	kill(getpid(), SIGUSR2);
}

static void *run_thread(void *arg)
{
	if (arg) {
		pthread_setspecific(key, arg);
		return arg;
	}
	of_thread();
	at_thread_end(NULL);
	return arg;
}

static void in_thread(void (*what)(void), size_t stack, void *at_end)
{
	pthread_attr_t attr;
	pthread_t thread;
	sigset_t set;
	int signal;

	of_thread = what;
	sigemptyset(&set);
	sigaddset(&set, SIGUSR2);
	sigprocmask(SIG_BLOCK, &set, NULL);
	pthread_attr_init(&attr);
	if (stack)
		pthread_attr_setstacksize(&attr, stack);
	pthread_create(&thread, &attr, run_thread, at_end);
	sigwait(&set, &signal);
}

static void in_plain_thread(void)
{
	in_thread(stay, 0, NULL);
}

static void in_modest_thread(void)
{
	in_thread(stay, 128 << 10, NULL);
}

static void in_small_thread(void)
{
	in_thread(stay, 64 << 10, NULL);
}

/* A part of the stack is only there when somebody answers, and nobody does. */
static void without_answer(void)
{
	const uintptr_t page = 4096;
	char frame[16 * 4096];
	void *hole = (void *)(((uintptr_t)frame + 4 * page) & ~(page - 1)), *stack;
	struct uffdio_register all = { .mode = UFFDIO_REGISTER_MODE_MISSING };
	struct uffdio_api api = { .api = UFFD_API };
	int fd = (int)syscall(SYS_userfaultfd, O_CLOEXEC);
	pthread_attr_t attr;
	size_t size;

	pthread_getattr_np(pthread_self(), &attr);
	pthread_attr_getstack(&attr, &stack, &size);
	all.range = (struct uffdio_range){ (uintptr_t)stack, size };
	if (fd < 0 || ioctl(fd, UFFDIO_API, &api) || madvise(hole, 4 * page, MADV_DONTNEED) ||
	    ioctl(fd, UFFDIO_REGISTER, &all))
		puts("no userfaultfd");
	stay();
	close(fd);
}

static void in_unanswered(void)
{
	in_thread(without_answer, 0, NULL);
}

/* The thread has ended, and its keys are being destroyed. */
static void in_key(void)
{
	pthread_key_create(&key, at_thread_end);
	in_thread(stay, 0, &key);
}

/* Many that can't be borrowed, and sleep where they do. */
static void *run_one_of_crowd(void *arg)
{
	in_generated();
	return arg;
}

static void in_crowd(void)
{
	pthread_t thread;

	for (int i = 1; i < CROWD; i++)
		pthread_create(&thread, NULL, run_one_of_crowd, NULL);
	in_thread(in_generated, 0, NULL);
}

static const struct {
	const char *name;
	void (*go)(void);
} places[] = {
	{ "plain", stay }, { "malloc", in_malloc }, { "qsort", in_qsort },
	{ "iterate", in_iterate }, { "once", in_once }, { "atfork", in_atfork },
	{ "exit", in_exit }, { "stdio", in_stdio }, { "dlopen", in_dlopen },
	{ "handler", in_handler }, { "alternate", in_alternate }, { "fiber", in_fiber },
	{ "deep", in_deep }, { "generated", in_generated }, { "thread", in_plain_thread },
	{ "modest_thread", in_modest_thread }, { "small_thread", in_small_thread },
	{ "key", in_key }, { "crowd", in_crowd }, { "unanswered", in_unanswered },
};

#define NR_PLACES (sizeof(places) / sizeof(places[0]))

int main(int argc, char **argv)
{
	for (size_t i = 0; i < NR_PLACES && argc > 1; i++) {
		if (!strcmp(argv[1], "-l")) {
			puts(places[i].name);
		} else if (!strcmp(argv[1], places[i].name)) {
			printf("ready %d\n", (int)getpid());
			fflush(stdout);
			trace_lib_mode = argc > 2 ? atoi(argv[2]) : 0;
			places[i].go();
			printf("calls %d\n", trace_lib_calls);
			return 0;
		}
	}
	return argc > 1 && !strcmp(argv[1], "-l") ? 0 : 64;
}
