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

# What a command line runs through.
CLI_C := $(patsubst tests/programs/%.c,$(B)/programs/%,$(wildcard tests/programs/cli_*.c))
$(CLI_C): $(B)/programs/%: tests/programs/%.c
	$(call say,CC,$@)
	@mkdir -p $(@D)
	$(Q)$(CC) -std=gnu11 $(CPU_CFLAGS) -MMD -MP -MF $@.d -o $@ $< -lutil
programs: $(CLI_C)

# Programs and a library that threads are borrowed of, and what borrows them.
TRACE_C := $(patsubst tests/programs/%.c,$(B)/programs/%,$(filter-out %_lib.c %_tool.c,\
	$(wildcard tests/programs/trace_*.c)))
$(TRACE_C): $(B)/programs/%: tests/programs/%.c
	$(call say,CC,$@)
	@mkdir -p $(@D)
	$(Q)$(CC) -std=gnu11 $(CPU_CFLAGS) -rdynamic -MMD -MP -MF $@.d -o $@ $< -lpthread -lutil
$(B)/programs/libtrace.so: tests/programs/trace_lib.c $(B)/obj/gpu_timing/library/attach_stub.o
	$(call say,CC,$@)
	@mkdir -p $(@D)
	$(Q)$(CC) -std=gnu11 $(CPU_CFLAGS) -fPIC -shared -fvisibility=hidden -Wl,-z,nodelete -MMD -MP \
		-MF $@.d -o $@ $^ -lpthread
$(B)/programs/libtrace_wait.so: tests/programs/trace_wait_lib.c
	$(call say,CC,$@)
	@mkdir -p $(@D)
	$(Q)$(CC) -std=gnu11 $(CPU_CFLAGS) -fPIC -shared -MMD -MP -MF $@.d -o $@ $<
$(B)/programs/trace_tool: tests/programs/trace_tool.c $(filter-out $(B)/obj/loader/main.o,$(OBJ)) \
		$(if $(TIMING_LIB),$(B)/obj/embed.o)
	$(call say,CC,$@)
	@mkdir -p $(@D)
	$(Q)$(CC) $(CFLAGS_ALL) -MMD -MP -MF $@.d -o $@ $< $(filter %.o,$^) $(LIBS) $(EXTRA_LDFLAGS)
programs: $(TRACE_C) $(B)/programs/libtrace.so $(B)/programs/libtrace_wait.so \
	$(B)/programs/trace_tool

# What the Python programs call through ctypes.
$(B)/programs/libpython_calls.so: tests/programs/python_calls.c
	$(call say,CC,$@)
	@mkdir -p $(@D)
	$(Q)$(CC) -std=gnu11 $(CPU_CFLAGS) -fPIC -shared -fvisibility=hidden -MMD -MP -MF $@.d -o $@ $< \
		-lpthread
$(B)/programs/libpython_torch.so: tests/programs/python_torch.c
	$(call say,CC,$@)
	@mkdir -p $(@D)
	$(Q)$(CC) -std=gnu11 $(CPU_CFLAGS) -fPIC -shared -fvisibility=hidden -MMD -MP -MF $@.d -o $@ $< -ldl
$(B)/programs/python_embed: tests/programs/python_embed.c
	$(call say,CC,$@)
	@mkdir -p $(@D)
	$(Q)$(CC) -std=gnu11 $(CPU_CFLAGS) -MMD -MP -MF $@.d -o $@ $< -lpthread -ldl
programs: $(B)/programs/libpython_calls.so $(B)/programs/libpython_torch.so $(B)/programs/python_embed

# Says what is known of a Python interpreter.
$(B)/programs/python_probe: tests/programs/python_probe.c $(filter $(B)/obj/unwind/% $(B)/obj/loader/base/%,$(OBJ))
	$(call say,CC,$@)
	@mkdir -p $(@D)
	$(Q)$(CC) $(CFLAGS_ALL) -MMD -MP -MF $@.d -o $@ $< $(filter %.o,$^) -lpthread
PYTHON_FAKE := $(B)/programs/python_fake $(if $(shell command -v musl-gcc),$(B)/programs/python_fake_musl)
$(B)/programs/python_fake: tests/programs/python_fake.c
	$(call say,CC,$@)
	@mkdir -p $(@D)
	$(Q)$(CC) -std=gnu11 $(CPU_CFLAGS) -rdynamic -MMD -MP -MF $@.d -o $@ $< -lpthread
$(B)/programs/python_fake_musl: tests/programs/python_fake.c
	$(call say,CC,$@)
	@mkdir -p $(@D)
	$(Q)musl-gcc -static -std=gnu11 $(CPU_CFLAGS) -MMD -MP -MF $@.d -o $@ $<
programs: $(B)/programs/python_probe $(PYTHON_FAKE)

# The readers of Python's code objects as a tool.
$(B)/programs/python_lines: tests/programs/python_lines.c \
		$(filter $(B)/obj/unwind/% $(B)/obj/loader/base/%,$(OBJ))
	$(call say,CC,$@)
	@mkdir -p $(@D)
	$(Q)$(CC) $(CFLAGS_ALL) -MMD -MP -MF $@.d -o $@ $< $(filter %.o,$^) $(LIBS) $(EXTRA_LDFLAGS)
programs: $(B)/programs/python_lines

.PHONY: programs
