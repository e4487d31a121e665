#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# Builds and runs all hardware probes on the machine that has the GPU. Seven logs in the folder
# given (default: ./probe-results). PROBE_ONLY=REGEX runs only the steps whose command matches
# (and what builds them). Each step has its own time limit: one that hangs costs
# nothing else. No step changes a setting of the GPU.
set -u
here=$(cd "$(dirname "$0")" && pwd)
out=$(mkdir -p "${1:-probe-results}" && cd "${1:-probe-results}" && pwd)
work=$(mktemp -d)
cuda=${CUDA_HOME:-/usr/local/cuda}
nvcc=$(command -v nvcc || echo "$cuda/bin/nvcc")
start=$(date +%s)
log=/dev/null
cd "$work" || exit 1

step() { # LIMIT COMMAND...
	local limit=$1
	shift
	if [ -n "${PROBE_ONLY:-}" ] && [[ "$*" != *gcc* && "$*" != *nvcc* && ! "$*" =~ $PROBE_ONLY ]]; then
		return
	fi
	if [ $(($(date +%s) - start)) -gt "${PROBE_LIMIT:-460}" ]; then
		echo "=== skipped, out of time: $*" >> "$log"
		return
	fi
	echo "=== [$(($(date +%s) - start)) s] $*" >> "$log"
	timeout -k 3 "$limit" "$@" >> "$log" 2>&1
	local rc=$?
	[ $rc = 0 ] || echo "=== exit status $rc" >> "$log"
}

log=$out/1-machine.txt
step 10 uname -a
step 10 sh -c 'nvidia-smi --query-gpu=name,driver_version,memory.total,clocks.sm,pstate --format=csv; nvidia-smi | sed -n 3,4p'
step 10 sh -c 'ldd --version | head -1; python3 -V; gcc --version | head -1; clang --version | head -1; bpftool version'
step 10 sh -c 'ls -la /sys/kernel/btf/vmlinux /sys/fs/bpf /sys/kernel/tracing | head -20; mount | grep -E "bpf|tracefs|debugfs|cgroup"'
step 10 sh -c 'id; grep -E "Cap|Seccomp|NoNewPrivs" /proc/self/status; nproc; free -g | head -2; cat /proc/cmdline'
step 10 sh -c 'cd /proc/sys/kernel; grep . perf_event_paranoid kptr_restrict perf_event_max_stack perf_event_max_sample_rate perf_cpu_time_max_percent unprivileged_bpf_disabled yama/ptrace_scope randomize_va_space; cat /sys/kernel/security/lockdown /sys/devices/system/clocksource/clocksource0/current_clocksource'
step 10 sh -c 'zcat /proc/config.gz | grep -E "BPF|UPROBE|PROC_MEM|FTRACE=|KALLSYMS|_BTF|PERF_EVENTS|UNWINDER"; head -c 300 /proc/kallsyms'
step 10 sh -c 'env | grep -iE "cuda|nvidia|torch|triton|LD_" ; ldconfig -p | grep -E "libcuda|libcupti|libbpf|libelf|libdw"; lscpu | head -20'
cupti=$(python3 -c 'import importlib.util as u,glob,os; p=os.path.dirname(os.path.dirname(u.find_spec("torch").origin)); print((glob.glob(p+"/nvidia/**/libcupti.so.1*",recursive=True)+[""])[0])' 2>/dev/null)
[ -n "$cupti" ] || cupti=$(timeout 15 find / -xdev -name 'libcupti.so.1[0-9]*' 2>/dev/null | sort | head -1)
echo "CUPTI: $cupti" >> "$log"
export PROBE_CUPTI=$cupti

flags="-std=gnu11 -D_GNU_SOURCE -O2 -g -Wall -I$cuda/include"
built=$(dirname "$cupti")/../include
[ -f "$cuda/include/cupti.h" ] || flags="$flags -I$cuda/extras/CUPTI/include -I$built"
step 60 "$nvcc" -arch=sm_90 -cubin -o probe_kernels.cubin "$here/probe_kernels.cu"
step 90 "$nvcc" -arch=sm_90 -o probe_app "$here/probe_app.cu"
for l in hook cupti; do
	sources=$here/probe_$l.c
	[ $l = hook ] && sources="$sources $here/probe_swap.c"
	step 30 gcc $flags -fPIC -shared -DPROBE_LIBRARY -o probe_$l.so $sources -ldl -lpthread
done
step 30 gcc $flags -o probe_stubs "$here/probe_stubs.c" "$here/probe_hook.c" "$here/probe_swap.c" -ldl -lpthread
step 30 gcc $flags -o probe_slots "$here/probe_slots.c" "$here/probe_hook.c" "$here/probe_swap.c" "$here/probe_cupti.c" -ldl -lpthread
for p in queue harvest dead bracket site; do
	step 30 gcc $flags -o probe_$p "$here/probe_$p.c" -ldl -lpthread
