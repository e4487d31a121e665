#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# The product on a real GPU: run.sh DIR leaves its logs in DIR. Needs root, nvcc, a python3 with PyTorch
# and a built gpucollect (GPUCOLLECT=PATH, default build/gpucollect). PRODUCT_PARTS picks parts (gap calibrate
# copies sizes chains pdl capture graphs hold torch attach sampled totals waits again after speed detach cpu python
# captures memcheck devices probes), PRODUCT_ROUNDS the interleaved rounds of the speed part,
# PRODUCT_LIMIT the seconds after which no further step begins. PRODUCT_CONSTANTS="BUSY IDLE", as they stand
# in gpu_timing/calibration.c, puts the constants that the gap part measures into a copy of the program; PRODUCT_KEEP=1 leaves those that the
# calibrate part has saved to the parts that follow. Each step has its own
# time limit; no step changes a setting of the GPU.
set -u
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
out=$(mkdir -p "${1:-product-results}" && cd "${1:-product-results}" && pwd)
gpc=$(realpath "${GPUCOLLECT:-$root/build/gpucollect}")
parts=${PRODUCT_PARTS:-gap calibrate chains pdl capture hold torch attach again after speed detach cpu}
rounds=${PRODUCT_ROUNDS:-3}
work=$(mktemp -d)
cuda=${CUDA_HOME:-/usr/local/cuda}
nvcc=$(command -v nvcc || echo "$cuda/bin/nvcc")
start=$(date +%s)
log=$out/1-machine.txt
wrong=0
cd "$work" || exit 1
mkdir folded
rm -f "$out"/[1-9]-*

say() {
	echo "=== [$(($(date +%s) - start)) s] $*" >> "$log"
}

step() { # LIMIT COMMAND...: its output into the log
	local limit=$1 rc
	shift
	if [ $(($(date +%s) - start)) -gt "${PRODUCT_LIMIT:-500}" ]; then
		say "skipped, out of time: $*"
		return 99
	fi
	say "$*"
	timeout -k 5 "$limit" "$@" >> "$log" 2>&1
	rc=$?
	[ $rc = 0 ] || echo "=== exit status $rc" >> "$log"
	return $rc
}

check() { # a step that must succeed
	step "$@" || { wrong=$((wrong + 1)); echo "WRONG: ${*:2} (see $(basename "$log"))"; }
}

# Runs a program twice under gpucollect: NAME.out, NAME.err of the run with the metric gpu.
recorded() { # LIMIT NAME COMMAND...
	local limit=$1 name=$2
	shift 2
	step "$limit" "$gpc" --launches all --metric gpu -y -o "folded/$name-gpu.folded" -- \
		sh -c '"$@" > "$0.out" 2> "$0.err"' "$name" "$@"
	echo "status $?" > "$name.status"
	step "$limit" "$gpc" --launches all --metric launches -y -o "folded/$name-launches.folded" -- \
		sh -c '"$@" > "$0.out2" 2> "$0.err2"' "$name" "$@"
	echo "status $?" >> "$name.status"
}

plain() { # LIMIT NAME COMMAND...
	local limit=$1 name=$2
	shift 2
	say "plain: $*"
	timeout -k 5 "$limit" "$@" > "$name.plain" 2> "$name.plain-err"
	echo "status $?" > "$name.plain-status"
	cat "$name.plain-status" >> "$log"
}

wants() {
	[[ " $parts " == *" $1 "* ]]
}

step 10 sh -c 'uname -r; nvidia-smi --query-gpu=name,driver_version --format=csv,noheader; nproc; "$0" --version; ls -la "$0"' "$gpc"
site=$(python3 -c 'import importlib.util as u,os; print(os.path.dirname(os.path.dirname(u.find_spec("torch").origin)))' 2>/dev/null)
cupti=$(find "$site/nvidia" "$cuda/extras" -name 'libcupti.so.1*' 2>/dev/null | head -1)
export PRODUCT_CUPTI=$cupti
headers=$(find "$site/nvidia" "$cuda" -name cupti.h -printf '%h\n' 2>/dev/null | head -1)
built() { # what of the programs the parts need
	if wants chains || wants attach || wants memcheck; then echo chains; fi
	wants pdl && echo pdl
	if wants capture || wants captures || wants memcheck; then echo capture; fi
	wants gap && echo gap
	wants calibrate && echo short
	wants copies && echo copies
	wants sizes && echo sizes
	wants devices && echo devices
	if wants speed || wants detach || wants cpu; then echo rate; fi
}
for p in $(built); do
	step 90 "$nvcc" -std=c++17 -arch=sm_90 -O2 -g -I"$root" -o product_$p "$here/product_$p.cu" &
