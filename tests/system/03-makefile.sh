#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# timeout: 120
# What an older build left behind, and a toolkit that isn't there, do not stop make.
set -u
cd "$TEST_TMP" || exit 1
bad=0

wrong() { echo "WRONG $*"; cat out; bad=1; }

for part in Makefile scripts loader gpu_timing; do
	cp -r "$TOP/$part" . || exit 1
done
object=b/obj/gpu_timing/library/stub.o

run() { make B=b V=1 "$@" $object >out 2>&1; }

run || wrong "a first build"
run || wrong "nothing to do"
grep -q "up to date" out || wrong "made again for no reason"

# As if its source had stood elsewhere when it was made: it is remade, from where it is now.
sed -i 's| gpu_timing/stub\.c| gpu_timing/library/gone.c|' b/obj/gpu_timing/library/stub.d
grep -q library/gone.c b/obj/gpu_timing/library/stub.d || wrong "the test itself: $(cat b/obj/gpu_timing/library/stub.d)"
run || wrong "a source that moved"
grep -q 'gpu_timing/stub.c -o' out || wrong "not remade from where the source is"
run && grep -q "up to date" out || wrong "made again for no reason, after a move"

# A header that is gone.
echo 'b/obj/gpu_timing/library/stub.o: gpu_timing/gone.h
gpu_timing/gone.h:' >>b/obj/gpu_timing/library/stub.d
run || wrong "a header that is gone"

# Only a toolkit that has the header is one.
rm -r b
run CUDA_HOME=/nonexistent || wrong "no toolkit"
grep -q HAVE_CUDA_H out && wrong "no toolkit, but its header"
mkdir -p cuda/include && touch cuda/include/cuda.h && rm -r b
run -n CUDA_HOME=cuda || wrong "a toolkit"
grep -q -- '-DHAVE_CUDA_H -isystem cuda/include' out || wrong "a toolkit's header isn't used"
exit $bad
