#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# S-02: copies chain to places with odd names. usage: odd_names.sh BUILD_DIR; prints the paths, one by number:
#   1  a file that is really called "chain (deleted)"
#   2  a directory with blanks, a semicolon and a line break
#   3  a file whose name ends in " 12" (looks like a folded count)
#   4  a name with a backslash and the text \012
set -e
base=$1/odd
nl='
'
mkdir -p "$base" "$base/two words;semi${nl}next line"
cp "$1/chain" "$base/chain (deleted)"
cp "$1/chain" "$base/two words;semi${nl}next line/chain"
cp "$1/chain" "$base/chain 12"
cp "$1/chain" "$base/chain\\012x"
ls -1b "$base"
