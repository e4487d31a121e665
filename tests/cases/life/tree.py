# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""L-03: a Python parent with very different children: a shell that sleeps, a static program,
children that are gone within a millisecond, and a pool of eight. usage: tree.py BUILD_DIR [seconds]"""
import multiprocessing
import os
import subprocess
import sys
import time

END = time.time() + (float(sys.argv[2]) if len(sys.argv) > 2 else 8)


def pool_work(k):
    x = 0
    stop = time.time() + 0.5
    while time.time() < stop:
        x += k
    return x


def parent_work():
    x = 0
    for i in range(300000):
        x += i
    return x


def main():
    build = sys.argv[1]
    sleeper = subprocess.Popen(["sh", "-c", "sleep 60"])
    static = subprocess.Popen([os.path.join(build, "chain.static")])
    pool = multiprocessing.get_context("fork").Pool(8)
    result = pool.map_async(pool_work, range(16))
    while time.time() < END:
        parent_work()
        if os.fork() == 0:
            os._exit(0)
        os.wait3(os.WNOHANG)
    result.wait(20)
    pool.terminate()
    static.terminate()
    sleeper.terminate()
    print("tree done")


if __name__ == "__main__":
    main()
