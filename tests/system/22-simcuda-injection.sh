#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# The virtual device loads what CUDA_INJECTION64_PATH names inside cuInit, as the vendor's driver
# does, and passes over what can't be loaded; a stale handle crashes where that is asked for.
set -eu
cd "$TEST_TMP"
cat >guest.c <<'END'
#include <dlfcn.h>
#include <stdio.h>
int InitializeInjection(void)
{
	void *driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
	fprintf(stderr, "guest: %s\n", driver && dlsym(driver, "cuLaunchKernel") ? "in" : "lost");
	return 1;
}
END
gcc -shared -fPIC -o guest.so guest.c -ldl
echo 'not a library' >text.so
gcc -shared -fPIC -o without.so -xc /dev/null

export LD_LIBRARY_PATH=$B/simcuda
said() { CUDA_INJECTION64_PATH=$1 "$B/programs/gpu_chains" 2 1000 2>&1 >/dev/null; }
[ "$(said "$PWD/guest.so")" = "guest: in" ]
for other in "" /nowhere.so "$PWD/text.so" "$PWD/without.so"; do
	[ -z "$(said "$other")" ] || { echo "with '$other' the program says something"; exit 1; }
done
[ "$(CUDA_INJECTION64_PATH=$PWD/guest.so "$B/programs/gpu_ends" fork 2>&1 >/dev/null |
	grep -c '^guest: in$')" = 2 ]	# the parent and the child that runs a program

cat >stale.c <<'END'
#include "tests/simcuda/cu.h"
int main(void)
{
	CUcontext c;
	CUstream s;
	CUevent e;
	if (cuInit(0) || cuCtxCreate_v2(&c, 0, 0) || cuEventCreate(&e, 0) || cuStreamCreate(&s, 1) ||
	    cuStreamDestroy_v2(s))
		return 2;
	return cuEventRecord(e, s) == CU_INVALID_HANDLE ? 0 : 3;
}
END
gcc -I"$TOP" -o stale stale.c -L"$B/simcuda" -l:libcuda.so.1
./stale
status=0
(ulimit -c 0; STANDIN_CRASH=1 exec ./stale) 2>/dev/null || status=$?
[ "$status" = 139 ]
