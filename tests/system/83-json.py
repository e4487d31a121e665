#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# timeout: 200
"""--json: all that gpucollect says is objects, the summary says the same as the text, docs/output.md names it all."""
import json
import os
import re
import subprocess
import sys

sys.path.insert(0, os.path.join(os.environ["TOP"], "tests/tools"))
import launches as L  # noqa: E402

check = L.Checks()
CHAINS = [f"{L.PROGRAMS}/gpu_chains", "5"]
LAUNCHES = 60
OUT = os.path.join(L.TMP, "o.folded")


def run(*args, kind="simcuda", **how):
    """Status, objects and what else stood on stderr, standard output."""
    r = subprocess.run([L.GPUCOLLECT, "--json", *args], env=L.environment(kind), cwd=L.TMP, text=True,
                       stdin=subprocess.DEVNULL, capture_output=True, timeout=60, **how)
    lines = r.stderr.splitlines()
    mine = [json.loads(s) for s in lines if s.startswith('{"gpucollect":')]
    return r.returncode, mine, [s for s in lines if not s.startswith('{"gpucollect":')], r.stdout


def summary(what, objects):
    found = [o for o in objects if o["gpucollect"] == "summary"]
    check(len(found) == 1, f"{what}: {len(found)} summaries: {objects}")
    return found[0] if found else {}


def texts(objects, kind):
    return [o["text"] for o in objects if o["gpucollect"] == kind]


def timed():
    # The command's own words stay as they are.
    status, mine, others, out = run("-y", "-o", OUT, "--", "sh", "-c", 'echo to stderr >&2; exec "$@"', "sh",
                                    *CHAINS)
    s = summary("timed", mine)
    check(status == 0 and others == ["to stderr"] and "total 60 0" in out, f"timed: {status} {others}")
    check(len(mine) == 1, f"timed: {mine}")
    stacks = L.read(OUT)
    want = {"result": "written", "file": OUT, "metric": "gpu", "unit": "nanoseconds",
            "stacks": len(stacks), "bytes": os.path.getsize(OUT), "frequency_hz": 20,
            "launches": LAUNCHES, "timed": LAUNCHES, "gpu_ns": sum(s.weight for s in stacks),
            "estimated": 0, "estimated_ns": 0, "lost_share": 0, "driver_seen": True}
    got = {key: s.get(key) for key in want}
    check(got == want, f"timed: {got}\n      instead of {want}")
    check(0 < s["duration_ns"] < 60e9 and s["own_cost"]["memory_bytes"] > 1 << 20, f"timed: {s}")
    launches = s["launch_stacks"]
    check(launches["events"] == LAUNCHES and launches["complete"] <= LAUNCHES and
          launches["named"] + sum(launches["unnamed"].values()) == launches["frames"] > LAUNCHES,
          f"timed: {launches}")
    return s


def counted():
    """By probes, on standard output; what is not recorded is null."""
    status, mine, _, out = run("--no-inject", "--metric", "launches", "--no-cpu", "-o", "-", "--", *CHAINS)
    s = summary("counted", mine)
    # Standard output is the command's, too.
    stacks = [line for line in out.splitlines() if "(pid " in line]
    check(status == 0 and s["result"] == "written" and s["file"] is None and s["stacks"] == len(stacks) and
          s["unit"] == "count" and s["launches"] == LAUNCHES, f"counted: {status} {s}")
    check(all(s[key] is None for key in ("timed", "gpu_ns", "gpu_busy_ns", "estimated", "uncalibrated_ns",
                                         "frequency_hz", "cpu_samples")), f"counted: {s}")
    check({"kind": "not timed", "what": "seen at the driver, without the timing library",
           "count": LAUNCHES} in s["counters"], f"counted: {s['counters']}")
    check("sample_stacks" not in s, f"counted: {s}")
    return s


