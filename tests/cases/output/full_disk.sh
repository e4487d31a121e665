#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# O-06: gives a command an output directory of 1 MB (private mount name space, needs root); in the command
# %O stands for that directory. usage: full_disk.sh COMMAND...   Lists what is left there afterwards.
# Without root: let the profiler write to /dev/full.
dir=$(mktemp -d)
export DIR="$dir"
unshare -m sh -c '
    mount --make-rprivate /
    mount -t tmpfs -o size=1m none "$DIR"
    i=0 n=$#
    while [ $i -lt $n ]; do a=$1; shift; set -- "$@" "$(printf %s "$a" | sed "s|%O|$DIR|g")"; i=$((i + 1)); done
    "$@"
    echo "status $?" >&2
    ls -l "$DIR" >&2' sh "$@"
rmdir "$dir"
