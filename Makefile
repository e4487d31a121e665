# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# make            build/gpucollect
# make check      all tests (sudo)        make demo    build and show (sudo)
# make bench      the budgets             make asan    everything again under ASan and UBSan
# V=1 shows commands.

B ?= build
PREFIX ?= /usr/local
CC ?= gcc
CLANG ?= clang
BPFTOOL ?= $(or $(shell scripts/find-bpftool),bpftool)
ARCH := $(shell uname -m | sed 's/aarch64/arm64/')
BPF_ARCH := $(if $(filter x86_64,$(ARCH)),x86,$(ARCH))

V ?= 0
Q := $(if $(filter 1,$(V)),,@)
say = @printf '  %-8s %s\n' "$(1)" "$(patsubst $(B)/%,%,$(2))"

WARN := -Wall -Wextra -Wshadow -Wstrict-prototypes -Wold-style-definition -Wmissing-prototypes \
	-Wformat=2 -Wundef -Wvla -Werror
OPT ?= -O2 -g
CFLAGS_ALL = -std=gnu11 $(OPT) $(WARN) -D_GNU_SOURCE -I. -I$(B) $(CUDA_CFLAGS) $(EXTRA_CFLAGS)
# The CUDA Toolkit's cuda.h where there is one; gpu_timing/cuda_types.h stands in elsewhere.
CUDA_HOME ?= /usr/local/cuda
CUDA_CFLAGS := $(if $(wildcard $(CUDA_HOME)/include/cuda.h),-DHAVE_CUDA_H -isystem $(CUDA_HOME)/include)

# Everything but the C library is linked statically.
LIBS := -Wl,-Bstatic -lbpf -ldw -lelf -lz -llzma -lbz2 -liberty -Wl,-Bdynamic -lpthread -ldl -lm
CHECK_LIBS := -lcheck -lsubunit -lm -lrt

