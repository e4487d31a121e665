// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "loader/base/log.h"

int main(void)
{
	log_error("not usable yet");
	return 1;
}
