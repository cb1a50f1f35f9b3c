"""Runs tests once, and for each fault those again that call the function which has it, in a process of its own.

A fault is other code for functions that exist: nothing is imported again, so that it takes a moment. What a module does
as it is imported can have none.
"""

from __future__ import annotations

import contextlib
import functools
import gc
import inspect
import os
import random
import re
import signal
import sys
import time
from collections import Counter, defaultdict
from itertools import count
from pathlib import Path
from types import CodeType, FunctionType

import pytest
from _pytest.runner import runtestprotocol
from _pytest.warnings import catch_warnings_for_item

from lucid.cuda.launch.plans import LaunchPlan
from tests.planted.faults import places, planted

ROOT = Path(__file__).parents[2]
# Of tests that call a function so many seconds of the processor are run for a fault of it; by the clock, which goes on
# while others use the processor, none takes longer than that eight times over.
SECONDS = 15.0
PRINTED = re.compile(r"(\S+\.py):(\d+) \S+: (.+): [^:]+, \d+ tests")


def codes_of(code):
    """Return a code object and those inside of it, by name and line."""
    found = {(code.co_qualname, code.co_firstlineno): code}
    for each in code.co_consts:
        if isinstance(each, CodeType):
            found |= codes_of(each)
    return found


def objects():
    """Return what exists, what tests have set aside too."""
    gc.unfreeze()
    return gc.get_objects()


def functions_of(files):
    """Return the functions of some files that exist, by file, name and line."""
    found = defaultdict(list)
    for each in objects():
        if type(each) is FunctionType and each.__code__.co_filename in files:
            code = each.__code__
            found[code.co_filename, code.co_qualname, code.co_firstlineno].append(each)
    return found


def caches_of(files):
    """Return what remembers results of functions of some files, by file."""
    found = defaultdict(list)
    for each in objects():
        # `isinstance` asks objects for their class, and those of others may warn
        if issubclass(type(each), functools._lru_cache_wrapper):
            function = inspect.unwrap(each)
            if isinstance(function, FunctionType) and function.__code__.co_filename in files:
                found[function.__code__.co_filename].append(each)
    return found


def plans():
    """Return what remembers what launchers did for arrays of one form: a fault of one would not be called again."""
    return [
        each for each in objects() if type(each) is dict and any(type(value) is LaunchPlan for value in each.values())
    ]


def printed(lines):
    """Return the places of faults that a run has printed: of those that say the same the nearest to the line."""
    found = []
    for file, line, words in (match.groups() for match in map(PRINTED.match, lines) if match):
        source = (ROOT / file).read_text()
        named = sorted(places(source), key=lambda place, line=int(line): abs(place[1].lineno - line))
        alike = (place for place in named if str(planted(source, place)) == words)
        found += [(str(ROOT / file), place) for place in [next(alike, None)] if place is not None]
    return found


def run(item):
    """Return whether a test passes, with the warnings filtered that it names."""
    with catch_warnings_for_item(item.config, item.ihook, "runtest", item):
        return not any(report.failed for report in runtestprotocol(item, nextitem=None, log=False))


