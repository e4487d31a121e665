#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# Runs the tests and ends with the line "N passed, N failed, N skipped".
#
#   tests/run.sh                 all: static checks, unit tests, system tests, in this order
#   tests/run.sh PATTERN…        those whose name holds one of the texts (unit/, system/30, …)
#   tests/run.sh FILE…           these files, as system tests
#   -t SECONDS                   the time limit of a test that states none (300)
#   -1                           one at a time
#   -l                           only lists the names
#
# A test is a program: status 0 is passed, 77 skipped with the reason as the last line it printed,
# all else failed. It gets TOP (the source tree, also its working directory), B (the build folder,
# absolute), GPUCOLLECT (the program), TEST_TMP (a folder of its own, also TMPDIR) and no standard
# input. It writes into TEST_TMP only. A line "timeout: SECONDS" among its first 12 sets its limit.
# It has failed, too, when it leaves processes behind. Output and folder of a failed test are kept.
#
# Three tests run at a time: one of those that launch (unit/simcuda, system/2, 4, from 65, 92, 93, 96, 99), whose probes in a common
# driver's file others of them would find there, one of those that mostly wait (system/3, 5, 60 to 64, 8), and
# one of the rest. A line "alone: WHY" among the first 12 keeps one for the end, when nothing else runs.
# Status: 0 when something ran and nothing failed. Nothing runs where one of the texts is in no name.
set -u

TOP=$(cd "$(dirname "$0")/.." && pwd)
from=$PWD
cd "$TOP" || exit 1
B=$(realpath -m "${B:-build}")
limit=300 list=0 singly=0
while getopts t:1l opt; do
	case $opt in
	t) limit=$OPTARG ;;
	1) singly=1 ;;
	l) list=1 ;;
	*) exit 64 ;;
	esac
done
shift $((OPTIND - 1))
# A jobserver or a verbosity of our caller's is none of the tests' business.
unset MAKEFLAGS MFLAGS MAKELEVEL CK_RUN_CASE CK_RUN_SUITE
# Under sudo gpucollect acts for the caller, who may not write where root's tests do.
unset SUDO_UID SUDO_GID SUDO_USER SUDO_COMMAND
export TOP B GPUCOLLECT=$B/gpucollect LC_ALL=C.UTF-8 PYTHONDONTWRITEBYTECODE=1
export CK_VERBOSITY=normal CK_FORK=yes

passed=0 failed=0 skipped=0 failures=() runner="" work=""
names=() files=() lanes=()

add() { names+=("$1"); files+=("$2"); }

wanted() {	# NAME PATTERN…
	local name=$1 pattern
	shift
	[ $# -gt 0 ] || return 0
	for pattern in "$@"; do
		[[ $name == *"$pattern"* ]] && return 0
	done
	return 1
}

collect() {
	local f name
	for f in scripts/check-*; do
		case $f in scripts/check-fresh) continue ;; esac
		name=static/${f#scripts/check-}
		wanted "$name" "$@" && add "$name" "$TOP/$f"
	done
	# By source, so that the binary of a test that is gone does not run, and a missing one fails.
	for f in tests/unit/test_*.c; do
		name=${f#tests/unit/test_}
		wanted "unit/${name%.c}" "$@" && add "unit/${name%.c}" "$B/tests/test_${name%.c}"
	done
	for f in tests/system/[0-9]*; do
		case $f in *.sh|*.py) ;; *) continue ;; esac
		name=system/$(basename "${f%.*}")
		wanted "$name" "$@" && add "$name" "$TOP/$f"
	done
}

all_names() ( names=(); collect; printf '%s\n' "${names[@]}" )

