#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# E-01: runs a command that sees more possible CPUs than there are, without changing the machine
# (a private mount name space; needs root). usage: fake_possible.sh COMMAND...
# variant "offline": switch the last CPU off before the start and on again afterwards:
#   fake_possible.sh --offline COMMAND...
set -e
last=$(($(getconf _NPROCESSORS_CONF) - 1))
if [ "$1" = --offline ]; then
    shift
    [ "$last" -gt 0 ] || { echo "only one CPU" >&2; exit 77; }
    echo 0 > "/sys/devices/system/cpu/cpu$last/online"
    trap 'echo 1 > "/sys/devices/system/cpu/cpu$last/online"' EXIT
    "$@"
    exit
fi
file=$(mktemp)
echo "0-$((last + 64))" > "$file"
export FAKE_POSSIBLE="$file"
unshare -m sh -c 'mount --make-rprivate /; mount --bind "$FAKE_POSSIBLE" /sys/devices/system/cpu/possible; exec "$@"' sh "$@"
rm -f "$file"
