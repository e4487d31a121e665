// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Alone, since it is compiled again for each commit. */
#include "loader/version.h"

#include "version_text.h"

const char version__text[] = VERSION_TEXT;
