# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# Test inputs that are hard for a profiler, each in one way (tests/cases/README.md). "make cases";
# "make check-cases" verifies that each still has its property and runs without a profiler.

CASE := $(B)/cases
CASE_IN := tests/cases
CASE_OPT := -O2 -g -Wall -Wextra
CASE_CFLAGS := $(CASE_OPT) -fno-optimize-sibling-calls
CASE_STOP := $(CASE_IN)/common/stop.h
CASE_GPU := $(CASE_IN)/gpu/gpuapp.h tests/simcuda/cu.h tests/simcuda/entries.def \
	$(B)/simcuda/libcuda.so.1
# A 32-bit program needs no 32-bit libraries, but an assembler and a linker that know the format.
CASE_32 := $(shell t=$$(mktemp -d) && echo | as --32 -o $$t/o - 2> /dev/null && \
	ld -m elf_i386 -r -o $$t/p $$t/o 2> /dev/null && echo tiny32; rm -rf $$t)

case_src = $(firstword $(wildcard $(foreach d,unwind python symbols life gpu output env cli,\
	$(CASE_IN)/$(d)/$(1))))
case_cc = $(call say,CC,$@)
CASE_PLAIN := altstack vdso anoncode deep chain blink alias execs steady exits eintr comm \
	leader_exit looks_like showargs sleeper
CASE_APPS := launches routes idle capture replay alternate ends numbers kernel_names flood locked \
	filtered
CASE_OTHER := noret realign chain.notable chain.static chain.static.stripped notables prologue \
	libuser.so chain.fixed chain.hugealign highlib_user twoseg swap nosize holes holes.removed \
	inlined inlined.zlib inlined.split longname blind odd_symbol odd_symbol.odd damaged/.done \
	odd/.done $(CASE_32)
CASES := $(addprefix $(CASE)/,$(CASE_PLAIN) $(CASE_APPS) $(CASE_OTHER))

cases: $(CASES) simcuda
$(CASES): | $(CASE)
$(CASE):
	@mkdir -p $@

define case_plain
$(CASE)/$(1): $(call case_src,$(1).c) $(CASE_STOP)
	$$(call say,CC,$$@)
	$$(Q)$$(CC) $$(CASE_CFLAGS) -o $$@ $$< -lpthread -ldl
endef
$(foreach p,$(CASE_PLAIN),$(eval $(call case_plain,$(p))))

define case_app
$(CASE)/$(1): $(call case_src,$(1).c) $(CASE_GPU)
	$$(call say,CC,$$@)
	$$(Q)$$(CC) $$(CASE_CFLAGS) -o $$@ $$< -L$(B)/simcuda -l:libcuda.so.1 -lpthread -ldl
endef
$(foreach p,$(CASE_APPS),$(eval $(call case_app,$(p))))

# --- unwinding
$(CASE)/noret: $(CASE_IN)/unwind/noret.c $(CASE_STOP)
	$(case_cc)
	$(Q)$(CC) $(CASE_CFLAGS) -fno-reorder-functions -fno-toplevel-reorder -falign-functions=1 \
		-o $@ $<
$(CASE)/realign: $(CASE_IN)/unwind/realign.c $(CASE_STOP)
	$(case_cc)
	$(Q)$(CC) $(CASE_CFLAGS) -fomit-frame-pointer -o $@ $<
$(CASE)/chain.notable: $(CASE)/chain $(CASE_IN)/unwind/omit_table.py
	$(case_cc)
	$(Q)python3 $(CASE_IN)/unwind/omit_table.py $< $@ && chmod +x $@
$(CASE)/chain.static: $(CASE_IN)/unwind/chain.c $(CASE_STOP)
	$(case_cc)
	$(Q)$(CC) $(CASE_CFLAGS) -static -o $@ $<
$(CASE)/chain.static.stripped: $(CASE)/chain.static
	$(case_cc)
	$(Q)strip -o $@ $<
$(CASE)/notables: $(CASE_IN)/unwind/notables.c $(CASE_IN)/unwind/notables_lib.c $(CASE_STOP)
	$(case_cc)
	$(Q)$(CC) $(CASE_CFLAGS) -O1 -falign-functions=1 -c -o $@.o $<
	$(Q)$(CC) $(CASE_OPT) -g0 -fno-asynchronous-unwind-tables -fomit-frame-pointer \
		-falign-functions=1 -c -o $@_lib.o $(CASE_IN)/unwind/notables_lib.c
	$(Q)$(CC) -o $@ $@.o $@_lib.o
$(CASE)/prologue: $(CASE_IN)/unwind/prologue.c $(CASE_STOP)
	$(case_cc)
	$(Q)$(CC) $(CASE_CFLAGS) -fno-omit-frame-pointer -mno-omit-leaf-frame-pointer -o $@ $<

# --- symbols
$(CASE)/chain.fixed: $(CASE_IN)/unwind/chain.c $(CASE_STOP)
	$(case_cc)
	$(Q)$(CC) $(CASE_CFLAGS) -no-pie -Wl,-Ttext-segment=0x60000000 -o $@ $<
