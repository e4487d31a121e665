// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "loader/tracer/libc_calls.h"

#include <stdlib.h>
#include <string.h>

#define NR(a) (sizeof(a) / sizeof((a)[0]))

/* Sorted; without the leading underscores that some of their aliases have. */
static const char *const harmless[] = {
	"accept", "accept4", "bsearch", "clock_gettime", "clock_nanosleep", "clone", "clone3",
	"cnd_timedwait", "cnd_wait", "connect", "epoll_pwait", "epoll_pwait2", "epoll_wait",
	"eventfd_read", "eventfd_write", "fcntl", "fcntl64", "flock", "fstat", "fstat64",
	"futimens", "getcpu", "getpid", "getrandom", "getrusage", "gettid", "gettimeofday",
	"ioctl", "kill", "libc_start_main", "lseek", "lseek64", "madvise", "mmap", "mmap64",
	"mprotect", "msgrcv", "mtx_lock", "mtx_timedlock", "munmap", "nanosleep", "pause", "poll",
	"ppoll", "pread", "pread64", "preadv", "pselect", "pthread_barrier_wait",
	"pthread_clockjoin_np", "pthread_cond_broadcast", "pthread_cond_clockwait",
	"pthread_cond_signal", "pthread_cond_timedwait", "pthread_cond_wait", "pthread_getspecific",
	"pthread_join", "pthread_mutex_clocklock", "pthread_mutex_lock", "pthread_mutex_timedlock",
	"pthread_mutex_trylock", "pthread_mutex_unlock", "pthread_rwlock_rdlock",
	"pthread_rwlock_unlock", "pthread_rwlock_wrlock", "pthread_self", "pthread_setspecific",
	"pthread_sigmask", "pthread_spin_lock", "pthread_spin_unlock", "pthread_timedjoin_np",
	"pwrite", "pwrite64", "qsort", "qsort_r", "read", "readv", "recv", "recvfrom", "recvmsg",
	"sched_getcpu", "sched_yield", "select", "sem_clockwait", "sem_post", "sem_timedwait",
	"sem_wait", "semop", "semtimedop", "send", "sendmsg", "sendto", "sigprocmask",
	"sigsuspend", "sigtimedwait", "sigwait", "sigwaitinfo", "sleep", "start_thread", "stat",
	"syscall", "thrd_join", "thrd_sleep", "time", "usleep", "wait", "wait3", "wait4", "waitid",
	"waitpid", "write", "writev",
};

/* Families that only compute. strdup and its like call malloc, which is a frame of its own. */
static const char *const computing[] = {
	"memccpy", "memchr", "memcmp", "memcpy", "memmem", "memmove", "mempcpy", "memrchr", "memset",
	"rawmemchr", "stpcpy", "stpncpy", "strcasecmp", "strcat", "strchr", "strchrnul", "strcmp",
	"strcpy", "strcspn", "strlen", "strncasecmp", "strncat", "strncmp", "strncpy", "strnlen",
	"strpbrk", "strrchr", "strspn", "strstr", "strtod", "strtof", "strtol", "strtoll", "strtoul",
	"strtoull", "wmemcmp", "wmemcpy", "wmemmove", "wmemset",
};

/* Beginnings of names, as they are in the symbol table. */
static const char *const allocating[] = {
	"_Zda", "_Zdl", "_Zna", "_Znw", "_ZN8tcmalloc", "_ZN6snmall", "_ZN5scudo", "_rjem_", "_mi_",
	"aligned_alloc", "arena_", "base_", "calloc", "cfree", "edata_", "ehooks_", "emap_",
	"extent_", "free", "hpa_", "hpdata_", "imalloc", "je_", "large_", "mallo", "malloc",
	"memalign", "mi_", "pa_", "pac_", "posix_memalign", "pvalloc", "realloc", "rpmalloc",
	"sallocx", "scudo", "sdallocx", "sz_", "tc_", "tcache_", "tcmalloc", "valloc",
};

static int compare(const void *key, const void *element)
{
	return strcmp(key, *(const char *const *)element);
}

static bool holds(const char *const *names, size_t nr, const char *name)
{
	return bsearch(name, names, nr, sizeof(*names), compare);
}

static const char *plain(const char *name)
{
	return name + strspn(name, "_");
}

bool libc_calls__harmless(const char *name)
{
	name = plain(name);
	return holds(harmless, NR(harmless), name) || holds(computing, NR(computing), name);
}

bool libc_calls__is_start(const char *name)
{
	return !strcmp(plain(name), "libc_start_main");
}

bool libc_calls__allocates(const char *name)
{
	for (size_t i = 0; i < NR(allocating); i++)
		if (!strncmp(name, allocating[i], strlen(allocating[i])))
			return true;
	return false;
}
