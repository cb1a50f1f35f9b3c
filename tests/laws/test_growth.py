"""Twice as much of anything is twice the work: nothing that a program does n times takes n times as long each time."""

from __future__ import annotations

import gc
import sys

import pytest

from benchmarks.growth.acts import FAMILIES
from benchmarks.measure import Peer
from tests.pieces.loops import load_loops

pytestmark = pytest.mark.cpu("what Python does on the host")

MOST = 2.3


def steps_of(function, argument):
    """Return how many functions a call calls, and how many lines of Python it goes through."""
    counts = {"calls": 0, "lines": 0}

    def calls(frame, event, argument):
        counts["calls"] += event in {"call", "c_call"}

    def lines(frame, event, argument):
        counts["lines"] += event == "line"
        return lines

    watched, traced, collects = sys.getprofile(), sys.gettrace(), gc.isenabled()
    gc.disable()  # what a collection calls, and when it comes, is not of the function
    sys.setprofile(calls)
    sys.settrace(lines)
    try:
        function(argument)
    finally:
        sys.settrace(traced)
        sys.setprofile(watched)
        if collects:
            gc.enable()
    return counts


def counted(family, n):
    load_loops()
    act = family.make(Peer("lucid"), n)
    act.call(act.prepare())  # what is only done once, of this size, is done
    return steps_of(act.call, act.prepare())


@pytest.mark.parametrize("name", FAMILIES)
def test_work_grows_with_its_size(name):
    """From 2n to 4n at most 2.3 times as many calls and lines come in addition as from n to 2n.

    What is constant does not hide what grows. Loops of C are not seen: `python -m benchmarks.growth` measures them.
    """
    family = FAMILIES[name]
    few, some, many = (counted(family, factor * family.least) for factor in (1, 2, 4))
    for what, count in many.items():
        first, second = some[what] - few[what], count - some[what]
        assert second <= MOST * max(first, 0) + 10, f"{name}: {few[what]}, {some[what]}, {count} {what}"


@pytest.mark.parametrize("loop", ["of calls", "of lines"])
def test_growth_of_squares_is_seen(loop):
    """A list that is searched for each of its elements is over the limit, by calls or by lines alone."""

    def search(items):
        for item in items:
            if loop == "of calls":
                [id(each) for each in items]
            else:
                for each in items:
                    if each is item:
                        break

    what = loop.removeprefix("of ")
    few, some, many = (steps_of(search, [object() for _ in range(n)])[what] for n in (50, 100, 200))
    assert many - some > MOST * (some - few)