done
step 30 gcc -std=gnu11 -O2 -Wall -fPIC -shared -I"$headers" -I"$cuda/include" -o product_cupti.so "$here/product_cupti.c" -ldl -lpthread
# Reads PyTorch's files once, so that the first run of it is like the later ones.
timeout 100 python3 -c 'import torch, triton; torch.zeros(1, device="cuda")' > /dev/null 2>&1 &
wait
cp "$here"/product_*.py "$here"/python_*.py .
for f in "${PRODUCT_PREBUILT:-/nonexistent}"/product_*; do
	[ -f "$f" ] && [ ! -e "$(basename "$f")" ] && cp "$f" .
done

log=$out/2-chains.txt
if wants gap; then
	step 60 ./product_gap
	if [ -n "${PRODUCT_CONSTANTS:-}" ]; then
		# shellcheck disable=SC2046,SC2086
		step 10 python3 product_check.py constants "$gpc" ./gpucollect $PRODUCT_CONSTANTS \
			$(sed -n 's/^constants //p' "$log" | tail -n 1) && gpc=$work/gpucollect
	fi
fi

if wants calibrate; then
	log=$out/2-calibrate.txt
	saved=/var/lib/gpucollect/calibration
	check 30 sh -c '"$0" calibrate --json > calibrate.json' "$gpc"
	check 30 "$gpc" calibrate
	check 5 cp "$saved" calibrate.out
	cat "$saved" >> "$log"
	check 5 python3 product_check.py agree calibrate.json "$saved"
	for how in busy idle; do
		step 20 env CUDA_INJECTION64_PATH="$work/product_cupti.so" PRODUCT_OUT="$work/short-$how.cupti" \
			PRODUCT_COPIES=1 ./product_short $how 500
		check 20 "$gpc" --launches all --metric gpu -y -o "folded/short-$how.folded" -- sh -c './product_short "$@" > "$0"' "short-$how.out" $how 500
		check 5 python3 product_check.py short $how "short-$how.cupti" "short-$how.out" "folded/short-$how.folded"
	done
	[ -n "${PRODUCT_KEEP:-}" ] || rm -f "$saved"
fi

if wants copies; then
	log=$out/2-copies.txt
	saved=/var/lib/gpucollect/calibration
	[ -f "$saved" ] || step 30 "$gpc" calibrate
	for how in shapes batch; do
		step 20 env CUDA_INJECTION64_PATH="$work/product_cupti.so" PRODUCT_OUT="$work/copies-$how.cupti" \
			PRODUCT_COPIES=1 ./product_copies $how
		for metric in gpu bytes; do
			# shellcheck disable=SC2016
			check 20 sh -c '"$0" --launches all --json --metric "$1" -y -o "folded/$2-$1.folded" -- sh -c "./product_copies $3 > $2.out" 2> "$2-$1.json"' \
				"$gpc" $metric copies-$how $how
		done
		check 5 python3 product_check.py copies copies-$how.cupti copies-$how.out folded/copies-$how-gpu.folded \
			folded/copies-$how-bytes.folded copies-$how-bytes.json
	done
	[ -n "${PRODUCT_KEEP:-}" ] || rm -f "$saved"
fi

if wants sizes; then
	log=$out/2-sizes.txt
	plain 30 sizes ./product_sizes
	# shellcheck disable=SC2016
	check 30 sh -c '"$0" --launches all --json --metric gpu -y -o folded/sizes-gpu.folded -- sh -c "./product_sizes > sizes.out 2> sizes.err" 2> sizes.json' "$gpc"
	cat sizes.plain-err sizes.err >> "$log"
	check 5 diff sizes.plain sizes.out
	check 5 python3 product_check.py sizes sizes.out sizes.json