# A pattern that meets nothing is a mistake, whatever others meet: with what may be meant.
no_such() {	# PATTERN
	local stem=${1##*/} like=""
	stem=${stem#test_}
	stem=${stem%.*}
	[ -z "$stem" ] || like=$(all_names | grep -F -- "$stem" | head -n 5 | tr '\n' ' ')
	echo "no test has such a name: $1; ${like:+there is: ${like% }; }tests/run.sh -l lists the" \
		"$(all_names | wc -l) that there are (static/…, unit/…, system/…)"
}

missing() {	# PATTERN…: says which meet nothing; true if there are some
	local pattern some=1
	for pattern; do
		if ! printf '%s\n' "${names[@]}" | grep -qF -- "$pattern"; then
			no_such "$pattern" >&2
			some=0
		fi
	done
	return $some
}

# Everything a test started carries its TEST_TMP, whatever session or group it moved to.
left_behind() { grep -lsF "TEST_TMP=$1" /proc/[0-9]*/environ | cut -d/ -f3; }

end_left_behind() {	# FOLDER -> the command lines of what had to be killed
	local pids pid
	for _ in 1 2 3 4 5 6 7 8 9 10; do
		pids=$(left_behind "$1")
		[ -n "$pids" ] || return 0
		sleep 0.1	# what was just told to end may need a moment
	done
	for pid in $pids; do
		tr '\0' ' ' 2>/dev/null </proc/"$pid"/cmdline && echo
		kill -KILL "$pid" 2>/dev/null
	done
}

stated() {	# NAME FILE WORD PATTERN -> what the test says of itself
	local source=$2
	case $1 in unit/*) source=$TOP/tests/unit/test_${1#unit/}.c ;; esac
	head -n 12 "$source" 2>/dev/null | sed -nE "s|^[#/* \t]*$3: ($4).*|\1|p" | head -n 1
}

limit_of() {	# NAME FILE
	local own
	own=$(stated "$1" "$2" timeout '[0-9]+')
	echo "${own:-$limit}"
}

lane_of() {	# NAME FILE
	if [ $singly = 1 ] || [ -n "$(stated "$1" "$2" alone '.+')" ]; then
		echo alone
	else
		case $1 in
		system/[358]*|system/6[0-4]*) echo waiting ;;
		unit/simcuda*|system/[246]*|system/9[2369]*) echo launches ;;
		*) echo rest ;;
		esac
	fi
}

report() {	# WORD NAME DETAIL
	printf '%-5s %s%s\n' "$1" "$2" "${3:+  ($3)}"
}

fail() {	# NAME DETAIL FOLDER
	failed=$((failed + 1))
	failures+=("$1")
	report FAIL "$1" "$2"
	# What is wrong may stand before much that is right.
	head -n -40 "$3/output" | grep -aiE -A1 '^(wrong|fail|error)' | head -n 40 | sed 's/^/      | /'
	tail -n 40 "$3/output" | sed 's/^/      | /'
	echo "      all of it: $3/output, its files: $3/tmp"
}

judge() {	# NAME STATUS LIMIT FOLDER SECONDS
	local name=$1 status=$2 dir=$4 left checks reason
	left=$(end_left_behind "$dir/tmp")
	if [ ! -e "$dir/output" ]; then
		mkdir -p "$dir/tmp" && echo "its folder was removed while it ran" >"$dir/output"
		status=1
	fi
	case $status in
	124|137) if [ "$5" -ge "$3" ]; then
			fail "$name" "no end after $3 s" "$dir"
			return
		fi ;;
	esac
	if [ "$status" != 0 ] && [ "$status" != 77 ]; then
		fail "$name" "status $status" "$dir"
		return
	elif [ -n "$left" ]; then
		printf 'left running:\n%s\n' "$left" >>"$dir/output"
		fail "$name" "left processes behind" "$dir"
		return
	elif [ "$status" = 77 ]; then
		skipped=$((skipped + 1))
		reason=$(grep -v '^[[:space:]]*$' "$dir/output" | tail -n 1)
		report skip "$name" "${reason:-no reason given}"
	else
		checks=$(sed -nE 's/^[0-9]+%: Checks: ([0-9]+),.*/\1/p' "$dir/output" | tail -n 1)
		if [[ $name == unit/* ]] && [ "${checks:-0}" = 0 ]; then
			fail "$name" "it ran no check" "$dir"
			return
		fi
		passed=$((passed + 1))
		report ok "$name" "${checks:+$checks checks, }$5 s"
	fi
	rm -rf "$dir"
}

run_one() {	# NAME FILE
	local name=$1 file=$2 dir=$work/${1//\//-} status start=$SECONDS time
	mkdir -p "$dir/tmp"
	chmod 755 "$dir" "$dir/tmp"
	time=$(limit_of "$name" "$file")
	# A session of its own: a test that signals its group must not end the runner. A shell's
	# background command ignores SIGINT, and so would all that the test starts.
	TEST_TMP=$dir/tmp TMPDIR=$dir/tmp setsid env --default-signal=INT,QUIT \
		timeout -k 10 "$time" "$file" </dev/null >"$dir/output" 2>&1 &
	runner=$!
	wait $runner
	status=$?
	runner=
	judge "$name" $status "$time" "$dir" $((SECONDS - start)) >"$work/report.$lane"
	flock "$work" cat "$work/report.$lane"
	rm -f "$work/report.$lane"
}

run_lane() {
	local i
	lane=$1 passed=0 failed=0 skipped=0 failures=()
	for i in "${!names[@]}"; do
		[ "${lanes[i]}" = "$lane" ] && run_one "${names[i]}" "${files[i]}"
	done
	echo "$passed $failed $skipped ${failures[*]}" >"$work/lane.$lane"
}

end_lane() {
	[ -z "$runner" ] || kill -KILL -- "-$runner" 2>/dev/null
	exit 130
}

add_lane() {	# its counts to the sum
	local p f s rest
	read -r p f s rest <"$work/lane.$1" || return
	passed=$((passed + p)) failed=$((failed + f)) skipped=$((skipped + s))
	# shellcheck disable=SC2206 # names hold no blanks
	failures+=($rest)
	rm -f "$work/lane.$1"
}

interrupted() {
	# shellcheck disable=SC2046 # numbers
	kill $(jobs -p) 2>/dev/null
	wait
	for dir in "$work"/*/tmp; do
		end_left_behind "$dir" >/dev/null
	done
	echo "interrupted; what there is of output: $work" >&2
	exit 130
}

if [ $# -gt 0 ] && (cd "$from" && [ -f "$1" ]); then
	for file in "$@"; do
		add "system/$(basename "${file%.*}")" "$(cd "$from" && realpath "$file")"
	done
else
	collect "$@"
	if missing "$@"; then
		[ $list = 1 ] || echo "0 passed, 0 failed, 0 skipped"
		exit 1
	fi
fi
if [ $list = 1 ]; then
	printf '%s\n' "${names[@]}"
	exit 0
fi
work=$(mktemp -d "${TMPDIR:-/tmp}/gpucollect-check.XXXXXX") && chmod 755 "$work" || exit 1
trap interrupted INT TERM HUP
for i in "${!names[@]}"; do
	lanes[i]=$(lane_of "${names[i]}" "${files[i]}")
done
for set in "launches waiting rest" alone; do
	for lane in $set; do
		(trap end_lane INT TERM HUP; run_lane "$lane") &
	done
	wait
	for lane in $set; do
		add_lane "$lane"
	done
done
rmdir "$work" 2>/dev/null

[ ${#failures[@]} = 0 ] || printf 'failed: %s\n' "${failures[@]}"
echo "in $SECONDS s"
echo "$passed passed, $failed failed, $skipped skipped"
[ $failed = 0 ] && [ $passed -gt 0 ]
