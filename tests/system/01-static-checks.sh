#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# The static checks find what they are there for, and find nothing in a tree that is in order.
set -u
cd "$TEST_TMP" || exit 1
bad=0
spdx='// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause'

tree() {	# a fresh small tree in order
	rm -rf t
	mkdir -p t/bpf t/unwind t/gpu_timing/library t/symbols t/loader/{base,profile,output} t/tests
	for h in bpf/gpucollect bpf/x.bpf unwind/u gpu_timing/channel gpu_timing/reader symbols/s \
			loader/base/log loader/profile/p loader/output/o loader/maps tests/t; do
		echo "$spdx" >t/$h.h
	done
	source_file loader/session.c unwind/u.h gpu_timing/reader.h symbols/s.h loader/profile/p.h \
		loader/output/o.h gpucollect.skel.h loader/base/log.h
	source_file symbols/s.c s.h unwind/u.h loader/base/log.h bpf/gpucollect.h
	source_file bpf/x.bpf.c vmlinux.h bpf/x.bpf.h gpu_timing/channel.h
	source_file gpu_timing/library/l.c gpu_timing/channel.h
}

source_file() {	# FILE HEADER…
	local f=t/$1
	shift
	echo "$spdx" >"$f"
	printf '#include "%s"\n' "$@" >>"$f"
}

check() {	# EXPECTED-STATUS TEXT SCRIPT WHAT
	"$TOP/scripts/$3" t >out 2>&1
	if [ $? != "$1" ] || ! grep -qF -- "$2" out; then
		echo "$4: expected status $1 and '$2':"
		cat out
		bad=1
	fi
}

layers() {	# FILE HEADER…: one offence
	tree
	source_file "$@"
	check 1 "$1:$#:" check-layers "$1 includes ${*: -1}"
}

tree
check 0 " 0 offences" check-layers "a tree in order"
layers unwind/u.c unwind/u.h symbols/s.h
layers symbols/s.c ../loader/profile/p.h
layers loader/base/log.c loader/base/log.h unwind/u.h
layers loader/profile/p.c loader/output/o.h
layers loader/output/o.c loader/maps.h
layers symbols/s.c gpucollect.skel.h
layers symbols/s.c bpf/x.bpf.h
layers bpf/x.bpf.c loader/base/log.h
layers gpu_timing/library/l.c loader/base/log.h
layers symbols/s.c tests/t.h
layers symbols/s.c nowhere.h
tree
printf '%s\n#\tinclude <symbols/s.h>\n' "$spdx" >t/unwind/u.c
check 1 "unwind/u.c:2:" check-layers "an include in angle brackets"
tree
source_file loader/other.c unwind/u.h gpu_timing/reader.h symbols/s.h loader/profile/p.h
check 1 "loader/other.c: joins" check-layers "a second file that joins all"
rm -rf t && mkdir t
check 1 "no source" check-layers "an empty tree"

tree
check 0 " 0 offences" check-style "a tree in order"
echo 'int x;' >t/symbols/s.c
check 1 "symbols/s.c:1: no line" check-style "no licence line"
tree
printf '%s\n/* %0110d */\n' "$spdx" 0 >t/symbols/s.c
check 1 "symbols/s.c:2: 116 columns" check-style "a long line"
printf '%s\n\t/* %099d */\n' "$spdx" 0 >t/symbols/s.c
check 1 "symbols/s.c:2: 113 columns" check-style "a line that its tab makes long"
printf '%s\nint x; \n' "$spdx" >t/symbols/s.c
check 1 "symbols/s.c:2: white space" check-style "white space at the end"
printf '%s\nint x;' "$spdx" >t/symbols/s.c
check 1 "symbols/s.c: no newline" check-style "no newline at the end"
{ echo "$spdx"; yes 'int x;' | head -n 600; } >t/symbols/s.c
check 1 "symbols/s.c: 601 lines" check-style "a long file"
tree
printf '#!/bin/sh\necho\n' >t/tests/tool
check 1 "tests/tool:2: no line" check-style "a script without a licence line"
tree
printf '# T\n[there](../unwind/u.h) [web](https://x.org/y) [gone](../unwind/v.h#a)\n' >t/tests/t.md
check 1 "tests/t.md:2: links to ../unwind/v.h" check-style "a link to nowhere"
check 1 " 1 offences" check-style "other links"
exit $bad