fi

if wants chains; then
	# Far ahead of the device only a share is timed, so there is a sampling error.
	for how in "busy 50 3" "idle 50 3" "far 150 6"; do
		percent=${how##* }
		how=${how% *}
		name=chains-${how% *}
		# shellcheck disable=SC2086
		recorded 40 "$name" ./product_chains $how
		cat "$name.status" >> "$log"
		check 10 python3 product_check.py chains "$name.out" "folded/$name-launches.folded" "folded/$name-gpu.folded" "$percent"
		check 5 grep -q -x 'status 7' "$name.status"
		step 10 "$gpc" --no-inject --metric launches -y -o "folded/$name-probes.folded" -- ./product_chains $how
		check 10 python3 product_check.py paths "$name.out" "folded/$name-probes.folded"
	done
	check 10 python3 product_check.py stacks folded/chains-busy-launches.folded
	head -40 folded/chains-busy-gpu.folded >> "$log"
fi

if wants pdl; then
	log=$out/9-pdl.txt
	plain 8 pdl ./product_pdl
	say "pdl: CUPTI"
	CUDA_INJECTION64_PATH="$work/product_cupti.so" PRODUCT_BUSY=1 PRODUCT_OUT="$work/pdl.cupti" \
		timeout -k 5 8 ./product_pdl > pdl-cupti.out 2>> "$log"
	for how in all auto; do
		say "pdl: $how"
		timeout -k 5 8 "$gpc" --launches $how --metric gpu -y -o "folded/pdl-$how.folded" -- \
			sh -c './product_pdl > "$0"' pdl-$how.out 2> pdl-$how.said
		cat pdl-$how.said pdl-$how.out >> "$log"
	done
	cat pdl.plain pdl-cupti.out pdl.cupti >> "$log"
	check 4 python3 product_check.py pdl pdl.plain pdl-all.out folded/pdl-all.folded pdl-all.said pdl.cupti
	check 4 python3 product_check.py pdl pdl.plain pdl-auto.out folded/pdl-auto.folded pdl-auto.said
fi

if wants capture; then
	log=$out/3-capture.txt
	plain 30 capture ./product_capture
	recorded 30 capture ./product_capture
	cat capture.plain capture.err >> "$log"
	check 5 diff capture.plain capture.out
	check 5 diff capture.plain capture.out2
	check 10 python3 product_check.py chains capture.err folded/capture-launches.folded folded/capture-gpu.folded
	head -40 folded/capture-gpu.folded >> "$log"
fi

if wants graphs; then
	log=$out/9-graphs.txt
	driver=$(ldconfig -p | awk '/libcuda\.so\.1 / { print $NF; exit }')
	for p in gpu_graphs gpu_graph_facts; do
		check 30 gcc -std=gnu11 -D_GNU_SOURCE -I"$root" -O2 -g -fno-optimize-sibling-calls -o $p \
			"$root"/tests/programs/$p.c "$root"/tests/programs/gpu_app.c "$driver" -lpthread
	done
	# What the library relies on: none may be "no", and a name is "spin_a" wherever it can be had.
	check 20 sh -c './gpu_graph_facts > graph-facts.plain; rc=$?; cat graph-facts.plain; [ $rc = 0 ] && ! grep -q ": no$" graph-facts.plain'
	# What each kernel takes is known; what it says of a graph is what its kernels should take.
	for how in "decode 100" "often 100" "shapes 100" "built 100" "update 100" "nodes 20" "sources 20" "again 20" "threads" "large 20000"; do
		name=graphs-${how%% *}
		# shellcheck disable=SC2016,SC2086
		check 30 sh -c '"$0" --launches all --metric gpu -y -o "folded/$1.folded" -- ./gpu_graphs $2 > "$1.out"' "$gpc" "$name" "$how"
		# What is known of the short kernels there is the mean of a few launches.
		case $name in *-large) percent=1000 ;; *-threads) percent=150 ;; *) percent=50 ;; esac
		check 5 python3 product_check.py parts "$name.out" "folded/$name.folded" $percent
	done
	# The cost of so many nodes, in turns; and what it says is what it says alone.
	for i in 1 2; do
		plain 20 graphs-large ./gpu_graphs large 20000
		check 30 sh -c '"$0" -y -o folded/graphs-large-again.folded -- ./gpu_graphs large 20000 > graphs-large.again' "$gpc"
		sed -n 's/^took/plain took/p' graphs-large.plain >> "$log"
		sed -n 's/^took/recorded took/p' graphs-large.again >> "$log"
		check 5 sh -c 'grep -v ^took graphs-large.plain > a; grep -v ^took graphs-large.again | diff a -'
	done
	# A decode loop of PyTorch's, from its start: the parts against the vendor's records.
	decode='printf "\n\n" | python3 product_gated.py decode 400 > "$0"; [ $? = 3 ]'
	step 40 env CUDA_INJECTION64_PATH="$work/product_cupti.so" PRODUCT_OUT="$work/graphs-torch.cupti" sh -c "$decode" graphs-cupti.out
	for how in all auto; do
		check 40 "$gpc" --launches $how --metric gpu -y -o "folded/graphs-torch-$how.folded" -- sh -c "$decode" "graphs-torch-$how.out"
		check 5 diff graphs-cupti.out "graphs-torch-$how.out"
		check 10 python3 product_check.py inside graphs-torch.cupti "folded/graphs-torch-$how.folded" 25
		grep -F '[GPU] [graph];' "folded/graphs-torch-$how.folded" | head -20 >> "$log"
	done
