// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The entries of the virtual device: their bytes, slots and arguments, and look-ups by name. */
#include <fcntl.h>
#include <stdbool.h>
#include <string.h>
#include <unistd.h>
#include "tests/unit/simcuda.h"

static const char *const names[] = {
#define ENTRY(symbol, base, since, ...) #symbol,
#include "tests/simcuda/entries.def"
#undef ENTRY
};
#define NR_NAMES (sizeof(names) / sizeof(*names))

/* As read from driver 580.159.04: head, distance to the magic word, magic; then the comparison. */
static const unsigned char head[12] = { 0x55, 0x48, 0x89, 0xe5, 0x41, 0x54, 0x48, 0x83, 0xec, 0x08,
					0x81, 0x3d };
static const unsigned char magic[4] = { 0x00, 0xba, 0x1c, 0x32 };
static const unsigned char after[] = {
	0x41, 0x89, 0xc4, 0x85, 0xc0, 0x74, 0x0f, 0x3d, 0x58, 0x02, 0x00, 0x00, 0x74, 0x08, 0x8d,
	0x40, 0xfd, 0x83, 0xf8, 0x01, 0x77, 0x0a, 0x44, 0x89, 0xe0, 0x4c, 0x8b, 0x65, 0xf8, 0xc9,
	0xc3,
};

/* Bytes between the magic and the call, and the size of the symbol. */
static const struct shape {
	const char *name;
	int size;
	const char *middle;
} shapes[] = {
	{ "cuEventRecord", 191, "\x0f\x84\x96\0\0\0" },
	{ "cuGraphLaunch_ptsz", 191, "\x0f\x84\x96\0\0\0" },
	{ "cuLaunchKernelEx", 191, "\x0f\x84\x96\0\0\0" },
	{ "cuStreamBeginCaptureToGraph", 143, "\x74\x6a" },
	{ "cuLaunchKernel", 175,
	  "\x0f\x84\x86\0\0\0\x8b\x45\x18\x48\x83\xec\x08\xff\x75\x30\xff\x75\x28"
	  "\xff\x75\x20\x50\x8b\x45\x10\x50" },
	{ "cuLaunchCooperativeKernel_ptsz", 159,
	  "\x74\x7a\x8b\x45\x18\xff\x75\x28\xff\x75\x20\x50\x8b\x45\x10\x50" },
	{ "cuMemsetD8Async", 191, "\x0f\x84\x96\0\0\0\x40\x0f\xb6\xf6" },
	{ "cuLibraryLoadData", 159, "\x74\x7a\xff\x75\x18\xff\x75\x10" },
	{ "cuMemcpyBatchAsync", 159, "\x74\x7a\x48\x83\xec\x08\xff\x75\x20\xff\x75\x18\xff\x75\x10" },
	{ "cuMemsetD2D8Async", 143, "\x74\x6a\x0f\xb6\xd2" },
	{ "cuMemsetD2D16_v2", 191, "\x0f\x84\x96\0\0\0\x0f\xb7\xd2" },
};
static const int middle_length[] = { 6, 6, 6, 2, 27, 16, 10, 8, 15, 5, 9 };

static int32_t distance(const unsigned char *p)
{
	int32_t d;

	memcpy(&d, p, sizeof(d));
	return d;
}

/* Address of the slot: behind the one indirect call, which comes within the first 64 bytes. */
static void **slot_of(const unsigned char *entry)
{
	for (int i = 20; i < 58; i++)
		if (entry[i] == 0xff && entry[i + 1] == 0x15)
			return (void **)(uintptr_t)(entry + i + 6 + distance(entry + i + 2));
	return NULL;
}

static void protection(const void *address, char out[5], bool *of_file)
{
	FILE *fp = fopen("/proc/self/maps", "re");
	unsigned long from, to, inode;
	char line[4096], flags[8];

	strcpy(out, "none");
	while (fgets(line, sizeof(line), fp))
		if (sscanf(line, "%lx-%lx %7s %*x %*s %lu", &from, &to, flags, &inode) == 4 &&
		    (uintptr_t)address >= from && (uintptr_t)address < to) {
			memcpy(out, flags, 5);
			*of_file = inode != 0;
		}
	fclose(fp);
}

