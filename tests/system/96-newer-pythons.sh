#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# timeout: 900
# The tests of Python frames with the interpreters of Debian's next release, 3.13 and 3.14: in a system of its
# own, for they don't run on an older one. It is made by debootstrap and kept for a month in FRESH_CACHE
# (/var/cache/gpucollect-fresh). The mirror is this machine's apt's, or FRESH_MIRROR.
#
# All mounts are made in a mount namespace of their own, with which they end.
set -u -o pipefail

SUITE=testing
CACHE=${FRESH_CACHE:-/var/cache/gpucollect-fresh}
root=$TEST_TMP/root

skip() { echo "$*"; exit 77; }

mirror() {
	# shellcheck disable=SC2016 # apt fills these in
	apt-get indextargets --format '$(REPO_URI) $(LABEL) $(COMPONENT)' 'Created-By: Packages' 2>/dev/null |
		awk '$1 ~ /^https?:/ && $2 == "Debian" && $3 == "main" { print $1; exit }'
}

make_system() {	# MIRROR
	local http_proxy="" packages
	eval "$(apt-config shell http_proxy Acquire::http::Proxy 2>/dev/null)"
	[ -z "$http_proxy" ] || [ "$http_proxy" = DIRECT ] || export http_proxy
	# What it no longer has, or not yet, is left out.
	for packages in python3.13,python3.14 python3.14 python3; do
		rm -rf "$root"
		timeout 300 debootstrap --variant=minbase --include="binutils,$packages" $SUITE "$root" "$1" \
			/usr/share/debootstrap/scripts/sid >"$root.log" 2>&1 && return
		grep -q "Couldn't find these debs" "$root.log" || return 1
	done
	return 1
}

unpack_or_make() {
	local from tarball
	from=${FRESH_MIRROR:-$(mirror)}
	[ -n "$from" ] || skip "this machine's apt knows no Debian; FRESH_MIRROR=http://… names one"
	tarball=$CACHE/pythons-$(uname -m)-$(echo "$from" | cksum | cut -d' ' -f1).tar.gz
	if [ -n "$(find "$tarball" -mtime -30 2>/dev/null)" ]; then
		mkdir "$root" && tar -C "$root" -xpzf "$tarball" && return
		rm -rf "$root" "$tarball"
	fi
	make_system "$from" || skip "no Debian $SUITE could be made: $(tail -n 1 "$root.log")"
	rm -rf "$root"/var/cache/apt/archives/*.deb "$root"/var/lib/apt/lists/*
	if ! mkdir -p "$CACHE" || ! tar --one-file-system -C "$root" -cf - . | gzip -1 >"$tarball.$$" ||
		! mv "$tarball.$$" "$tarball"; then
		rm -f "$tarball.$$"
	fi
}

inside() {
	local place
	mount --bind "$root" "$root" && mount -t proc proc "$root/proc" && mount --rbind /sys "$root/sys" &&
		mount --rbind /dev "$root/dev" || exit 1
	for place in "$TOP" "$B"; do
		mkdir -p "$root$place" && mount --bind "$place" "$root$place" || exit 1
	done
	cd "$root" && pivot_root . . && umount -l . && cd "$TOP" || exit 1
	exec env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LANG=C.UTF-8 B="$B" PYTHON_TESTS=all \
		tests/run.sh system/91 system/92 system/93 system/94
}

[ "${1:-}" != inside ] || inside
[ "$(id -u)" = 0 ] || skip "a system of its own needs root"
command -v debootstrap >/dev/null || skip "debootstrap is missing: scripts/setup test"
unpack_or_make
# One of them runs the tests themselves.
for python in "$root"/usr/bin/python3.1?; do
	[ -e "$root/usr/bin/python3" ] || ln -s "$(basename "$python")" "$root/usr/bin/python3"
done
unshare --mount --propagation private "$0" inside | tee "$TEST_TMP/output"
[ "${PIPESTATUS[0]}" = 0 ] || exit 1
# Without an interpreter, or without BPF, all of them would be skipped.
grep -q '^4 passed, 0 failed, 0 skipped$' "$TEST_TMP/output"
