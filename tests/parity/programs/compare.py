"""Runs a program on both libraries and says where they differ."""

from __future__ import annotations

import re
import traceback
from collections import Counter
from unittest.mock import patch

import torch
import torch.utils.checkpoint

import lucid
from lucid.autograd.modes.reading import Reads
from tests.device import DEVICE
from tests.parity.programs.generator import generate, shortened
from tests.parity.programs.machine import Machine, Raised
from tests.parity.programs.rounding import RUNS, Perturbed, close, spread

# of float64, and of programs that also compute in float32: relative and absolute
TOLERANCE = 1e-9, 1e-11
TOLERANCE_OF_MIXED = 1e-4, 1e-5

# tensors of six elements are no work for a second thread
torch.set_num_threads(1)


def outcome(lib, program):
    """Return the machine that has run a program."""
    # between forward and backward parameters change and hooks come, so that a checkpoint reads something else when it
    # runs again, which PyTorch's does not see: docs/users/hooks.md
    with patch.multiple(Reads, changed=lambda *_: False, _refuse=lambda *_: None):
        machine = Machine(lib, program)
        machine.run(program.steps)
        machine.end()
    return machine


def perturbed(program):
    """Return what PyTorch sees in a few runs whose every result is a little off."""
    runs = []
    for seed in range(RUNS):
        with Perturbed(seed):
            runs.append(outcome(torch, program).events)
    return runs


def agree(got, expected, room, tolerance):
    """Tell whether two noted values are the same; an error of lucid's may be more than PyTorch's is."""
    if isinstance(expected, Raised):
        return isinstance(got, Raised) and expected.classes[0] in got.classes
    return close(got, expected, room, tolerance)


def first_difference(theirs, ours, program):
    """Return the number of the first event that differs, which may be one that one side lacks; None if all agree."""
    tolerance = TOLERANCE_OF_MIXED if program.mixed else TOLERANCE
    runs = None
    for number, (expected, got) in enumerate(zip(theirs.events, ours.events)):
        if got.name != expected.name:
            return number
        if agree(got.seen, expected.seen, None, tolerance):
            continue
        if runs is None:
            runs = perturbed(program)
        steady = all(len(run) > number and run[number].name == expected.name for run in runs)
        room = spread(expected.seen, [run[number].seen for run in runs]) if steady else None
        if not agree(got.seen, expected.seen, room, tolerance):
            return number
    shorter, longer = sorted((len(theirs.events), len(ours.events)))
    return None if shorter == longer else shorter


def in_words(machine, number):
    """Return what a machine noted at a place."""
    if number >= len(machine.events):
        return "nothing more"
    event = machine.events[number]
    return f"{event.name} {event.said or event.seen}"


def difference(program):
    """Return in words where lucid does something else than PyTorch; None where it does the same."""
    theirs, ours = outcome(torch, program), outcome(lucid, program)
    number = first_difference(theirs, ours, program)
    if number is None:
        return None
    return f"event {number}\nexpected {in_words(theirs, number)}\n     got {in_words(ours, number)}"


def report(program):
    """Return the shortest form of a program on which the libraries differ, as a script with what happened."""

    def kind_of(found):
        """Return what differs: the names of the two events without their numbers, and what kind of error."""
        sides = found.split("\nexpected ")[1].split("\n     got ")
        return [
            re.sub(r"\d+", "", side[: side.find("(")] + "".join(re.findall(r"\w+Error", side)[:1])) for side in sides
        ]

    first = difference(program)
    short = shortened(program, lambda p: (found := difference(p)) is not None and kind_of(found) == kind_of(first))
    dtypes = " and two dtypes" if short.mixed else ""
    lines = [
        f"python -m tests.parity.programs {program.seed} 1: shape {short.shape}{dtypes}, shortened: {difference(short)}"
    ]
    lines += [f"m{n}: {s.kind}{list(s.children)} {s.a}" for n, s in enumerate(short.specs)]
    theirs, ours = outcome(torch, short), outcome(lucid, short)
    number = first_difference(theirs, ours, short)
    for machine in (theirs, ours):
        lines += [f"-- {machine.lib.__name__}", *machine.script]
        lines += [f"    {in_words(machine, n)}" for n in range(max(0, number - 5), number + 1)]
    return "\n".join(lines)


def first_that_differs(seeds):
    """Return the report of the first program that differs among those of the given seeds; None if all agree."""
    for seed in seeds:
        program = generate(seed)
        if difference(program):
            return report(program)
    return None


def judged(seeds):
    """Return for the programs of some seeds how many did what, and those that did not do the same, in words."""
    lucid.set_default_device(DEVICE)
    found = Counter()
    others = []
    for seed in seeds:
        try:
            result = difference(generate(seed))
        except Exception:  # noqa: BLE001  the others are to run all the same
            found["breaks"] += 1
            others.append((seed, f"breaks: {traceback.format_exc()}"))
            continue
        found["differs" if result else "same"] += 1
        if result:
            others.append((seed, f"differs: {result[:500]}"))
    return found, others
