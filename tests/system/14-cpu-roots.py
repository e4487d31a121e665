#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# timeout: 280
"""User stacks reach their thread's first frame: 99.9 % of them, on programs that are hard to unwind.

Not counted: samples taken inside exec, fork and exit, where there is half a process. Counted apart,
and bounded: stacks of a thread that is installing the registers of an exception's handler over a
frame's saved ones, whose caller nobody can tell. gcc's collector recurses thousands deep.
"""
import os
import shutil
import subprocess
import sys

sys.path.insert(0, os.path.join(os.environ["TOP"], "tests/tools"))
import folded

check = folded.Checks()
NEEDED = 0.999
DEEP = 1100		# frames: more than BPF holds
INSTALLING = {"_Unwind_RaiseException", "_Unwind_Resume", "_Unwind_Resume_or_Rethrow",
              "_Unwind_ForcedUnwind"}
total = {"stacks": 0, "cut": 0}

CXX_SOURCE = """
#include <bits/stdc++.h>
#include <regex>
"""
CXX_FUNCTION = """
int use_%d(const std::string &s)
{
	static const std::regex r("(a+b*|[c-f]{2,%d})(x|y)?");
	std::map<std::string, std::vector<int>> m;
	std::unordered_map<int, std::string> u;
	std::vector<std::tuple<std::string, double, int>> v;
	std::function<int(int)> f = [&](int x) { return x + int(m.size()) + %d; };

	m[s].push_back(f(1));
	u[%d] = s;
	v.emplace_back(s, 1.0, 2);
	std::sort(v.begin(), v.end(), [](auto &a, auto &b) { return std::get<2>(a) < std::get<2>(b); });
	return std::regex_match(s, r) + int(u.size() + v.size());
}
"""
RUST_SOURCE = """
use std::collections::{BTreeMap, HashMap};
trait Shape { fn area(&self) -> f64; }
macro_rules! shapes { ($($n:ident),*) => { $(
    #[derive(Debug, Clone, PartialEq, PartialOrd, Default, Hash, Eq, Ord)]
    struct $n { a: u64, b: String, c: Vec<u8>, d: Option<Box<$n>> }
    impl Shape for $n {
        fn area(&self) -> f64 {
            let mut m: HashMap<String, Vec<u64>> = HashMap::new();
            for i in 0..self.a { m.entry(format!("{}{:?}", i, self)).or_default().push(i); }
            let mut v: Vec<_> = m.into_iter().collect();
            v.sort();
            v.iter().map(|(k, x)| k.len() as f64 + x.iter().sum::<u64>() as f64).sum()
        }
    })*
    fn all() -> Vec<Box<dyn Shape>> { vec![$(Box::new($n::default())),*] }
} }
shapes!(%s);
fn main() {
    let mut t: BTreeMap<String, f64> = BTreeMap::new();
    for (i, s) in all().iter().enumerate() { t.insert(format!("{i}"), s.area()); }
    println!("{:?}", t);
}
"""


def write(name, text):
    path = os.path.join(folded.TMP, name)
    with open(path, "w", encoding="utf-8") as f:
        f.write(text)
    return path


def is_installing(s):
    return folded.is_cut(s) and any(f in INSTALLING for f in s.user[-3:])


def measure(name, command, apart_allowed=0.0, frequency=997):
    rec = folded.record(command, frequency=frequency, timeout=200, name="roots.folded")
    check(rec.status == 0, f"{name}: status 0", f"{rec.status}: {rec.err}")
    settled = [s for s in rec.settled() if s.user != ["[kernel thread]"]]
    apart = [s for s in settled if is_installing(s)]
    rest = [s for s in settled if not is_installing(s)]
    cut = [s for s in rest if folded.is_cut(s)]
    n, nr_cut, nr_apart = (sum(s.weight for s in x) for x in (rest, cut, apart))
    total["stacks"] += n
    total["cut"] += nr_cut
    check(n >= 500, f"{name}: {n} stacks of {rec.total()}, {nr_apart} more counted apart")
    if not check(nr_cut <= n * (1 - NEEDED), f"{name}: {nr_cut} stacks are cut"):
        print(rec.err)
    check(nr_apart <= apart_allowed * (n + nr_apart),
          f"{name}: counted apart: {100 * nr_apart / max(n + nr_apart, 1):.2f} %")
    folded.show(cut)
    return rec


def rust_compiler():
    """A rustc that runs: rustup's stand-in asks for a toolchain that may not be there."""
    path = shutil.which("rustc")
    if not path:
        return None
    r = subprocess.run([path, "--print", "sysroot"], capture_output=True, text=True,
                       stdin=subprocess.DEVNULL)
    real = os.path.join(r.stdout.strip(), "bin/rustc")
    return real if r.returncode == 0 and os.path.exists(real) else None


def main():
    cxx = write("large.cc", CXX_SOURCE + "".join(CXX_FUNCTION % (i, i + 3, i, i) for i in range(4)))
    out = os.path.join(folded.TMP, "large.o")
    rec = measure("gcc", ["g++", "-std=c++17", "-O2", "-c", "-o", out, cxx])
    deepest = max(len(s.user) for s in rec.stacks if not folded.is_cut(s))
    check(deepest > DEEP, f"gcc: the deepest whole stack has {deepest} frames")
    # Its own code, libclang's, and, from -O2 on, libLLVM's.
    measure("clang", ["clang++", "-std=c++17", "-O2", "-c", "-o", out, cxx])
    measure("C++", [os.path.join(folded.PROGRAMS, "cpu_cxx"), "5"], apart_allowed=0.03)
    rustc = rust_compiler()
    if rustc:
        rs = write("large.rs", RUST_SOURCE % ", ".join(f"S{i}" for i in range(60)))
        measure("rustc", [rustc, "-O", "--emit", "obj", "-o", out, rs])
    else:
        print("      rustc is not here: its code is left out")
    check(total["stacks"] >= 10000, f"{total['stacks']} stacks in all, {total['cut']} cut")
    return check.status()


if __name__ == "__main__":
    sys.exit(main())
