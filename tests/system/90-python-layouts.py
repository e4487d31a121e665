#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# timeout: 600
"""What is known of each CPython here: its offsets against its headers, and its threads' states and frames
against what it says itself; renamed, stripped, with many keys, with another C library."""
import json
import os
import re
import shutil
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.environ.get("TOP", "."), "tests/tools"))
import launches as L  # noqa: E402
import pythons as P  # noqa: E402

PROBE = os.path.join(L.PROGRAMS, "python_probe")
TMP = L.TMP
DIRECT = 0xffffffff
ENOENT, ENOTSUP = 2, 95
times = []

# Says of each of its threads: [name, pointer, state, codes], innermost first, then waits.
TARGET = r'''
import ctypes, json, os, sys, threading, time
state = ctypes.pythonapi.PyThreadState_Get
state.restype = ctypes.c_void_p
libc = ctypes.CDLL(None)			# lets the GIL go
kept = ctypes.PyDLL(None)			# keeps it
mode = sys.argv[1]
lock = threading.Lock()

def codes():
    frame, found = sys._getframe(2), []
    while frame:
        found.append(id(frame.f_code))
        frame = frame.f_back
    return found

def say(name):
    with lock:
        os.write(1, json.dumps([name, threading.get_ident(), state(), codes()]).encode() + b"\n")

def busy(name):
    say(name)
    while True:
        pass

def sleep(name):
    say(name)
    while True:
        time.sleep(1000)

def released(name):
    say(name)
    while True:
        libc.pause()

def held(name):
    say(name)
    kept.pause()

def generator(name):
    say(name)
    yield libc.pause()

def start(function, name):
    def thread():
        function(name)
    t = threading.Thread(target=thread, daemon=True)
    t.start()
    return t

def subinterpreter(name):
    try:
        import _interpreters as interpreters
    except ImportError:
        import _xxsubinterpreters as interpreters
    first = interpreters.create()
    interpreters.create()
    t = threading.Thread(target=interpreters.run_string, daemon=True,
                         args=(first, "import os, time\nos.write(1, b'null\\n')\ntime.sleep(1000)"))
    t.start()
    released(name)

def late(name):
    sys.stdin.readline()
    start(released, name)
    time.sleep(1000)

def threads(name):
    for i in range(4):
        start((sleep, released, busy, sleep)[i], name + str(i))
    released(name)

def deep(name, depth=300):
    return deep(name, depth - 1) if depth else held(name)

if mode == "generator":
    list(generator(mode))
globals()[mode](mode)
'''

# name, lines that it prints
MODES = [("busy", 1), ("sleep", 1), ("released", 1), ("held", 1), ("generator", 1), ("deep", 1),
         ("threads", 5), ("subinterpreter", 2)]

KEYS = r'''
#include <pthread.h>
__attribute__((constructor)) static void make(void)
{
	pthread_key_t key;
	for (int i = 0; i < 40; i++)
		pthread_key_create(&key, 0);
}
'''

# Shaped like the interpreter of 3.8, with a function whose rare part the compiler moves elsewhere.
COLD = r'''
#include <stdio.h>
char _PyRuntime[1464], PyCode_Type[408];
int next(int *), _PyEval_EvalFrameDefault(int);
void fail(const char *, int *);
const char *Py_GetVersion(void) { return "3.8.18"; }
__attribute__((cold, noinline)) void fail(const char *s, int *p) { fprintf(stderr, "%s %d\n", s, *p); }
__attribute__((noinline)) int next(int *p) { return getchar() + *p; }
int _PyEval_EvalFrameDefault(int x)
{
	int stack[64], top = 0, sum = 0;
	for (;;) {
		switch (next(&stack[top & 63])) {
		case 0: stack[top++ & 63] = x; break;
		case 1: if (__builtin_expect(top == 0, 0)) { fail("empty", &top); sum += next(stack); top = 1; }
			top--; break;
		case 2: if (__builtin_expect(top > 60, 0))
				for (int i = 0; i < sum; i++) fail("full", stack + (i & 63));
			sum += stack[top & 63]; break;
		case 3: return sum;
		}
	}
}
'''

LOOKS_LIKE = r'''
const char text[] = "3.11.4 (main, Jan  1 2024, 00:00:00) [GCC 12.2.0]", name[] = "libpython3.11.so.1.0";
unsigned long Py_Version = 0x030b04f0;
char _PyRuntime[64] = { 1, 2, 3, 4 };
int main(void) { return 0; }
'''

