// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// S-09: a function with a very long mangled name (a tuple nested 200 deep).
#include "../common/stop.h"
static volatile unsigned long sink;

template <class A, class B> struct Pair {};
template <int N> struct LayerNumber {};
template <int N> struct Nest { typedef Pair<typename Nest<N - 1>::type, LayerNumber<N> > type; };
template <> struct Nest<0> { typedef Pair<int, LayerNumber<0> > type; };

template <class T> __attribute__((noinline)) void spin_with(T *)
{
    for (;;)
        sink = sink + 1;
}

int main()
{
    stop_after(10);
    Nest<200>::type *p = 0;
    spin_with(p);
    return 1;
}
