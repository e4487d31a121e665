# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# make fuzz                runs each fuzzer for FUZZ_SECONDS (60); needs clang with libFuzzer
# make fuzz-build          only builds them
# A corpus stays in build/fuzz/NAME.corpus; an input that fails is left beside it and ends the run.

FUZZ_SECONDS ?= 60
FUZZ_CFLAGS = -std=gnu11 -O1 -g -D_GNU_SOURCE -I. \
	-fsanitize=fuzzer,address,undefined -fno-sanitize-recover=undefined
FUZZ := $(patsubst tests/fuzz/%_fuzz.c,%,$(sort $(wildcard tests/fuzz/*_fuzz.c)))

# A fuzzer holds the sources of its own stage, the one of its name unless said here, and of loader/base/.
FUZZ_STAGE_python := unwind
stage_of = $(or $(FUZZ_STAGE_$(1)),$(1))
$(B)/fuzz/%_fuzz: tests/fuzz/%_fuzz.c
	$(call say,FUZZ,$@)
	@mkdir -p $(@D)
	$(Q)$(CLANG) $(FUZZ_CFLAGS) -o $@ $< $(wildcard $(call stage_of,$*)/*.c loader/base/*.c) -liberty -ldw -lelf -lz -llzma
$(foreach f,$(FUZZ),$(eval $(B)/fuzz/$(f)_fuzz: $(wildcard $(call stage_of,$(f))/*.[ch] loader/base/*.[ch] bpf/*.h)))
$(B)/fuzz/%_seeds: tests/fuzz/%_seeds.c $(wildcard tests/unit/*.h)
	$(call say,CC,$@)
	@mkdir -p $(@D)
	$(Q)$(CC) $(CFLAGS_ALL) -o $@ $< -llzma

fuzz-build: $(FUZZ:%=$(B)/fuzz/%_fuzz) $(FUZZ:%=$(B)/fuzz/%_seeds)

fuzz: $(FUZZ:%=fuzz-%)
fuzz-%: $(B)/fuzz/%_fuzz $(B)/fuzz/%_seeds
	$(Q)mkdir -p $(B)/fuzz/$*.corpus
	$(Q)$(B)/fuzz/$*_seeds $(B)/fuzz/$*.corpus
	$(Q)$< -max_total_time=$(FUZZ_SECONDS) -max_len=40000 -timeout=10 -rss_limit_mb=1024 \
		-artifact_prefix=$(B)/fuzz/$*- $(B)/fuzz/$*.corpus

.PHONY: fuzz fuzz-build
