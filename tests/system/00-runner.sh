#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# The runner itself: what it counts as passed, failed and skipped, and what it leaves behind.
set -u
cd "$TEST_TMP" || exit 1
bad=0

test_file() {	# NAME, text on stdin
	{ echo '#!/bin/bash'; cat; } >"$1"
	chmod +x "$1"
}

expect() {	# WHAT TEXT: the last run's output holds the text
	grep -qF -- "$2" out && return
	echo "$1: no '$2' in:"
	cat out
	bad=1
}

expect_status() {	# WHAT STATUS
	[ $status = "$2" ] && return
	echo "$1: status $status instead of $2"
	cat out
	bad=1
}

run() {
	"$TOP/tests/run.sh" "$@" >out 2>&1
	status=$?
}

# shellcheck disable=SC2016 # expanded by the test, not here
test_file 01-pass.sh <<<'[ -d "$TEST_TMP" ] && touch "$TEST_TMP/x" && ! read -r line'
test_file 02-fail.sh <<<'echo "the reason it failed"; exit 3'
test_file 03-skip.sh <<<'echo first; echo "no such device"; echo; exit 77'
test_file 04-hang.sh <<<'echo "before the end"; sleep 600'
test_file 05-leave.sh <<<'setsid sleep 601 & echo started'
test_file 06-limit.sh <<<$'# timeout: 1\nsleep 602'
test_file 07-signal.sh <<<'kill -SEGV $$'
test_file 08-group.sh <<<'trap "" TERM; kill -TERM 0; exit 0'
test_file 13-early.sh <<<'echo "wrong: the first of many"; seq 100; exit 1'
# shellcheck disable=SC2016
for name in 65-one 14-other; do
	test_file $name.sh <<<'mkdir ../../running || exit 1; sleep 0.3; rmdir ../../running'
done
touch 09-norights.sh
# shellcheck disable=SC2016
test_file 11-removed.sh <<<'rm -rf "$(dirname "$TEST_TMP")"'
# shellcheck disable=SC2016
test_file 10-sigint.sh <<<'exit $((0x$(sed -n "s/^SigIgn:.//p" /proc/self/status) & 6))'

run -t 20 ./01-pass.sh
expect_status "a test that passes" 0
expect "a test that passes" "1 passed, 0 failed, 0 skipped"

run -t 20 ./01-pass.sh ./02-fail.sh ./03-skip.sh
expect_status "one of each" 1
expect "one of each" "1 passed, 1 failed, 1 skipped"
expect "a failed test" "the reason it failed"
expect "a failed test" "status 3"
expect "a skipped test" "(no such device)"
kept=$(sed -n 's/^ *all of it: \(.*\), its files: .*/\1/p' out)
if ! grep -q "the reason it failed" "$kept"; then
	echo "the output of a failed test is not in '$kept'"
	bad=1
fi

run -t 20 ./03-skip.sh
expect_status "only skipped" 1
expect "only skipped" "0 passed, 0 failed, 1 skipped"

run -t 1 ./04-hang.sh
expect_status "a test that hangs" 1
expect "a test that hangs" "no end after 1 s"
expect "a test that hangs" "before the end"
expect "a test that hangs" "0 passed, 1 failed, 0 skipped"

run -t 20 ./05-leave.sh
expect_status "a test that leaves a process" 1
expect "a test that leaves a process" "left processes behind"

run -t 30 ./06-limit.sh
expect "a test with its own limit" "no end after 1 s"
run -t 20 ./07-signal.sh
expect "a test that a signal ends" "0 passed, 1 failed, 0 skipped"
run -t 20 ./08-group.sh ./01-pass.sh
expect "a test that signals its group" "2 passed, 0 failed, 0 skipped"
run -t 20 ./09-norights.sh
expect "a file that can't be executed" "0 passed, 1 failed, 0 skipped"
run -t 20 ./10-sigint.sh
expect_status "a test finds SIGINT and SIGQUIT not ignored" 0
run -t 20 ./11-removed.sh ./01-pass.sh
expect_status "a test whose folder is removed" 1
expect "a test whose folder is removed" "its folder was removed while it ran"
expect "a test whose folder is removed" "1 passed, 1 failed, 0 skipped"
# shellcheck disable=SC2016
test_file 12-sudo.sh <<<'! env | grep ^SUDO_'
SUDO_UID=1 SUDO_GID=1 SUDO_USER=x run -t 20 ./12-sudo.sh
expect_status "a test under sudo" 0

run -t 20 ./13-early.sh
expect "a test that fails early on" "wrong: the first of many"
run -1 -t 20 ./65-one.sh ./14-other.sh
expect "one at a time" "2 passed, 0 failed, 0 skipped"

run no-such-name
expect_status "no such test" 1
expect "no such test" "0 passed, 0 failed, 0 skipped"
expect "no such test" "no test has such a name: no-such-name; tests/run.sh -l lists the"
run unit/test_parse.c
expect_status "a source's name" 1
expect "a source's name" "no test has such a name: unit/test_parse.c; there is: unit/parse; tests/run.sh -l lists the"
run static/style tests/unit/test_parse
expect_status "one of two" 1
expect "one of two" "such a name: tests/unit/test_parse; there is: unit/parse;"
expect "one of two" "0 passed, 0 failed, 0 skipped"
run -l unit/parse system/00
expect_status "a list" 0
[ "$(cat out)" = "unit/parse
system/00-runner" ] || { echo "a list:"; cat out; bad=1; }
# Before anything is built.
make -C "$TOP" B="$TEST_TMP/b" check T=unit/test_parse >out 2>&1
status=$?
expect_status "make check" 2
expect "make check" "there is: unit/parse;"
if [ -e b ]; then
	echo "make check: it built something first"
	bad=1
fi

if pgrep -f '^sleep 60[0-2]$'; then
	echo "the runner left these processes"
	bad=1
fi
exit $bad
