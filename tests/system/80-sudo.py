#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# timeout: 200
"""Under sudo a command is its caller's: ids, environment, and so the python3 and the driver that it finds."""
import os
import pwd
import shutil
import subprocess
import sys

sys.path.insert(0, os.path.join(os.environ["TOP"], "tests/tools"))
import launches as L  # noqa: E402

check = L.Checks()
USER, GROUP = 4242, 4343
HOME = os.path.join(L.TMP, "home")
SUDO = os.path.join(L.TMP, "sudo")
OUT = os.path.join(HOME, "o.folded")
CALLERS = {
    "PATH": f"{HOME}/bin:/usr/bin:/bin", "HOME": HOME, "USER": "caller", "LOGNAME": "caller",
    "SHELL": "/bin/false", "VIRTUAL_ENV": f"{HOME}/venv", "LD_LIBRARY_PATH": f"{L.B}/simcuda",
    "TERM": "xterm", "LANG": "C.UTF-8", "ODD": "a b=c\n;'x\"", "EMPTY": "", "PYTHONPATH": "/nowhere",
}
# Long enough for a sample; what it shows stands in a file, since a terminal may lie in between.
SHOW = f"""#!/usr/bin/python3 -I
import os, sys
with open({HOME!r} + "/shown", "w") as f:
    print(sorted(os.environ.items()), os.getresuid(), os.getresgid(), sorted(os.getgroups()), file=f)
while sum(os.times()[:2]) < 0.3:
    pass
"""
# Runs a program that doesn't descend from us, nor so from a sudo that the tests run under.
ORPHAN = """
import os, subprocess, sys, time
told, tell = os.pipe()
parent = os.fork()
if parent:
    os.close(tell)
    os.waitpid(parent, 0)
    sys.exit((os.read(told, 1) or b"?")[0])
parent = os.getpid()
if os.fork():
    os._exit(0)
while os.getppid() == parent:
    time.sleep(0.01)
os.write(tell, bytes([subprocess.run(sys.argv[1:]).returncode & 0xff]))
"""


def become():
    os.setgroups([GROUP, 7777])
    os.setresgid(GROUP, GROUP, GROUP)
    os.setresuid(USER, USER, USER)


def run(argv, caller=True, **variables):
    for name in ("shown", "o.folded"):
        if os.path.exists(os.path.join(HOME, name)):
            os.unlink(os.path.join(HOME, name))
    r = subprocess.run(argv, env=dict(CALLERS, **variables), cwd=HOME, stdin=subprocess.DEVNULL,
                       capture_output=True, text=True, timeout=60, preexec_fn=become if caller else None)
    return L.Run(r.returncode, r.stdout, r.stdout + r.stderr, OUT)


def shown():
    with open(os.path.join(HOME, "shown")) as f:
        return f.read()


def collect(*options, program=(L.GPUCOLLECT,)):
    return [*program, "--no-gpu", "-F", "99", "-o", OUT, *options, "--", "showme"]


def is_callers(what, argv, want):
    r = run(argv)
    check(r.status == 0 and r.total() > 0, f"{what}: status {r.status}: {r.said} {r.err}")
    got = shown() if os.path.exists(os.path.join(HOME, "shown")) else None
    check(got == want, f"{what}: alone\n{want}\nunder gpucollect\n{got}")
    st = os.stat(OUT) if os.path.exists(OUT) else None
    check(st and (st.st_uid, st.st_gid) == (USER, GROUP), f"{what}: the file is {st}")


def plain(**variables):
    subprocess.run(["showme"], env=dict(CALLERS, **variables), preexec_fn=become, check=True)
    # Which groups a user has says the system's list of them: this one has none there.
    return shown().replace(f"[{GROUP}, 7777]", f"[{GROUP}]")


def environment():
    want = plain()
    is_callers("sudo", [SUDO, *collect()], want)
    is_callers("sudo on its own terminal", [SUDO, "-t", *collect()], want)
    # What is set on the way holds, but for what sudo sets by itself.
    want = plain(ADDED="on the way", LANG="C")
    is_callers("sudo NAME=VALUE", [SUDO, "ADDED=on the way", "LANG=C", *collect()], want)
    is_callers("sudo env NAME=VALUE", [SUDO, *collect(program=(
        "env", "ADDED=on the way", "LANG=C", L.GPUCOLLECT))], want)
    script = 'ADDED="on the way"; LANG=C; export ADDED LANG; "$@"; exit $?'
    # The shell adds a variable of its own.
    want = plain(ADDED="on the way", LANG="C", PWD=HOME)
    is_callers("sudo and a script", [SUDO, *collect(program=("sh", "-c", script, "sh", L.GPUCOLLECT))], want)


