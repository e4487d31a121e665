#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# S-01: starts 200 processes of 60 ms of CPU time each, one after another, under changing names.
# usage: many_blinks.sh BUILD_DIR [count]
n=0
while [ "$n" -lt "${2:-200}" ]; do
    sh -c "exec '$1/blink' 60"
    n=$((n + 1))
done
