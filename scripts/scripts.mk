# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# make demo: install what is missing, build, profile a small program, show the result.

# Linked against the stand-in driver; at run time the machine's own libcuda.so.1 does as well.
$(B)/demo: tests/programs/demo.c $(B)/simcuda/libcuda.so.1
	$(call say,DEMO,$@)
	$(Q)$(CC) -std=gnu11 -O2 -g $(WARN) -I. -MMD -MP -MF $@.d -o $@ $< \
		-L$(B)/simcuda -l:libcuda.so.1

demo:
	$(Q)scripts/setup build
	$(Q)B=$(B) scripts/as-caller $(MAKE) --no-print-directory all $(B)/demo
	$(Q)B=$(B) scripts/demo

.PHONY: demo
