"""Steps of rows on the CPU by a compiled loop, in one call for all that lie as it takes them."""

from __future__ import annotations

import ctypes
from functools import cached_property, partial
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from lucid.cpu.functions import address
from lucid.optim.base.blocks import update_in_blocks

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from lucid.base.arrays import Array
    from lucid.cpu.functions import Call
    from lucid.optim.base.algebra import Step

_KINDS = ("", "float", "double")
_CODES = {"f": 1, "F": 1, "d": 2, "D": 2}
_PLAIN = {float, int, bool}

_byte = ctypes.c_char.from_buffer


def _address(array: Array, *, write: bool = False) -> int:
    """Return the address of an array; 0 of one that no loop takes."""
    try:
        # in a quarter of the time of NumPy's own way
        return ctypes.addressof(_byte(array))  # pyright: ignore[reportArgumentType]
    except (TypeError, ValueError, BufferError):
        fits = type(array) is np.ndarray and array.size and array.flags.c_contiguous and not write
        return address(array) if fits else 0


class Rows:
    """Parameters and state that change together: their addresses, in a table.

    Parameters
    ----------
    step : Step
    columns : sequence of sequence of Array
        The gradients of the rows, of which only dtypes count, their parameters, and each array of their state.
    """

    def __init__(self, step: Step, columns: Sequence[Sequence[Array]]) -> None:
        self._loop = step.loop
        self._targets = columns[1:]
        rows = zip(*columns, strict=True)
        self._codes = np.array([0 if step.loop is None else _code(row) for row in rows], np.int8)
        self._kinds: list[int] = [code for code in set(self._codes.tolist()) if code]
        self._work = sum([target.size for target in columns[1]])

    @cached_property
    def _counts(self) -> Array:
        sizes = [target.size * (2 if target.dtype.kind == "c" else 1) for target in self._targets[0]]
        return np.array(sizes, np.uint64)

    @cached_property
    def _table(self) -> Array:
        table = np.zeros((len(self._codes), 1 + len(self._targets)), np.uint64)
        for column, arrays in enumerate(self._targets, 1):
            # NumPy refuses what is read-only, and does nothing to what is empty
            table[:, column] = [_address(each, write=True) for each in arrays]
        return table

    def step(
        self, chain: tuple[Callable[..., None], int], grads: Sequence[Array], numbers: dict[str, float]
    ) -> Callable[[], None]:
        """Return the step of all rows, in their order, with these gradients; nothing is compiled in it."""
        calls: dict[int, Call] = {}
        for code in self._kinds:
            call = None if self._loop is None else self._loop(self._work, _KINDS[code])
            if call is not None:
                calls[code] = call
        # a float64 of NumPy's is rounded after a product, a float of Python's before
        if not calls or not {type(number) for number in numbers.values()} <= _PLAIN:
            return partial(update_in_blocks, *chain, zip(grads, *self._targets, strict=True), numbers)
        steps: list[Callable[[], None]] = []
        for first, end, code in self._runs(grads):
            if code in calls:
                at, counts = address(self._table[first:]), address(self._counts[first:])
                steps.append(partial(calls[code], at, counts, end - first, *numbers.values()))
            else:
                rows = zip(*[column[first:end] for column in (grads, *self._targets)], strict=True)
                steps.append(partial(update_in_blocks, *chain, rows, numbers))
        return steps[0] if len(steps) == 1 else partial(_take, steps)

    def _runs(self, grads: Sequence[Array]) -> list[tuple[int, int, int]]:
        """Return the first and last rows of each run of one kind, and the kind: 0 is for NumPy."""
        table, sizes = self._table, self._codes.astype(np.uint64) * np.uint64(4)
        table[:, 0] = [_address(grad) for grad in grads]
        fits = table.all(axis=1) & ~(table % np.maximum(sizes, 1)[:, None]).any(axis=1)
        # arrays that overlap are changed one after the other
        order = np.sort(table, axis=1)
        fits &= (order[:, 1:] - order[:, :-1] >= (sizes * self._counts)[:, None]).all(axis=1)
        codes = np.where(fits, self._codes, 0)
        bounds = [0, *((codes[1:] != codes[:-1]).nonzero()[0] + 1).tolist(), len(codes)]
        return [(first, end, int(codes[first])) for first, end in pairwise(bounds)]


def _code(row: Sequence[Array]) -> int:
    """Return the kind of a row, 0 if it is none of a loop: arrays of one dtype that lie close together."""
    dtype = row[0].dtype
    if any(type(each) is not np.ndarray or each.dtype != dtype for each in row):
        return 0
    return _CODES.get(dtype.char, 0) if dtype.isnative else 0


def _take(steps: list[Callable[[], None]]) -> None:
    for step in steps:
        step()
