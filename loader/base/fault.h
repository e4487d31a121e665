/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Points of a run at which a test can end it, so that "killed at every step" is no matter of luck.
 * They exist only in a build with -DGPUCOLLECT_FAULTS (make faults). There GPUCOLLECT_FAULT names
 * the point: NAME[@N][:stop], the Nth time (1) that it is passed. The process is killed there
 * (SIGKILL), or, with ":stop", stops (SIGSTOP) and goes on at SIGCONT.
 */
#ifndef BASE_FAULT_H
#define BASE_FAULT_H

#ifdef GPUCOLLECT_FAULTS
void fault__point(const char *name);
#define FAULT_POINT(name) fault__point(name)
#else
#define FAULT_POINT(name) ((void)0)
#endif

#endif
