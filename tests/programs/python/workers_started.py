# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Starts workers as launchers of distributed programs do: a process each, which is told by its environment which one it is.

usage: workers_started.py HOW N PROGRAM   PROGRAM gets the number of each as its argument

With HOW torchrun they have RANK, LOCAL_RANK and WORLD_SIZE, counted from 10 as on a second machine, beside what the job's
manager has set for the launcher; with mpi OMPI_COMM_WORLD_RANK; with none nothing. The workers start when a line
comes on standard input, or it is at its end.
"""
import os
import subprocess
import sys

how, number, program = sys.argv[1], int(sys.argv[2]), sys.argv[3]
print("ready", flush=True)
sys.stdin.readline()
workers = []
for i in range(number):
    env = dict(os.environ)
    if how == "torchrun":
        env.update(RANK=str(10 + i), LOCAL_RANK=str(i), WORLD_SIZE=str(10 + number), SLURM_PROCID="1")
    elif how == "mpi":
        env.update(OMPI_COMM_WORLD_RANK=str(i), OMPI_COMM_WORLD_LOCAL_RANK="0", SLURM_PROCID="77")
    workers.append(subprocess.Popen([program, str(i)], env=env, stdin=subprocess.DEVNULL))
sys.exit(max(w.wait() for w in workers))
