#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# timeout: 120
# The command line as a user meets it: bad input is one message, status 64 and nothing started;
# results go where docs/output.md says, with the caller's rights.
set -u
cd "$TEST_TMP" || exit 1
bad=0

wrong() { echo "WRONG $*"; bad=1; }

run() {	# STATUS ARGUMENT…: stdout in out, stderr in err
	local want=$1 got
	shift
	"$GPUCOLLECT" "$@" >out 2>err
	got=$?
	[ "$got" = "$want" ] || { wrong "status $got, not $want: gpucollect $*"; cat err; }
}

usage() {	# TEXT ARGUMENT…
	local text=$1
	shift
	run 64 "$@"
	[ -s out ] && wrong "usage errors write to stdout: $*"
	grep -qF -- "$text" err || { wrong "no '$text': gpucollect $*"; cat err; }
	[ "$(grep -c 'gpucollect:' err)" = 1 ] || { wrong "more than one message: $*"; cat err; }
	[ -e started ] && wrong "the command was started: $*"
	rm -f started
}

usage "-p PID"
usage "abc" -p abc
usage "1 to 4194304" -p 99999999
usage "leave -d out" -d 0 -- touch started
usage "1 to 10000" -F 0 -- touch started
usage "1 to 10000" -F 100000 -- touch started
usage "-- touch" touch started
usage "add --inject" -a --metric gpu
usage "leave one out" -p 1 --cgroup x
usage "--no-inject" --no-inject --metric gpu -- touch started
usage ".folded" -o x.json -- touch started
usage "only one is folded" -f json -- touch started
usage "leave out -p" -p 1 -- touch started

run 0 --version
grep -qxE "gpucollect $(cat "$TOP/VERSION")(-[0-9]+)?(-g[0-9a-f]+)?(-dirty)?" out || wrong "--version: $(cat out)"
run 0 --help
grep -q '^Usage: gpucollect' out || wrong "--help"
[ -s err ] && wrong "--help writes to stderr"
"$GPUCOLLECT" --help >/dev/full 2>err && wrong "--help to a full disk succeeds"

# What comes behind the first -- is the command's.
run 0 --metric cpu -F 99 -o args.folded -- sh -c 'printf "%s|" "$@"; i=0
while [ $i -lt 300000 ]; do i=$((i+1)); done' sh -p 1 -F 5 -- -o x --help
[ "$(cat out)" = "-p|1|-F|5|--|-o|x|--help|" ] || wrong "arguments: $(cat out)"
[ -s args.folded ] || wrong "no args.folded"
"$TOP/tests/system/10-folded-readers.py" args.folded || bad=1

busy='i=0; while [ $i -lt 300000 ]; do i=$((i+1)); done'

# An existing file is refused before anything starts.
echo theirs >mine.folded
run 64 --metric cpu -F 99 -o mine.folded -- touch started
grep -q -- '-y' err || { wrong "no way out is named"; cat err; }
[ "$(cat mine.folded)" = theirs ] || wrong "an existing file was overwritten"
[ -e started ] && wrong "the command was started although its file can't be written"
run 0 --metric cpu -F 99 -y -o mine.folded -- sh -c "$busy"
grep -q 'pid' mine.folded || wrong "-y did not replace"

# Without -o stdout is the command's and the result has a file of its own.
mkdir own && cd own || exit 1
"$GPUCOLLECT" --metric cpu -F 99 -- sh -c "echo hello; $busy" >../out 2>../err
[ "$(cat ../out)" = hello ] || wrong "stdout is not the command's"
set -- gpucollect-sh-*.folded
[ -s "$1" ] && grep -q "wrote $1" ../err || { wrong "own file: $*"; cat ../err; }
cd .. || exit 1

# A dry run says of a command that can't be started what the run says, with the run's status.
mkdir commands && cd commands || exit 1
printf '#!/no/such/shell\n' >orphan && chmod +x orphan
printf '#!/bin/sh\nexit 0\n' >plain && chmod 644 plain
cp /bin/true elf && python3 - elf <<'END' || wrong "no interpreter to spoil"
import sys
with open(sys.argv[1], "r+b") as f:
    data = f.read()
    f.seek(data.index(b"/lib64/ld-linux"))
    f.write(b"/no_64")
