/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Which gpucollect this is: scripts/version, when it was built. */
#ifndef LOADER_VERSION_H
#define LOADER_VERSION_H

extern const char version__text[];

#endif
