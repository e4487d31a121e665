# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# The virtual device: the same library with several forms of entries, and the programs for it.
#   simcuda        as driver 580, slots in plain data
#   simcuda-relro  the same, slots read-only after relocation
#   simcuda-old    entries of older drivers
#   simcuda-odd    entries that look like no driver's
#   simcuda-high   first segment far above 0 (the offset in the file is not the address)

SIM_SRC := $(sort $(wildcard tests/simcuda/*.c))
SIM_OBJ := $(SIM_SRC:%.c=$(B)/obj/%.o)
SIM_KINDS := simcuda simcuda-relro simcuda-old simcuda-odd simcuda-high
SIM_LIBS := $(SIM_KINDS:%=$(B)/%/libcuda.so.1)
SIM_CFLAGS = -std=gnu11 -O2 -g -fPIC -fvisibility=hidden $(WARN_SIM) -D_GNU_SOURCE
WARN_SIM := -Wall -Wextra -Wshadow -Wstrict-prototypes -Wold-style-definition -Wformat=2 -Wundef \
	-Wvla -Werror

SIM_AS_simcuda-relro := -DSIM_SLOTS_RELRO
SIM_AS_simcuda-old := -DSIM_STUBS_OLD
SIM_AS_simcuda-odd := -DSIM_STUBS_ODD
SIM_LD_simcuda-high := -Wl,-Ttext-segment=0x34fd200000

$(B)/obj/tests/simcuda/%.o: tests/simcuda/%.c
	$(call say,CC,$@)
	@mkdir -p $(@D)
	$(Q)$(CC) $(SIM_CFLAGS) -MMD -MP -c $< -o $@
$(SIM_KINDS:%=$(B)/obj/tests/simcuda/stubs-%.o): $(B)/obj/tests/simcuda/stubs-%.o: \
		tests/simcuda/stubs.S
	$(call say,AS,$@)
	@mkdir -p $(@D)
	$(Q)$(CC) $(SIM_CFLAGS) $(SIM_AS_$*) -MMD -MP -c $< -o $@
$(SIM_LIBS): $(B)/%/libcuda.so.1: $(B)/obj/tests/simcuda/stubs-%.o $(SIM_OBJ)
	$(call say,LINK,$@)
	@mkdir -p $(@D)
	$(Q)$(CC) -shared -Wl,-soname,libcuda.so.1,-z,defs,-z,relro,-z,now,--build-id $(SIM_LD_$*) \
		-o $@ $^ -ldl -lpthread

simcuda: $(SIM_LIBS)
# Its unit tests open it at run time and need nothing of the program.
SIM_UNIT := $(patsubst tests/unit/%.c,$(B)/tests/%,$(wildcard tests/unit/test_simcuda*.c))
$(SIM_UNIT): $(B)/tests/%: tests/unit/%.c | $(SIM_LIBS)
	$(call say,TEST,$@)
	@mkdir -p $(@D)
	$(Q)$(CC) $(CFLAGS_ALL) -MMD -MP -MF $@.d -o $@ $< -ldl -lpthread $(CHECK_LIBS) \
		$(EXTRA_LDFLAGS)

PROGRAM_SRC := $(filter-out tests/programs/gpu_app.c,$(sort $(wildcard tests/programs/gpu_*.c)))
PROGRAM_BIN := $(PROGRAM_SRC:tests/programs/%.c=$(B)/programs/%)
# Built as applications are: optimised, no frame pointers, the driver found at run time.
PROGRAM_CFLAGS := -std=gnu11 -O2 -g $(WARN_SIM) -D_GNU_SOURCE -I.
$(B)/obj/tests/programs/gpu_app.o: tests/programs/gpu_app.c
	$(call say,CC,$@)
	@mkdir -p $(@D)
	$(Q)$(CC) $(PROGRAM_CFLAGS) -MMD -MP -c $< -o $@
$(PROGRAM_BIN): $(B)/programs/%: tests/programs/%.c $(B)/obj/tests/programs/gpu_app.o \
		$(B)/simcuda/libcuda.so.1
	$(call say,CC,$@)
	@mkdir -p $(@D)
	$(Q)$(CC) $(PROGRAM_CFLAGS) -MMD -MP -MF $@.d -o $@ $(filter %.c %.o,$^) \
		-L$(B)/simcuda -l:libcuda.so.1 -lpthread -ldl
programs: $(PROGRAM_BIN)

.PHONY: simcuda programs
