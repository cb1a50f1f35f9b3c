"""Steps of rows on the CPU by a compiled loop, in one call for all that lie as it takes them."""

from __future__ import annotations

import ctypes
from functools import partial
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from lucid.cpu.functions import address
from lucid.optim.base.blocks import update_in_blocks

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from lucid.base.arrays import Array
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
        self._step = step
        self._targets = columns[1:]
        rows = list(zip(*columns, strict=True))
        self._codes = np.array([_code(row) for row in rows], np.int8)
        self._counts = np.array([row[1].size * (2 if row[1].dtype.kind == "c" else 1) for row in rows], np.int64)
        self._work = int(self._counts[self._codes > 0].sum())
        self._table = np.zeros((len(rows), len(columns)), np.uint64)
        for column, arrays in enumerate(self._targets, 1):
            # NumPy refuses what is read-only, and does nothing to what is empty
            self._table[:, column] = [_address(each, write=True) for each in arrays]

    def step(
        self, chain: tuple[Callable[..., None], int], grads: Sequence[Array], numbers: dict[str, Any]
    ) -> Callable[[], None]:
        """Return the step of all rows, in their order, with these gradients; nothing is compiled in it."""
        runs = [(0, len(grads), 0)] if self._step.loop is None or not self._work else self._runs(grads, numbers)
        steps: list[Callable[[], None]] = []
        for first, end, code in runs:
            call = self._step.loop(self._work, _KINDS[code]) if code and self._step.loop is not None else None
            if call is None:
                rows = zip(*[column[first:end] for column in (grads, *self._targets)], strict=True)
                steps.append(partial(update_in_blocks, *chain, rows, numbers))
            else:
                at, counts = address(self._table[first:]), address(self._counts[first:])
                steps.append(partial(call, at, counts, end - first, *numbers.values()))
        return steps[0] if len(steps) == 1 else partial(_take, steps)

    def _runs(self, grads: Sequence[Array], numbers: dict[str, Any]) -> list[tuple[int, int, int]]:
        """Return the first and last rows of each run of one kind, and the kind: 0 is for NumPy."""
        # a float64 of NumPy's is rounded after a product, a float of Python's before
        if not {type(number) for number in numbers.values()} <= _PLAIN:
            return [(0, len(grads), 0)]
        table = self._table
        table[:, 0] = [_address(grad) for grad in grads]
        sizes = self._codes.astype(np.uint64) * np.uint64(4)
        fits = (self._codes > 0) & table.all(axis=1)
        fits &= ~(table % np.maximum(sizes, 1)[:, None]).any(axis=1)
        # arrays that overlap are changed one after the other
        order = np.sort(table, axis=1)
        fits &= (np.diff(order, axis=1) >= (sizes * self._counts.astype(np.uint64))[:, None]).all(axis=1)
        codes = np.where(fits, self._codes, 0)
        bounds = [0, *(np.flatnonzero(np.diff(codes)) + 1).tolist(), len(codes)]
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
