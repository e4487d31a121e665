# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Code of all kinds: compiled at run time, with odd names and files, many lines, imported."""
import gc
import importlib
import os
import sys
import tempfile
import textwrap
import time
import types

from launching import LAUNCH, REST, frame, launch, note

FILES = [
    "<string>",
    "",
    "relative.py",
    "/no/such/place.py",
    '{"kind": "cpu"}',
    "a;b c 12\nsecond line",
    "</script><b>bold",
    "tab\there",
    "\x1b[31mred",
    "low\x01control",
    "back\\slash\"quote'",
    "ends with (paren:12)",
    "ends in a number 12",
    " blanks ",
    "colon:3",
    "b\udcffyte",		# how Python shows a name that isn't UTF-8
    "latin-é",
    "Übung/目录/𐎠.py",
    "direction\u202eoverride",
    "line\u2028separator\x85next",
    "x" * 400,
]
LONG = "y" * 5000

NAMES = [
    "ascii_name", "größe", "ÿ", "заметная", "計算する", "𐎠𐎡", "mix_é目𐎠", "_", "__init__",
    "a" * 300, "é" * 200, "目" * 100, "𐎠" * 80,
]
# No source has such names, but code objects may have.
MADE_NAMES = [
    "", " ", "two words", "semi;colon", "new\nline", "a (b.py:3)", "nul\0l", "lone\ud800surrogate",
    "<lambda>", "<odd>", "-", "x 7", "\x7f", "[thread x]", "[GPU] k", "tab\t",
]


def evaluated():
    eval("launch()")
    eval("[launch() for _ in range(1)]")
    eval("(lambda: launch())()")
    exec("launch()\n\nlaunch()\ndef f():\n    launch()\nf()")
    exec(compile("launch()", "<one>", "single"))
    exec("class C:\n  launch()\n  class D:\n    launch()")
    scope = {"launch": launch, "eval": eval}
    eval("eval('eval(\"launch()\")')", scope)


def odd_files():
    for name in FILES + [LONG]:
        scope = {"launch": launch}
        exec(compile("def generated():\n    return launch()\n\n\ngenerated()\n", name, "exec"), scope)
        scope["generated"]()


def odd_names():
    for name in NAMES:
        scope = {"launch": launch}
        source = f"""
            def {name}():
                launch()
            class {name}_class:
                def {name}(self):
                    (lambda: launch())()
            def outer_{name}():
                def {name}():
                    launch()
                return {name}
            """
        exec(compile(textwrap.dedent(source), "<names>", "exec"), scope)
        scope[name]()
        getattr(scope[name + "_class"](), name)()
        scope["outer_" + name]()()


def renamed(function, **names):
    return types.FunctionType(function.__code__.replace(**names), function.__globals__)


def made_names():
    qualified = hasattr(made_names.__code__, "co_qualname")
    for name in MADE_NAMES:
        names = {"co_name": name}
        if qualified:
            names["co_qualname"] = name
        renamed(nothing_but_launch, **names)()
    if qualified:
        renamed(nothing_but_launch, co_name="the_name", co_qualname="the.qualified.name")()
    nothing_but_launch.__name__ = "of_the_function_alone"
    nothing_but_launch()
    # No file, but again code objects.
    for file in "nul\0inside", "lone\ud800", "𐎠\ud800目", "":
        renamed(nothing_but_launch, co_filename=file)()
    for line in 1, 65536, 16777216, 2147480000:
        renamed(nothing_but_launch, co_firstlineno=line)()


def nothing_but_launch():
    LAUNCH(note(frame()), *REST)


def far_lines():
    """Lines far from each other, before the first one, and long bytecode."""
    far = "\n" * 70000
    scope = {"launch": launch}
    exec(compile("launch()" + far + "launch()\ndef f():\n    launch()" + far + "    launch()\nf()",
                 "<far>", "exec"), scope)
    many = "def f(x):\n" + "    x = x + 1; x = x * 2 if x else (x, x)\n" * 400 + "    launch()\n    launch(\n0)\n"
    exec(compile(many, "<many>", "exec"), scope)
    scope["f"](0)
    wide = "def f(x):\n    return [" + "x, " * 3000 + "launch(),\n" + "x,\n" * 300 + "launch()]\n"
    exec(compile(wide, "<wide>", "exec"), scope)
    scope["f"](0)
    loops = "def f(n):\n" + "".join("    " + " " * i + "for i%d in range(1):\n" % i for i in range(15)) + \
        "    " + " " * 15 + "launch()\n"
    exec(compile(loops, "<loops>", "exec"), scope)
    scope["f"](0)


# What only later versions can compile: (version, source).
LATER = [
    ((3, 10), """
def matched(x):
    match x:
        case {"a": y} if launch() is None:
            launch(y)
        case _:
            launch()
matched({"a": 1})
matched(2)
"""),
    ((3, 11), """
def grouped():
    try:
        raise ExceptionGroup("two", [ValueError(), KeyError()])
    except* ValueError:
        launch()
    except* KeyError as e:
        launch(
            e)
grouped()
"""),
    ((3, 12), """
def generic[T: launch()](x: T) -> T:
    launch()
    return x
class Generic[T]:
    launch()
    def method[U](self):
        return f"{launch()} {f'{launch()}'}"
generic(1)
Generic[int]().method()
type Alias = launch()
Alias.__value__
"""),
]


def later():
    for since, source in LATER:
        if sys.version_info >= since:
            exec(compile(source, "<from %d.%d on>" % since, "exec"), {"launch": launch})


def imported():
    """Modules: from source, from a cache, from a zip, with frames of the import system."""
    source = "from launching import launch\nlaunch()\ndef f():\n    launch()\nf()\n"
    with tempfile.TemporaryDirectory(dir=os.environ.get("TEST_TMP")) as folder:
        for name in "imported_once", "imported_twice":
            with open(os.path.join(folder, name + ".py"), "w", encoding="utf-8") as f:
                f.write(source if name == "imported_once" else "import imported_once\n" + source)
        sys.path.insert(0, folder)
        importlib.invalidate_caches()
        importlib.import_module("imported_twice")
        import imported_once
        importlib.reload(imported_once)
        sys.path.remove(folder)


def regenerate(n):
    scope = {"launch": launch}
    exec(compile("def made_%02d():\n    launch()\n" % n, "<made %02d>" % n, "exec"), scope)
    function = scope["made_%02d" % n]
    function()
    time.sleep(0.002 * (n % 3))


def regenerated():
    """Other functions, and texts, at the addresses of those that are gone."""
    for n in range(40):
        regenerate(n)
        gc.collect()


def main():
    evaluated()
    odd_files()
    odd_names()
    made_names()
    far_lines()
    later()
    imported()
    regenerated()
