# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# make check             all tests (root)           make check T=system/30   those with this in their name
# make check-unit        what needs no root: static checks and unit tests
# make check-fresh       demo and check in a new Debian 12 (root, network)
# make faults            the program with points at which tests kill it, in build-faults/
# make asan              the unit tests under ASan and UBSan, in build-asan/
# make bench             the budgets of docs/design.md (root)

# Folders of programs that tests run; each is built where its part is there.
CHECK_BUILDS := $(if $(wildcard tests/simcuda/simcuda.mk),simcuda programs $(B)/demo) \
	$(if $(wildcard tests/cases/cases.mk),cases)

check: names
	$(Q)test "$$(id -u)" = 0 || { echo "tests load BPF programs: sudo make check" >&2; exit 1; }
	$(Q)scripts/setup
	$(Q)B=$(B) scripts/as-caller $(MAKE) --no-print-directory all unit-tests $(CHECK_BUILDS) faults
	$(Q)B=$(B) tests/run.sh $(T)

# Its own folder; what is the same in both is compiled twice, so that neither build is half of each.
faults:
	$(Q)$(MAKE) --no-print-directory B=$(B)-faults \
		EXTRA_CFLAGS='$(EXTRA_CFLAGS) -DGPUCOLLECT_FAULTS' all $(B)-faults/programs/trace_tool

# A name that there is not is told before anything is built.
names:
	$(Q)tests/run.sh -l $(T) >/dev/null

check-unit: names all unit-tests
	$(Q)B=$(B) tests/run.sh $(or $(T),static/ unit/)

check-fresh:
	$(Q)scripts/check-fresh

# Some tests want a signal to end a process as it does elsewhere: ASan leaves SIGSEGV to them.
# The library that runs in the target stays plain: a sanitizer's run time has no place there.
ASAN := -fsanitize=address,undefined -fno-sanitize-recover=undefined -fno-omit-frame-pointer
asan:
	$(Q)$(MAKE) --no-print-directory B=build-asan OPT='-O1 -g' EXTRA_CFLAGS='$(ASAN)' \
		EXTRA_LDFLAGS='$(ASAN)' all unit-tests
	$(Q)ASAN_OPTIONS=handle_segv=0 \
		LSAN_OPTIONS=suppressions=$(CURDIR)/tests/lsan.supp:print_suppressions=0 B=build-asan \
		tests/run.sh $(or $(T),unit/)

# What names cost: build/bench/names [-l] WORDS FILE…
$(B)/bench/names: tests/bench/names.c $(patsubst %.c,$(B)/obj/%.o,$(wildcard symbols/*.c loader/base/*.c))
	$(call say,CC,$@)
	@mkdir -p $(@D)
	$(Q)$(CC) $(CFLAGS_ALL) -o $@ $^ $(LIBS)

bench: all $(CHECK_BUILDS)
	$(Q)B=$(B) tests/bench/run.sh

.PHONY: check names check-unit check-fresh faults asan bench