HEADERS = r'''
#define Py_BUILD_CORE 1
#include <Python.h>
#include <stddef.h>
#include <stdio.h>
#include "internal/pycore_pystate.h"
#if PY_MINOR_VERSION >= 9
#include "internal/pycore_interp.h"
#include "internal/pycore_runtime.h"
#endif
#if PY_MINOR_VERSION >= 11
#include "internal/pycore_frame.h"
#else
#include <frameobject.h>
#endif
#define P(name, type, member) printf("\"" #name "\": %zu,\n", offsetof(type, member))
#define S(name, type) printf("\"" #name "\": %zu,\n", sizeof(type))
int main(void)
{
	puts("{");
	P(runtime_interpreters, _PyRuntimeState, interpreters.head);
	P(interpreter_next, PyInterpreterState, next);
	P(thread_next, PyThreadState, next);
	P(thread_interpreter, PyThreadState, interp);
	P(thread_id, PyThreadState, thread_id);
#if PY_MINOR_VERSION >= 12
	P(runtime_key, _PyRuntimeState, autoTSSkey);
#else
	P(runtime_key, _PyRuntimeState, gilstate.autoTSSkey);
#endif
#if PY_MINOR_VERSION >= 11
	P(interpreter_threads, PyInterpreterState, threads.head);
	P(frame_back, _PyInterpreterFrame, previous);
	P(frame_owner, _PyInterpreterFrame, owner);
	P(code_table, PyCodeObject, co_linetable);
	P(code_qualname, PyCodeObject, co_qualname);
	P(code_traceable, PyCodeObject, _co_firsttraceable);
	P(code_start, PyCodeObject, co_code_adaptive);
#else
	P(interpreter_threads, PyInterpreterState, tstate_head);
	P(top, PyThreadState, frame);
	P(frame_back, PyFrameObject, f_back);
	P(frame_code, PyFrameObject, f_code);
	P(frame_position, PyFrameObject, f_lasti);
#endif
#if PY_MINOR_VERSION == 10
	P(code_table, PyCodeObject, co_linetable);
	P(cframe_previous, CFrame, previous);
#elif PY_MINOR_VERSION < 10
	P(code_table, PyCodeObject, co_lnotab);
#endif
#if PY_MINOR_VERSION >= 10 && PY_MINOR_VERSION <= 12
	P(cframe, PyThreadState, cframe);
#endif
#if PY_MINOR_VERSION == 11 || PY_MINOR_VERSION == 12
	P(cframe_top, _PyCFrame, current_frame);
	P(cframe_previous, _PyCFrame, previous);
	P(frame_code, _PyInterpreterFrame, f_code);
	P(frame_position, _PyInterpreterFrame, prev_instr);
#endif
#if PY_MINOR_VERSION == 11
	P(frame_entry, _PyInterpreterFrame, is_entry);
#endif
#if PY_MINOR_VERSION >= 12
	P(code_version, PyCodeObject, co_version);
#endif
#if PY_MINOR_VERSION >= 13
	P(top, PyThreadState, current_frame);
	P(frame_code, _PyInterpreterFrame, f_executable);
	P(frame_position, _PyInterpreterFrame, instr_ptr);
#endif
	P(code_type, PyObject, ob_type);
	P(code_name, PyCodeObject, co_name);
	P(code_filename, PyCodeObject, co_filename);
	P(code_first_line, PyCodeObject, co_firstlineno);
	P(code_flags, PyCodeObject, co_flags);
	P(object_type, PyObject, ob_type);
	P(type_name, PyTypeObject, tp_name);
	P(bytes_size, PyVarObject, ob_size);
	P(bytes_data, PyBytesObject, ob_sval);
	P(str_length, PyASCIIObject, length);
	P(str_state, PyASCIIObject, state);
	S(str_ascii, PyASCIIObject);
	S(str_compact, PyCompactUnicodeObject);
	puts("\"end\": 0}");
	return 0;
}
'''


check = L.Checks()


def path(name, text=None, data=None):
    name = os.path.join(TMP, name)
    if text is not None:
        data = text.encode()
    if data is not None:
        with open(name, "wb") as f:
            f.write(data)
    return name


def run(*argv, **more):
    return subprocess.run(argv, capture_output=True, text=True, stdin=subprocess.DEVNULL, **more)


def build(name, text, *flags):
    """The compiled program or library, or None."""
    r = run("gcc", "-w", *flags, "-o", path(name), path(name + ".c", text), "-lpthread")
    if r.returncode:
        print(f"{name} can't be built: {r.stderr.splitlines()[:1]}")
    return None if r.returncode else path(name)


