# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""O-06: makes large profiles fast: thousands of different functions in ever new combinations.
usage: many_frames.py [functions] [seconds]"""
import random
import sys
import time

count = int(sys.argv[1]) if len(sys.argv) > 1 else 3000
seconds = float(sys.argv[2]) if len(sys.argv) > 2 else 20
table = []
text = "def a_function_with_a_rather_long_name_for_a_large_output_%d(t, depth, r):\n" \
       "    if depth:\n        return t[r.randrange(len(t))](t, depth - 1, r)\n" \
       "    return sum(range(2000))\n"
for n in range(count):
    scope = {}
    exec(compile(text % n, "generated/module_%d.py" % (n % 50), "exec"), scope)
    table.append(scope["a_function_with_a_rather_long_name_for_a_large_output_%d" % n])
rng = random.Random(1)
end = time.time() + seconds
while time.time() < end:
    table[rng.randrange(count)](table, 60, rng)
