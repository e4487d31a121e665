#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Memory, descriptors and threads of the program stay flat over a million launches, and nothing is
lost at the rate that the ring is made for.

timeout: 300
"""
import os
import subprocess
import sys
import threading
import time

import timing
from timing import NONE, OUTSTANDING, Run, own_memory, program

checks = timing.Checks()
timing.collector()


def watch(name, samples, stop):
    """KiB anonymous, shared, of the library's own; descriptors, threads: every 0.1 s."""
    pid = None
    while not stop.is_set():
        time.sleep(0.1)
        try:
            if pid is None:
                pid = subprocess.run(["pgrep", "-n", "-x", name], capture_output=True, text=True,
                                     check=False).stdout.strip() or None
                continue
            with open(f"/proc/{pid}/status", encoding="utf-8") as f:
                values = dict(line.split(":", 1) for line in f)
            samples.append((int(values["RssAnon"].split()[0]), int(values["RssShmem"].split()[0]),
                            own_memory(pid), len(os.listdir(f"/proc/{pid}/fd")),
                            int(values["Threads"])))
        except (OSError, KeyError):
            break


def flat(where, command, least, whole=True):
    """whole: of all of the program's memory, else only of the library's own, which has a limit."""
    samples, stop = [], threading.Event()
    thread = threading.Thread(target=watch, args=(os.path.basename(command[0])[:15], samples, stop))
    thread.start()
    run = Run(command, "-q", timeout=240, STANDIN_TRUTH="/dev/null")
    stop.set()
    thread.join()
    checks.equal(run.status, 0, where, "status", run.stderr)
    channel = run.channel
    made = sum(v for k, v in channel.counts.items() if k.startswith("results["))
    checks.equal(channel.count("probes"), made, where, "probes and results")
    checks(channel.count("launched") >= least, where, "launches", channel.count("launched"))
    if checks(len(samples) >= 5, where, "samples", len(samples)):
        early, late = samples[len(samples) // 3], samples[-2]
        print(where, "first", samples[0], "third", early, "last", late, channel.counts, flush=True)
        checks(not whole or late[0] - early[0] <= 256, where, "anonymous memory", early, late)
        checks(0 < late[2] <= 9 << 10, where, "own memory", late)
        checks(not whole or late[2] - early[2] <= 64, where, "own memory", early, late)
        # the ring and the counters, at most
        checks(late[1] <= (17 << 10) + 1100, where, "shared memory", late)
        checks.equal(late[3], early[3], where, "descriptors")
        checks(late[4] <= early[4], where, "threads", early, late)
    return channel


# paced, four threads, 50,000 a second: all timed, none lost
paced = flat("paced", program("gpu_paced", 4, 50000, 20), 1000000)
checks.equal(paced.count("lost_results"), 0, "paced: lost")
share = paced.count(f"results[{NONE}]") / paced.count("launched")
checks(share > 0.999, "paced: share with a time", share)
# unpaced: what is lost is counted
flood = flat("flood", program("gpu_paced", 2, 0, 1500000, 1), 3000000)
checks.equal(flood.count(f"results[{NONE}]") + flood.count(f"results[{OUTSTANDING}]") - flood.count("waits"),
             3000000, "flood")
flat("modules", program("gpu_hazards", "modules", 150000), 300000)
flat("streams", program("gpu_hazards", "churn", 300000), 300000)
# the virtual device keeps the events of contexts that are gone, and handles are ever new ones
flat("contexts", program("gpu_contexts", 20000, 1000), 200000, whole=False)
sys.exit(checks.status())