def files(*names):
    return [json.loads(s) for s in run(PROBE, *names).stdout.splitlines()]


def process(pid, *pointers):
    r = run(PROBE, "-p", str(pid), *map(str, pointers))
    return json.loads(r.stdout) if r.stdout else {"error": ENOENT, "why": "nothing found"}


class Target:
    def __init__(self, argv, count, env=None):
        self.process = subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                                        env=dict(os.environ, **(env or {})), cwd=TMP)
        self.threads = [self.line() for _ in range(count)]

    def line(self):
        text = self.process.stdout.readline()
        return json.loads(text) if text else None

    def end(self):
        self.process.kill()
        self.process.communicate()


def compare(name, said, found, still=True):
    """What the threads said of themselves, and what was found of them."""
    check(found.get("error") == 0 and found.get("learn_error") == 0,
          f"{name}: {found.get('why')}, {found.get('learn_why')}: {found}")
    if found.get("error") or found.get("learn_error"):
        return
    times.append((found["find_us"], found["learn_us"]))
    for (thread, pointer, state, codes), got in zip(said, found["threads"]):
        check(got["error"] == 0 and got["id"] == pointer and got["state"] == state,
              f"{name}: {thread}: {got} instead of pointer {pointer}, state {state}")
        if still:
            check(got["codes"] == codes, f"{name}: {thread}: codes {got['codes']}, said {codes}")


def live(name, python, mode, count, env=None):
    target = Target([python, "-c", TARGET, mode], count, env)
    said = [t for t in target.threads if t]
    check(len(said) == count - (mode == "subinterpreter"), f"{name}, {mode}: said {said}")
    # Who has just spoken may still be on the way to where it waits.
    wait(lambda: all(t[3] == g["codes"] for t, g in
                     zip(said, process(target.process.pid, *(t[1] for t in said)).get("threads", []))))
    found = process(target.process.pid, *(t[1] for t in said))
    compare(f"{name}, {mode}", said, found)
    target.end()
    return found


def wait(condition, times_at_most=50):
    for _ in range(times_at_most):
        if condition():
            return
        time.sleep(0.02)


def late_threads(name, python):
    target = Target([python, "-c", TARGET, "late"], 0)
    before = {}
    while before.get("learn_error") != 0:	# not yet
        before = process(target.process.pid)
        check(before["error"] in (0, ENOENT), f"{name}, late: {before}")
        if target.process.poll() is not None:
            break
    target.process.stdin.write("\n")
    target.process.stdin.flush()
    said = [target.line()]
    found = process(target.process.pid, said[0][1])
    compare(f"{name}, late", said, found, still=False)
    check((before.get("tsd_at"), before.get("tsd_then")) == (found.get("tsd_at"), found.get("tsd_then")),
          f"{name}, late: {before} then {found}")
    target.end()


def many_keys(name, python, keys):
    found = live(name + " after 40 keys", python, "threads", 5, {"LD_PRELOAD": keys})
    check(found.get("tsd_then") not in (None, DIRECT), f"{name}: 40 keys made no difference: {found}")


def without_sections(data):
    return data[:40] + bytes(8) + data[48:58] + bytes(6) + data[64:]


def copies(name, python):
    """Under another name, stripped of symbols, and of sections too."""
    library = None
    for line in run("ldd", python).stdout.splitlines():
        m = re.match(r"\s*(libpython3\.\d+\S*) => (/\S+)", line)
        library = (m[1], m[2]) if m else library
    original = library[1] if library else python
    for kind in ("copied", "stripped", "bare"):
        folder = path(f"{kind}-{re.sub('[^0-9a-z]', '-', name)}")
        os.mkdir(folder)
        copy = os.path.join(folder, "worker")
        shutil.copy(original, copy)
        os.chmod(copy, 0o755)
        if kind != "copied":
            if run("strip", "-s", copy).returncode:
                print("no strip here")
                continue
        if kind == "bare":
            with open(copy, "rb") as f:
                data = without_sections(f.read())
            with open(copy, "wb") as f:
                f.write(data)
        prefix = run(python, "-c", "import sys; print(sys.prefix)").stdout.strip()
        env = {"PYTHONHOME": prefix}
        if library:
            os.symlink("worker", os.path.join(folder, library[0]))
            env["LD_LIBRARY_PATH"] = folder
        found = live(f"{name} {kind}", python if library else copy, "released", 1, env)
        check(found.get("file") == copy, f"{name} {kind}: found in {found.get('file')}, not in {copy}")
        got, whole = files(copy, original)
        for key in ("minor", "micro", "runtime", "eval", "offsets"):
            check(got.get(key) == whole.get(key), f"{name} {kind}: {key}: {got}, whole {whole}")
        shutil.rmtree(folder)


