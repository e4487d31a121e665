#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# timeout: 200
"""Stripped programs in other root file systems get their names from debug files there, else from ours,
though they have ended when names are looked up; nothing leads out of their root."""
import os
import re
import shutil
import subprocess
import sys

sys.path.insert(0, os.path.join(os.environ["TOP"], "tests/tools"))
import folded
from folded import holds

check = folded.Checks()
FEW = 30
SOURCE = """
#include <time.h>
static volatile unsigned long sink;
static inline __attribute__((always_inline)) void inline_spin(unsigned long n) { while (n--) sink += n; }
static __attribute__((noipa)) void hidden_spin(unsigned long n) { inline_spin(n); }
int main(void)
{
	while (clock() < CLOCKS_PER_SEC)
		hidden_spin(1000000);
	return 0;
}
"""


def sh(text):
    r = subprocess.run(["sh", "-e", "-c", text], capture_output=True, text=True, cwd=folded.TMP)
    if r.returncode:
        sys.exit(f"{text}: {r.stderr}")
    return r.stdout


def build():
    with open(os.path.join(folded.TMP, "p.c"), "w", encoding="utf-8") as f:
        f.write(SOURCE)
    sh("gcc -O2 -g -static -Wl,--build-id -o full p.c; objcopy --only-keep-debug full app.debug;"
       "strip -o bare full; objcopy --add-gnu-debuglink=app.debug bare linked;"
       "objcopy -S --keep-symbol=hidden_spin --remove-section .comment app.debug mini || true")
    return re.search("Build ID: ([0-9a-f]+)", sh("readelf -n full"))[1]


def root(name, program, *files):
    """A root file system with one program, /opt/app/app, and (file, place) of others."""
    top = os.path.join(folded.TMP, name)
    for source, place in ((program, "/opt/app/app"), *files):
        os.makedirs(os.path.dirname(top + place), exist_ok=True)
        shutil.copy(os.path.join(folded.TMP, source), top + place)
    return top


def run(name, top, before=""):
    """In a mount namespace of its own, which is gone with it."""
    rec = folded.record(["unshare", "--mount", "chroot", top, "/opt/app/app"], frequency=199,
                        inlines=True) if not before else apart(top, before)
    rec.name = name
    check(rec.status == 0, f"{name}: status {rec.status}", rec.err)
    return rec


def apart(top, before):
    """gpucollect itself is in a namespace where `before` has changed files of ours."""
    path = os.path.join(folded.TMP, "apart.folded")
    argv = folded.command(path=path, frequency=199, inlines=True) + [
        "--", "unshare", "--mount", "chroot", top, "/opt/app/app"]
    r = subprocess.run(["unshare", "--mount", "sh", "-e", "-c", before + '\nexec "$@"', "sh", *argv],
                       capture_output=True, text=True, timeout=100)
    return folded.Recording(r.returncode, r.stdout, r.stderr, path, 199)


def named(rec):
    names = ("main", "hidden_spin", "inline_spin")
    n = rec.total(lambda s: s.comm == "app")
    good = rec.total(lambda s: holds(s, *names))
    check(good >= FEW and good >= 0.9 * n, f"{rec.name}: {' > '.join(names)} in {good} of {n}")


def unnamed(rec):
    n = rec.total(lambda s: s.user and re.match(r"app\+0x", s.user[-1]))
    known = rec.total(lambda s: "hidden_spin" in s.user)
    check(n >= FEW and not known, f"{rec.name}: {n} without a name, {known} with one")


def main():
    if os.geteuid() or subprocess.run(["unshare", "--mount", "true"], check=False).returncode:
        print("skipped: mount namespaces need root")
        return folded.SKIP
    build_id = build()
    place = f"/usr/lib/debug/.build-id/{build_id[:2]}/{build_id[2:]}.debug"
    unnamed(run("none", root("none", "bare")))
    named(run("build id", root("by-id", "bare", ("app.debug", place))))
    named(run("link", root("by-link", "linked", ("app.debug", "/opt/app/.debug/app.debug"))))
    named(run("link in /usr/lib/debug", root("by-dir", "linked",
                                             ("app.debug", "/usr/lib/debug/opt/app/app.debug"))))

    # Ours, where the target has none.
    if os.path.isdir("/usr/lib/debug"):
        named(run("ours", root("ours", "bare"), "mount -t tmpfs none /usr/lib/debug\n"
                  f"mkdir -p {os.path.dirname(place)}\ncp {folded.TMP}/app.debug {place}"))
    else:
        print("no /usr/lib/debug here to lay something over")

    # A link in the target's root means what it means there.
    top = root("link-inside", "bare", ("app.debug", "/elsewhere/app.debug"))
    os.makedirs(os.path.dirname(top + place))
    os.symlink("/elsewhere/app.debug", top + place)
    named(run("link inside", top))
    top = root("link-outside", "bare")
    os.makedirs(os.path.dirname(top + place))
    os.symlink(os.path.join(folded.TMP, "app.debug"), top + place)
    unnamed(run("link outside", top))
    os.remove(top + place)
    os.symlink("../" * 20 + os.path.join(folded.TMP, "app.debug"), top + place)
    unnamed(run("link outside by ..", top))
    # What keeps whoever opens it waiting.
    os.remove(top + place)
    os.mkfifo(top + place)
    unnamed(run("a pipe", top))

    if shutil.which("xz") and os.path.exists(os.path.join(folded.TMP, "mini")):
        sh("xz -kf mini; objcopy --add-section .gnu_debugdata=mini.xz bare withmini")
        rec = run("compressed", root("compressed", "withmini"))
        n = rec.total(lambda s: s.user and s.user[-1] == "hidden_spin")
        check(n >= FEW, f"compressed: hidden_spin in {n}")
    return check.status()


if __name__ == "__main__":
    sys.exit(main())
