# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# Test programs with BPF programs of their own, linked with the maps and parts of the product.

TEST_BPF := agree unwind_cost python_cost
$(B)/obj/tests/bpf/%.bpf.o: tests/bpf/%.bpf.c
	$(call say,BPF,$@)
	@mkdir -p $(@D)
	$(Q)$(CLANG) $(BPF_CFLAGS) -MMD -MP -c $< -o $@
# Maps first, as in the product.
$(TEST_BPF:%=$(B)/tests/%.bpf.o): $(B)/tests/%.bpf.o: $(B)/obj/bpf/maps.bpf.o \
		$(B)/obj/bpf/process.bpf.o $(B)/obj/tests/bpf/%.bpf.o
	$(call say,BPFLINK,$@)
	@mkdir -p $(@D)
	$(Q)$(BPFTOOL) gen object $@ $^
$(B)/tests/python_cost.bpf.o: $(B)/obj/bpf/python_frees.bpf.o
$(TEST_BPF:%=$(B)/tests/%.skel.h): $(B)/tests/%.skel.h: $(B)/tests/%.bpf.o
	$(call say,SKEL,$@)
	$(Q)$(BPFTOOL) gen skeleton $< name $*_bpf > $@.tmp && mv $@.tmp $@

# Not test_…: these are no unit tests, and need root.
BPF_TEST_OBJ := $(filter-out $(B)/obj/loader/main.o,$(OBJ)) $(if $(TIMING_LIB),$(B)/obj/embed.o)
AGREE_SRC := tests/bpf/agree.c tests/bpf/agree_target.c tests/bpf/agree_libdw.c
$(B)/tests/agree: $(AGREE_SRC) tests/bpf/agree.h $(B)/tests/agree.skel.h $(BPF_TEST_OBJ)
	$(call say,TEST,$@)
	$(Q)$(CC) $(CFLAGS_ALL) -o $@ $(AGREE_SRC) $(filter %.o,$^) $(LIBS) $(EXTRA_LDFLAGS)
COSTS := $(B)/tests/unwind_cost $(B)/tests/python_cost
$(COSTS): $(B)/tests/%: tests/bpf/%.c tests/bpf/warm.c tests/bpf/warm.h $(B)/tests/%.skel.h $(BPF_TEST_OBJ)
	$(call say,TEST,$@)
	$(Q)$(CC) $(CFLAGS_ALL) -fno-omit-frame-pointer -fno-optimize-sibling-calls -o $@ \
		$(filter %.c %.o,$^) $(LIBS) $(EXTRA_LDFLAGS)
$(B)/tests/python_cost: tests/bpf/python_cost.h
programs: $(B)/tests/agree $(COSTS)

.PHONY: programs