START_TEST(every_entry_has_the_drivers_head_and_a_slot_of_its_own)
{
	const unsigned char *word = NULL;
	void **slots[NR_NAMES];
	char flags[5];
	bool of_file = true;

	device__load("simcuda");
	for (size_t i = 0; i < NR_NAMES; i++) {
		const unsigned char *p = device__entry(names[i]), *w = p + 20 + distance(p + 12);
		Dl_info from, to;

		ck_assert_msg(!memcmp(p, head, sizeof(head)) && !memcmp(p + 16, magic, 4), "%s",
			      names[i]);
		ck_assert_msg(!word || w == word, "%s has another magic word", names[i]);
		word = w;
		slots[i] = slot_of(p);
		ck_assert_msg(slots[i] && (uintptr_t)slots[i] % 8 == 0, "%s", names[i]);
		for (size_t k = 0; k < i; k++)
			ck_assert_msg(slots[i] != slots[k], "%s, %s", names[i], names[k]);
		ck_assert(dladdr(p, &from) && dladdr(*slots[i], &to));
		ck_assert_ptr_eq(from.dli_fbase, to.dli_fbase);
		protection(slots[i], flags, &of_file);
		ck_assert_str_eq(flags, "rw-p");
	}
	protection(word, flags, &of_file);
	ck_assert_str_eq(flags, "rw-p");
	ck_assert(!of_file);
}
END_TEST

START_TEST(stack_arguments_are_passed_on_as_the_driver_does)
{
	device__load("simcuda");
	for (size_t i = 0; i < sizeof(shapes) / sizeof(*shapes); i++) {
		const unsigned char *p = device__entry(shapes[i].name);
		int n = middle_length[i];

		ck_assert_msg(!memcmp(p + 20, shapes[i].middle, (size_t)n), "%s", shapes[i].name);
		ck_assert_int_eq(p[20 + n], 0xff);
		ck_assert_int_eq(p[20 + n + 1], 0x15);
		ck_assert_msg(!memcmp(p + 20 + n + 6, after, sizeof(after)), "%s", shapes[i].name);
	}
}
END_TEST

START_TEST(symbols_have_the_drivers_sizes)
{
	char command[4200], line[512], name[128];
	const char *b = getenv("B");
	unsigned size, seen = 0;
	FILE *fp;

	snprintf(command, sizeof(command),
		 "readelf -W --dyn-syms '%s/simcuda/libcuda.so.1' | "
		 "awk '$4 == \"FUNC\" { print $3, $8 }'", b ? b : "build");
	fp = popen(command, "re");
	while (fgets(line, sizeof(line), fp)) {
		if (sscanf(line, "%u %127s", &size, name) != 2)
			continue;
		for (size_t i = 0; i < sizeof(shapes) / sizeof(*shapes); i++)
			if (!strcmp(shapes[i].name, name)) {
				ck_assert_msg((int)size == shapes[i].size, "%s %u", name, size);
				seen++;
			}
	}
	ck_assert_int_eq(pclose(fp), 0);
	ck_assert_uint_eq(seen, sizeof(shapes) / sizeof(*shapes));
}
END_TEST

START_TEST(other_kinds_differ_where_they_should)
{
	char flags[5];
	bool of_file;
	const unsigned char *p;

	device__load("simcuda-relro");
	p = device__entry("cuLaunchKernel");
	ck_assert(!memcmp(p, head, sizeof(head)));
	protection(slot_of(p), flags, &of_file);
	ck_assert_str_eq(flags, "r--p");
	device__load("simcuda-old");
	p = device__entry("cuLaunchKernel");
	ck_assert_int_eq(p[0], 0x81);
	ck_assert_int_eq(p[1], 0x3d);
	ck_assert(!memcmp(p + 6, magic, 4));
	device__load("simcuda-odd");
	p = device__entry("cuLaunchKernel");
	ck_assert(memcmp(p, head, 4) && p[0] != 0x81 && !slot_of(p));
}
END_TEST

/* --- a swapped slot --------------------------------------------------------------------------- */
static __typeof__(&cuLaunchKernel) original;
static unsigned long hooked;
static uintptr_t seen[11];

