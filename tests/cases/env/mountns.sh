#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# E-03: the target sees another file than the profiler at the same path (needs root).
# usage: mountns.sh DIR INNER_LIB OUTER_LIB NAME TARGET...
# Puts OUTER_LIB at DIR/NAME for everybody and INNER_LIB at the same path for the target only,
# prints the target's process id and waits for it. Attach the profiler from outside with -p.
set -e
dir=$1 inner=$(readlink -f "$2") outer=$(readlink -f "$3") name=$4
shift 4
mkdir -p "$dir"
cp "$outer" "$dir/$name"
unshare -m sh -c '
    dir=$1 inner=$2 name=$3
    shift 3
    mount --make-rprivate /
    mkdir -p "$dir.inner"
    cp "$inner" "$dir.inner/$name"
    mount --bind "$dir.inner" "$dir"
    echo "target $$" >&2
    LD_LIBRARY_PATH=$dir exec "$@"' sh "$dir" "$inner" "$name" "$@"
