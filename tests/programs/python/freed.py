# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Makes functions at the addresses of those that are gone, as it is told by lines on stdin. usage: freed.py PREFIX

Each command ends with a line "done …". The commands run in a thread, so that the first one can leave. Launches are
as in launching.py, and their kernels begin with PREFIX.

    launch              once, and without an account
    reuse N             N functions one after the other, each launches twice
    once N              the same, but each launches once, from a frame where the one before had its own
    handed N            as reuse, but another thread makes and frees them
    free N THREADS      N code objects are made and freed in each of so many threads at a time, nothing else
    flood N             the same in one thread, as fast as it goes
    leave               the first thread ends
    fork N              a child runs N functions one after the other, 30 ms each
    exec PREFIX         this program anew, in this process
"""
import ctypes
import gc
import os
import queue
import sys
import threading
import time

import launching

TEXT = """
def made_{n}(launch):
    launch()
    launch()
"""
ONCE = """
def made_{n}(launch):
    launch()
"""
SPIN = """
def made_{n}(until, clock):
    x = 0
    while clock() < until:
        x = x * 3 + 1 & 0xffff
    return x
"""
PACE = 0.012	# two code objects are freed for each function: less than 300 a second
leave = threading.Event()


def make(text, n):
    scope = {}
    exec(compile(text.format(n=n), "<made %d>" % n, "exec"), scope)
    return scope.pop("made_%d" % n)


def launch_once():
    launching.must(launching.LAUNCH(function, *launching.REST))


def reuse(n, text=TEXT):
    places = set()
    for i in range(int(n)):
        made = make(text, i)
        places.add(id(made.__code__))
        made(launching.launch)
        del made
        time.sleep(PACE)
    return len(places)


def once(n):
    return reuse(n, ONCE)


def handed(n):
    """Here they run, in the other thread they are made, and freed when the next is asked for."""
    ask, give, places = queue.Queue(), queue.Queue(), set()

    def maker():
        while ask.get() is not None:
            made = None
            made = make(TEXT, next(numbers))
            give.put([made])

    numbers = iter(range(1 << 30))
    thread = threading.Thread(target=maker)
    thread.start()
    for _ in range(int(n)):
        ask.put(True)
        box = give.get()
        places.add(id(box[0].__code__))
        box[0](launching.launch)
        box.pop()
        time.sleep(PACE)
    ask.put(None)
    thread.join()
    return len(places)


def free(n, threads):
    code = launch_once.__code__

    def replace():
        barrier.wait()
        for i in range(int(n)):
            code.replace(co_firstlineno=i + 1)

    barrier = threading.Barrier(int(threads))
    all_of_them = [threading.Thread(target=replace) for _ in range(int(threads))]
    for t in all_of_them:
        t.start()
    for t in all_of_them:
        t.join()


def flood(n):
    free(n, 1)


def leave_first():
    leave.set()
    while True:
        with open("/proc/self/task/%d/stat" % os.getpid()) as f:
            if f.read().rsplit(")", 1)[1].split()[0] == "Z":
                return
        time.sleep(0.01)


def fork(n):
    pid = os.fork()
    if not pid:
        for i in range(int(n)):
            make(SPIN, i)(time.perf_counter() + 0.03, time.perf_counter)
        os._exit(0)
    return os.waitpid(pid, 0)[1]


def execute(prefix):
    os.execv(sys.executable, [sys.executable, "-ES", __file__, prefix])


COMMANDS = {"launch": launch_once, "reuse": reuse, "once": once, "handed": handed, "free": free, "flood": flood,
            "leave": leave_first, "fork": fork, "exec": execute}


def serve():
    global function
    launching.PREFIX = sys.argv[1]
    launching.start()
    truth = os.environ["TRUTH"]
    size = os.path.getsize(truth) if os.path.exists(truth) else 0
    function = launching.note(sys._getframe())
    os.truncate(truth, size)	# that one is launched without accounts
    gc.collect()
    gc.disable()
    print("ready", flush=True)
    for line in iter(sys.stdin.readline, ""):
        name, *args = line.split()
        print("done", COMMANDS[name](*args), flush=True)
    os._exit(0)


if __name__ == "__main__":
    threading.Thread(target=serve).start()
    leave.wait()
    ctypes.CDLL(None).pthread_exit(None)
