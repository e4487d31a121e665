#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# timeout: 120
# The timing library is put where a command can load it: whatever the umask, and not on a file system
# without execution, where the driver would leave it out and say nothing.
set -u
[ "$(id -u)" = 0 ] || { echo "needs root for mount namespaces"; exit 77; }
cd "$TEST_TMP" || exit 1
unshare -m true 2>err || { echo "no mount namespaces here: $(cat err)"; exit 77; }
chmod 0755 .
bad=0

wrong() { echo "WRONG $*"; bad=1; }

# Mounts made there are gone with the process.
timed() {	# NAME PREPARATION: the number of launches with a time
	LD_LIBRARY_PATH=$B/simcuda TMPDIR=$PWD unshare -m bash -c "$2"'
		exec "$GPUCOLLECT" -o "$0.folded" -- "$B/programs/gpu_chains" 20 1000' "$1" >"$1.out" 2>"$1.err"
	local status=$?
	[ "$status" = 0 ] || { wrong "$1: status $status"; cat "$1.err"; }
	awk '{ n += $NF } END { print n + 0 }' "$1.folded" 2>/dev/null
}

want=$(timed usual ":")
[ "${want:-0}" -gt 0 ] || wrong "no GPU time at all"

same() {	# NAME PREPARATION
	local got
	got=$(timed "$@")
	[ "$got" = "$want" ] || { wrong "$1: $got ns instead of $want"; cat "$1.err"; }
}

same umask 'mount -t tmpfs none /run; umask 0077;'
same strict 'mount -t tmpfs none /run; mkdir -m 0700 /run/gpucollect;'
same foreign 'mount -t tmpfs none /run; mkdir -m 0777 /run/gpucollect;'
same noexec 'mount -t tmpfs -o noexec none /run;'
same neither 'mount -t tmpfs -o noexec none /run; mount --make-private /; mkdir -p t;
	mount -t tmpfs -o noexec none /var/tmp; mount -t tmpfs -o ro none /dev/shm;'

# As root with a caller of another name: he must be able to read it, and may not change it.
unshare -m bash -c 'mount -t tmpfs none /run; umask 0077
	SUDO_UID=65534 SUDO_GID=65534 LD_LIBRARY_PATH=$B/simcuda "$GPUCOLLECT" -q --metric launches -o /dev/full -- \
		sh -c "test -r \"\$CUDA_INJECTION64_PATH\" && test ! -w \"\$CUDA_INJECTION64_PATH\" && \
		       echo readable"' >caller.out 2>caller.err
grep -qx readable caller.out || { wrong "the caller can't read it"; cat caller.out caller.err; }

# Nothing is left behind where it had a place of its own.
left=$(find /tmp /var/tmp /dev/shm -maxdepth 1 -name 'gpucollect-??????' -newer usual.folded 2>/dev/null)
[ -z "$left" ] || wrong "left behind: $left"
exit $bad
