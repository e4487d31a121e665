#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# G-02: children that an injected library reaches by different ways, or not at all.
# usage: preload.sh BUILD_DIR     (run it under the profiler; LD_LIBRARY_PATH must lead to the driver)
b=$(readlink -f "$1")
mkdir -p "$b/dir with blank:colon"
cp "$b/launches" "$b/dir with blank:colon/launches"
echo "1 the user's own LD_PRELOAD stays and comes after nothing of his is lost"
LD_PRELOAD="$b/libuser.so${LD_PRELOAD:+:$LD_PRELOAD}" "$b/launches" 200 20000
echo "2 an emptied environment"
env -i LD_LIBRARY_PATH="$LD_LIBRARY_PATH" "$b/launches" 200 20000
echo "3 a static program"
SECS=1 "$b/chain.static"
echo "4 a path with a blank and a colon"
"$b/dir with blank:colon/launches" 200 20000
echo "5 a 32-bit program"
if [ -x "$b/tiny32" ]; then "$b/tiny32"; else echo "(not built here)"; fi
echo "6 a shell in between"
sh -c "sh -c '\"$b/launches\" 200 20000'"
