// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The exported entries of libcuda: size, shape, slot, page protection, slots shared by two
 * entries. "all" prints every cu* entry, without an argument only those that are hooked.
 */
#include "probe_hook.h"
#include "probe_common.h"

static uintptr_t base(const struct probe_stub *s)
{
	Dl_info info;

	return dladdr((void *)s->entry, &info) ? (uintptr_t)info.dli_fbase : 0;
}

/* The bytes with every rel32 that we found blanked: equal strings are equal shapes. */
static void shape(const struct probe_stub *s, char *text, size_t size)
{
	const unsigned char *code = (const unsigned char *)s->entry;
	size_t at = 0, n = s->size < 200 ? s->size : 200;

	for (size_t i = 0; i < n && at + 3 < size; i++)
		at += (size_t)snprintf(text + at, size - at, "%02x", code[i]);
	text[at] = 0;
	for (size_t i = 0; i + 6 <= n; i++) {
		int is_call = code[i] == 0xff && (code[i + 1] == 0x15 || code[i + 1] == 0x25);
		int is_check = code[i] == 0x81 && code[i + 1] == 0x3d;

		if ((is_call || is_check) && 2 * (i + 6) <= at)
			memcpy(text + 2 * (i + 2), "RRRRRRRR", 8);
	}
}

static void print_one(const struct probe_stub *s)
{
	const unsigned char *code = (const unsigned char *)s->entry;

	printf("%-44s +%lx size %u kind %d calls %d checks %d", s->name, s->entry - base(s),
	       s->size, s->kind, s->calls, s->checks);
	if (s->kind)
		printf(" call at %u S %s", s->slot_at, probe_hook_where(s->slot));
	if (s->checks)
		printf(" M %s == %08x now %08x", probe_hook_where(s->magic), s->magic_value,
		       *(volatile uint32_t *)s->magic);
	printf("\n    ");
	for (uint32_t i = 0; i < (s->size && s->size < 64 ? s->size : 64); i++)
		printf("%02x", code[i]);
	printf("\n");
}

static void print_shapes(struct probe_stub *s, int n)
{
	static char text[2048][420];
	static int seen[2048];

	for (int i = 0; i < n; i++)
		shape(&s[i], text[i], sizeof(text[i]));
	for (int i = 0; i < n; i++) {
		int count = 1, hooked = s[i].hook >= 0;

		if (seen[i] || !s[i].kind)
			continue;
		for (int k = i + 1; k < n; k++) {
			if (strcmp(text[i], text[k]) || !s[k].kind)
				continue;
			seen[k] = 1;
			count++;
			hooked += s[k].hook >= 0;
		}
		if (count > 1 || hooked)
			printf("shape of %d entries (%d on our list), e.g. %s, size %u\n    %s\n",
			       count, hooked, s[i].name, s[i].size, text[i]);
	}
}

int main(int argc, char **argv)
{
	struct probe_stub *s;
	int n, with_slot = 0, odd = 0;

	(void)argv;
	if (probe_hook_init())
		return 77;
	s = probe_hook_stubs(&n);
	probe_hook_dump("before cuInit");
	for (int i = 0; i < n; i++) {
		if (argc > 1 || s[i].hook >= 0)
			print_one(&s[i]);
		with_slot += s[i].kind != 0;
		odd += s[i].kind && (s[i].calls != 1 || s[i].checks != 1);
		for (int k = 0; k < i; k++)
			if (s[i].kind && s[i].slot == s[k].slot)
				printf("shared slot: %s and %s%s\n", s[k].name, s[i].name,
				       s[i].entry == s[k].entry ? " (same entry)" : "");
	}
	printf("%d cu* entries, %d with a slot, %d of them not with exactly one call and one "
	       "check\n", n, with_slot, odd);
	for (int i = 0; i < n; i++)
		if (s[i].kind && (s[i].calls != 1 || s[i].checks != 1) && s[i].hook >= 0)
			printf("odd one on our list: %s calls %d checks %d\n", s[i].name,
			       s[i].calls, s[i].checks);
	print_shapes(s, n);
	printf("cuGetProcAddress_v2 against dlsym:");
	{
		void *lib = cu_load(), *p;
		int (*get)(const char *, void **, int, uint64_t, int *) =
			(int (*)(const char *, void **, int, uint64_t, int *))
			dlsym(lib, "cuGetProcAddress_v2");
		static const char *const names[] = { "cuLaunchKernel", "cuLaunchKernelEx",
			"cuGraphLaunch", "cuEventRecord", "cuMemcpyHtoDAsync" };

		for (int i = 0; get && i < 5; i++)
			for (int flag = 0; flag < 3; flag += 2) {
				p = NULL;
				get(names[i], &p, 13000, (uint64_t)flag, NULL);
				printf(" %s/%d=%s", names[i], flag,
				       probe_hook_where((uintptr_t)p));
				for (int k = 0; k < n; k++)
					if (s[k].entry == (uintptr_t)p)
						printf("(%s)", s[k].name);
			}
	}
	printf("\n");
	return 0;
}
