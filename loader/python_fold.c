// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "loader/python_fold.h"

#include <stddef.h>
#include <string.h>

/* How the names begin; of CPython 3.8 to 3.14. */
static const char *const internal[] = {
	/* the loop */
	"_PyEval_", "PyEval_", "_TAIL_CALL_", "_Py_TAIL_CALL_", "_PyEvalFrame", "run_eval_code_obj",
	"py_trampoline_evaluator",
	/* calls */
	"_PyFunction_Vectorcall", "_PyFunction_FastCall", "function_code_fastcall", "call_function",
	"_PyObject_Vectorcall", "PyObject_Vectorcall", "_PyObject_Call", "PyObject_Call",
	"_PyObject_FastCall", "_PyObject_MakeTpCall", "_PyVectorcall_", "PyVectorcall_", "_PyCall_",
	"_PyCFunction_", "PyCFunction_", "_PyMethodDef_", "_PyMethodDescr_", "cfunction_", "method_call",
	"method_vectorcall", "vectorcall_", "object_vacall", "do_call_core", "type_call", "slot_", "wrap_",
	"wrapper_call", "wrapperdescr_", "classmethoddescr_call", "methoddescr_call", "PyMethod_",
	"_PyStack_", "_Py_CheckFunctionResult", "lookup_maybe_method", "vectorcall_method",
	"vectorcall_maybe", "call_method", "call_maybe", "call_unbound", "call_attribute",
	/* generators */
	"gen_send", "gen_iternext", "_PyGen_", "PyGen_", "PyIter_Send", "coro_wrapper_", "async_gen_asend_",
	"async_gen_athrow_",
	/* the way in */
	"PyRun_", "_PyRun_", "run_mod", "pyrun_", "pymain_", "Py_RunMain", "Py_BytesMain", "Py_Main",
	"thread_run", "t_bootstrap", "pythread_wrapper",
};

static bool begins(const char *text, const char *const *with, size_t nr)
{
	size_t i;

	for (i = 0; text && i < nr; i++)
		if (!strncmp(text, with[i], strlen(with[i])))
			return true;
	return false;
}

bool python_fold__is_internal(const char *symbol)
{
	return begins(symbol, internal, sizeof(internal) / sizeof(internal[0]));
}

bool python_fold__is_main(const char *symbol)
{
	static const char *const mains[] = { "Py_BytesMain", "Py_Main", "Py_RunMain", "pymain_" };

	return begins(symbol, mains, sizeof(mains) / sizeof(mains[0]));
}

bool python_fold__is_c_library(const char *path)
{
	static const char *const files[] = {
		"libc.so", "libc-2.", "libpthread", "ld-linux", "ld-musl", "libc.musl",
	};
	const char *base = path ? strrchr(path, '/') : NULL;

	return base && begins(base + 1, files, sizeof(files) / sizeof(files[0]));
}
