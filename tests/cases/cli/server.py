# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""C-03: a server that ends cleanly at the first Ctrl-C and counts how often it was told.
usage: server.py"""
import signal
import time

count = 0


def told(sig, frame):
    global count
    count += 1


def serve():
    x = 0
    for i in range(200000):
        x += i
    return x


signal.signal(signal.SIGINT, told)
print("serving", flush=True)
start = time.time()
while not count and time.time() - start < 60:
    serve()
end = time.time() + 1
while time.time() < end:                # time for a second signal to arrive
    serve()
print("stopped after %d interrupt(s)" % count, flush=True)