def headers(name, python, found):
    include = run(python, "-c", "import sysconfig; print(sysconfig.get_paths()['include'])").stdout.strip()
    if not os.path.exists(include + "/internal/pycore_pystate.h"):
        print(f"{name}: no headers")
        return
    program = build("headers", HEADERS, f"-I{include}", f"-I{include}/internal")
    check(program, f"{name}: what is in its headers can't be asked")
    if program:
        truth = json.loads(run(program).stdout)
        del truth["end"]
        got = {k: found["offsets"].get(k) for k in truth}
        check(got == truth, f"{name}: offsets {got}, in its headers {truth}")


def functions(file, *names):
    """[start, end) by the symbols of a file whose offsets are its addresses in code."""
    found = []
    for line in run("nm", "-S", file).stdout.splitlines():
        m = re.fullmatch(r"([0-9a-f]+) ([0-9a-f]+) [tT] (\S+)", line)
        if m and re.fullmatch("|".join(names), m[3]):
            found.append([int(m[1], 16), int(m[1], 16) + int(m[2], 16)])
    return sorted(found)


def cold_parts():
    for flags in ("-O2", "-O2 -fno-omit-frame-pointer", "-O2 -fcf-protection=full", "-O0"):
        file = build("cold", COLD, "-fPIC", "-shared", *flags.split())
        if not file:
            continue
        truth = functions(file, r"_PyEval_EvalFrameDefault(\.cold.*)?")
        check(len(truth) == (1 if flags == "-O0" else 2), f"cold {flags}: {truth}")
        check(sorted(files(file)[0].get("eval", [])) == truth, f"cold {flags}: {files(file)}, {truth}")
        run("strip", "-s", file)
        check(sorted(files(file)[0].get("eval", [])) == truth, f"cold, stripped {flags}: {files(file)}, {truth}")


def fakes():
    for program in ("python_fake", "python_fake_musl"):
        file = os.path.join(L.PROGRAMS, program)
        if not os.path.exists(file):
            print(f"no {program} here")
            continue
        for keys in (0, 31, 32, 70):
            target = subprocess.Popen([file, str(keys)], stdout=subprocess.PIPE, text=True)
            said = [[f"{i}"] + [int(n) for n in target.stdout.readline().split()] for i in range(3)]
            said = [[i, pointer, state, [code]] for i, pointer, state, code in said]
            compare(f"{program} after {keys} keys", said, process(target.pid, *(t[1] for t in said)))
            target.kill()
            target.communicate()


def others():
    file = build("looks_like", LOOKS_LIKE, "-rdynamic")
    if file:
        check(files(file)[0]["error"] == ENOENT, f"looks like it: {files(file)}")
    for file in ("/bin/sh", "/bin/ls", sys.argv[0], "/proc/self/maps", "/dev/null"):
        check(files(file)[0]["error"] == ENOENT, f"no Python: {files(file)}")
    for python, of in P.everything():
        if of >= P.OLDEST:
            continue
        target = subprocess.Popen([python, "-c", "import sys; sys.stdout.write('x\\n'); sys.stdout.flush(); "
                                   "sys.stdin.readline()"], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        target.stdout.readline()
        found = process(target.pid)
        check(found["error"] == ENOTSUP and f"CPython {of[0]}.{of[1]} is not supported" in found["why"],
              f"{P.name(python, of)}: {found}")
        target.communicate(b"\n")


def main():
    keys = build("keys.so", KEYS, "-shared", "-fPIC")
    cold_parts()
    fakes()
    others()
    for python, of in P.need():
        name = P.name(python, of)
        for mode, count in MODES:
            found = live(name, python, mode, count)
        check((3, found.get("minor")) == of, f"{name}: taken for {found}")
        if found.get("error") == 0:
            headers(name, python, found)
            if of < (3, 10):
                truth = functions(found["file"], r"_PyEval_EvalFrameDefault(\.cold.*)?")
                check(not truth or sorted(found["eval"]) == truth, f"{name}: {found['eval']}, {truth}")
        late_threads(name, python)
        if keys:
            many_keys(name, python, keys)
        copies(name, python)
    for what, n in (("found", 0), ("learnt", 1)):
        some = sorted(t[n] for t in times)
        if some:
            print(f"{what} in {some[len(some) // 2]} us (median), {some[-1]} us (most) of {len(some)}")
    sys.exit(check.status())


main()
