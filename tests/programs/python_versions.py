# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Prints the file that holds the interpreter; then, told on stdin where that keeps the version of the next code
object ("interpreter OFFSET", "runtime OFFSET"), by how much it grows for 100 modules, for one copy of a code
object, for 100 modules with a function each."""
import ctypes
import sys

runtime = ctypes.addressof(ctypes.c_char.in_dll(ctypes.pythonapi, "_PyRuntime"))
code = ctypes.cast(ctypes.pythonapi.Py_GetVersion, ctypes.c_void_p).value
with open("/proc/self/maps") as maps:
    for line in maps:
        start, end = (int(x, 16) for x in line.split()[0].split("-"))
        if start <= code < end:
            print(repr(line.split()[5]), flush=True)
of, at = sys.stdin.readline().split()
if of == "nothing":
    sys.exit()
if of == "interpreter":
    get = ctypes.pythonapi.PyInterpreterState_Get
    get.restype = ctypes.c_void_p
base = get() if of == "interpreter" else runtime
counter = ctypes.c_uint32.from_address(base + int(at))


def made(make, times):
    before = counter.value
    for _ in range(times):
        make()
    return counter.value - before


code = made.__code__
print([made(lambda: compile("x", "f", "exec"), 100), made(lambda: code.replace(co_name="x"), 1),
       made(lambda: compile("def x(): pass", "f", "exec"), 100)])
