"""The one table of ops: a row for each, from which value, gradient, dtype, broadcast, empty and strided tests follow.

A row is written in the file of its family in `tests/sample_rows`, and collected here.
"""

from __future__ import annotations

import importlib
import pkgutil
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import tests.sample_rows as rows_package

if TYPE_CHECKING:
    from collections.abc import Callable

FLOATS = ("float16", "bfloat16", "float32", "float64")
INTEGERS = ("uint8", "int8", "int16", "int32", "int64")
COMPLEX = ("complex64", "complex128")
# How far inputs stay from where an op has a kink, or two numbers are compared: sixteen times the resolution of the
# coarsest dtype, bfloat16, so that rounding its inputs and what is computed on the way puts none on the other side.
GAP = 1 / 16
MOST_DRAWS = 10_000


@dataclass(frozen=True, repr=False)
class Sample:
    """One op on one kind of arguments.

    Attributes
    ----------
    name : str
        Unique: the public name of the op in `lucid`, a colon and a variant if there are several rows of it.
    op : callable
        ``op(*tensors)`` on lucid tensors, settings bound in.
    inputs : callable
        ``inputs(rng)`` gives the float64 (or integer, bool) NumPy arrays, in the interior of the op's domain and away
        from ties. Integer and bool arrays are never differentiated.
    reference : callable, optional
        ``reference(*arrays)`` on float64 NumPy arrays: the value from an independent source (plain NumPy).
    torch : callable, optional
        ``torch(module, *tensors)`` with PyTorch as `module`: the same op there, for the parity tests.
    dtypes : tuple of str
        The dtypes that floating-point inputs are tried in.
    differentiable, twice : bool
        Whether there is a first and a second derivative to check.
    empty : callable, optional
        ``empty(rng)``: inputs of size zero that the op takes; None if it refuses them.
    broadcasts : bool
        Whether the operands broadcast against each other.
    tolerance : dict of str to float
        By dtype: the relative error allowed there, for an op that loses more than the general tests allow.
    gaps : callable, optional
        ``gaps(*arrays)``: arrays of numbers around 1 that are zero where the op has a kink or cancels, such as the
        distance to a bound, or the difference of two distances by their sum. Inputs are drawn anew until none of these
        numbers is nearer to zero than `GAP`.
    constants : tuple of int
        Places of floating-point inputs that the op does not differentiate by.
    """

    name: str
    op: Callable[..., Any]
    inputs: Callable[[np.random.Generator], tuple[Any, ...]]
    reference: Callable[..., Any] | None = None
    torch: Callable[..., Any] | None = None
    dtypes: tuple[str, ...] = FLOATS
    differentiable: bool = True
    twice: bool = True
    empty: Callable[[np.random.Generator], tuple[Any, ...]] | None = None
    broadcasts: bool = False
    tolerance: dict[str, float] = field(default_factory=dict)
    gaps: Callable[..., Any] | None = None
    constants: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        if self.gaps is not None:
            object.__setattr__(self, "inputs", clear_of(self.gaps, self.inputs, self.name))

    def __repr__(self) -> str:
        return f"<sample {self.name}>"


def clear_of(gaps: Callable[..., Any], inputs: Callable[..., Any], name: str) -> Callable[..., Any]:
    """Return what draws inputs until none of their `gaps` is near zero."""

    def draw(rng: np.random.Generator) -> tuple[Any, ...]:
        for _ in range(MOST_DRAWS):
            arrays = inputs(rng)
            if all((np.abs(gap) > GAP).all() for gap in gaps(*arrays)):
                return arrays
        raise ValueError(f"{name}: of {MOST_DRAWS} draws none is clear of its gaps; draw fewer elements, or wider")

    return draw


def kinks(*places: float) -> Callable[..., Any]:
    """Return the gaps of an elementwise op: the distances of the first input's elements from its kinks."""
    return lambda x, *_: [x - place for place in places]


def all_samples() -> list[Sample]:
    """Return the whole table, each family's rows in the order of their file."""
    table: list[Sample] = []
    files = pkgutil.walk_packages(rows_package.__path__, f"{rows_package.__name__}.")
    for module in sorted(info.name for info in files if not info.ispkg):
        table += importlib.import_module(module).ROWS
    names = [sample.name for sample in table]
    doubled = {name for name in names if names.count(name) > 1}
    if doubled:
        raise ValueError(f"rows of the same name: {sorted(doubled)}")
    return table


def check_each(check, cases, rng):
    """Call `check(*case, rng)` for each case, with random numbers of its own; fail with all that fail, by name."""
    failures = {}
    for case, own in zip(cases, rng.spawn(len(cases)), strict=True):
        try:
            check(*case, own)
        except (Exception, pytest.fail.Exception) as error:  # noqa: BLE001 - the other cases are tried all the same
            failures[" ".join(case)] = error
            error.add_note(f"in the case {' '.join(case)}")
    if failures:
        raise BaseExceptionGroup(f"fail: {', '.join(failures)}", list(failures.values()))
