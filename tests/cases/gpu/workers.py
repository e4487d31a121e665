# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""G-09: four worker processes that each launch kernels. usage: workers.py fork|spawn|forkserver [parent] [kill]
  parent  the parent uses the GPU too, before it starts the workers (not with fork)
  kill    the workers are not left to end by themselves: SIGTERM after 3 s, SIGKILL 1 s later
Prints per rank how many launches succeeded. Needs the driver library on LD_LIBRARY_PATH."""
import ctypes
import multiprocessing as mp
import os
import signal
import sys
import time

PTX = b""".version 7.0
.target sm_75
.address_size 64
.visible .entry spin_rank%d(.param .u64 ns) {
 .reg .u64 %%ra, %%rb, %%rc, %%rd; .reg .pred %%pp;
 ld.param.u64 %%rd, [ns];
 mov.u64 %%ra, %%globaltimer;
AGAIN: mov.u64 %%rb, %%globaltimer;
 sub.u64 %%rc, %%rb, %%ra;
 setp.lt.u64 %%pp, %%rc, %%rd;
 @%%pp bra AGAIN;
 ret;
}
"""


def gpu(rank, seconds):
    cuda = ctypes.CDLL("libcuda.so.1")
    ctx, mod, func = ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_void_p()

    def must(r, what):
        if r:
            print("rank %d: %s failed with %d" % (rank, what, r), flush=True)
            os._exit(4)

    must(cuda.cuInit(0), "cuInit")
    must(cuda.cuDevicePrimaryCtxRetain(ctypes.byref(ctx), 0), "context")
    must(cuda.cuCtxSetCurrent(ctx), "set current")
    must(cuda.cuModuleLoadData(ctypes.byref(mod), PTX % rank), "module")
    must(cuda.cuModuleGetFunction(ctypes.byref(func), mod, b"spin_rank%d" % rank), "function")
    ns = ctypes.c_uint64(200000)
    params = (ctypes.c_void_p * 1)(ctypes.cast(ctypes.pointer(ns), ctypes.c_void_p))
    cuda.cuLaunchKernel.argtypes = [ctypes.c_void_p] + [ctypes.c_uint] * 7 + [ctypes.c_void_p] * 3
    count = 0
    end = time.time() + seconds
    while time.time() < end:
        for _ in range(20):
            must(cuda.cuLaunchKernel(func, 1, 1, 1, 32, 1, 1, 0, None, params, None), "launch")
            count += 1
        must(cuda.cuCtxSynchronize(), "synchronize")
    return count


def rank_main(rank, seconds):
    print("rank %d: %d launches" % (rank, gpu(rank, seconds)), flush=True)


def main():
    method = sys.argv[1]
    if "parent" in sys.argv[2:]:
        print("parent: %d launches" % gpu(9, 0.5), flush=True)
    kill = "kill" in sys.argv[2:]
    ctx = mp.get_context(method)
    ranks = [ctx.Process(target=rank_main, args=(r, 60 if kill else 3)) for r in range(4)]
    for p in ranks:
        p.start()
    if kill:
        time.sleep(3)
        for sig in (signal.SIGTERM, signal.SIGKILL):
            for p in ranks:
                if p.is_alive():
                    os.kill(p.pid, sig)
            time.sleep(1)
    for p in ranks:
        p.join()
    print("exit codes", [p.exitcode for p in ranks], flush=True)


if __name__ == "__main__":
    main()
