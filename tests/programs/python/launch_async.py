# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""What is suspended and goes on: generators, coroutines, asynchronous generators, tasks."""
import asyncio
import contextlib
import functools
import os

from launching import LAUNCH, REST, frame, launch, note


def generator(n):
    launch()
    for i in range(n):
        got = yield i
        if got:
            launch()
        LAUNCH(note(frame()), *REST)
    launch()


def delegating(n):
    launch()
    yield from generator(n)
    yield from (launch() for _ in range(1))
    return launch()


def nested(depth):
    if depth:
        yield from nested(depth - 1)
    else:
        launch()
        yield
        launch()


def throwing():
    try:
        yield 1
    except ValueError:
        launch()
        yield 2
    finally:
        launch()


def generators():
    list(delegating(2))
    for _ in nested(20):
        launch()
    g = generator(3)
    next(g)
    g.send(1)
    del g
    t = throwing()
    next(t)
    t.throw(ValueError())
    t.close()
    sum(x for x in generator(1))
    a, *b = delegating(1)
    moved(delegating(1))
    list(zip(generator(1), delegating(1)))
    with managed():
        launch()
    return a, b


def moved(g):
    """Each step from another depth."""
    def step(n):
        return step(n - 1) if n else next(g, None)
    for n in 0, 3, 9:
        step(n)


@contextlib.contextmanager
def managed():
    launch()
    try:
        yield
    finally:
        launch()


class Awaitable:
    def __await__(self):
        launch()
        yield
        launch()
        return 5


async def leaf(n):
    launch()
    await asyncio.sleep(0)
    LAUNCH(note(frame()), *REST)
    return n


async def chain(n):
    if n == 0:
        await Awaitable()
        return await leaf(n)
    value = await chain(
        n - 1)
    launch()
    return value


async def stream(n):
    for i in range(n):
        launch()
        await asyncio.sleep(0)
        yield i
        launch()


@contextlib.asynccontextmanager
async def open_one():
    launch()
    yield 1
    launch()


class Guard:
    async def __aenter__(self):
        launch()

    async def __aexit__(self, *why):
        await leaf(1)


async def task(n):
    async for i in stream(2):
        launch(i)
    return [await leaf(x) async for x in stream(1)] + [x async for x in stream(n)]


def callback(*_):
    launch()


async def in_threads():
    loop = asyncio.get_running_loop()
    await loop.run_in_executor(None, functools.partial(launch, 1))


async def main_task():
    loop = asyncio.get_running_loop()
    launch()
    await chain(5)
    await asyncio.gather(*[task(n) for n in range(3)])
    async with open_one(), Guard():
        launch()
    loop.call_soon(callback)
    loop.call_later(0, callback)
    tasks = [asyncio.ensure_future(leaf(n)) for n in range(2)]
    tasks[0].add_done_callback(callback)
    await asyncio.wait(tasks)
    await asyncio.wait_for(chain(2), 60)
    await asyncio.shield(chain(1))
    await in_threads()
    await streams()
    agen = stream(2)
    async for _ in agen:
        break
    await agen.aclose()


async def streams():
    """A server and its client, which talk through the loop."""
    async def serve(reader, writer):
        launch()
        line = await reader.readline()
        launch()
        writer.write(line)
        await writer.drain()
        writer.close()

    path = os.path.join(os.environ["TEST_TMP"], "socket-%d" % os.getpid())
    server = await asyncio.start_unix_server(serve, path)
    reader, writer = await asyncio.open_unix_connection(path)
    writer.write(b"text\n")
    launch(await reader.readline())
    writer.close()
    server.close()
    os.unlink(path) if os.path.exists(path) else None


class Loopless:
    """A coroutine that is driven by hand."""
    def __init__(self, coroutine):
        self.coroutine = coroutine

    def run(self):
        try:
            while True:
                self.coroutine.send(None)
        except StopIteration as e:
            return e.value


async def by_hand(n):
    if n:
        return await by_hand(n - 1)
    launch()
    await Awaitable()
    launch()


def main():
    generators()
    Loopless(by_hand(10)).run()
    asyncio.run(main_task())