static CUresult hook(CUfunction f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by,
		     unsigned bz, unsigned shared, CUstream s, void **params, void **extra)
{
	uintptr_t got[11] = { (uintptr_t)f, gx, gy, gz, bx, by, bz, shared, (uintptr_t)s,
			      (uintptr_t)params, (uintptr_t)extra };

	memcpy(seen, got, sizeof(seen));
	hooked++;
	return original(f, gx, gy, gz, bx, by, bz, shared, s, params, extra);
}

static void write_slot(void **slot, void *value)
{
	int fd = open("/proc/self/mem", O_RDWR | O_CLOEXEC);

	ck_assert_int_eq(pwrite(fd, &value, sizeof(value), (off_t)(uintptr_t)slot), sizeof(value));
	close(fd);
}

static void swap_and_launch(const char *kind)
{
	struct app a;
	uint64_t ns = 1;
	void *params[] = { &ns }, **slot;
	CUresult r;

	device__load(kind);
	app__begin(&a);
	slot = slot_of(device__entry("cuLaunchKernel"));
	*(void **)&original = *slot;
	write_slot(slot, (void *)hook);
	r = cu(cuLaunchKernel)(a.spin, 11, 12, 13, 4, 5, 6, 1040, a.stream, params, NULL);
	ck_assert_int_eq(r, CU_OK);
	ck_assert_uint_eq(hooked, 1);
	ck_assert(seen[0] == (uintptr_t)a.spin && seen[8] == (uintptr_t)a.stream);
	ck_assert(seen[9] == (uintptr_t)params && seen[10] == 0);
	ck_assert(seen[1] == 11 && seen[2] == 12 && seen[3] == 13 && seen[4] == 4);
	ck_assert(seen[5] == 5 && seen[6] == 6 && seen[7] == 1040);
	ck_assert_int_eq(app__spin(NULL, a.stream, 1), CU_INVALID_HANDLE);
	ck_assert_uint_eq(hooked, 2);
	write_slot(slot, *(void **)&original);
	ok(app__spin(a.spin, a.stream, 1));
	ck_assert_uint_eq(hooked, 2);
}

START_TEST(a_swapped_slot_sees_all_arguments) { swap_and_launch("simcuda"); }
END_TEST
START_TEST(a_swapped_slot_works_read_only) { swap_and_launch("simcuda-relro"); }
END_TEST

START_TEST(addresses_by_name_are_the_exported_ones)
{
	void *p;
	int status;

	device__load("simcuda");
	ok(cu(cuGetProcAddress_v2)("cuLaunchKernel", &p, 13000, 0, &status));
	ck_assert(p == device__entry("cuLaunchKernel") && status == 0);
	ok(cu(cuGetProcAddress_v2)("cuLaunchKernel", &p, 13000, 2, NULL));
	ck_assert_ptr_eq(p, device__entry("cuLaunchKernel_ptsz"));
	ok(cu(cuGetProcAddress_v2)("cuEventElapsedTime", &p, 12070, 0, NULL));
	ck_assert_ptr_eq(p, device__entry("cuEventElapsedTime"));
	ok(cu(cuGetProcAddress_v2)("cuEventElapsedTime", &p, 12080, 2, NULL));
	ck_assert_ptr_eq(p, device__entry("cuEventElapsedTime_v2"));
	ok(cu(cuGetProcAddress)("cuStreamBeginCapture", &p, 10000, 0));
	ck_assert_ptr_eq(p, device__entry("cuStreamBeginCapture"));
	ok(cu(cuGetProcAddress)("cuMemcpyHtoD", &p, 12000, 2));
	ck_assert_ptr_eq(p, device__entry("cuMemcpyHtoD_v2_ptds"));
	ck_assert_int_eq(cu(cuGetProcAddress_v2)("cuLaunchKernelEx", &p, 10000, 0, &status),
			 CU_NOT_FOUND);
	ck_assert(!p && status == 2);
	ck_assert_int_eq(cu(cuGetProcAddress_v2)("cuNoSuchCall", &p, 13000, 0, &status),
			 CU_NOT_FOUND);
	ck_assert(!p && status == 1);
}
END_TEST

