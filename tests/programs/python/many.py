# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""many.py COUNT: makes so many functions with names of 60,000 characters and runs each for a moment."""
import sys
import time

for i in range(int(sys.argv[1])):
    name = f"f{i}_".ljust(60000, "x")
    scope = {"clock": time.process_time}
    exec(f"def {name}():\n    end = clock() + 0.006\n    while clock() < end:\n        pass\n", scope)
    scope[name]()
