#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# E-02: PID name spaces. usage: pidns.sh same COMMAND...            command (profiler and target) inside one new name space
#                               pidns.sh child PROFILER -- TARGET...  profiler in one name space, target in a child of it
# "child": the target is started first; its process id as the profiler sees it is put in place of %P
# in PROFILER (a single word list up to --).
set -e
mode=$1
shift
case $mode in
same)
    exec unshare -p -f --mount-proc "$@" ;;
child)
    exec unshare -p -f --mount-proc sh -c '
        prof=""
        while [ "$1" != -- ]; do prof="$prof $1"; shift; done
        shift
        unshare -p -f --mount-proc "$@" &
        sleep 1
        pid=$(pgrep -P $! | head -1)
        echo "target is $pid here (ids by name space: $(grep NSpid /proc/$pid/status | cut -f2-))" >&2
        $(echo "$prof" | sed "s/%P/$pid/")
        kill $pid' sh "$@" ;;
esac
