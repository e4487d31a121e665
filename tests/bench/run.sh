#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# The budgets that can be measured without a GPU, each beside what it is compared with in the same run.
# Root. Figures of a loaded or virtual machine are ratios; absolute ones come from tests/gpu/run.sh.
set -eu
cd "$(dirname "$0")/../.."
python3 tests/bench/bench.py "$@"
"${B:-build}/tests/unwind_cost" "${ROUNDS:-5}"
exec python3 tests/bench/python.py
