/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What this process may do and this kernel can do, found out before anything is started. */
#ifndef LOADER_RIGHTS_H
#define LOADER_RIGHTS_H

/*
 * Capabilities (not the uid: they are what the kernel asks for) and the kernel's type information.
 * 0, -EPERM or -EOPNOTSUPP; then *why is one sentence: what is missing, the value seen, the mend
 * (malloc'd; NULL: no memory).
 */
int rights__check(char **why);

#endif
