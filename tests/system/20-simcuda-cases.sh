#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# The hard inputs that use a driver still have their property and run on the virtual device.
# timeout: 120
set -u
cp -r "$B/cases" "$TEST_TMP/cases"	# check.sh writes beside the programs
"$TOP/tests/cases/check.sh" "$TEST_TMP/cases" "$B/simcuda" '^(G|E-05|S-03 high driver)' \
	>"$TEST_TMP/said"
status=$?
cat "$TEST_TMP/said"
[ "$(grep -c '^ok' "$TEST_TMP/said")" -ge 30 ] || exit 1
exit $status