fi

if wants captures; then
	log=$out/3-captures.txt
	plain 30 captures ./product_capture 5
	step 100 "$gpc" --launches all --metric gpu -y -o folded/captures-gpu.folded -- \
		sh -c './product_capture "$1" > captures.out 2> captures.err; echo "status $?" > captures.status' sh "${PRODUCT_CAPTURES:-60}"
	cat captures.plain-err captures.err captures.status >> "$log"
	check 5 diff captures.plain captures.out
	check 5 grep -q -x 'status 0' captures.status
fi

# What the sanitizer finds in a program, plain and recorded. It calls it an error of the API that the library asks
# for the time of an event which is still to come.
if wants memcheck; then
	log=$out/9-memcheck.txt
	sanitizer=$(command -v compute-sanitizer || echo "$cuda/bin/compute-sanitizer")
	for how in "product_chains idle 5" product_capture; do
		# shellcheck disable=SC2086
		plain 60 memcheck "$sanitizer" --tool memcheck --report-api-errors no ./$how
		# shellcheck disable=SC2086
		recorded 90 memcheck "$sanitizer" --tool memcheck --report-api-errors no ./$how
		for f in memcheck.plain memcheck.out memcheck.out2; do
			grep '^=========' $f > $f-found
			head -n 20 $f-found >> "$log"
		done
		check 5 grep -q 'ERROR SUMMARY' memcheck.plain-found
		check 5 diff memcheck.plain-found memcheck.out-found
		check 5 diff memcheck.plain-found memcheck.out2-found
		check 5 sh -c '[ -s folded/memcheck-gpu.folded ] && [ "$(sort -u memcheck.status)" = "$(cat memcheck.plain-status)" ]'
	done
fi

if wants hold; then
	log=$out/9-hold.txt
	driver=$(ldconfig -p | awk '/libcuda\.so\.1 / { print $NF; exit }')
	check 30 gcc -std=gnu11 -D_GNU_SOURCE -I"$root" -O2 -g -fno-optimize-sibling-calls -o gpu_hold \
		"$root"/tests/programs/gpu_hold.c "$root"/tests/programs/gpu_app.c "$driver" -lpthread
	# 95 % of what the queue holds, plain and recorded; then also behind old ends that nobody has seen.
	for how in "969 5" "969 5 20000 300" "969 12 20000 0 80000"; do
		# shellcheck disable=SC2086
		plain 40 hold ./gpu_hold $how
		# shellcheck disable=SC2086
		recorded 40 hold ./gpu_hold $how
		cat hold.plain hold.status >> "$log"
		check 5 diff hold.plain hold.out
		check 5 diff hold.plain hold.out2
		check 5 sh -c '[ "$(sort -u hold.status)" = "status 0" ]'
	done
	check 10 python3 product_check.py chains hold.out folded/hold-launches.folded folded/hold-gpu.folded 8
