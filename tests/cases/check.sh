#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# Checks that the built inputs still have the property that makes them hard, and that they run.
# usage: check.sh BUILD_DIR DRIVER_DIR [PATTERN]   (only the checks whose text matches PATTERN)
# Nothing here needs the profiler, a GPU or root rights.
B=$(readlink -f "$1") D=$(readlink -f "$2") only=${3:-.}
cd "$(dirname "$0")" || exit 1
bad=0
ok() { echo "ok    $1"; }
no() { echo "WRONG $1"; bad=1; }
wanted() { [[ $1 =~ $only ]]; }
is() { local what=$1; shift; wanted "$what" || return 0; if "$@" > /dev/null 2>&1; then ok "$what"; else no "$what"; fi; }
runs() { local want=$1 what=$2; shift 2; wanted "$what" || return 0; timeout 60 env SECS=1 "$@" > "$B/out.txt" 2> "$B/err.txt"; local rc=$?
         [ $rc = "$want" ] && ok "$what" || no "$what (status $rc)"; }
says() { wanted "$1" || return 0; grep -q -- "$2" "$B/out.txt" && ok "$1" || { no "$1"; head -5 "$B/out.txt" "$B/err.txt"; }; }
gpu() { local want=$1 what=$2; shift 2; LD_LIBRARY_PATH=$D runs "$want" "$what" "$@"; }
segment() { readelf -lW "$1" | grep -q "$2"; }
addr() { nm "$1" | awk -v s="$2" '$3 == s { print $1 }'; }

