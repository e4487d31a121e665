#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# scripts/setup against an apt and a dpkg made up here: what it asks for on which system, and that it
# leaves a machine alone that has everything. And whom scripts/as-caller runs a command as.
set -u
cd "$TEST_TMP" || exit 1
bad=0

mkdir -p scripts bin state
cp "$TOP/scripts/setup" "$TOP/scripts/as-caller" scripts/

# state/missing: packages that dpkg does not have, a line each, with the status it states instead.
cat >bin/dpkg-query <<'END'
#!/bin/bash
status=0
for p in "${@:4}"; do
	if line=$(grep "^$p " state/missing); then
		[ -z "${line#* }" ] || echo "${line#* } $p"
		status=1
	else
		echo "ii $p"
	fi
done
exit $status
END
cat >bin/apt-get <<'END'
#!/bin/bash
echo "$* frontend=${DEBIAN_FRONTEND:-}" >>state/calls
case "$*" in
*update*) exit "$(cat state/update)" ;;
*install*) touch state/installed; exit "$(cat state/install)" ;;
esac
END
cat >bin/apt-cache <<'END'
#!/bin/bash
[ "$*" = "policy bpftool" ] && printf 'bpftool:\n  Installed: (none)\n  Candidate: %s\n' "$(cat state/bpftool)"
END
cat >bin/id <<'END'
#!/bin/bash
cat state/uid
END
cat >scripts/find-bpftool <<'END'
#!/bin/bash
[ -e state/has-bpftool ] || [ -e state/installed ] && echo /usr/sbin/bpftool
END
chmod +x bin/* scripts/*

# A machine that has everything but what is given: lines for state/missing.
machine() {
	rm -f state/*
	: >state/calls
	touch state/has-bpftool
	echo 0 | tee state/update state/install state/uid >/dev/null
	echo 7.1.0 >state/bpftool
	printf '%s\n' "$@" >state/missing
}

setup() {	# EXPECTED-STATUS ARGS…
	local expected=$1
	shift
	PATH=$PWD/bin:$PATH scripts/setup "$@" >out 2>&1
	[ $? = "$expected" ] || wrong "setup $*: not status $expected"
}

wrong() { echo "$what: $*"; sed 's/^/  /' out state/calls; bad=1; }
says() { grep -qF -- "$1" out || wrong "does not say '$1'"; }
no_apt() { [ ! -s state/calls ] || wrong "called apt-get"; }
installs() {
	grep -q -- "install -y.* $1 .*frontend=noninteractive" state/calls || wrong "does not install '$1'"
}

what="everything is there"
machine
setup 0
says "everything is there"
no_apt

what="an ordinary user"
machine "libdw-dev "
echo 1000 >state/uid
setup 1
says "missing: libdw-dev"
says "sudo scripts/setup"
no_apt

what="only asked"
machine "libdw-dev " "check "
setup 1 -n
says "missing: libdw-dev check"
no_apt

what="two missing"
machine "libdw-dev " "check "
setup 0
installs "libdw-dev check"

what="removed, and half installed"
machine "libdw-dev rc" "check iU"
setup 0
installs "libdw-dev check"

what="only the group to build"
machine "check "
setup 0 build
says "everything is there"
no_apt

what="no bpftool where it is a package"
machine
rm state/has-bpftool
setup 0
installs "bpftool"

what="no bpftool where it is part of the kernel's tools"
machine
rm state/has-bpftool
echo "(none)" >state/bpftool
setup 0
installs "linux-tools-common linux-tools-generic"

what="the lists can't be refreshed"
machine "check "
echo 100 >state/update
setup 0
installs "check"

what="the installation fails"
machine "check "
echo 100 >state/install
setup 1
says "could not install: check"

what="a word it does not know"
machine
setup 1 tests
says "usage"
no_apt

# --- find-bpftool: passes over one that does not run ----------------------------------------------
what="find-bpftool"
printf '#!/bin/sh\nexit 2\n' >bin/bpftool
chmod +x bin/bpftool
[ "$(PATH=$PWD/bin:$PATH "$TOP/scripts/find-bpftool")" != "$PWD/bin/bpftool" ] || wrong "took one that fails"
printf '#!/bin/sh\nexit 0\n' >bin/bpftool
[ "$(PATH=$PWD/bin:$PATH "$TOP/scripts/find-bpftool")" = "$PWD/bin/bpftool" ] || wrong "not the first on the PATH"

# --- as-caller ------------------------------------------------------------------------------------
what="as-caller"
as() { env -u B SUDO_UID="$1" SUDO_GID="$1" scripts/as-caller id -u; }
mkdir build
if [ "$(id -u)" = 0 ]; then
	nobody=$(id -u nobody)
	[ "$(as "$nobody")" = 0 ] || wrong "somebody else's tree as the caller"
	chown "$nobody" .
	[ "$(as "$nobody")" = 0 ] || wrong "root's build folder as the caller"
	chown "$nobody" build
	[ "$(as "$nobody")" = "$nobody" ] || wrong "the caller's own tree not as the caller"
	[ "$(as 0)" = 0 ] || wrong "root called sudo"
fi
exit $bad