class Planting:
    """A plugin of pytest that runs tests in this way.

    Parameters
    ----------
    files : list of str
        Whose functions get faults.
    most, draw : int
        How many faults are tried, and the seed that draws them.
    again : list of str, optional
        What a run has printed: its faults are tried, and none is drawn.
    """

    def __init__(self, files, most, draw, again=None):
        self.files, self.rng, self.again = files, random.Random(draw), again
        self.most = most if again is None else len(again)
        self.counts, self.times = Counter(), {}
        self.callers = defaultdict(list)
        self.functions, self.caches, self.plans = {}, {}, []

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session):
        """Run the tests, then plant the faults."""
        self.run_all(session.items)
        drawn = self.drawn() if self.again is None else printed(self.again)
        self.functions, self.caches, self.plans = functions_of({*self.files}), caches_of({*self.files}), plans()
        for file, place in drawn:
            if self.counts.total() == self.most:
                break
            self.plant(file, place)
        return True

    def drawn(self):
        """Return all places, in the order in which they are tried."""
        found = [(file, place) for file in self.files for place in places(Path(file).read_text())]
        self.rng.shuffle(found)
        return found

    def run_all(self, items):
        """Run each test without a fault, and note which functions it calls and how long it takes."""
        files, called = {*self.files}, set()

        def note(frame, event, _):
            code = frame.f_code
            if event == "call" and code.co_filename in files:
                called.add((code.co_filename, code.co_qualname, code.co_firstlineno))

        for item in items:
            called.clear()
            begin = time.process_time()
            sys.setprofile(note)
            try:
                passes = run(item)
            finally:
                sys.setprofile(None)
            if not passes:
                print(f"left out, as it fails without a fault: {item.nodeid}", flush=True)
                continue
            self.times[item.nodeid] = time.process_time() - begin
            for key in called:
                self.callers[key].append(item)

    def plant(self, file, place):
        """Try a fault, unless nothing has changed by it."""
        source = Path(file).read_text()
        fault = planted(source, place)
        old = codes_of(compile(source, file, "exec", dont_inherit=True))
        with contextlib.suppress(SyntaxError):
            new = codes_of(compile(fault.tree, file, "exec", dont_inherit=True))
            changed = [key for key in old if key in new and old[key] != new[key] and key[0] != "<module>"]
            if not changed:
                return
            inner = max(changed, key=lambda key: len(key[0]))
            tests = self.nearest(self.callers.get((file, *inner), []))
            ending = self.ending(file, new, tests) if tests else "no test calls it"
            self.counts["killed" if ending.startswith("killed") else ending] += 1
            if not ending.startswith("killed"):
                at = f"{Path(file).relative_to(ROOT)}:{fault.line}"
                print(f"{at} {inner[0]}: {fault}: {ending}, {len(tests)} tests", flush=True)

    def nearest(self, items):
        """Return the quickest tests first, one of each function of tests before its others, for as long as there is."""
        turns = defaultdict(count)
        order = sorted(items, key=lambda item: self.times[item.nodeid])
        order.sort(key=lambda item: next(turns[item.nodeid.partition("[")[0]]))
        chosen, total = [], 0.0
        for item in order:
            total += self.times[item.nodeid]
            if total > SECONDS and chosen:
                break
            chosen.append(item)
        return chosen

    def exchange(self, file, codes):
        """Give the functions of a file other code, and return whether one has changed."""
        changed = False
        # these hold what was right
        for cache in self.caches.get(file, ()):
            cache.cache_clear()
        for each in self.plans:
            each.clear()
        for key, code in codes.items():
            for function in self.functions.get((file, *key), ()):
                if function.__code__ != code:
                    with contextlib.suppress(ValueError):  # with another number of free variables
                        function.__code__ = code
                        changed = True
        return changed

    def ending(self, file, codes, tests):
        """Return what becomes of a fault: "killed by" a test, "survives", or "no function has it"."""
        reading, writing = os.pipe()
        child = os.fork()
        if not child:
            os.close(reading)
            self.be_tried(file, codes, tests, writing)
        os.close(writing)
        end = time.monotonic() + 8 * SECONDS
        while not (done := os.waitpid(child, os.WNOHANG))[0]:
            if time.monotonic() > end:
                os.killpg(child, signal.SIGKILL)
                os.waitpid(child, 0)
                os.close(reading)
                return "killed, as it hangs"
            time.sleep(0.01)
        with os.fdopen(reading, "rb") as pipe:
            return pipe.read().decode() or f"killed, as the process ends with {done[1]}"

    def be_tried(self, file, codes, tests, writing):
        """Run tests in the process of a fault, and end it."""
        os.setpgid(0, 0)
        null = os.open(os.devnull, os.O_RDWR)
        for stream in range(3):
            os.dup2(null, stream)
        try:
            if self.exchange(file, codes):
                killer = next((item.nodeid for item in tests if not run(item)), None)
                said = f"killed by {killer}" if killer else "survives"
            else:
                said = "no function has it"
        except BaseException as error:  # noqa: BLE001 - whatever ends the run is a find
            said = f"killed, as pytest ends by {type(error).__name__}"
        os.write(writing, said.encode())
        os._exit(0)

    def report(self):
        """Print how many faults ended how, and return 1 if some survived."""
        killed, called = self.counts["killed"], self.counts["killed"] + self.counts["survives"]
        print(f"{killed} of {called} faults killed; {dict(self.counts)}")
        return int(killed < called)
