"""What ops take and refuse, written down beside what PyTorch does.

They are given numbers around the ends of ranges, operands of other shapes, and other dtypes for integers. `python -m
tests.ops.refusals torch > tests/ops/refusals.txt` tries all of it anew. A line has the name of a row, the place of an
operand, "as" where its dtype is another, or nothing, and a sign for each probe: + taken, - refused, ! refused by an
error that is not lucid's own. Behind them stand PyTorch's signs where they are others. What has no line is taken.
"""

from __future__ import annotations

import importlib
import sys
import warnings
from pathlib import Path
from typing import Any

import numpy as np

import lucid
from lucid.errors import LucidError
from tests.calls import number_rows
from tests.samples import all_samples

FILE = Path(__file__).with_suffix(".txt")
INF = float("inf")
NUMBERS = {int: (-2, -1, 0, 1, 2, 3, 9), float: (-INF, -1.0, -0.25, 0.0, 0.25, 1.0, 1.25, INF, float("nan"))}
# What is added is turned round: of a matrix with a row or column twice rounding says whether it can be factored.
SHAPES = {
    "one more element": lambda a: np.concatenate([a, a[(..., *[slice(None, None, -1)] * (a.ndim > 1), slice(1))]], -1),
    "one less": lambda a: a[..., :-1],
    "one more row": lambda a: np.concatenate([a, a[:1, ..., ::-1] if a.ndim > 1 else a[:1]]),
    "one more dimension": lambda a: a[None],
    "one less dimension": lambda a: a[0],
    "one of each row": lambda a: a[..., :1],
    "one row": lambda a: a[:1],
}

KINDS = ("float32", "int32", "bool", "complex64")


def written():
    """Return the signs of lucid, and those of PyTorch, by name and place."""
    lines = (line.rsplit(": ", 1) for line in FILE.read_text(encoding="utf-8").splitlines())
    return {name: (signs.split()[0], signs.split()[-1]) for name, signs in lines}


def sign_of(call):
    """Return how a call ends."""
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        try:
            call()
        except LucidError:
            return "-"
        except Exception:  # noqa: BLE001 - of PyTorch's any counts as a refusal
            return "!"
    return "+"


def of_numbers(module):
    """Yield the signs of each number of `number_rows`: of the first, where it stands for several."""
    for name, row in number_rows().items():
        given: list[Any] = []
        sign_of(lambda row=row, given=given: row(module, lambda n: given.append(n) or n))

        def sign(probe, row=row):
            left = [probe]
            return sign_of(lambda: row(module, lambda n: left.pop() if left else n))

        if given:
            module.manual_seed(0)
            yield name, "".join(map(sign, NUMBERS[int if row.is_integral else float]))


def of_operands(module):
    """Yield the signs of each operand of the table of samples in other shapes, of integers in other dtypes."""
    for sample in all_samples():
        if sample.torch is None:
            continue
        arrays = [np.asarray(a) for a in sample.inputs(np.random.default_rng(0))]
        for place, array in enumerate(arrays):

            def sign(other, sample=sample, arrays=arrays, place=place):
                given = [module.tensor(other if k == place else a) for k, a in enumerate(arrays)]
                if module is lucid:
                    return sign_of(lambda: sample.op(*given))
                return sign_of(lambda: sample.torch(module, *given))

            if array.ndim:
                shapes = (np.ascontiguousarray(change(array)) for change in SHAPES.values())
                yield f"{sample.name}, {place}", "".join(map(sign, shapes))
            if array.dtype.kind in "iu":
                yield f"{sample.name}, {place} as", "".join(map(sign, map(array.astype, KINDS)))


def found(module):
    """Return all signs."""
    return {**dict(of_numbers(module)), **dict(of_operands(module))}


if __name__ == "__main__":
    theirs = {name: signs.replace("!", "-") for name, signs in found(importlib.import_module(sys.argv[1])).items()}
    for key, ours in found(lucid).items():
        if {*ours, *theirs.get(key, ours)} != {"+"}:
            print(f"{key}: {ours}{'' if theirs.get(key, ours) == ours else ' ' + theirs[key]}")