def not_sudo():
    """Something of that name that isn't setuid root, and none at all: our own environment it is."""
    other = os.path.join(L.TMP, "other")
    os.mkdir(other, 0o755)
    shutil.copy(SUDO, f"{other}/sudo")
    os.chmod(f"{other}/sudo", 0o755)
    variables = dict(SUDO_UID=str(USER), SUDO_GID=str(GROUP), PATH="/usr/bin:/bin", MINE="root's")
    argv = collect()[:-1] + [f"{HOME}/bin/showme"]
    keep = ["env", *(f"{k}={v}" for k, v in variables.items()), *argv]
    for what, before in (("none", []), ("a false one", [f"{other}/sudo"])):
        r = run([sys.executable, "-Ic", ORPHAN, *before, *keep], caller=False)
        got = shown()
        check(r.status == 0 and "('MINE', \"root's\")" in got and "('PATH', '/usr/bin:/bin')" in got and
              f"({USER}, {USER}, {USER})" in got, f"{what}: {r.status} {r.said} {got}")
        check((before == []) == ("VIRTUAL_ENV" in got), f"{what}: {got}")


def driver():
    """The driver and the injected library are those of the caller's environment."""
    chains = f"{L.PROGRAMS}/gpu_chains"
    r = run([SUDO, L.GPUCOLLECT, "-o", OUT, "--", chains, "5"])
    check(r.status == 0 and r.timed() == r.launches() == 60 and not r.complaints(), f"driver: {r.said}")
    for name in ("CUDA_INJECTION64_PATH", "GPUCOLLECT_DISABLE"):
        r = run([SUDO, L.GPUCOLLECT, "-o", OUT, "--", chains, "5"], **{name: "/none.so"})
        check(r.status == 77 and not r.written and len(r.complaints()) == 1 and name in r.complaints()[0],
              f"{name}: {r.status} {r.said}")


def files():
    """A link of the user leads nowhere that the user could not go."""
    roots = os.path.join(L.TMP, "roots")
    with open(roots, "w") as f:
        f.write("root's")
    os.symlink(roots, os.path.join(HOME, "link.folded"))
    r = run([SUDO, L.GPUCOLLECT, "-y", "--no-gpu", "-o", f"{HOME}/link.folded", "--", "showme"])
    check(r.status == 77 and f"user {USER} may not write" in " ".join(r.complaints()), f"link: {r.said}")
    with open(roots) as f:
        check(f.read() == "root's", "a link led to a file of root")


def real_sudo():
    """The same by sudo itself, where it is installed, with a list of rights of this test's own."""
    sudo = shutil.which("sudo", path="/usr/bin:/bin")
    if not sudo or not os.path.exists("/etc/sudoers") or subprocess.run(["unshare", "-m", "true"]).returncode:
        print("note: no sudo here, so only what is like it")
        return
    nobody = pwd.getpwnam("nobody")
    os.chown(HOME, nobody.pw_uid, nobody.pw_gid)
    variables = dict(CALLERS, USER="nobody", LOGNAME="nobody")
    before = ["setpriv", f"--reuid={nobody.pw_uid}", f"--regid={nobody.pw_gid}", "--init-groups", "env", "-i",
              *(f"{k}={v}" for k, v in variables.items())]
    run([*before, "showme"], caller=False)
    want = shown()
    rights = os.path.join(L.TMP, "sudoers")
    for terminal in ("!use_pty", "use_pty"):
        with open(rights, "w") as f:
            f.write(f"Defaults env_reset, {terminal}, secure_path=/usr/sbin:/usr/bin:/sbin:/bin\n"
                    "nobody ALL=(ALL:ALL) NOPASSWD: ALL\n")
        os.chmod(rights, 0o440)
        r = run(["unshare", "-m", "sh", "-c", 'mount --bind "$1" /etc/sudoers && shift && exec "$@"', "sh",
                 rights, *before, sudo, "-n", *collect()], caller=False)
        os.unlink(rights)
        check(r.status == 0 and r.total() > 0, f"sudo, {terminal}: status {r.status}: {r.said} {r.err}")
        got = shown() if os.path.exists(os.path.join(HOME, "shown")) else None
        check(got == want, f"sudo, {terminal}: alone\n{want}\nunder gpucollect\n{got}")
    os.chown(HOME, USER, GROUP)


def prepare():
    os.chmod(L.TMP, 0o755)
    shutil.copy(f"{L.PROGRAMS}/cli_sudo", SUDO)
    os.chmod(SUDO, 0o4755)
    os.makedirs(f"{HOME}/bin")
    with open(f"{HOME}/bin/showme", "w") as f:
        f.write(SHOW)
    os.chmod(f"{HOME}/bin/showme", 0o755)
    os.chown(HOME, USER, GROUP)
    r = subprocess.run([SUDO, "id", "-u"], capture_output=True, text=True, preexec_fn=become)
    if r.stdout != "0\n":
        print(f"a setuid program does not get its rights in {L.TMP} ({r.stderr.strip()})")
        sys.exit(L.SKIP)


if os.geteuid():
    print("needs root")
    sys.exit(L.SKIP)
prepare()
os.environ["PATH"] = CALLERS["PATH"]
for part in (environment, real_sudo, not_sudo, driver, files):
    before = check.failures
    part()
    print("ok   " if check.failures == before else "WRONG", part.__name__, flush=True)
sys.exit(check.status())