END
printf '#!%s/orphan\n' "$PWD" >child && chmod +x child
foretold() {	# STATUS COMMAND…
	local want=$1 got
	shift
	"$GPUCOLLECT" --metric cpu -y -o x.folded -- "$@" >../out 2>../err
	got=$?
	grep "error: can't run" ../err >../said
	"$GPUCOLLECT" --metric cpu --dry-run -- "$@" >../out 2>../err
	[ "$want $got" = "$? $want" ] || { wrong "dry run of $*: not $want, as the run's is $got"; cat ../err; }
	cmp -s ../said ../err || { wrong "dry run of $*: another message"; cat ../said ../err; }
	[ "$want" = 0 ] || [ ! -s ../out ] || { wrong "dry run of $*: it lists"; cat ../out; }
}
foretold 127 no-such-command
foretold 127 ./no-such-command
foretold 127 ./orphan
foretold 127 ./child
foretold 127 ./elf
foretold 126 ./plain/x
foretold 126 ./plain
foretold 126 .
PATH=$PWD:$PATH foretold 126 plain
PATH=:$PATH foretold 126 plain
PATH=$PWD/nowhere:$PATH foretold 127 orphan
cp /bin/true own-true
for path in "$PWD" :/nowhere /nowhere: "$PWD/plain:$PWD"; do
	PATH=$path:$PATH "$GPUCOLLECT" --metric cpu --dry-run -- own-true >../out 2>../err
	[ $? = 0 ] && [ ! -s ../err ] && grep -qx 'command own-true' ../out || { wrong "dry run, PATH=$path"; cat ../err; }
done
# With the rights of who calls sudo.
chmod 700 own-true && cd .. && chmod 755 . commands
SUDO_UID=4242 SUDO_GID=4343 run 126 --metric cpu --dry-run -o /dev/null -- commands/own-true
SUDO_UID=4242 SUDO_GID=4343 run 77 --metric cpu --dry-run -- commands/own-true
grep -q "can't write gpucollect-NAME-PID.folded: user 4242 may not" err || { wrong "own file, dry"; cat err; }
run 0 --metric cpu --dry-run -- commands/own-true
# What keeps the library out keeps the run from its beginning.
GPUCOLLECT_DISABLE=1 run 77 --metric launches --dry-run -- touch started
cp err said
GPUCOLLECT_DISABLE=1 run 77 --metric launches -- touch started
cmp -s said err || { wrong "kept out: dry run and run differ"; cat said err; }
GPUCOLLECT_DISABLE=1 run 0 --metric cpu --dry-run -- touch started
[ -e started ] && wrong "a dry run started the command"

# A command whose work is done elsewhere: said at once, and again where nothing was seen.
printf '#!/bin/sh\nexit 3\n' >docker && chmod +x docker
run 3 -- ./docker run image
[ "$(grep -c 'container engine' err)" = 2 ] || { wrong "docker: not said twice"; cat err; }
grep -q 'warning: ./docker: ' err && grep -q 'error: .*-p PID' err || { wrong "docker"; cat err; }

# Devices that are full.
"$GPUCOLLECT" --metric cpu -F 99 -o /dev/full -- sh -c "$busy" 2>err
[ $? = 0 ] && wrong "/dev/full is no error"
grep -q 'no space' err || { wrong "/dev/full: no message"; cat err; }

# The reader of the pipe leaves: the result is saved.
mkdir pipe && cd pipe || exit 1
sh -c "while :; do :; done" &
pid=$!
{ "$GPUCOLLECT" --metric cpu -p $pid -F 99 -d 1 2>../err; echo $? >../status; } | :
kill $pid
wait $pid 2>/dev/null
[ "$(cat ../status)" = 1 ] || { wrong "status $(cat ../status) after a rescue"; cat ../err; }
set -- gpucollect-*.folded
[ -s "$1" ] && grep -q "$1" ../err || { wrong "nothing was saved: $*"; cat ../err; }
cd .. || exit 1

# Under sudo files are the caller's, and so are the rights to write them.
mkdir roots users && chown 4242:4343 users && chmod 755 . users
echo roots >roots/file && ln -s ../roots/file users/link
export SUDO_UID=4242 SUDO_GID=4343
run 0 --metric cpu -F 99 -o users/x.folded -- sh -c "$busy"
[ "$(stat -c %u:%g users/x.folded)" = 4242:4343 ] || wrong "the file is not the caller's"
"$GPUCOLLECT" --metric cpu -F 99 -y -o users/link -- sh -c "$busy" 2>err && wrong "through a link"
[ "$(cat roots/file)" = roots ] || wrong "a link led to a file of root"
exit $bad
