#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# P-08: run a program with a stripped copy of the Python executable under a name that
# says nothing. usage: renamed.sh PYTHON OUTDIR [seconds]   (prefix it with the profiler's command)
# A Python linked with a shared libpython keeps its symbols in that library; one that is linked
# statically (a distribution's /usr/bin/python3 for instance) loses all but the dynamic symbols.
set -e
real=$(readlink -f "$("$1" -c "import sys; print(sys.executable)")")
mkdir -p "$2"
cp "$real" "$2/report-worker"
strip "$2/report-worker"
here=$(dirname "$(readlink -f "$0")")
home=$("$1" -c 'import sys; print(sys.base_prefix)')
lib=$("$1" -c 'import sysconfig; print(sysconfig.get_config_var("LIBDIR") or "")')
PYTHONHOME=$home LD_LIBRARY_PATH=$lib exec "$2/report-worker" "$here/pure_loop.py" "${3:-8}"
