#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# O-03: usage: odd_symbol.sh IN OUT   gives the five functions names with characters that
# mean something in JSON, HTML, JavaScript, folded lines and terminals.
exec objcopy \
    --redefine-sym rename_me_1=$'say "hi" \\ {[}]' \
    --redefine-sym rename_me_2=$'</script><script>document.title="x"</script>&amp;' \
    --redefine-sym rename_me_3=$'one;two\nthree 12' \
    --redefine-sym rename_me_4=$'\x1b[31mred\x07\x01' \
    --redefine-sym rename_me_5=$'operator<<(<lambda>, `tick`, ${x}, %s%n)' \
    "$1" "$2"
