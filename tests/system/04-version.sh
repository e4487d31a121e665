#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# timeout: 60
# The version: what VERSION says, and the commit in a checkout of its own; remade when that changes only.
set -u
cd "$TEST_TMP" || exit 1
bad=0
export GIT_CONFIG_GLOBAL=/dev/null GIT_CONFIG_NOSYSTEM=1 HOME=$TEST_TMP
export GIT_AUTHOR_NAME=a GIT_AUTHOR_EMAIL=a@b GIT_COMMITTER_NAME=a GIT_COMMITTER_EMAIL=a@b

wrong() { echo "WRONG $*"; bad=1; }

is() {	# VERSION WHAT
	local got
	got=$(tree/scripts/version 2>err)
	[ "$got" = "$1" ] && [ ! -s err ] || { wrong "$2: '$got', not '$1'"; cat err; }
}

made() {	# a header, from the Makefile of the tree; whether it was written is in $written
	local before
	before=$(stat -c %y%i tree/b/version_text.h 2>/dev/null)
	make -C tree B=b b/version_text.h >out 2>&1 || { wrong "make"; cat out; }
	[ "$before" = "$(stat -c %y%i tree/b/version_text.h)" ] && written=no || written=yes
	header=$(cat tree/b/version_text.h)
}

mkdir -p tree/scripts && cp "$TOP/Makefile" tree && cp "$TOP/scripts/version" "$TOP/scripts/find-bpftool" tree/scripts
echo 3.4.5 >tree/VERSION
is 3.4.5 "no checkout"
if ! command -v git >/dev/null; then
	echo "git is not there: a tree without it alone was looked at"
	exit $bad
fi
mkdir empty
got=$(PATH=$PWD/empty /bin/bash -c 'dirname() { echo tree/scripts; }; . tree/scripts/version' 2>/dev/null)
[ "$got" = 3.4.5 ] || wrong "no git: '$got'"

# In somebody else's checkout.
git init -q . && git add tree && git commit -q -m all
is 3.4.5 "inside of another checkout"
rm -rf .git

# Its own: no commit, one, changes, what isn't under version control.
cd tree && git init -q . && cd .. || exit 1
is 3.4.5 "no commit"
cd tree && printf 'b/\n' >.gitignore && git add -A && git commit -q -m first && cd .. || exit 1
first=$(git -C tree rev-parse --short HEAD)
is "3.4.5-g$first" "a commit"
echo >tree/new
is "3.4.5-g$first" "a new file"
echo "# more" >>tree/Makefile
is "3.4.5-g$first-dirty" "a change"
made
[ "$written $header" = "yes #define VERSION_TEXT \"3.4.5-g$first-dirty\"" ] || wrong "made: $written $header"
made
[ "$written" = no ] || wrong "made again for no reason"
git -C tree checkout -q Makefile

# A touched file is not a change, and the index stays as it is: it may be another user's.
touch -d tomorrow tree/Makefile
before=$(stat -c %y%i tree/.git/index)
is "3.4.5-g$first" "a touched file"
[ "$before" = "$(stat -c %y%i tree/.git/index)" ] || wrong "it wrote the index"
made
[ "$written $header" = "yes #define VERSION_TEXT \"3.4.5-g$first\"" ] || wrong "made: $written $header"

# The release, and after it.
git -C tree tag v3.4.5
is 3.4.5 "the release"
echo "# more" >>tree/Makefile
is 3.4.5-dirty "the release, changed"
git -C tree commit -q -a -m second && git -C tree commit -q --allow-empty -m third
is "3.4.5-2-g$(git -C tree rev-parse --short HEAD)" "two later"
echo 3.5.0 >tree/VERSION && git -C tree commit -q -a -m next
is "3.5.0-g$(git -C tree rev-parse --short HEAD)" "the next, without its tag"

# A work tree beside it.
git -C tree worktree add -q --detach ../beside
[ "$(beside/scripts/version)" = "$(tree/scripts/version)" ] || wrong "a work tree: $(beside/scripts/version)"
exit $bad