fi

if wants torch; then
	log=$out/4-torch.txt
	plain 100 torch python3 product_torch.py count
	recorded 100 torch python3 product_torch.py count
	step 100 env CUDA_INJECTION64_PATH="$work/product_cupti.so" PRODUCT_OUT="$work/torch.cupti" python3 product_torch.py count
	tail -n 5 torch.err torch.plain-err >> "$log"
	check 5 diff torch.plain torch.out
	check 5 diff torch.plain torch.out2
	check 5 sh -c '[ "$(sort -u torch.status torch.plain-status)" = "status 3" ]'
	check 20 python3 product_check.py cupti torch.cupti folded/torch-launches.folded folded/torch-gpu.folded
	check 20 python3 product_check.py stacks folded/torch-launches.folded
	captured=$(sed -n 's/^gpucollect: captured into a graph: //p' "$log" | tail -n 1)
	step 100 "$gpc" --no-inject --metric launches -y -o folded/torch-probes.folded -- python3 product_torch.py count
	check 20 python3 product_check.py total torch.cupti folded/torch-probes.folded "$captured"
	check 20 python3 product_check.py stacks folded/torch-probes.folded
fi

if wants attach; then
	log=$out/9-attach.txt
	check 240 python3 product_attach.py counts "$gpc"
fi

if wants sampled; then
	log=$out/9-sampled.txt
	check 150 python3 product_sampled.py "$gpc"
	step 60 env CUDA_INJECTION64_PATH="$work/product_cupti.so" PRODUCT_OUT="$work/sampled.cupti" python3 product_torch.py count
	for how in auto; do
		step 60 "$gpc" --launches $how --metric gpu -y -o "folded/sampled-$how.folded" -- python3 product_torch.py count
		check 10 python3 product_check.py sampled sampled.cupti "folded/sampled-$how.folded" 5
	done
fi

if wants totals; then
	log=$out/9-totals.txt
	# shellcheck disable=SC2086
	check 280 python3 product_totals.py "$gpc" ${PRODUCT_WORKS:-}
fi

if wants waits; then
	log=$out/9-waits.txt
	check 60 python3 product_waits.py check "$gpc"
	head -30 folded/waits-all.folded | cut -c1-300 >> "$log"
fi

if wants again; then
	log=$out/9-again.txt
	check 280 python3 product_attach.py again "$gpc" "${PRODUCT_AGAIN:-50}"
fi

if wants after; then
	log=$out/9-after.txt
	check 400 python3 product_attach.py after "$gpc" "${PRODUCT_PAIRS:-6}"
fi

# Speed lines "NAME US CPU_US" of a command, marked with how it ran.
timed() { # HOW LIMIT COMMAND...
	local how=$1 limit=$2
	shift 2
	step "$limit" "$@" > /dev/null
	grep -E '^[a-z]+ [0-9.]+ [0-9.]+$' "$log" | tail -n +$(($(cat speed.lines 2> /dev/null || echo 0) + 1)) |
		sed "s/^/$how /" >> speed.txt
	grep -c -E '^[a-z]+ [0-9.]+ [0-9.]+$' "$log" > speed.lines
}

if wants speed; then
	log=$out/5-speed.txt
	: > "$log"
	ours="$gpc --launches all --metric gpu -y -o folded/speed-gpu.folded --"
	probes="$gpc --no-inject --metric launches -y -o folded/speed-probes.folded --"
	with_cupti="env CUDA_INJECTION64_PATH=$work/product_cupti.so PRODUCT_OUT=$work/speed.cupti"
	for i in $(seq $((rounds * 2))); do
		timed plain 20 ./product_rate 0.7 5000
		timed gpucollect 20 $ours ./product_rate 0.7 5000
		timed cupti 20 $with_cupti ./product_rate 0.7 5000
		timed probes 20 $probes ./product_rate 0.7 5000
	done
	for i in $(seq "$rounds"); do
		timed plain 100 python3 product_torch.py speed
		timed gpucollect 100 $ours python3 product_torch.py speed
		[ "$i" = 1 ] || continue
		timed probes 100 $probes python3 product_torch.py speed
		timed cupti 100 $with_cupti python3 product_torch.py speed
		timed profiler 100 python3 product_torch.py profiler relu matmul layer
	done
	step 10 python3 product_check.py speed speed.txt
