# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# Test programs with BPF programs of their own, linked with the maps and parts of the product.

AGREE_BPF := $(B)/obj/bpf/maps.bpf.o $(B)/obj/bpf/process.bpf.o $(B)/obj/tests/bpf/agree.bpf.o
$(B)/obj/tests/bpf/%.bpf.o: tests/bpf/%.bpf.c
	$(call say,BPF,$@)
	@mkdir -p $(@D)
	$(Q)$(CLANG) $(BPF_CFLAGS) -MMD -MP -c $< -o $@
$(B)/tests/agree.bpf.o: $(AGREE_BPF)
	$(call say,BPFLINK,$@)
	@mkdir -p $(@D)
	$(Q)$(BPFTOOL) gen object $@ $^
$(B)/tests/agree.skel.h: $(B)/tests/agree.bpf.o
	$(call say,SKEL,$@)
	$(Q)$(BPFTOOL) gen skeleton $< name agree_bpf > $@.tmp && mv $@.tmp $@

# Not test_agree: it is no unit test, and needs root.
AGREE_SRC := tests/bpf/agree.c tests/bpf/agree_target.c tests/bpf/agree_libdw.c
$(B)/tests/agree: $(AGREE_SRC) tests/bpf/agree.h $(B)/tests/agree.skel.h \
		$(filter-out $(B)/obj/loader/main.o,$(OBJ)) $(if $(TIMING_LIB),$(B)/obj/embed.o)
	$(call say,TEST,$@)
	$(Q)$(CC) $(CFLAGS_ALL) -o $@ $(AGREE_SRC) $(filter %.o,$^) $(LIBS) $(EXTRA_LDFLAGS)
programs: $(B)/tests/agree

.PHONY: programs