START_TEST(names_are_for_one_kind_of_handle)
{
	struct app a;
	CUlibrary l;
	CUkernel k;
	CUfunction f;
	const char *name;

	app__begin(&a);
	ok(cu(cuLibraryLoadData)(&l, "STANDIN\nfrom_library\n", NULL, NULL, 0, NULL, NULL, 0));
	ok(cu(cuLibraryGetKernel)(&k, l, "from_library"));
	ok(cu(cuFuncGetName)(&name, a.spin));
	ck_assert_str_eq(name, "spin_a");
	ok(cu(cuKernelGetName)(&name, k));
	ck_assert_str_eq(name, "from_library");
	ck_assert_int_eq(cu(cuFuncGetName)(&name, (CUfunction)(void *)k), CU_INVALID_HANDLE);
	ck_assert_int_eq(cu(cuKernelGetName)(&name, (CUkernel)(void *)a.spin), CU_INVALID_HANDLE);
	/* the pointer at +8 of either handle */
	ck_assert_str_eq(((const char **)(void *)a.spin)[1], "spin_a");
	ck_assert_str_eq(((const char **)(void *)k)[1], "from_library");
	ok(app__spin((CUfunction)(void *)k, a.stream, 1));
	ok(cu(cuKernelGetFunction)(&f, k));
	ok(cu(cuFuncGetName)(&name, f));
	ck_assert_str_eq(name, "from_library");
}
END_TEST

START_TEST(sizes_are_the_images)
{
	static const char ptx[] = ".visible .entry one(.param .u64 a)\n{\n\tret;\n}\n"
				  ".visible .entry two()\n.maxnreg 24\n{\n\t.shared .align 4 .b8 x[512];\n"
				  "\t.shared .b8 y[16];\n\tret;\n}\n";
	enum { SHARED = 1, REGISTERS = 4 };
	struct app a;
	CUlibrary l;
	CUkernel k;
	CUmodule m;
	CUfunction f;
	int value;

	app__begin(&a);
	ok(cu(cuFuncGetAttribute)(&value, REGISTERS, a.spin));
	ck_assert_int_eq(value, 16);
	ok(cu(cuFuncGetAttribute)(&value, SHARED, a.spin));
	ck_assert_int_eq(value, 0);
	ok(cu(cuLibraryLoadData)(&l, "STANDIN\nspin_x\t168\t49152\ny\t20\n", NULL, NULL, 0, NULL, NULL, 0));
	ok(cu(cuLibraryGetKernel)(&k, l, "spin_x"));
	ok(cu(cuKernelGetAttribute)(&value, REGISTERS, k, 0));
	ck_assert_int_eq(value, 168);
	ok(cu(cuKernelGetAttribute)(&value, SHARED, k, 0));
	ck_assert_int_eq(value, 49152);
	ck_assert_int_eq(cu(cuKernelGetAttribute)(&value, SHARED, k, 99), CU_INVALID_DEVICE);
	f = (CUfunction)(void *)k;
	ck_assert_int_eq(cu(cuFuncGetAttribute)(&value, SHARED, f), CU_INVALID_HANDLE);
	k = (CUkernel)(void *)a.spin;
	ck_assert_int_eq(cu(cuKernelGetAttribute)(&value, SHARED, k, 0), CU_INVALID_HANDLE);
	ok(cu(cuLibraryGetKernel)(&k, l, "y"));
	ok(cu(cuKernelGetFunction)(&f, k));
	ok(cu(cuFuncGetAttribute)(&value, REGISTERS, f));
	ck_assert_int_eq(value, 20);
	ok(cu(cuModuleLoadData)(&m, ptx));
	ok(cu(cuModuleGetFunction)(&f, m, "one"));
	ok(cu(cuFuncGetAttribute)(&value, REGISTERS, f));
	ck_assert_int_eq(value, 16);
	ok(cu(cuFuncGetAttribute)(&value, SHARED, f));
	ck_assert_int_eq(value, 0);
	ok(cu(cuModuleGetFunction)(&f, m, "two"));
	ok(cu(cuFuncGetAttribute)(&value, REGISTERS, f));
	ck_assert_int_eq(value, 24);
	ok(cu(cuFuncGetAttribute)(&value, SHARED, f));
	ck_assert_int_eq(value, 528);
}
END_TEST

