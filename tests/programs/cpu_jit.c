// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Makes code at run time, tells its names and runs it, half a second of CPU time each function.
 * usage: cpu_jit perf [DIR]	jit_one, jit_two, told in DIR/perf-PID.map (/tmp), removed at the end
 *        cpu_jit late		the same, told only when both have run
 *        cpu_jit silent	the same, told nowhere
 *        cpu_jit memfd		perf, with the code in a memfd, mapped twice
 *        cpu_jit foreign	the map belongs to somebody else (as root)
 *        cpu_jit fork		a child runs what the parent has made and told
 *        cpu_jit exec		runs jit_one, then itself anew, which runs jit_two elsewhere
 *        cpu_jit dump DIR	told in DIR/jit-PID.dump: jit_one runs, moves, runs; jit_two takes its
 *				old place and runs twice
 */
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define PLACE 0x100		/* from one function to the next */
#define HALF 500000000ull

static const unsigned char code[] = {
	0x55,			/* push %rbp */
	0x48, 0x89, 0xe5,	/* mov  %rsp,%rbp */
	0x48, 0xff, 0xcf,	/* dec  %rdi */
	0x75, 0xfb,		/* jne  4 */
	0x5d,			/* pop  %rbp */
	0xc3,			/* ret */
};

static char *area, *writable, map[4096];
static int dump = -1;

static uint64_t now(clockid_t clock)
{
	struct timespec t;

	clock_gettime(clock, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

static void check(int good, const char *what)
{
	if (good)
		return;
	perror(what);
	exit(1);
}

/* Never writable and executable at once: two mappings of one file, as some runtimes have it. */
static void map_area(int twice)
{
	int fd = twice ? memfd_create("made here", MFD_CLOEXEC) : -1;

	check(!twice || !ftruncate(fd, 3 * 4096), "memfd");
	area = mmap(NULL, 4096, PROT_READ | PROT_EXEC | (twice ? 0 : PROT_WRITE),
		    twice ? MAP_SHARED : MAP_PRIVATE | MAP_ANONYMOUS, fd, twice ? 2 * 4096 : 0);
	writable = twice ? mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 2 * 4096) : area;
	check(area != MAP_FAILED && writable != MAP_FAILED, "mmap");
}

static char *make(int place)
{
	memcpy(writable + place * PLACE, code, sizeof(code));
	return area + place * PLACE;
}

__attribute__((noinline)) static void run(const char *at)
{
	uint64_t end = now(CLOCK_PROCESS_CPUTIME_ID) + HALF;

	while (now(CLOCK_PROCESS_CPUTIME_ID) < end)
		((void (*)(long))(uintptr_t)at)(1000000);
}

static void tell(const char *at, const char *name)
{
	FILE *f = fopen(map, "a");

	check(f != NULL, map);
	fprintf(f, "%lx %zx %s\n", (unsigned long)at, sizeof(code), name);
	fclose(f);
}

/* --- jitdump --- */

static void put(const void *data, size_t len)
{
	check(write(dump, data, len) == (ssize_t)len, "write");
}

static void begin_dump(const char *dir)
{
	uint32_t head[6] = { 0x4a695444, 1, 40, 62, 0, (uint32_t)getpid() };
	uint64_t rest[2] = { now(CLOCK_MONOTONIC), 0 };
	char path[4096];

	snprintf(path, sizeof(path), "%s/jit-%d.dump", dir, (int)getpid());
	dump = open(path, O_RDWR | O_CREAT | O_TRUNC, 0644);
	check(dump >= 0, path);
	put(head, sizeof(head));
	put(rest, sizeof(rest));
	check(mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE, dump, 0) != MAP_FAILED, "marker");
}

static void put_record(uint32_t id, size_t body)
{
	uint32_t head[2] = { id, (uint32_t)(16 + body) }, ids[2] = { (uint32_t)getpid(), 1 };
	uint64_t time = now(CLOCK_MONOTONIC);

	put(head, sizeof(head));
	put(&time, sizeof(time));
	put(ids, sizeof(ids));
}

static void load(const char *at, const char *name, uint64_t index)
{
	uint64_t body[4] = { (uintptr_t)at, (uintptr_t)at, sizeof(code), index };

	put_record(0, 8 + sizeof(body) + strlen(name) + 1 + sizeof(code));
	put(body, sizeof(body));
	put(name, strlen(name) + 1);
	put(code, sizeof(code));
}

static void move(const char *from, const char *to, uint64_t index)
{
	uint64_t body[5] = { (uintptr_t)to, (uintptr_t)from, (uintptr_t)to, sizeof(code), index };

	put_record(1, 8 + sizeof(body));
	put(body, sizeof(body));
}

/* --- */

static void run_moving(void)
{
	load(make(0), "jit_one", 1);
	run(area);
	make(1);
	move(area, area + PLACE, 1);
	run(area + PLACE);
	load(make(0), "jit_two", 2);
	run(area);
	run(area);
}

static void run_in_child(void)
{
	pid_t child;
	int status;

	tell(make(0), "jit_one");
	run(area);
	child = fork();
	if (child == 0) {
		run(area);
		run(area);
		_exit(0);
	}
	check(waitpid(child, &status, 0) == child && !status, "child");
}

int main(int argc, char **argv)
{
	const char *mode = argc > 1 ? argv[1] : "perf", *dir = argc > 2 ? argv[2] : "/tmp";

	snprintf(map, sizeof(map), "%s/perf-%d.map", dir, (int)getpid());
	map_area(!strcmp(mode, "memfd"));
	if (!strcmp(mode, "dump")) {
		begin_dump(dir);
		run_moving();
		return 0;
	}
	if (!strcmp(mode, "fork")) {
		run_in_child();
	} else if (!strcmp(mode, "exec")) {
		tell(make(0), "jit_one");
		run(area);
		execl("/proc/self/exe", argv[0], "after", dir, (char *)NULL);
		check(0, "exec");
	} else if (!strcmp(mode, "after")) {
		remove(map);
		tell(make(2), "jit_two");
		run(area + 2 * PLACE);
	} else if (!strcmp(mode, "late") || !strcmp(mode, "silent")) {
		run(make(0));
		run(make(1));
		if (mode[0] == 's')
			return 0;
		tell(area, "jit_one");
		tell(area + PLACE, "jit_two");
		return 0;
	} else {
		tell(make(0), "jit_one");
		if (!strcmp(mode, "foreign"))
			check(!chown(map, 65534, 65534), "chown");
		run(area);
		tell(make(1), "jit_two");
		run(area + PLACE);
	}
	remove(map);
	return 0;
}
