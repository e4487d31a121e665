# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""A program that lets the timing library in by itself (gpu_attach), and a collector for one session of
it (timing_collector -p): what the tests of attach and detach share."""
import itertools
import os
import subprocess

import timing
from timing import ARMED, LIBRARY, NONE, PASSIVE, REASON_STOPPED, RUNNING, TMP, program

COLLECTOR = timing.collector()
# the session's number in a launch's id
SESSION = 51


class Program:
    """gpu_attach, and its answers."""

    def __init__(self, *options, kind="simcuda", library=LIBRARY, **variables):
        self.process = subprocess.Popen(
            program("gpu_attach", *options, library), stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            env=timing.environment(kind, **variables), cwd=TMP)
        self.pid = self.process.pid
        self.sessions = 0
        assert self.answer() == ["ready"]

    def answer(self):
        return self.process.stdout.readline().decode().split()

    def tell(self, *words):
        self.process.stdin.write((" ".join(map(str, words)) + "\n").encode())
        self.process.stdin.flush()

    def ask(self, *words):
        self.tell(*words)
        return self.answer()

    def number(self, *words):
        return int(self.ask(*words)[1])

    def attach(self, *how):
        """(status, stage, errno kept, page there, error); a session has begun where status is 0."""
        words = self.ask(*(how or ("attach",)))
        assert words[0] == "attached", words
        self.sessions = int(words[3])
        return -int(words[1]), int(words[2]), words[4] == "1", words[5] == "1", " ".join(words[6:])

    def mappings(self, of):
        with open(f"/proc/{self.pid}/maps", encoding="utf-8") as f:
            return sum(line.rstrip().endswith(of) for line in f)

    def flat(self):
        """KiB anonymous and shared, descriptors, threads, mappings."""
        with open(f"/proc/{self.pid}/status", encoding="utf-8") as f:
            values = dict(line.split(":", 1) for line in f)
        with open(f"/proc/{self.pid}/maps", encoding="utf-8") as f:
            maps = len(f.readlines())
        return (int(values["RssAnon"].split()[0]), int(values["RssShmem"].split()[0]),
                len(os.listdir(f"/proc/{self.pid}/fd")), int(values["Threads"]), maps)

    def quit(self, checks, where):
        checks.equal(self.ask("quit"), ["bye"], where, "the end")
        checks.equal(self.process.wait(timeout=30), 0, where, "status")


class Session:
    """A collector at work on one process."""

    serial = itertools.count()

    def __init__(self, pid, *options):
        self.out = os.path.join(TMP, f"session{next(Session.serial)}")
        self.process = subprocess.Popen([COLLECTOR, "-p", str(pid), "-o", self.out, *map(str, options)],
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=TMP)

    def said(self):
        return self.process.stdout.readline().decode().split()

    def armed(self, checks, where):
        words = self.said()
        return checks(words[:1] == ["ready"] and int(words[1]) in (ARMED, RUNNING), where, "not armed:",
                      words)

    def end(self):
        self.process.stdin.close()
        self.process.wait(timeout=60)
        return self.read()

    def read(self):
        run = timing.Run.__new__(timing.Run)
        run.out, run.channels, run.refused_files = self.out, {}, []
        run.read()
        os.remove(self.out)
        return run.channel


def twin(checks, threads, launches, *options, **variables):
    """What the program sees when nobody looks on."""
    alone = Program("-p", 0, *options, **variables)
    alone.ask("start", threads)
    alone.ask("upto", launches)
    hashes = alone.ask("hash")
    alone.quit(checks, "twin")
    return hashes


def account(checks, channel, number, where, under_way=0):
    """Exact for the session: every probe has its result, but for what is still under way."""
    checks.equal((channel.state, channel.reason), (PASSIVE, REASON_STOPPED), where, "state")
    checks(not channel.broken, where, "the ring holds nonsense")
    checks.equal(channel.slots, 0, where, "slots")
    made = sum(v for k, v in channel.counts.items() if k.startswith("results["))
    checks.equal(channel.count("launched") + channel.count("copies") + channel.count("waits"),
                 channel.count("probes"), where, "launches, copies, waits and probes")
    checks(0 <= channel.count("probes") - made <= under_way, where, channel.count("probes"), "probes,",
           made, "results")
    if channel.results:
        read = channel.results + channel.waits
        ids = sorted(i for r in read for i in channel.members(r))
        checks.equal(len(ids) + channel.count("lost_results"), made, where, "results read")
        checks.equal({r.id >> SESSION for r in read}, {number}, where, "session of the ids")
        # of each thread all, one after the other
        gaps = [b - a for a, b in zip(ids, ids[1:]) if a >> 40 == b >> 40 and b - a != 1]
        checks(len(gaps) <= under_way + channel.count("lost_results"), where, "gaps in the ids:", gaps[:5])
        checks(all(r.name in channel.names for r in channel.results
                   if not r.cause and not r.flags & (timing.F_GRAPH | timing.F_COPY)), where, "names")
        checks({n[2] for n in channel.names.values()} <= {"spin_" + c for c in "abcd"}, where,
               channel.names)
        if channel.by_cause()[NONE]:
            checks.equal(list(channel.devices), [0], where, "devices")
