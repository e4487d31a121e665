# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Launches kernels on the virtual device, each with a name of its own, and writes down for each how
the interpreter itself sees the stack at that moment: one line of JSON in the file $TRUTH.

A chain is a list of [function, file, line, natives], the outermost first. `natives` are expressions for
native frames that have to stand, in this order, between that function and the one that called it; one
that begins with '?' is a function of the interpreter, which has a name only where that has symbols.

Modules that launch import from here; a launch looks the same in all of them:

    launch()                            from a function of this module
    LAUNCH(note(frame()), *REST)        from where this stands; on one line, for the line of the call
                                        of note() has to be that of the launch
"""
import ctypes
import itertools
import json
import os
import sys

frame = sys._getframe
PREFIX = "k"
# Of CUfunction; grid, block, shared memory; stream, parameters, extra.
REST = (1, 1, 1, 32, 1, 1, 0, None, None, None)

_driver = ctypes.CDLL("libcuda.so.1")
_holding = ctypes.PyDLL("libcuda.so.1")	# keeps the GIL during a call
_number = itertools.count(1)
_via = {}
_context = ctypes.c_void_p()


def _entry(library, name):
    entry = library[name]
    entry.argtypes = [ctypes.c_void_p] + [ctypes.c_uint] * 7 + [ctypes.c_void_p] * 3
    return entry


LAUNCH = _entry(_driver, "cuLaunchKernel")
HELD = _entry(_holding, "cuLaunchKernel")


def must(result):
    if result:
        raise RuntimeError("the driver says %d" % result)


def start():
    must(_driver.cuInit(0))
    must(_driver.cuDevicePrimaryCtxRetain(ctypes.byref(_context), 0))
    must(_driver.cuCtxSetCurrent(_context))


def gate():
    """Where a test holds the program until gpucollect is there (STANDIN_GATE)."""
    stream = ctypes.c_void_p()
    must(_driver.cuStreamCreate(ctypes.byref(stream), 0))


def via(*natives):
    """Marks a function that is called by C code."""
    def mark(function):
        code = function.__code__
        _via[id(code)] = [code, natives]	# kept, so that the address is no other code's
        return function
    return mark


def account(f):
    chain = []
    while f is not None:
        code = f.f_code
        natives = _via[id(code)][1] if id(code) in _via else []
        chain.append([getattr(code, "co_qualname", code.co_name), code.co_filename, f.f_lineno,
                      list(natives)])
        f = f.f_back
    return chain[::-1]


# What stands below a chain without being seen in it: the chain of another interpreter.
below = []


def note(f):
    """Writes the account of frame `f`, whose next call launches what is returned."""
    kernel = "%s%d" % (PREFIX, next(_number))
    module, function = ctypes.c_void_p(), ctypes.c_void_p()
    must(_driver.cuCtxSetCurrent(_context))
    must(_driver.cuModuleLoadData(ctypes.byref(module), b"STANDIN\n" + kernel.encode() + b"\n"))
    must(_driver.cuModuleGetFunction(ctypes.byref(function), module, kernel.encode()))
    line = json.dumps({"kernel": kernel, "below": below, "chain": account(f)}) + "\n"
    fd = os.open(os.environ["TRUTH"], os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
    try:
        os.write(fd, line.encode())
    finally:
        os.close(fd)
    return function


def launch(*_, **__):
    """Takes any arguments: some callers can't help giving some."""
    must(LAUNCH(note(frame()), *REST))


def launch_held():
    must(HELD(note(frame()), *REST))