$(CASE)/chain.hugealign: $(CASE_IN)/unwind/chain.c $(CASE_STOP)
	$(case_cc)
	$(Q)$(CC) $(CASE_CFLAGS) -Wl,-z,max-page-size=0x200000 -Wl,-z,noseparate-code -o $@ $<
$(CASE)/libhigh.so: $(CASE_IN)/symbols/highlib.c $(CASE_STOP) | $(CASE)
	$(case_cc)
	$(Q)$(CC) $(CASE_CFLAGS) -fPIC -shared -Wl,-Ttext-segment=0x34fd200000 \
		-Wl,-soname,libhigh.so -o $@ $<
$(CASE)/highlib_user: $(CASE_IN)/symbols/highlib_user.c $(CASE)/libhigh.so
	$(case_cc)
	$(Q)$(CC) $(CASE_CFLAGS) -o $@ $< -L$(CASE) -lhigh -Wl,-rpath,'$$ORIGIN'
$(CASE)/twoseg: $(CASE_IN)/symbols/twoseg.c $(CASE_STOP)
	$(case_cc)
	$(Q)$(CC) $(CASE_CFLAGS) -no-pie -Wl,--section-start=.farcode=0x900000 -o $@ $<
$(CASE)/libswap_%.so: $(CASE_IN)/symbols/swap_lib.c | $(CASE)
	$(case_cc)
	$(Q)$(CC) $(CASE_OPT) -fPIC -shared -DFUNCTION=swap_$*_fn -o $@ $<
$(CASE)/swap: $(CASE_IN)/symbols/swap.c $(CASE_STOP) $(CASE)/libswap_a.so $(CASE)/libswap_b.so
	$(case_cc)
	$(Q)$(CC) $(CASE_CFLAGS) -o $@ $< -ldl
$(CASE)/nosize: $(CASE_IN)/symbols/nosize.c $(CASE_IN)/symbols/nosize.S $(CASE_STOP)
	$(case_cc)
	$(Q)$(CC) $(CASE_CFLAGS) -o $@ $(filter %.c %.S,$^)
$(CASE)/holes: $(CASE_IN)/symbols/holes.c $(CASE_STOP)
	$(case_cc)
	$(Q)$(CC) $(CASE_CFLAGS) -g0 -o $@ $<
$(CASE)/holes.removed: $(CASE)/holes
	$(case_cc)
	$(Q)strip -N removed_symbol -o $@ $<
$(CASE)/inlined $(CASE)/inlined.zlib $(CASE)/inlined.split: $(CASE_IN)/symbols/inlined.c $(CASE_STOP)
	$(case_cc)
	$(Q)$(CC) $(CASE_CFLAGS) $(CASE_DEBUG_$(notdir $@)) -o $@ $<
CASE_DEBUG_inlined.zlib := -gz=zlib
CASE_DEBUG_inlined.split := -gsplit-dwarf
$(CASE)/longname: $(CASE_IN)/symbols/longname.cc $(CASE_STOP)
	$(case_cc)
	$(Q)$(CXX) $(CASE_CFLAGS) -ftemplate-depth=1000 -o $@ $<
$(CASE)/damaged/.done: $(CASE)/chain $(CASE_IN)/symbols/damage.py
	$(case_cc)
	$(Q)python3 $(CASE_IN)/symbols/damage.py $< $(@D) > /dev/null && touch $@
$(CASE)/odd/.done: $(CASE)/chain $(CASE_IN)/symbols/odd_names.sh
	$(case_cc)
	$(Q)$(CASE_IN)/symbols/odd_names.sh $(CASE) > /dev/null && touch $@

# --- GPU, output, command line
$(CASE)/libuser.so: $(CASE_IN)/gpu/user_preload.c
	$(case_cc)
	$(Q)$(CC) $(CASE_OPT) -fPIC -shared -o $@ $<
$(CASE)/tiny32: $(CASE_IN)/gpu/tiny32.S
	$(case_cc)
	$(Q)as --32 -o $@.o $< && ld -m elf_i386 -o $@ $@.o
$(CASE)/odd_symbol: $(CASE_IN)/output/odd_symbol.c $(CASE_STOP)
	$(case_cc)
	$(Q)$(CC) $(CASE_CFLAGS) -g0 -o $@ $<
$(CASE)/odd_symbol.odd: $(CASE)/odd_symbol $(CASE_IN)/output/odd_symbol.sh
	$(case_cc)
	$(Q)$(CASE_IN)/output/odd_symbol.sh $< $@
$(CASE)/libblind.so: $(CASE_IN)/cli/blind_lib.c | $(CASE)
	$(case_cc)
	$(Q)$(CC) $(CASE_OPT) -g0 -fPIC -shared -fno-asynchronous-unwind-tables \
		-fomit-frame-pointer -s -o $@ $<
$(CASE)/blind: $(CASE_IN)/cli/blind.c $(CASE)/libblind.so
	$(case_cc)
	$(Q)$(CC) $(CASE_CFLAGS) -o $@ $< -L$(CASE) -lblind -Wl,-rpath,'$$ORIGIN'

check-cases: cases
	$(Q)$(CASE_IN)/check.sh $(CASE) $(B)/simcuda

.PHONY: cases check-cases