fi

if wants detach; then
	log=$out/6-detach.txt
	step 20 "$gpc" -d 2s --metric gpu -y -o folded/detach-gpu.folded -- ./product_rate 4 100
	step 20 ./product_rate 4 100
	step 60 "$gpc" -d 12s --metric gpu -y -o folded/detach-torch-gpu.folded -- python3 product_torch.py loop 14
	step 40 python3 product_torch.py loop 6
fi

if wants cpu; then
	log=$out/7-cpu.txt
	step 60 "$gpc" --metric cpu -F 199 -y -o folded/torch-cpu.folded -- python3 product_torch.py speed layer
	grep -F '[' folded/torch-cpu.folded | grep -v -F '[GPU]' | cut -c1-300 | head -n 12 >> "$log"
	# What a launch costs, found by sampling the program while it is recorded.
	for how in "" --no-inject --no-gpu; do
		step 20 "$gpc" $how --metric cpu -F 4999 -y -o "folded/where$how.folded" -- ./product_rate 2 5000
		step 10 python3 product_check.py where "folded/where$how.folded" "$(sed -n 's/^launches \([0-9]*\),.*/\1/p' "$log" | tail -n 1)"
	done
fi

if wants python; then
	log=$out/9-python.txt
	check 330 python3 product_python.py "$gpc"
fi

# A machine with two devices.
if wants devices; then
	log=$out/9-devices.txt
	if [ "$(nvidia-smi -L | wc -l)" -lt 2 ]; then
		say "skipped: it needs two devices"
	else
		nvidia-smi topo -m >> "$log" 2>&1
		plain 20 devices ./product_devices
		step 20 env CUDA_INJECTION64_PATH="$work/product_cupti.so" PRODUCT_OUT="$work/devices.cupti" \
			PRODUCT_COPIES=1 ./product_devices
		for metric in gpu bytes launches; do
			# shellcheck disable=SC2016
			check 20 sh -c '"$0" --launches all --json --metric "$1" -y -o "folded/devices-$1.folded" -- sh -c "./product_devices > devices-$1.out" 2> "devices-$1.json"' \
				"$gpc" $metric
		done
		check 5 python3 product_check.py chains devices-gpu.out folded/devices-launches.folded folded/devices-gpu.folded
		check 5 python3 product_check.py copies devices.cupti devices-gpu.out folded/devices-gpu.folded \
			folded/devices-bytes.folded devices-bytes.json
		check 5 python3 product_devices.py devices devices-gpu.out devices-gpu.json
		plain 60 ranks python3 product_devices.py run
		step 60 env CUDA_INJECTION64_PATH="$work/product_cupti.so" PRODUCT_OUT="$work/ranks.cupti" \
			python3 product_devices.py run
		for metric in launches gpu; do
			# shellcheck disable=SC2016
			check 60 sh -c '"$0" --launches all --json --metric "$1" -y -o "folded/ranks-$1.folded" -- sh -c "python3 product_devices.py run > ranks-$1.out 2> ranks-$1.err" 2> "ranks-$1.json"' \
				"$gpc" $metric
			check 5 diff ranks.plain "ranks-$metric.out"
		done
		cat ranks.plain ranks.plain-err >> "$log"
		check 20 python3 product_devices.py ranks ranks.cupti folded/ranks-launches.folded folded/ranks-gpu.folded \
			ranks-launches.json ranks-gpu.json
	fi
fi

if wants probes; then
	PROBE_ONLY='probe_dead (race|locked)' "$here/probe_run.sh" "$work/probes" > /dev/null 2>&1
	cat "$work"/probes/*harvest* >> "$out/7-cpu.txt"
fi
log=$out/1-machine.txt
say "end: $wrong wrong"
tar -czf "$out/8-folded.tar.gz" folded ./*.out ./*.err ./*.said ./*.cupti ./*.plain ./*.json 2> /dev/null
rm -rf "$work"
[ $wrong = 0 ]
