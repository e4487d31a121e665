# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# Programs for the tests of CPU samples: optimised, no frame pointers, no tail calls.

CPU_CFLAGS := -O2 -g -Wall -Wextra -Werror -fomit-frame-pointer -fno-optimize-sibling-calls \
	-D_GNU_SOURCE -I.
CPU_C := $(patsubst tests/programs/%.c,$(B)/programs/%,$(wildcard tests/programs/cpu_*.c))
CPU_CC := $(patsubst tests/programs/%.cc,$(B)/programs/%,$(wildcard tests/programs/cpu_*.cc))

$(CPU_C): $(B)/programs/%: tests/programs/%.c
	$(call say,CC,$@)
	@mkdir -p $(@D)
	$(Q)$(CC) -std=gnu11 $(CPU_CFLAGS) -MMD -MP -MF $@.d -o $@ $< -lpthread
$(CPU_CC): $(B)/programs/%: tests/programs/%.cc
	$(call say,CXX,$@)
	@mkdir -p $(@D)
	$(Q)$(CXX) -std=gnu++17 $(CPU_CFLAGS) -MMD -MP -MF $@.d -o $@ $< -lpthread
programs: $(CPU_C) $(CPU_CC)

.PHONY: programs
