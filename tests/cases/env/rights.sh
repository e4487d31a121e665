#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# E-04: runs a command with one right or one part of the system missing. Needs root to set up.
# usage: rights.sh WAY COMMAND...
#   nobody      as an ordinary user without capabilities
#   lockedmem   RLIMIT_MEMLOCK of 64 kB, no CAP_IPC_LOCK
#   bpfonly     an ordinary user with CAP_BPF and CAP_PERFMON only
#   noptrace    root without CAP_SYS_PTRACE
#   notracefs   no tracefs and no debugfs mounted
#   nobtf       /sys/kernel/btf hidden
#   noproc      /proc mounted with hidepid=2, ordinary user
set -e
way=$1
shift
case $way in
nobody)    exec setpriv --reuid=65534 --regid=65534 --clear-groups --inh-caps=-all --bounding-set=-all "$@" ;;
lockedmem) ulimit -l 64; exec setpriv --bounding-set=-ipc_lock,-sys_resource --inh-caps=-all "$@" ;;
bpfonly)   exec setpriv --reuid=65534 --regid=65534 --clear-groups --inh-caps=+bpf,+perfmon --ambient-caps=+bpf,+perfmon "$@" ;;
noptrace)  exec setpriv --bounding-set=-sys_ptrace --inh-caps=-sys_ptrace "$@" ;;
notracefs) exec unshare -m sh -c 'mount --make-rprivate /
               for m in /sys/kernel/debug/tracing /sys/kernel/tracing /sys/kernel/debug; do
                   while umount "$m" 2>/dev/null; do :; done; done
               exec "$@"' sh "$@" ;;
nobtf)     exec unshare -m sh -c 'mount --make-rprivate /; mount -t tmpfs none /sys/kernel/btf; exec "$@"' sh "$@" ;;
noproc)    exec unshare -m -p -f sh -c 'mount --make-rprivate /; mount -t proc -o hidepid=2 proc /proc
               exec setpriv --reuid=65534 --regid=65534 --clear-groups "$@"' sh "$@" ;;
*)         sed -n 's/^#   //p' "$0" >&2; exit 2 ;;
esac
