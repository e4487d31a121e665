#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# timeout: 200
# The BPF unwinder, the same rules over a copy, and libdw agree frame by frame on 10,000 samples of
# optimised code without frame pointers.
set -u

cat >"$TEST_TMP/input.cc" <<'END'
#include <algorithm>
#include <functional>
#include <iostream>
#include <map>
#include <string>
#include <unordered_map>
#include <vector>
int use(const std::string &s)
{
	std::map<std::string, std::vector<int>> m;
	std::unordered_map<int, std::string> u;
	std::vector<std::pair<std::string, int>> v;
	std::function<int(int)> f = [&](int x) { return x + int(m.size()); };

	m[s].push_back(f(1));
	u[1] = s;
	v.emplace_back(s, 2);
	std::sort(v.begin(), v.end());
	std::cout << v.size() << s;
	return int(u.size() + v.size());
}
END

all=0 failed=0
agree() {	# LEAST COMMAND…
	local least=$1 status n
	shift
	echo "== $*"
	"$B/tests/agree" -F 1997 -n "$least" -- "$@" >"$TEST_TMP/said" 2>&1
	status=$?
	cat "$TEST_TMP/said"
	[ $status = 77 ] && exit 77
	[ $status = 0 ] || failed=1
	n=$(sed -n 's/^ *\([0-9]*\) samples compared$/\1/p' "$TEST_TMP/said")
	all=$((all + ${n:-0}))
}

agree 2000 "$B/programs/cpu_cxx" 2
# The compilers proper: one process each.
agree 1000 "$(g++ -print-prog-name=cc1plus)" -quiet -imultiarch "$(g++ -print-multiarch)" \
	-D_GNU_SOURCE -O2 -o /dev/null "$TEST_TMP/input.cc"
agree 500 clang++ -std=c++17 -O2 -c -o "$TEST_TMP/input.o" "$TEST_TMP/input.cc"
# A fast machine compiles in few samples, a slow one samples less often: again as long as it takes.
for i in 1 2 3 4 5 6; do
	[ $all -lt 10000 ] || break
	agree 500 clang++ -std=c++17 -O2 -c -o "$TEST_TMP/input.o" "$TEST_TMP/input.cc"
done
echo "$all samples compared in all"
[ $all -ge 10000 ] && [ $failed = 0 ]
