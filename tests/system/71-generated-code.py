#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# timeout: 300
"""Code made at run time has the names that the process told, in its own namespaces and over time, and
nobody else's."""
import os
import re
import shutil
import subprocess
import sys

sys.path.insert(0, os.path.join(os.environ["TOP"], "tests/tools"))
import folded

check = folded.Checks()
PROGRAM = os.path.join(folded.PROGRAMS, "cpu_jit")
FEW = 30	# samples of a second of CPU time at 199 Hz: a busy machine loses some
UNNAMED = "[anonymous code]"


def record(name, *target, **how):
    rec = folded.record(list(target), frequency=199, **how)
    rec.name = name
    check(rec.status == 0, f"{name}: status {rec.status}", rec.err)
    with open(rec.path, encoding="utf-8") as f:
        rec.text = f.read()
    return rec


def leaves(rec, of=lambda s: True):
    """Samples by the innermost user frame, of those in generated code; `run` also looks at a clock."""
    out = {}
    for s in rec.stacks:
        if of(s) and len(s.user) > 1 and s.user[-2] == "run" and not re.search("now|time", s.user[-1]):
            out[s.user[-1]] = out.get(s.user[-1], 0) + s.weight
    return out


def expect(rec, wanted, **how):
    """Nothing but the wanted names, in about the wanted proportions."""
    got = leaves(rec, **how)
    total, parts = sum(got.values()), sum(wanted.values())
    good = total >= FEW and set(got) == set(wanted) and all(
        0.5 < got[n] / total * parts / wanted[n] < 2 for n in wanted)
    check(good, f"{rec.name}: {got}, as {wanted}")


def remove_maps(rec):
    for pid in {s.pid for s in rec.stacks}:
        if os.path.exists(f"/tmp/perf-{pid}.map"):
            os.remove(f"/tmp/perf-{pid}.map")


def perf_maps():
    rec = record("perf", PROGRAM, "perf")
    expect(rec, {"jit_one": 1, "jit_two": 1})
    check("jit_one_[j]" in rec.text, "perf: marked _[j] with --annotate")
    rec = record("late", PROGRAM, "late")
    expect(rec, {"jit_one": 1, "jit_two": 1})
    remove_maps(rec)	# by its design `late` leaves it
    # In the directory that TMPDIR names.
    own = os.path.join(folded.TMP, "own tmp")
    os.makedirs(own, exist_ok=True)
    expect(record("TMPDIR", PROGRAM, "perf", own, TMPDIR=own), {"jit_one": 1, "jit_two": 1})


def memory_files():
    """Code in a file that is nothing but memory: the map tells addresses, stacks have offsets."""
    rec = record("memfd", PROGRAM, "memfd")
    expect(rec, {"jit_one": 1, "jit_two": 1})
    check("jit_one_[j]" in rec.text, "memfd: marked _[j] with --annotate")


def other_processes():
    expect(record("fork", PROGRAM, "fork"), {"jit_one": 1})
    # Two images with one number: the first one's names must not be the second's, nor the other way.
    expect(record("exec", PROGRAM, "exec"), {"jit_one": 1, "jit_two": 1})
    if os.geteuid() == 0:
        expect(record("foreign", PROGRAM, "foreign"), {UNNAMED: 1})


def dumps():
    rec = record("dump", PROGRAM, "dump", folded.TMP)
    expect(rec, {"jit_one": 1, "jit_two": 1})


def namespaces():
    """Its own numbers, its own /tmp, which is gone with it."""
    sandbox = ["unshare", "--pid", "--fork", "--mount", "--mount-proc", "sh", "-c",
               'exec 9<"$0"; mount -t tmpfs none /tmp && /proc/self/fd/9 perf && '
               'test $(ls /proc | grep -c "^[0-9]") -lt 10', PROGRAM]
    if subprocess.run(["unshare", "--pid", "--fork", "--mount", "--mount-proc", "true"],
                      capture_output=True).returncode:
        print("no namespaces here")
        return
    expect(record("namespaces", *sandbox), {"jit_one": 1, "jit_two": 1})
    # Maps of processes that had these numbers before.
    everywhere = os.path.join(folded.TMP, "everywhere")
    with open(everywhere, "w", encoding="ascii") as f:
        for address in range(0x700000000000, 0x800000000000, 1 << 32):
            f.write(f"{address:x} 100000000 not_mine\n")
    for touch, wanted in (("1 hour ago", UNNAMED), ("now", "not_mine")):
        sandbox = ["unshare", "--pid", "--fork", "--mount", "--mount-proc", "sh", "-c",
                   'exec 9<"$0" 8<"$1"; mount -t tmpfs none /tmp && cat <&8 >/tmp/map && '
                   f'touch -d "{touch}" /tmp/map && for i in 1 2 3 4 5 6 7 8 9 10 11 12 13 14; do '
                   'cp -p /tmp/map /tmp/perf-$i.map; done; exec /proc/self/fd/9 silent',
                   PROGRAM, everywhere]
        expect(record(f"maps written {touch}", *sandbox), {wanted: 1})
    # A user who is root in there only, and whose files are that user's out here.
    user = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "unshare", "--user", "--map-root-user",
            "--pid", "--fork", "--mount", "--mount-proc"]
    refused = "no setpriv" if not shutil.which("setpriv") else \
        subprocess.run([*user, "true"], capture_output=True, text=True).stderr.strip()
    if refused:
        print(f"user namespace: skipped: {refused}")
        return
    expect(record("user namespace", *user, "sh", "-c",
                  'exec 9<"$0"; mount -t tmpfs none /tmp && /proc/self/fd/9 perf', PROGRAM),
           {"jit_one": 1, "jit_two": 1})


SCRIPT = """
function hotInner(n) { let s = 0; for (let i = 0; i < n; i++) s = (s * 31 + i) | 0; return s; }
function outerLoop() { const end = process.cpuUsage().user + 2e6; let r = 0;
    while (process.cpuUsage().user < end) r ^= hotInner(200000); return r; }
outerLoop();
"""


def javascript():
    """A real maker of code, both ways of telling."""
    if not shutil.which("node"):
        print("no node here")
        return
    path = os.path.join(folded.TMP, "spin.js")
    with open(path, "w", encoding="utf-8") as f:
        f.write(SCRIPT)
    for option in ("--perf-basic-prof", "--perf-prof"):
        os.chdir(folded.TMP)
        rec = record(f"node {option}", shutil.which("node"), option, path)
        total = rec.total()
        hot = rec.total(lambda s: s.user and re.search(r"hotInner .*spin\.js:2", s.user[-1]))
        none = rec.total(lambda s: UNNAMED in s.user)
        check(hot > FEW and hot > total * 0.4 and none < total * 0.05,
              f"{rec.name}: hotInner in {hot}, unnamed {none} of {total}")
        remove_maps(rec)


def main():
    for case in (perf_maps, memory_files, other_processes, dumps, namespaces, javascript):
        case()
    return check.status()


if __name__ == "__main__":
    sys.exit(main())