START_TEST(unloaded_handles_are_refused_and_come_again)
{
	struct app a;
	CUfunction f, old = NULL;
	CUmodule m;
	const char *name;

	app__begin(&a);
	ok(cu(cuModuleLoadData)(&m, "STANDIN\nfirst\n"));
	ok(cu(cuModuleGetFunction)(&old, m, "first"));
	ok(cu(cuModuleUnload)(m));
	ck_assert_int_eq(app__spin(old, a.stream, 1), CU_INVALID_HANDLE);
	ck_assert_int_eq(cu(cuFuncGetName)(&name, old), CU_INVALID_HANDLE);
	ok(cu(cuModuleLoadData)(&m, "STANDIN\nsecond\n"));
	ok(cu(cuModuleGetFunction)(&f, m, "second"));
	ck_assert_ptr_eq(f, old);
	ok(cu(cuFuncGetName)(&name, f));
	ck_assert_str_eq(name, "second");
}
END_TEST

static unsigned long logged;

static void count_log(void *data, int level, char *message, size_t length)
{
	(void)data, (void)level;
	ck_assert_uint_eq(strlen(message), length);
	logged++;
}

/* Measured: any result but 0, 3, 4 and 600; two entries where a kernel is taken for a function. */
START_TEST(errors_of_calls_are_logged)
{
	struct app a;
	CUlibrary l;
	CUkernel k;
	CUevent e;
	const char *name;
	void *handle;
	float ms;

	app__begin(&a);
	ok(cu(cuLogsRegisterCallback)(count_log, NULL, &handle));
	ok(cu(cuEventCreate)(&e, 0));
	ok(app__spin(a.spin, a.stream, 1000000000));
	ok(cu(cuEventRecord)(e, a.stream));
	ck_assert_int_eq(cu(cuEventElapsedTime_v2)(&ms, e, e), CU_NOT_READY);
	ck_assert_uint_eq(logged, 0);
	ck_assert_int_eq(app__spin(NULL, a.stream, 1), CU_INVALID_HANDLE);
	ck_assert_uint_eq(logged, 1);
	ok(cu(cuLibraryLoadData)(&l, "STANDIN\nk\n", NULL, NULL, 0, NULL, NULL, 0));
	ok(cu(cuLibraryGetKernel)(&k, l, "k"));
	ck_assert_int_eq(cu(cuFuncGetName)(&name, (CUfunction)(void *)k), CU_INVALID_HANDLE);
	ck_assert_uint_eq(logged, 3);
	ok(cu(cuLogsUnregisterCallback)(handle));
	ck_assert_int_eq(app__spin(NULL, a.stream, 1), CU_INVALID_HANDLE);
	ck_assert_uint_eq(logged, 3);
}
END_TEST

START_TEST(faults_come_when_they_are_told)
{
	struct app a;

	setenv("STANDIN_FAULT", "cuLaunchKernel:2:719,cuEventCreate:1+:2", 1);
	app__begin(&a);
	ok(app__spin(a.spin, a.stream, 1));
	ck_assert_int_eq(app__spin(a.spin, a.stream, 1), CU_LAUNCH_FAILED);
	ok(app__spin(a.spin, a.stream, 1));
	for (int i = 0; i < 3; i++) {
		CUevent e;

		ck_assert_int_eq(cu(cuEventCreate)(&e, 0), 2);
	}
}
END_TEST

UNIT_MAIN("simcuda", every_entry_has_the_drivers_head_and_a_slot_of_its_own,
	  stack_arguments_are_passed_on_as_the_driver_does, symbols_have_the_drivers_sizes,
	  other_kinds_differ_where_they_should, a_swapped_slot_sees_all_arguments,
	  a_swapped_slot_works_read_only, addresses_by_name_are_the_exported_ones,
	  names_are_for_one_kind_of_handle, sizes_are_the_images, unloaded_handles_are_refused_and_come_again,
	  errors_of_calls_are_logged, faults_come_when_they_are_told)
