#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# timeout: 120
# Numbers of processes are those of the caller's PID namespace, in what is given and what is written; a
# /proc with other numbers is refused, and a thread's number stands for its process.
set -u
[ "$(id -u)" = 0 ] || { echo "needs root for namespaces"; exit 77; }
cd "$TEST_TMP" || exit 1
unshare --pid --fork --mount-proc true 2>err || { echo "no PID namespaces here: $(cat err)"; exit 77; }
bad=0

wrong() { echo "WRONG $*"; bad=1; }

cat >busy.py <<'PY'
import os, sys, threading, time
def spin():
    while os.path.exists(sys.argv[1]):
        sum(range(1000))
t = threading.Thread(target=spin)
t.start()
print(t.native_id, flush=True)
t.join()
PY

# The namespace's own numbers: everything in it has a small one.
touch run
unshare --pid --fork --mount-proc bash -c '
	python3 busy.py run >tid & pid=$!
	"$GPUCOLLECT" -q --no-gpu -F 199 -p $pid -d 1 -o inside.folded 2>inside.err || echo "status $?"
	"$GPUCOLLECT" -q --no-gpu -F 199 -a -d 1 -o all.folded 2>>inside.err || echo "status $?"
	echo $pid >pid; rm run; wait' >out 2>&1
[ -s out ] && { wrong "inside: $(cat out)"; cat inside.err; }
inside=$(cat pid)
[ "$inside" -lt 100 ] || wrong "the namespace has no numbers of its own: $inside"
grep -q "(pid $inside);" inside.folded || wrong "-p: no process $inside: $(head -3 inside.folded)"
grep -q "(pid $inside);" all.folded || wrong "-a: no process $inside: $(head -3 all.folded)"
# What is outside has no number there, and no line.
awk -F'[(;]' '{ sub(/pid /, "", $2); if ($2 + 0 > 100) n++ } END { exit n > 0 }' all.folded ||
	wrong "-a: processes of other namespaces: $(cut -d';' -f1 all.folded | sort -u | head -5)"

# From outside a process in there has a number of ours.
touch run
unshare --pid --fork --mount-proc python3 busy.py run >tid &
outer=$!
while [ ! -s tid ]; do sleep 0.1; done
sleep 0.2
real=$(pgrep -P $outer)
"$GPUCOLLECT" -q --no-gpu -F 199 -p "$real" -d 1 -o outside.folded 2>outside.err ||
	{ wrong "outside: status $?"; cat outside.err; }
grep -q "(pid $real);" outside.folded || wrong "outside: no process $real: $(head -3 outside.folded)"

# A thread.
thread=$(ls "/proc/$real/task" | grep -vx "$real" | head -1)
"$GPUCOLLECT" --no-gpu -F 199 -p "$thread" -d 1 -o thread.folded 2>thread.err ||
	{ wrong "thread: status $?"; cat thread.err; }
grep -q "(pid $real);" thread.folded || wrong "thread: no process $real: $(head -3 thread.folded)"
grep -q "$thread is a thread of process $real" thread.err || wrong "thread: nothing said"
rm run
wait

# Other numbers in /proc than those of system calls.
unshare --pid --fork "$GPUCOLLECT" -a -d 0.1 -o strange.folded 2>strange.err
status=$?
[ "$status" = 77 ] || wrong "a foreign /proc: status $status: $(cat strange.err)"
grep -q "mount -t proc" strange.err || wrong "a foreign /proc: $(cat strange.err)"
exit $bad
