#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# What the library is as a file: what it brings into a program, what it needs from there, and the
# probe sites as the contract in gpu_timing/channel.h has them.
set -u
lib=$B/libgpucollect_timing.so
wrong=0
is() {	# WHAT GOT WANTED
	[ "$2" = "$3" ] && return
	echo "WRONG: $1 is '$2', not '$3'"
	wrong=1
}

is "needed libraries" "$(readelf -dW "$lib" | sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p' | xargs)" libc.so.6
is "exported symbols" "$(nm -D --defined-only "$lib" | awk '{ print $3 }' | sort | xargs)" \
	"InitializeInjection gpucollect_attach gpucollect_identity"
# 8 bytes that the loader has room for without malloc; any more may fail to load
is "thread-local bytes" "$(readelf -lW "$lib" | awk '$1 == "TLS" { print $6 }')" 0x000008
is "thread-local model" "$(readelf -dW "$lib" | grep -c STATIC_TLS)" 1
is "never unloaded" "$(readelf -dW "$lib" | grep -c NODELETE)" 1
# the C runtime's own frame_dummy is the only thing that runs at loading
is "constructors" "$(readelf -SW "$lib" | sed 's/^ *\[ *//' | awk '$2 == ".init_array" { print $6 }')" 000008
is "versions not public" "$(objdump -T "$lib" | grep -c GLIBC_PRIVATE)" 0
# the target's C library may be old
is "newest C library that it needs" "$(objdump -T "$lib" | grep -oE 'GLIBC_[0-9.]+' | sort -uV | tail -1)" \
	GLIBC_2.17
is "writable code" "$(readelf -lW "$lib" | grep -cE 'LOAD.* RWE ')" 0
for name in malloc calloc realloc free printf fprintf snprintf fopen sigaction signal pthread_mutex_lock; do
	nm -D --undefined-only "$lib" | grep -qE " $name(@|\$)" && is "use of $name" yes no
done

site() {	# NAME SIZE CODE
	local address size
	read -r address size < <(readelf -sW "$lib" | awk -v n="$1" '$8 == n && $4 == "FUNC" { print $2, $3 }')
	is "$1: size" "$size" "$2"
	is "$1: alignment" $((0x$address % 16)) 0
	is "$1: code" "$(objdump -d --start-address=0x$address --stop-address=$((0x$address + $2)) "$lib" |
		awk -F'\t' '/^ / { print $2 }' | xargs | tr -d ' ')" "$3"
	# nothing else within 16 bytes
	is "$1: neighbours" "$(readelf -sW "$lib" | awk '$4 == "FUNC" && $7 != "UND" { print $2, $3 }' |
		while read -r a s; do
			a=$((0x$a))
			[ $a -lt $((0x$address + $2 + 16)) ] && [ $((a + s)) -gt $((0x$address - 16)) ] &&
				echo $a
		done | wc -l)" 1
	# one entry of unwind information for all of it, and in that nothing but the common row
	is "$1: unwinding" "$(readelf --debug-dump=frames "$lib" 2>/dev/null |
		awk -v pc="$(printf 'pc=%016x..%016x' 0x$address $((0x$address + $2)))" '
			/ FDE / { f = index($0, pc); n += f > 0; next }
			/^$/ { f = 0 }
			f && $1 != "DW_CFA_nop" { n += 100 }
			END { print n }')" 1
}
site gpucollect_site_nop1 2 90c3
site gpucollect_site_nop5 6 0f1f440000c3

# The stub: a page of the file that is its own, which needs nothing of the rest.
read -r address size < <(readelf -sW "$lib" | awk '$8 == "gpucollect_stub" && $4 == "FUNC" { print $2, $3 }')
is "stub: address in its page" $((0x$address % 4096)) 0
read -r start at length < <(readelf -SW "$lib" | sed 's/^ *\[ *//' |
	awk '$2 == ".gpucollect.stub" { print $4, $5, $6 }')
is "stub: section" "$start $((0x$at % 4096)) $length" "$address 0 001000"
[ "$size" -le 4096 ] || is "stub: size" "$size" "at most 4096"
in_page() {	# hexadecimal addresses, one a line: how many lie in the stub's page
	local a n=0
	while read -r a; do
		a=$((0x$a - 0x$address))
		[ $a -ge 0 ] && [ $a -lt 4096 ] && n=$((n + 1))
	done
	echo $n
}
is "stub: relocations" "$(readelf -rW "$lib" | awk '$1 ~ /^[0-9a-f]+$/ { print $1 }' | in_page)" 0
# what it names lies in its page
named=$(objdump -d -j .gpucollect.stub "$lib" | sed -n 's/.*# \([0-9a-f]*\) <.*/\1/p')
is "stub: places that it names" "$(echo "$named" | wc -w)" 2
is "stub: of them in its page" "$(echo "$named" | in_page)" 2
exit $wrong
