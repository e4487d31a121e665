#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# timeout: 200
"""--debuginfod asks a server for the names of stripped files: never as root, never for ever, and it is
believed only where the build id is right. Without the option nobody is asked."""
import ctypes.util
import http.server
import os
import re
import shutil
import subprocess
import sys
import threading
import time

sys.path.insert(0, os.path.join(os.environ["TOP"], "tests/tools"))
import folded

check = folded.Checks()
FEW = 30
SOURCE = """
#include <time.h>
static volatile unsigned long sink;
static __attribute__((noipa)) void hidden_spin(unsigned long n) { while (n--) sink += n; }
int main(void)
{
	while (clock() < CLOCKS_PER_SEC)
		hidden_spin(1000000);
	return 0;
}
"""


class Server(http.server.ThreadingHTTPServer):
    """Serves files by build id; knows which user asked."""
    daemon_threads = True

    def __init__(self):
        super().__init__(("127.0.0.1", 0), Handler)
        self.files, self.asked, self.users, self.silent = {}, [], set(), threading.Event()
        self.url = f"http://127.0.0.1:{self.server_port}/"
        threading.Thread(target=self.serve_forever, daemon=True).start()


class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.server.asked.append(self.path)
        self.server.users.add(user_of(self.client_address[1]))
        while self.server.silent.is_set():
            time.sleep(0.1)
        body = self.server.files.get(self.path)
        try:
            self.send_response(200 if body else 404)
            self.send_header("Content-Length", str(len(body or b"")))
            self.end_headers()
            self.wfile.write(body or b"")
        except OSError:
            pass	# it didn't want to wait

    def log_message(self, *args):
        pass


def user_of(port):
    """The owner of the socket at that local port of this machine."""
    with open("/proc/net/tcp", encoding="ascii") as f:
        for line in f.read().splitlines()[1:]:
            fields = line.split()
            if int(fields[1].split(":")[1], 16) == port:
                return int(fields[7])
    return None


def sh(text):
    return subprocess.run(text, shell=True, check=True, capture_output=True, text=True,
                          cwd=folded.TMP).stdout


def build():
    with open(os.path.join(folded.TMP, "p.c"), "w", encoding="utf-8") as f:
        f.write(SOURCE)
    sh("gcc -O2 -g -Wl,--build-id -o full p.c && objcopy --only-keep-debug full debug && "
       "strip -o stripped full && gcc -O1 -g -Wl,--build-id -o other p.c")
    return re.search("Build ID: ([0-9a-f]+)", sh("readelf -n full"))[1]


def run(url, *options, **extra):
    return folded.record([os.path.join(folded.TMP, "stripped")], *options, frequency=199,
                         DEBUGINFOD_URLS=url, **extra)


def hidden(rec):
    return rec.total(lambda s: "hidden_spin" in s.user)


def unnamed(rec):
    return rec.total(lambda s: s.user and re.match(r"stripped\+0x", s.user[-1]))


def refused(what, text, **env):
    argv = folded.command("--debuginfod", path=os.path.join(folded.TMP, "r.folded")) + ["--", "true"]
    r = subprocess.run(argv, env={**os.environ, **env}, capture_output=True, text=True)
    check(r.returncode == 77 and text in r.stderr and len(r.stderr.splitlines()) == 1,
          f"{what}: status {r.returncode}, one line that says '{text}'", r.stderr)


def main():
    refused("no server", "DEBUGINFOD_URLS", DEBUGINFOD_URLS=" ")
    if not ctypes.util.find_library("debuginfod") and not os.path.exists(
            "/usr/lib/x86_64-linux-gnu/libdebuginfod.so.1"):
        refused("no library", "libdebuginfod", DEBUGINFOD_URLS="http://127.0.0.1:9/")
        print("skipped: no libdebuginfod here")
        return folded.SKIP
    build_id, server = build(), Server()
    place = f"/buildid/{build_id}/debuginfo"
    with open(os.path.join(folded.TMP, "debug"), "rb") as f:
        server.files[place] = f.read()

    rec = run(server.url)
    check(unnamed(rec) >= FEW and not hidden(rec) and not server.asked,
          f"without the option nobody is asked: {server.asked}, unnamed {unnamed(rec)}")
    rec = run(server.url, "--debuginfod")
    check(hidden(rec) >= FEW and not unnamed(rec) and place in server.asked and
          "debuginfod: no answer" not in rec.err,
          f"with it: hidden_spin in {hidden(rec)}, unnamed {unnamed(rec)}", rec.err)
    check(0 not in server.users and None not in server.users, f"never as root: {server.users}")
    check(not [n for n in os.listdir("/tmp") if n.startswith("gpucollect-debuginfod-") and
               os.stat("/tmp/" + n).st_mtime > START], "no cache is left behind")

    # Under sudo: the caller's cache, filled with the caller's rights.
    if os.geteuid() == 0:
        home = os.path.join(folded.TMP, "home")
        os.makedirs(home)
        os.chown(home, 65533, 65533)
        os.chmod(folded.TMP, 0o755)
        rec = run(server.url, "--debuginfod", SUDO_UID="65533", SUDO_GID="65533",
                  DEBUGINFOD_CACHE_PATH=os.path.join(home, "cache"), name="home/o.folded")
        owners = {os.stat(os.path.join(d, n)).st_uid for d, _, names in os.walk(home) for n in names}
        check(hidden(rec) >= FEW and owners == {65533} and 65533 in server.users,
              f"under sudo: the caller's cache: {owners}, asked as {server.users}", rec.err)

    # The right name, another file.
    with open(os.path.join(folded.TMP, "other"), "rb") as f:
        server.files[place] = f.read()
    rec = run(server.url, "--debuginfod")
    check(unnamed(rec) >= FEW and not hidden(rec), f"another file is not believed: {hidden(rec)}", rec.err)

    # Nothing at all comes: the result does.
    server.silent.set()
    rec = run(server.url, "--debuginfod", DEBUGINFOD_TIMEOUT="2")
    check(rec.status == 0 and unnamed(rec) >= FEW, f"a server that is silent: status {rec.status}, "
          f"{unnamed(rec)} unnamed", rec.err)
    server.silent.clear()
    rec = run("http://127.0.0.1:9/", "--debuginfod")
    check(rec.status == 0 and unnamed(rec) >= FEW and rec.err.count("debuginfod: no answer") == 1,
          f"no server there: status {rec.status}", rec.err)
    server.shutdown()
    return check.status()


if __name__ == "__main__":
    START = time.time()
    if not shutil.which("gcc"):
        print("skipped: no gcc here")
        sys.exit(folded.SKIP)
    sys.exit(main())
