# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# make fuzz                runs each fuzzer for FUZZ_SECONDS (60); needs clang with libFuzzer
# make fuzz FUZZ_PLAIN=1   the same with $(CC) alone, blindly; FUZZ_NUMBER=2 gives other inputs than 1
# make fuzz-NAME           one of them
# make fuzz-build          only builds them
# A corpus stays in build/fuzz/NAME.corpus; an input that fails is left beside it and ends the run.

FUZZ_SECONDS ?= 60
FUZZ_NUMBER ?= 1
FUZZ_CFLAGS = -std=gnu11 -O1 -g -D_GNU_SOURCE -I. -fsanitize=address,undefined \
	-fno-sanitize-recover=undefined
FUZZ_LIBS := -liberty -ldw -lelf -lz -llzma
FUZZ_DRIVER := $(if $(FUZZ_PLAIN),plain,fuzz)
FUZZ := $(patsubst tests/fuzz/%_fuzz.c,%,$(sort $(wildcard tests/fuzz/*_fuzz.c)))

# A fuzzer holds the sources of its own stage, the one of its name unless said here, and of loader/base/.
FUZZ_STAGE_calibrations := gpu_timing
FUZZ_STAGE_python := unwind
FUZZ_STAGE_python_code := unwind
stage_of = $(or $(FUZZ_STAGE_$(1)),$(1))
sources_of = $(wildcard $(call stage_of,$(1))/*.c loader/base/*.c)
$(B)/fuzz/%_fuzz: tests/fuzz/%_fuzz.c
	$(call say,FUZZ,$@)
	@mkdir -p $(@D)
	$(Q)$(CLANG) $(FUZZ_CFLAGS) -fsanitize=fuzzer -o $@ $< $(call sources_of,$*) $(FUZZ_LIBS)
$(B)/fuzz/%_plain: tests/fuzz/%_fuzz.c tests/fuzz/plain.c
	$(call say,FUZZ,$@)
	@mkdir -p $(@D)
	$(Q)$(CC) $(FUZZ_CFLAGS) -o $@ $< tests/fuzz/plain.c $(call sources_of,$*) $(FUZZ_LIBS)
$(foreach f,$(FUZZ),$(eval $(B)/fuzz/$(f)_fuzz $(B)/fuzz/$(f)_plain: \
	$(wildcard $(call stage_of,$(f))/*.[ch] loader/base/*.[ch] bpf/*.h)))
$(B)/fuzz/%_seeds: tests/fuzz/%_seeds.c $(wildcard tests/unit/*.h)
	$(call say,CC,$@)
	@mkdir -p $(@D)
	$(Q)$(CC) $(CFLAGS_ALL) -o $@ $< -llzma

fuzz-build: $(FUZZ:%=$(B)/fuzz/%_$(FUZZ_DRIVER)) $(FUZZ:%=$(B)/fuzz/%_seeds)

fuzz: $(FUZZ:%=fuzz-%)
fuzz-%: $(B)/fuzz/%_$(FUZZ_DRIVER) $(B)/fuzz/%_seeds
	$(Q)mkdir -p $(B)/fuzz/$*.corpus
	$(Q)$(B)/fuzz/$*_seeds $(B)/fuzz/$*.corpus
	$(Q)$(if $(FUZZ_PLAIN),\
		$< $(FUZZ_SECONDS) $(FUZZ_NUMBER) $(B)/fuzz/$*.corpus $(B)/fuzz/$*-failed,\
		$< -max_total_time=$(FUZZ_SECONDS) -max_len=40000 -timeout=10 -rss_limit_mb=1024 \
		-artifact_prefix=$(B)/fuzz/$*- $(B)/fuzz/$*.corpus)

.PHONY: fuzz fuzz-build