# U
call_end() { # address behind the last call of a function
    objdump -d --no-show-raw-insn "$1" | awk -v f="<$2>:" '$0 ~ f { on = 1; next } on && /^$/ { exit } on { last = $0 }
        END { print (last ~ /call/) ? "call" : "other" }'; }
is "U-01 ends in a call" test "$(call_end "$B/noret" ends_in_call)" = call
end_of() { printf '%x' $((16#$(addr "$1" "$2") + $(nm -S "$1" | awk -v s="$2" '$4 == s { print "16#" $2 }'))); }
is "U-01 the neighbour starts there" test "$((16#$(end_of "$B/noret" ends_in_call)))" = "$((16#$(addr "$B/noret" bystander)))"
for m in main above below; do runs 0 "U-02 $m runs" "$B/altstack" $m; done
is "U-03 CFA by expression" sh -c "readelf --debug-dump=frames '$B/realign' | grep -q DW_CFA_def_cfa_expression"
runs 0 "U-03 runs" "$B/realign" tight
hdr() { readelf -x .eh_frame_hdr "$1" 2> /dev/null | awk '/^  0x/ { print $2; exit }'; }
is "U-04 table left out" test "$(hdr "$B/chain.notable")" = 011bffff
runs 0 "U-04 runs" "$B/chain.notable"
is "U-05 no PT_GNU_EH_FRAME" test -z "$(readelf -lW "$B/chain.static" | grep EH_FRAME)"
is "U-05 but .eh_frame" sh -c "readelf -SW '$B/chain.static.stripped' | grep -q ' .eh_frame '"
runs 0 "U-05 stripped runs" "$B/chain.static.stripped"
fde_of() { readelf --debug-dump=frames "$1" 2> /dev/null | grep -c "pc=$(addr "$1" "$2")\.\."; }
is "U-06 no FDE for no_tables" test "$(fde_of "$B/notables" no_tables)" = 0
is "U-06 FDE for main ends there" sh -c "readelf --debug-dump=frames '$B/notables' | grep -q 'pc=.*\.\.$(addr "$B/notables" no_tables)'"
runs 0 "U-06 runs" "$B/notables"
runs 0 "U-07 one thread" "$B/vdso"; runs 0 "U-07 four threads" "$B/vdso" 4
is "U-08 keeps frame pointers" sh -c "objdump -d --disassemble=tiny_leaf '$B/prologue' | grep -q 'push *%rbp'"
runs 0 "U-08 runs" "$B/prologue"
for d in 100 2000 10000; do runs 0 "U-09 depth $d" "$B/deep" $d; done
runs 0 "U-10 fp" "$B/anoncode" fp; runs 0 "U-10 nofp" "$B/anoncode" nofp

# P (with the python3 of the path)
for p in reentry pure_loop threads short_chain lines names; do runs 0 "P $p.py runs" python3 python/$p.py 0.5; done
runs 0 "P-03 runs" python3 python/regenerate.py 20
says "P-03 addresses come again" "20 functions, 1\?[0-9] addresses"
runs 0 "P-08 renamed copy runs" python/renamed.sh "$(python3 -c 'import sys; print(sys.executable)')" "$B/renamed" 0.5
runs 0 "P-09 runs" "$B/looks_like"

# S
runs 0 "S-01 runs" "$B/blink" 60
is "S-02 odd names exist" test -x "$B/odd/chain (deleted)"
runs 0 "S-02 runs" "$B/odd/chain (deleted)"
is "S-03 fixed base" segment "$B/chain.fixed" 'LOAD.*0x0*60000000'
is "S-03 large alignment" segment "$B/chain.hugealign" 'R E 0x200000'
is "S-03 high library" segment "$B/libhigh.so" '0x00000034fd'
runs 0 "S-03 high library runs" "$B/highlib_user"
LD_LIBRARY_PATH=$D-high runs 0 "S-03 high driver runs" "$B/launches" 10
is "S-04 two executable segments" test "$(readelf -lW "$B/twoseg" | grep -c 'LOAD.* R E ')" = 2
runs 0 "S-04 runs" "$B/twoseg"
runs 0 "S-05 runs" "$B/swap" "$B"
SECS=4 timeout 20 "$B/swap" "$B" > "$B/out.txt"
is "S-05 one address" test "$(awk '{ print $2 }' "$B/out.txt" | sort -u | wc -l)" = 1
is "S-06 label without size" sh -c "nm -S '$B/nosize' | grep -qE '^[0-9a-f]+ T label_without_size'"
is "S-06 removed symbol" test -z "$(addr "$B/holes.removed" removed_symbol)"
runs 0 "S-06 runs" "$B/holes.removed"
is "S-07 four names" test "$(nm "$B/alias" | grep -c "^$(addr "$B/alias" true_name) ")" = 4
is "S-08 compressed" sh -c "readelf -t '$B/inlined.zlib' | grep -q ZLIB"
is "S-08 split" sh -c "ls '$B'/*inlined*.dwo"
is "S-08 inlined" sh -c "readelf --debug-dump=info '$B/inlined' | grep -q DW_TAG_inlined_subroutine"
is "S-09 long name" test "$(nm "$B/longname" | awk '{ if (length($3) > m) m = length($3) } END { print (m > 1700) }')" = 1
for f in "$B"/damaged/*; do runs 0 "S-10 $(basename "$f") runs" "$f"; done

# L
runs 0 "L-01 runs" "$B/leader_exit"
runs 0 "L-01 in Python" python3 life/leader_exit.py 2
runs 0 "L-02 thread" "$B/execs" thread; runs 0 "L-02 chain" "$B/execs" chain 10
runs 0 "L-02 launcher" python3 life/launcher.py "$B/chain"
runs 0 "L-03 tree" python3 life/tree.py "$B" 2; says "L-03 ends" "tree done"
if wanted "L-04"; then
    (SECS=20 exec "$B/steady" > "$B/out.txt" 2> "$B/err.txt") & steady=$!
    sleep 1; kill -TERM $steady; wait $steady; is "L-04 ends at SIGTERM" test $? = 0
fi
says "L-04 says so" "ended by signal 15"
runs 7 "L-05 status 7" "$B/exits" 7
runs 139 "L-05 SIGSEGV" sh -c "'$B/exits' signal 11"
runs 0 "L-06 no interruption" "$B/eintr" 3
runs 0 "L-07 runs" "$B/comm"

# G
gpu 0 "G-01 runs" "$B/routes"; says "G-01 all routes" "successful launches: 37"
gpu 0 "G-02 runs" gpu/preload.sh "$B"
for m in fork count one; do STANDIN_DEVICES=2 gpu 0 "G-03 $m" "$B/idle" $m; done
for m in plain forkjoin other; do gpu 0 "G-04 $m" "$B/capture" $m 10; done
gpu 0 "G-05 runs" "$B/replay" 20000
STANDIN_DEVICES=2 gpu 0 "G-06 two devices" "$B/alternate" 500; gpu 0 "G-06 two contexts" "$B/alternate" 500
STANDIN_QUERY_ERROR=700:50 gpu 3 "G-07 ends with the error" "$B/launches" 1000
while read -r m rc; do gpu "$rc" "G-08 $m" sh -c "'$B/ends' $m"; done <<< "return 0
exit 5
_exit 6
abort 134
kill 137
unsynced 0"
gpu 0 "G-09 fork" python3 gpu/workers.py fork; says "G-09 all end well" "exit codes \[0, 0, 0, 0\]"
gpu 0 "G-09 spawn, parent too" python3 gpu/workers.py spawn parent; says "G-09 all end well" "exit codes \[0, 0, 0, 0\]"
STANDIN_RECORD_BLOCKS=40 gpu 0 "G-10 runs" "$B/locked" 200
is "G-10 released" grep -q "released by another thread" "$B/err.txt"
gpu 0 "G-11 runs" "$B/numbers"
gpu 0 "G-12 runs" "$B/kernel_names" 5; says "G-12 all kernels" "15 kernels, 5 launches each, 0 failures"
gpu 0 "G-13 runs" "$B/flood" 200000 500 20

# O, E, C
runs 0 "O-01 sleeper" "$B/sleeper" 200
runs 0 "O-02 Python depth" python3 output/deep_python.py 5000 0.5
runs 0 "O-03 odd symbols run" "$B/odd_symbol.odd"
is "O-03 symbol with a script" sh -c "strings '$B/odd_symbol.odd' | grep -q '</script>'"
gpu 0 "E-05 kill" "$B/filtered" kill 1; gpu 0 "E-05 errno" "$B/filtered" errno 1
runs 0 "C-01 runs" "$B/showargs" -p 1 -- -o x; says "C-01 all arguments" "^\[--\]"
is "C-02 library without tables" test "$(readelf --debug-dump=frames "$B/libblind.so" 2> /dev/null | grep -c "pc=$(readelf -sW --dyn-syms "$B/libblind.so" | awk '$8 == "blind_entry" { print $2 }')")" = 0
runs 0 "C-02 runs" "$B/blind"
rm -f "$B/out.txt" "$B/err.txt"
[ $bad = 0 ] && echo "all as meant" || echo "some inputs are NOT as meant"
exit $bad
