# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Calls of all kinds: plain, deep, through C and back, and on lines that are easily taken wrongly."""
import ctypes
import functools
import operator
import os
import re
import signal
import sys
import weakref

from launching import HELD, LAUNCH, REST, frame, launch, launch_held, note, via

CALLS = ctypes.CDLL(os.environ["CALLS"])
HOLDING = ctypes.PyDLL(os.environ["CALLS"])
BACK = ctypes.CFUNCTYPE(None, ctypes.c_int)
COMPARE = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p)


def plain():
    launch()
    LAUNCH(note(frame()), *REST)
    HELD(note(frame()), *REST)
    launch_held()


def nested():
    def one():
        def two():
            def three():
                launch()
            three()
        two()
    one()


def recursive(n):
    if n:
        return recursive(n - 1)
    launch()


# --- through C

def end_of_turns(_):
    launch()


def middle_of_turns(_):
    end_of_turns(0)


def by_turns():
    """A frame in the midst of a run, then, at the same place, at its end: called by Python and by C."""
    for _ in range(10):
        middle_of_turns(0)
        list(map(middle_of_turns, [0]))
        CALLS.calls_back(TURNS, 1)
        middle_of_turns(0)
        middle_of_turns(*[0])


@via("calls_back")
def back_by_turns(n):
    middle_of_turns(0)
    list(map(middle_of_turns, [0]))


TURNS = BACK(back_by_turns)


@via("calls_back")
def from_back(n):
    launch()


@via(*["calls_nested"] * 5, "calls_back")
def from_nested(n):
    launch()


@via("calls_alloca")
def from_alloca(n):
    launch_held()


@via("calls_sort", r"qsort(_r)?|__qsort_r")
def from_sort(a, b):
    LAUNCH(note(frame()), *REST)
    return 0


def through_c():
    CALLS.calls_back(BACK(from_back), 1)
    CALLS.calls_nested(BACK(from_nested), 1, 5)
    CALLS.calls_alloca(BACK(from_alloca), 77)
    CALLS.calls_sort(COMPARE(from_sort))
    HOLDING.calls_sort(COMPARE(from_sort_held))


@via("calls_sort", r"qsort(_r)?|__qsort_r")
def from_sort_held(a, b):
    launch_held()
    return 0


def deep(n):
    """300 Python frames, 30 of them called by C."""
    if n == 0:
        launch()
    elif n % 10 == 0:
        CALLS.calls_back(DEEP, n - 1)
    else:
        deep(n - 1)


@via("calls_back")
def deep_back(n):
    deep(n)


DEEP = BACK(deep_back)


@via(r"?list_sort.*|builtin_sorted.*|list\.sort")
def key(item):
    launch()
    return item


@via(r"?.*functools_reduce.*")
def add(a, b):
    launch()
    return a + b


@via(r"?pattern_sub.*|_sre_SRE_Pattern_sub.*")
def on_match(m):
    launch()
    return m.group(0)


@via(r"?map_next.*")
def mapped(x):
    launch()
    return x


@via(r"?filter_next.*")
def filtered(x):
    launch()
    return True


@via(r"?min_max.*|builtin_max.*")
def largest(x):
    launch()
    return x


def through_builtins():
    sorted([2, 1], key=key)
    [2, 1].sort(key=key)
    functools.reduce(add, [1, 2, 3])
    re.sub("a", on_match, "banana")
    list(map(mapped, [1, 2]))
    tuple(filter(filtered, "ab"))
    max([1, 2], key=largest)
    functools.partial(launch, 1)()
    operator.methodcaller("launch")(Holder())
    operator.attrgetter("attribute")(Holder())
    all(map(lambda x: launch() is None, [1]))


def nested_map(depth):
    if depth == 0:
        return launch()
    return next(map(lambda _: nested_map(depth - 1), [0]))


# --- what is called without looking like a call

class Holder:
    def launch(self):
        launch()

    @property
    def attribute(self):
        launch()
        return 1

    def __getattr__(self, name):
        launch()
        return name

    def __setattr__(self, name, value):
        launch()

    def __getitem__(self, key):
        launch()
        return key

    def __len__(self):
        launch()
        return 3

    def __eq__(self, other):
        launch()
        return True

    __hash__ = None

    def __add__(self, other):
        launch()
        return self

    def __contains__(self, x):
        launch()
        return True

    def __repr__(self):
        launch()
        return "Holder"

    def __call__(self, *args):
        launch()

    def __iter__(self):
        launch()
        return iter([1])

    def __enter__(self):
        launch()
        return self

    def __exit__(self, *why):
        launch()
        return True

    def __bool__(self):
        launch()
        return True

    def __format__(self, spec):
        launch()
        return spec


