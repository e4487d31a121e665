// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Tells where its own functions lie, as the kernel mapped them: lines "KIND NAME OFFSET PATH",
 * OFFSET (hexadecimal) in the file PATH. KIND: E exported, L local, P slot of the linkage table, I
 * slot of an indirect function. Built as a program and as a library, in all layouts that linkers
 * make.
 */
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define NOINLINE __attribute__((noinline, noclone))

static volatile int sink;

NOINLINE void exported_fn(void) { sink += 1; }
NOINLINE static void local_fn(void) { sink += 2; }
NOINLINE __attribute__((section(".farcode"))) void far_fn(void) { sink += 3; }

static void say(const char *kind, const char *name, uintptr_t address)
{
	FILE *maps = fopen("/proc/self/maps", "r");
	unsigned long start, end, offset;
	char line[4096], path[4096];

	while (maps && fgets(line, sizeof(line), maps)) {
		if (sscanf(line, "%lx-%lx %*s %lx %*s %*s %4095[^\n]", &start, &end, &offset,
			   path) != 4 || address < start || address >= end || path[0] != '/')
			continue;
		printf("%s %s %lx %s\n", kind, name, address - start + offset, path);
		break;
	}
	if (maps)
		fclose(maps);
}

/* e8 rel32: where the call goes. */
static uintptr_t call_target(const unsigned char *code)
{
	int32_t displacement;

	memcpy(&displacement, code + 1, sizeof(displacement));
	return (uintptr_t)code + 5 + (uintptr_t)(intptr_t)displacement;
}

#ifdef IMPORTS
/* getppid is called and its address is taken, which makes linkers choose another kind of slot. */
__asm__(".text\n"
	".type call_getpid, @function\ncall_getpid:\n\tcall getpid@PLT\n\tret\n"
	".size call_getpid, .-call_getpid\n"
	".type call_getppid, @function\ncall_getppid:\n\tcall getppid@PLT\n"
	"\tmov getppid@GOTPCREL(%rip), %rax\n\tret\n"
	".size call_getppid, .-call_getppid\n");
extern const unsigned char call_getpid[] __attribute__((visibility("hidden")));
extern const unsigned char call_getppid[] __attribute__((visibility("hidden")));

/* Before its first call a lazy slot's word points back into the linkage table. */
static uintptr_t lazy_half(uintptr_t slot)
{
	const unsigned char *code = (const unsigned char *)slot;
	int32_t displacement;
	uintptr_t word;

	if (!memcmp(code, "\xf3\x0f\x1e\xfa", 4))
		code += 4;
	if (code[0] == 0xf2)
		code++;
	if (code[0] != 0xff || code[1] != 0x25)
		return 0;
	memcpy(&displacement, code + 2, sizeof(displacement));
	word = (uintptr_t)code + 6 + (uintptr_t)(intptr_t)displacement;
	return *(const uintptr_t *)word;
}

static void say_imports(void)
{
	uintptr_t slot = call_target(call_getpid), half = lazy_half(slot);

	say("P", "getpid@plt", slot);
	say("P", "getpid@plt", slot + 7);
	say("P", "getppid@plt", call_target(call_getppid));
	if (half > slot - 0x1000 && half < slot + 0x1000)
		say("P", "getpid@plt", half);
}
#else
static void say_imports(void) {}
#endif

#ifdef INDIRECT
static int chosen(void) { return 7; }
static void *choose(void) { return (void *)chosen; }
int indirect_fn(void) __attribute__((ifunc("choose")));
__asm__(".text\n"
	".type call_indirect, @function\ncall_indirect:\n\tcall indirect_fn@PLT\n\tret\n"
	".size call_indirect, .-call_indirect\n");
extern const unsigned char call_indirect[] __attribute__((visibility("hidden")));
static void say_indirect(void) { say("I", "indirect_fn@plt", call_target(call_indirect)); }
#else
static void say_indirect(void) {}
#endif

int report(void);
int report(void)
{
	say("E", "exported_fn", (uintptr_t)exported_fn);
	say("E", "exported_fn", (uintptr_t)exported_fn + 1);
	say("E", "far_fn", (uintptr_t)far_fn);
	say("L", "local_fn", (uintptr_t)local_fn);
	say("L", "local_fn", (uintptr_t)local_fn + 1);
	say_imports();
	say_indirect();
	return fflush(stdout);
}

#ifndef LIBRARY
int main(void)
{
	return report();
}
#endif