# --- sources: a stage is a folder ------------------------------------------------------------
STAGES := loader/base unwind gpu_timing symbols loader/profile loader/output loader/tracer loader/calibrate loader
SRC := $(foreach d,$(STAGES),$(sort $(wildcard $(d)/*.c)))
OBJ := $(SRC:%.c=$(B)/obj/%.o)
# Maps first: bpftool 7.1 resolves an extern map wrongly in the object that comes before it.
BPF_SRC := bpf/maps.bpf.c $(sort $(filter-out bpf/maps.bpf.c,$(wildcard bpf/*.bpf.c)))
BPF_OBJ := $(BPF_SRC:%.c=$(B)/obj/%.o)
TIMING_SRC := $(sort $(wildcard gpu_timing/library/*.c) $(wildcard gpu_timing/library/*.S))
TIMING_OBJ := $(addprefix $(B)/obj/,$(addsuffix .o,$(basename $(TIMING_SRC)))) \
	$(B)/obj/gpu_timing/library/stub.o
TIMING_LIB := $(if $(TIMING_SRC),$(B)/libgpucollect_timing.so)
UNIT_SRC := $(sort $(wildcard tests/unit/test_*.c))
UNIT_BIN := $(UNIT_SRC:tests/unit/%.c=$(B)/tests/%)

all: $(B)/gpucollect

# Installs what the build and the tests need; does nothing where it is there already.
setup:
	$(Q)scripts/setup

# --- BPF: objects, linked into one, one skeleton ----------------------------------------------
BPF_CFLAGS := -g -O2 -mcpu=v3 -target bpf -D__TARGET_ARCH_$(BPF_ARCH) -I. -isystem vmlinux/$(ARCH) \
	-Wall -Wextra -Wno-unused-parameter -Werror
$(B)/obj/bpf/%.bpf.o: bpf/%.bpf.c
	$(call say,BPF,$@)
	@mkdir -p $(@D)
	$(Q)$(CLANG) $(BPF_CFLAGS) -MMD -MP -c $< -o $@
$(B)/gpucollect.bpf.o: $(BPF_OBJ)
	$(call say,BPFLINK,$@)
	$(Q)$(BPFTOOL) gen object $@ $^
$(B)/gpucollect.skel.h: $(B)/gpucollect.bpf.o
	$(call say,SKEL,$@)
	$(Q)$(BPFTOOL) gen skeleton $< name gpucollect_bpf > $@.tmp && mv $@.tmp $@

# --- the timing library: plain C against libc alone, embedded into the program ----------------
TIMING_CFLAGS = -std=gnu11 -O2 -g -fPIC -fvisibility=hidden -ftls-model=initial-exec \
	-fasynchronous-unwind-tables -fno-stack-protector $(WARN) -D_GNU_SOURCE -I. $(CUDA_CFLAGS)
$(B)/obj/gpu_timing/library/%.o: gpu_timing/library/%.c
	$(call say,CC,$@)
	@mkdir -p $(@D)
	$(Q)$(CC) $(TIMING_CFLAGS) -MMD -MP -c $< -o $@
$(B)/obj/gpu_timing/library/%.o: gpu_timing/library/%.S
	$(call say,AS,$@)
	@mkdir -p $(@D)
	$(Q)$(CC) $(TIMING_CFLAGS) -MMD -MP -c $< -o $@
# The one source that both need: the library to swap, the program to look before it starts.
$(B)/obj/gpu_timing/library/stub.o: gpu_timing/stub.c
	$(call say,CC,$@)
	@mkdir -p $(@D)
	$(Q)$(CC) $(TIMING_CFLAGS) -MMD -MP -c $< -o $@
$(B)/libgpucollect_timing.so: $(TIMING_OBJ)
	$(call say,LINK,$@)
	$(Q)$(CC) -shared -Wl,-z,nodelete,-z,now,-z,relro,-z,defs,--build-id \
		-Wl,-soname,libgpucollect_timing.so -o $@ $^ -ldl -lpthread
$(B)/obj/embed.o: $(TIMING_LIB) scripts/embed.S
	$(call say,EMBED,$@)
	@mkdir -p $(@D)
	$(Q)$(CC) -c -DTIMING_LIB='"$(TIMING_LIB)"' scripts/embed.S -o $@

# --- the program ------------------------------------------------------------------------------
# Looked at each time, written where it says something else.
$(B)/version_text.h: FORCE
	@mkdir -p $(@D)
	$(Q)printf '#define VERSION_TEXT "%s"\n' "$$(scripts/version)" >$@.tmp && \
		if cmp -s $@.tmp $@; then rm $@.tmp; else mv $@.tmp $@; fi
FORCE:
$(B)/obj/loader/version.o: $(B)/version_text.h
$(B)/obj/%.o: %.c
	$(call say,CC,$@)
	@mkdir -p $(@D)
	$(Q)$(CC) $(CFLAGS_ALL) -MMD -MP -c $< -o $@
$(filter $(B)/obj/loader/%,$(OBJ)): | $(B)/gpucollect.skel.h
$(B)/gpucollect: $(OBJ) $(if $(TIMING_LIB),$(B)/obj/embed.o)
	$(call say,LINK,$@)
	$(Q)$(CC) $(OPT) $(EXTRA_CFLAGS) -o $@ $^ $(LIBS) $(EXTRA_LDFLAGS)

# --- tests ------------------------------------------------------------------------------------
$(B)/tests/test_%: tests/unit/test_%.c $(filter-out $(B)/obj/loader/main.o,$(OBJ)) \
		$(if $(TIMING_LIB),$(B)/obj/embed.o)
	$(call say,TEST,$@)
	@mkdir -p $(@D)
	$(Q)$(CC) $(CFLAGS_ALL) -MMD -MP -MF $@.d -o $@ $< $(filter %.o,$^) $(LIBS) $(CHECK_LIBS) \
		$(EXTRA_LDFLAGS)
unit-tests: $(UNIT_BIN)

-include $(wildcard tests/simcuda/simcuda.mk tests/cases/cases.mk tests/programs/programs.mk \
	tests/bpf/bpf.mk tests/tests.mk tests/fuzz/fuzz.mk scripts/scripts.mk)

install: all
	install -d -m 0755 $(DESTDIR)$(PREFIX)/bin
	install -m 0755 $(B)/gpucollect $(DESTDIR)$(PREFIX)/bin/gpucollect

clean:
	rm -rf $(B)

.PHONY: all setup unit-tests install clean FORCE
.DELETE_ON_ERROR:
.SECONDARY:
DEPS := $(shell test -d $(B) && find $(B) -name '*.d')
-include $(DEPS)
# -MP covers headers that are gone. A source that moved is still named by what was made from it, which
# is then remade from where the source is now.
GONE := $(if $(DEPS),$(shell cat $(DEPS) | tr -s ' \\:' '\n' | grep -E '\.(c|cc|S)$$' | sort -u | \
	while read -r f; do test -e "$$f" || echo "$$f"; done))
.PHONY: $(GONE)