def sampled():
    status, mine, _, _ = run("--metric", "cpu", "--no-gpu", "-F", "997", "-y", "-o", OUT, "--", "sh", "-c",
                             f"SECS=1 {L.CASES}/blind; :")
    s = summary("sampled", mine)
    samples = s["sample_stacks"]
    check(status == 0 and s["launches"] is None and "launch_stacks" not in s and
          s["cpu_samples"] == samples["events"] == sum(t.weight for t in L.read(OUT)) // (10**9 // 997) > 0,
          f"sampled: {status} {s}")
    blamed = {os.path.basename(f["file"]): f for f in samples["files"]}
    check(any(name.startswith("libblind") and f["events_no_unwind_info"] and f["frames_no_symbols"]
              for name, f in blamed.items()), f"sampled: {blamed}")
    return s


def ends():
    """Whatever comes of it, it is one summary, or none where nothing was captured."""
    status, mine, _, _ = run("-y", "-o", OUT, "--", "true")
    check(status == 2 and summary("empty", mine)["result"] == "empty" and len(texts(mine, "error")) == 1 and
          summary("empty", mine)["file"] is None, f"empty: {status} {mine}")
    status, mine, _, _ = run("-o", "/dev/full", "--", *CHAINS)
    s = summary("saved", mine)
    check(status == 125 and s["result"] == "saved" and os.path.exists(os.path.join(L.TMP, s["file"])) and
          "/dev/full" in texts(mine, "error")[0], f"saved: {status} {mine}")
    for args, status, words in ((["-p", "x"], 64, "-p x"), (["--nosuch"], 64, "--nosuch"), ([], 64, "no target"),
                                (["-p", "4194000"], 2, "no process 4194000"),
                                (["-o", "/none/x", "--", "true"], 64, "/none/x"),
                                (["--metric", "cpu", "--", "/none"], 127, "/none")):
        got, mine, others, out = run(*args)
        check(got == status and len(mine) == 1 and not others and not out and words in texts(mine, "error")[0],
              f"{args}: {got} {mine} {others} {out}")
    got, mine, others, _ = run("-d", "x", "-a")
    check(got == 64 and len(mine) == 1 and not others, f"-d x: {mine} {others}")
    # An option of a command's own is not for us.
    r = subprocess.run([L.GPUCOLLECT, "-d", "x", "--", "true", "--json"], capture_output=True, text=True)
    check(r.stderr.startswith("gpucollect: error: -d x"), f"--json of the command: {r.stderr}")
    status, mine, _, _ = run("-q", "-y", "-o", OUT, "--", *CHAINS)
    check(status == 0 and not mine, f"-q: {status} {mine}")
    status, mine, _, _ = run("-v", "-y", "-o", OUT, "--", *CHAINS)
    check(status == 0 and len(texts(mine, "debug")) > 0, f"-v: {status} {mine}")


def odd_names():
    """Names that mean something in JSON and on terminals come out as they are."""
    path = os.path.join(L.TMP, 'a "b"\n\x1b[31mc\\ü')
    status, mine, others, _ = run("-o", path + ".folded", "--", *CHAINS)
    check(status == 0 and not others and summary("odd names", mine)["file"] == path + ".folded",
          f"odd names: {status} {mine} {others}")


def keys(value, prefix=()):
    if isinstance(value, dict):
        for key, part in value.items():
            # These have what was found as their keys.
            if prefix[-1:] not in (("marks",), ("unnamed",)):
                yield key
            yield from keys(part, (*prefix, key))
    elif isinstance(value, list):
        for part in value:
            yield from keys(part, prefix)


def documented(objects):
    with open(os.path.join(os.environ["TOP"], "docs/output.md"), encoding="utf-8") as f:
        text = f.read().split("### For scripts")[1].split("\n## ")[0]
    named = set(re.findall(r"`([a-z_]+)`", text))
    seen = {key for o in objects for key in keys(o)}
    check(seen <= named, f"not in docs/output.md: {seen - named}")
    # And the other way round: what stands there as a field is one.
    fields = {name for row in re.findall(r"^\| (.*?) \|", text, re.M)
              for name in re.findall(r"`([a-z_]+)`", row)}
    check(len(fields) > 20 and fields <= seen, f"in docs/output.md alone: {fields - seen}")


if os.geteuid():
    print("needs root")
    sys.exit(L.SKIP)
documented([timed(), counted(), sampled()])
ends()
odd_names()
sys.exit(check.status())
