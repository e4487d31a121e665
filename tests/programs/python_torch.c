// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Preloaded, it stands in front of a function of PyTorch that every element-wise operation on the CPU
 * passes, and launches a kernel there: so a PyTorch without CUDA launches on the virtual device, from
 * the stacks that it has. Before that it asks Python for the kernel, who notes the frame that runs.
 *
 * The function is called with the GIL given away; to ask is to take it for a moment.
 */
#include <dlfcn.h>
#include <stddef.h>
#include <stdint.h>

#define SYMBOL "_ZN2at18TensorIteratorBase5buildERNS_20TensorIteratorConfigE"
#define FRAME __attribute__((noinline, noclone, no_icf, visibility("default")))

typedef int (*launch_fn)(void *f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by,
			 unsigned bz, unsigned shared, void *stream, void **params, void **extra);

/* Python's, which are found in whatever file has the interpreter. */
static struct {
	void *(*this_state)(void);
	int (*ensure)(void);
	void (*release)(int);
	void *(*frame)(void);
	void *(*call)(void *callable, ...);
	void *(*as_pointer)(void *);
	void (*unref)(void *);
} py;

static launch_fn launch;
static void *ask;
static __thread int inside;

__attribute__((visibility("hidden"))) void *torch_original;

/* Before torch_begin, too, the function has to do its work. */
FRAME void torch_find(void)
{
	static const char *const names[] = { "libtorch_cpu.so", "libtorch_cpu.so.1.13" };
	void *library;
	size_t i;

	for (i = 0; !torch_original && i < sizeof(names) / sizeof(names[0]); i++) {
		library = dlopen(names[i], RTLD_NOW | RTLD_NOLOAD);
		if (library)
			torch_original = dlsym(library, SYMBOL);
	}
}

/* `callable` takes a frame and returns a kernel. 0, or -1: this is not that PyTorch. */
FRAME int torch_begin(void *callable, launch_fn entry)
{
	torch_find();
	*(void **)&py.this_state = dlsym(RTLD_DEFAULT, "PyGILState_GetThisThreadState");
	*(void **)&py.ensure = dlsym(RTLD_DEFAULT, "PyGILState_Ensure");
	*(void **)&py.release = dlsym(RTLD_DEFAULT, "PyGILState_Release");
	*(void **)&py.frame = dlsym(RTLD_DEFAULT, "PyEval_GetFrame");
	*(void **)&py.call = dlsym(RTLD_DEFAULT, "PyObject_CallFunctionObjArgs");
	*(void **)&py.as_pointer = dlsym(RTLD_DEFAULT, "PyLong_AsVoidPtr");
	*(void **)&py.unref = dlsym(RTLD_DEFAULT, "Py_DecRef");
	if (!torch_original || !py.this_state || !py.ensure || !py.release || !py.frame || !py.call ||
	    !py.as_pointer || !py.unref)
		return -1;
	launch = entry;
	ask = callable;
	return 0;
}

FRAME void torch_end(void)
{
	ask = NULL;
}

static void *ask_for_kernel(void)
{
	void *frame, *answer = NULL, *kernel = NULL;
	int state;

	if (!py.this_state())
		return NULL;
	state = py.ensure();
	frame = py.frame();
	if (frame && ask)
		answer = py.call(ask, frame, NULL);
	if (answer) {
		kernel = py.as_pointer(answer);
		py.unref(answer);
	}
	py.release(state);
	return kernel;
}

FRAME void torch_launch(void)
{
	void *kernel;

	if (!ask || inside)
		return;
	inside = 1;
	kernel = ask_for_kernel();
	if (kernel)
		launch(kernel, 1, 1, 1, 32, 1, 1, 0, NULL, NULL, NULL);
	inside = 0;
}

/* Under the function's own name. What came in registers goes on as it came. */
__asm__(".text\n.globl " SYMBOL "\n.type " SYMBOL ",@function\n" SYMBOL ":\n"
	"	.cfi_startproc\n"
	"	push %rdi\n	.cfi_adjust_cfa_offset 8\n"
	"	push %rsi\n	.cfi_adjust_cfa_offset 8\n"
	"	sub $8,%rsp\n	.cfi_adjust_cfa_offset 8\n"
	"	call torch_find@PLT\n"
	"	call torch_launch@PLT\n"
	"	add $8,%rsp\n	.cfi_adjust_cfa_offset -8\n"
	"	pop %rsi\n	.cfi_adjust_cfa_offset -8\n"
	"	pop %rdi\n	.cfi_adjust_cfa_offset -8\n"
	"	jmp *torch_original(%rip)\n"
	"	.cfi_endproc\n"
	".size " SYMBOL ",.-" SYMBOL "\n");
