// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "loader/python_fold.h"
#include "tests/unit/unit.h"

START_TEST(carriers_are_internal)
{
	static const char *const yes[] = {
		"_PyEval_EvalFrameDefault", "_PyEval_EvalFrameDefault.cold", "_PyEval_Vector",
		"py_trampoline_evaluator",
		"_PyFunction_Vectorcall", "function_code_fastcall", "_PyObject_MakeTpCall",
		"PyObject_CallOneArg", "_PyObject_VectorcallTstate", "method_vectorcall", "slot_tp_call",
		"gen_send_ex", "_PyGen_Send", "PyEval_EvalCode", "run_mod", "pymain_run_python.constprop.0",
		"Py_BytesMain", "thread_run", "_TAIL_CALL_CALL.llvm.123", "cfunction_vectorcall_FASTCALL",
	};
	static const char *const no[] = {
		"builtin_sorted", "list_sort_impl", "builtin_exec", "long_mul", "gc_collect_main",
		"PyDict_GetItem", "_PyObject_GenericGetAttrWithDict", "PyImport_ImportModule", "main", "",
		"Py_FinalizeEx", "at::native::linear", "_ctypes_callproc", "PyObject_Free",
	};

	for (size_t i = 0; i < sizeof(yes) / sizeof(yes[0]); i++)
		ck_assert_msg(python_fold__is_internal(yes[i]), "%s", yes[i]);
	for (size_t i = 0; i < sizeof(no) / sizeof(no[0]); i++)
		ck_assert_msg(!python_fold__is_internal(no[i]), "%s", no[i]);
	ck_assert(!python_fold__is_internal(NULL));
}
END_TEST

START_TEST(where_a_program_begins)
{
	ck_assert(python_fold__is_main("Py_BytesMain"));
	ck_assert(python_fold__is_main("pymain_main"));
	ck_assert(!python_fold__is_main("PyRun_SimpleString"));
	ck_assert(!python_fold__is_main("main"));
	ck_assert(!python_fold__is_main(NULL));
	ck_assert(python_fold__is_c_library("/usr/lib/x86_64-linux-gnu/libc.so.6"));
	ck_assert(python_fold__is_c_library("/lib/ld-musl-x86_64.so.1"));
	ck_assert(python_fold__is_c_library("/lib64/ld-linux-x86-64.so.2"));
	ck_assert(!python_fold__is_c_library("/opt/libcurl.so.4"));
	ck_assert(!python_fold__is_c_library("libc.so.6"));
	ck_assert(!python_fold__is_c_library(NULL));
}
END_TEST

UNIT_MAIN("python fold", carriers_are_internal, where_a_program_begins)
