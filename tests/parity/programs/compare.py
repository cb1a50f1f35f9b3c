"""Runs a program on both libraries and says where they differ."""

from __future__ import annotations

import numpy as np
import torch
import torch.utils.checkpoint

import lucid
from tests.parity.programs.generator import generate, shortened
from tests.parity.programs.machine import Machine


def agree(got, expected):
    """Tell whether two noted values are the same, numbers up to rounding."""
    if isinstance(expected, np.ndarray):
        return (
            isinstance(got, np.ndarray)
            and got.shape == expected.shape
            and got.dtype == expected.dtype
            and np.allclose(got, expected, 1e-9, 1e-11, equal_nan=True)
        )
    if isinstance(expected, tuple | list):
        return (
            type(got) is type(expected)
            and len(got) == len(expected)
            and all(agree(a, b) for a, b in zip(got, expected, strict=True))
        )
    if isinstance(expected, dict):
        return isinstance(got, dict) and list(got) == list(expected) and all(agree(got[k], expected[k]) for k in got)
    return type(got) is type(expected) and got == expected


def outcome(lib, program):
    """Return the machine that has run a program."""
    machine = Machine(lib, program)
    machine.run(program.steps)
    machine.end()
    return machine


def difference(program):
    """Return in words where lucid does something else than PyTorch; None where it does the same."""
    theirs, ours = outcome(torch, program), outcome(lucid, program)
    for number, (expected, got) in enumerate(zip(theirs.events, ours.events)):
        if got.name != expected.name:
            return f"event {number}: expected {expected.name}, got {got.name}"
        if not agree(got.seen, expected.seen):
            return f"event {number}, {got.name}: expected\n{expected.seen}\ngot\n{got.seen}"
    if len(theirs.events) != len(ours.events):
        return f"expected {len(theirs.events)} events, got {len(ours.events)}"
    return None


def report(program):
    """Return the shortest form of a program on which the libraries differ, as a script with what happened."""

    def kind_of(found):
        return found and found.split("expected")[1].split()[0][:1].isalpha()

    first = difference(program)
    short = shortened(program, lambda p: kind_of(difference(p)) == kind_of(first) if difference(p) else False)
    lines = [f"program {program.seed}, shortened: {difference(short)}"]
    lines += [f"m{n}: {s.kind}{list(s.children)} {s.a}" for n, s in enumerate(short.specs)]
    for lib in (torch, lucid):
        machine = outcome(lib, short)
        lines += [f"-- {lib.__name__}", *machine.script, *(f"    {e.name}" for e in machine.events)]
    return "\n".join(lines)


def first_difference(seeds):
    """Return the report of the first program that differs among those of the given seeds; None if all agree."""
    for seed in seeds:
        program = generate(seed)
        if difference(program):
            return report(program)
    return None