class Dying:
    def __del__(self):
        launch()


class Descriptor:
    def __get__(self, instance, owner):
        launch()
        return 5

    def __set__(self, instance, value):
        launch()

    def __set_name__(self, owner, name):
        launch()


def operators():
    h = Holder()
    h.attribute
    h.missing
    h.x = 1
    h[1]
    len(h)
    h == 2
    h + 1
    3 in h
    repr(h)
    h(1)
    str(h)
    a, = h
    if h:
        pass
    f"{h:x}"
    "%s %s" % (
        h,
        1)
    for _ in h:
        pass
    {**{"a": 1}, "b": h[2]}


def dying():
    Dying()
    d = Dying()
    d = None
    d = [Dying()]
    del d[0]
    d.append(Dying())
    ref = weakref.ref(d[0], launch)
    d.clear()
    return ref


def classes():
    class Has:
        thing = Descriptor()
        launch()

    class Meta(type):
        def __new__(mcs, name, bases, body):
            launch()
            return type.__new__(mcs, name, bases, body)

        def __call__(cls, *args):
            launch()
            return super().__call__(*args)

        @classmethod
        def __prepare__(mcs, name, bases):
            launch()
            return {}

    class Made(metaclass=Meta):
        for _ in range(2):
            launch()

        def __init__(self):
            launch()

        def __init_subclass__(cls):
            launch()

    class Sub(Made):
        @staticmethod
        def static():
            launch()

        @classmethod
        def of_class(cls):
            cls.static()

    Has().thing
    Has().thing = 1
    Sub().of_class()


# --- decorators, contexts, exceptions, lines

def decorate(function):
    @functools.wraps(function)
    def wrapper(*args, **kwargs):
        return function(*args,
                        **kwargs)
    return wrapper


@decorate
@decorate
def decorated(x, *, y):
    launch()
    return x + y


def context():
    with Holder() as h:
        launch()
    with Holder(), \
            Holder():
        raise ValueError
    return h


def finals():
    for n in range(3):
        try:
            launch()
            if n == 1:
                continue
            if n == 2:
                raise KeyError(n)
        except KeyError:
            launch()
        else:
            launch()
        finally:
            launch()
    try:
        return launch()
    finally:
        launch()


def lines():
    x = [
        launch(),
        launch(
            1,
            2),
        (lambda:
            launch())(),
    ]
    y = decorated(
        1,
        y=decorated(
            2,
            y=3
        ),
    ) + (
        decorated(4, y=5)
    )
    assert launch(
    ) is None
    z = (launch() or
         launch() or
         x and
         launch())
    while (launch()
           or z):
        pass
    if launch(): launch()	# noqa: E701
    elif not launch(): launch()	# noqa: E701
    return launch() if launch() \
        else launch(), y


def comprehensions():
    [launch() for _ in range(2)]
    {launch() for _ in range(1)}
    {n: launch() for n in range(1)}
    list(launch() for _ in range(1))
    [[launch()
      for _ in range(1)]
     for _ in range(1)
     if not launch()]
    [LAUNCH(note(frame()), *REST) for _ in range(1)]
    return any(
        launch(x)
        for x in [1, 2])


short = lambda *a: LAUNCH(note(frame()), *REST)	# noqa: E731


def lambdas():
    short()
    short(short(short()))
    (lambda f: f(f, 3))(lambda f, n: f(f, n - 1) if n else launch())


def default(x=launch, *, y=lambda: launch()):	# noqa: B008
    x()
    y()


# --- when nobody called

def on_signal(number, _):
    launch()


def signals():
    signal.signal(signal.SIGUSR1, on_signal)
    os.kill(os.getpid(), signal.SIGUSR1)
    for _ in range(100):
        pass


busy = False


def on_profile(f, event, arg):
    global busy
    if not busy and event == "call" and f.f_code.co_name == "decorated":
        busy = True
        launch()
        busy = False


def profiled():
    sys.setprofile(on_profile)
    try:
        decorated(1, y=2)
    finally:
        sys.setprofile(None)


def main():
    plain()
    nested()
    recursive(0)
    recursive(60)
    through_c()
    deep(300)
    through_builtins()
    by_turns()
    nested_map(1)
    nested_map(12)
    operators()
    dying()
    classes()
    decorated(1, y=2)
    context()
    finals()
    lines()
    comprehensions()
    lambdas()
    default()
    signals()
    profiled()
