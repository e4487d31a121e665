# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Uses the processor under what moves Python about, for so many seconds of its own time.

guests.py greenlets | uvloop | calls SECONDS
"""
import asyncio
import sys
import time


def over():
    return time.process_time() > float(sys.argv[2])


def spin(n):
    total = 0
    for i in range(n):
        total += i * i
    return total


# --- two that switch to each other, each from a function of its own

def leaf_a():
    spin(3000)


def leaf_b():
    spin(3000)


def run_a():
    while not over():
        leaf_a()
        greenlet_b.switch()


def run_b():
    while True:
        leaf_b()
        greenlet_a.switch()


def greenlets():
    global greenlet_a, greenlet_b
    import greenlet
    greenlet_a, greenlet_b = greenlet.greenlet(run_a), greenlet.greenlet(run_b)
    print("ready", flush=True)
    greenlet_a.switch()


# --- an event loop that isn't Python's

async def answer(reader, writer):
    while data := await reader.read(100):
        spin(3000)
        writer.write(data)
    writer.close()


async def ask(port):
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    while not over():
        writer.write(b"x" * 50)
        await reader.read(100)
    writer.close()


async def serve():
    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    print("ready", flush=True)
    await ask(server.sockets[0].getsockname()[1])


def uvloop():
    import uvloop as loop
    loop.install()
    asyncio.run(serve())


# --- plain calls, by Python and by C

def leaf(n):
    return spin(n)


def middle(n):
    return leaf(n)


def calls():
    print("ready", flush=True)
    while not over():
        middle(3000)
        list(map(middle, (3000,)))


globals()[sys.argv[1]]()