done
# Programs built elsewhere stand in for what could not be built here.
for f in "${PROBE_PREBUILT:-/nonexistent}"/probe_*; do
	[ -f "$f" ] && [ ! -e "$(basename "$f")" ] && cp "$f" . && echo "prebuilt: $f" >> "$log"
done
export PROBE_CUBIN=$work/probe_kernels.cubin

# Warms the file cache beside the C probes, so that Python starts fast later.
[ -n "${PROBE_ONLY:-}" ] || timeout 100 python3 -c 'import torch, triton' > /dev/null 2>&1 &
warm=$!

step 30 ./probe_site

log=$out/2-stubs.txt
step 20 ./probe_stubs
log=$out/3-stubs-all.txt
step 20 ./probe_stubs all

log=$out/4-slots-counts.txt
for order in none swap cupti swap-cupti cupti-swap storm; do
	step 40 ./probe_slots $order
done
step 20 env CUDA_INJECTION64_PATH="$work/probe_hook.so" PROBE_OUT="$work/i1" ./probe_dead stream
cat i1 >> "$log" 2>/dev/null
step 30 env CUDA_INJECTION64_PATH="$work/probe_hook.so" PROBE_SWAP=1 PROBE_OUT="$work/i2" ./probe_app
cat i2 >> "$log" 2>/dev/null
step 30 env CUDA_INJECTION64_PATH="$work/probe_cupti.so" PROBE_OUT="$work/i3" ./probe_app
cat i3 >> "$log" 2>/dev/null

log=$out/6-queue-bracket.txt
for hold in value spin host; do
	for events in 0 1 2; do
		step 12 ./probe_queue $hold $events empty
	done
done
for kind in args memset; do
	step 12 ./probe_queue value 0 $kind
done
step 12 ./probe_queue value 2 args
step 12 ./probe_queue value 1 none
step 12 ./probe_queue value 2 untimed
step 12 ./probe_queue value 2 other
step 12 ./probe_queue value 2 capped
step 12 ./probe_queue value 0 graph
step 12 ./probe_queue value 2 graph
queued() { # HOLD EVENTS: launches made before the block
	awk -v want="hold $1, $2 records, work empty" '$0 == want { on = 1; next }
		on && /blocked:/ { print $2; exit } on && /queued/ { print $2; exit }' "$log" 2>/dev/null
}
for events in 0 1 2; do
	n=$(queued value $events)
	if [ -n "$n" ]; then
		step 5 ./probe_queue value $events empty $((n - 16))
		step 5 ./probe_queue value $events empty $((n + 16))
	fi
done
step 60 ./probe_bracket
for case in "busy 10 1" "busy 10 132" "busy 200 132" "idle 10 1" "idle 10 132" "idle 200 132"; do
	rm -f i4
	step 20 env CUDA_INJECTION64_PATH="$work/probe_cupti.so" PROBE_OUT="$work/i4" ./probe_bracket $case
	cat i4 >> "$log" 2>/dev/null
done

log=$out/5-harvest.txt
step 40 ./probe_harvest cost
step 15 ./probe_harvest contexts
step 40 ./probe_harvest capture
step 20 ./probe_harvest null
step 15 ./probe_harvest log
for how in context recycled reset stream event stream-record fork numbers race race-reset locked locked-reset; do
	step 15 ./probe_dead $how
done

log=$out/7-torch-tools.txt
wait $warm
step 60 env CUDA_INJECTION64_PATH="$work/probe_hook.so" PROBE_SWAP=1 PROBE_OUT="$work/t1" python3 "$here/probe_torch.py" count
cat t1 >> "$log" 2>/dev/null
step 60 env CUDA_INJECTION64_PATH="$work/probe_cupti.so" PROBE_OUT="$work/t2" python3 "$here/probe_torch.py" count
cat t2 >> "$log" 2>/dev/null
step 60 env CUDA_INJECTION64_PATH="$work/probe_hook.so" PROBE_SWAP=1 PROBE_HOOK="$work/probe_hook.so" python3 "$here/probe_torch.py" swap-profiler
step 60 env PROBE_HOOK="$work/probe_hook.so" python3 "$here/probe_torch.py" profiler-swap
step 40 cuda-gdb -batch -ex 'set cuda break_on_launch none' -ex run -ex 'info threads' --args ./probe_slots swap
step 40 compute-sanitizer --tool memcheck ./probe_slots swap
step 40 env CUDA_INJECTION64_PATH="$work/probe_hook.so" PROBE_SWAP=1 compute-sanitizer --tool memcheck ./probe_app
nsys=$(ls -d /opt/nvidia/nsight-compute/*/host/target-linux-x64/nsys /opt/nvidia/nsight-systems/*/bin/nsys 2>/dev/null | head -1)
[ -n "$nsys" ] && step 40 "$nsys" profile -t cuda -s none --export=none -o nsys_out ./probe_slots swap
step 40 ncu --clock-control none --section SpeedOfLight -c 3 ./probe_slots swap
echo "=== [$(($(date +%s) - start)) s] end" >> "$log"
rm -rf "$work"
