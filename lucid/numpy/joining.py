"""``r_[...]``, ``c_[...]``, ``mgrid[...]`` and ``ogrid[...]``, and functions that fill diagonals."""

from __future__ import annotations

from typing import Any

import numpy as np

from lucid.autograd.base import TensorBase, wrap
from lucid.base.arrays import asarray
from lucid.base.device import device_of
from lucid.base.gpu import is_gpu_array
from lucid.numpy.border import any_recorded, as_tensors, called, following, plain
from lucid.numpy.keys import parts_of
from lucid.numpy.results import settled
from lucid.ops.shape.diagonal import diag_embed
from lucid.tensor.numpy_calls.operands import operand, tensors_in
from lucid.tensor.numpy_calls.rules.places import selected


class ByIndex:
    """Base of NumPy's objects that are asked by an index."""

    def __init__(self, name: str) -> None:
        self.name, self.numpys = name, getattr(np, name)

    def __repr__(self) -> str:
        return f"lucid.numpy.{self.name}"


class Joining(ByIndex):
    """Joins the parts of its index, as NumPy's object of the name does: slices are ranges, strings directions."""

    def __getitem__(self, key: object) -> Any:
        parts = parts_of(key)
        numbers = numbers_in(parts)
        is_recorded = any_recorded(numbers)
        like = next(tensors_in(as_tensors(numbers)), None)
        if like is not None and (is_recorded or is_gpu_array(like.array)):
            parts = tuple([range_of(part, like) if isinstance(part, slice) else part for part in parts])
        if not is_recorded:
            return following(f"{self.name}.__getitem__", self.numpys.__getitem__, (plain_ranges(parts),), {})
        moved = {str(k): part for k, part in enumerate(parts) if not isinstance(part, str)}

        def join(**numbers: object) -> Any:
            return self.numpys[tuple([numbers.get(str(k), part) for k, part in enumerate(parts)])]

        return settled(selected(join, moved, moved, weak=""), ())


class Grids(ByIndex):
    """Makes grids of the ranges of its index, as NumPy's object of the name does: whole ones, or open ones of lines."""

    def __getitem__(self, key: Any) -> Any:
        parts = parts_of(key)
        numbers = numbers_in(parts)
        if not any_recorded(numbers):
            return following(f"{self.name}.__getitem__", self.numpys.__getitem__, (plain_ranges(key),), {})
        like = next(tensors_in(numbers))
        dtype = np.result_type(*[number for part in parts for number in numbers_of(part)])
        lines = [called("asarray", np.asarray, (range_of(part, like), dtype), {}) for part in parts]
        if type(key) is not tuple:
            return lines[0]
        is_open = self.name == "ogrid"
        grids = called("meshgrid", np.meshgrid, tuple(lines), {"indexing": "ij", "sparse": is_open})
        return grids if is_open else called("stack", np.stack, (grids,), {})


def ends_of(part: Any) -> tuple[Any, Any, Any]:
    """Return the start, the stop and the step of a slice."""
    return 0 if part.start is None else part.start, part.stop, 1 if part.step is None else part.step


def numbers_in(parts: Any) -> list[Any]:
    """Return the parts of an index, in place of slices their ends and steps."""
    return [each for part in parts for each in (ends_of(part) if isinstance(part, slice) else (part,))]


def numbers_of(part: Any) -> list[Any]:
    """Return the dtypes of arrays, and the numbers, of a slice, of a grid; an imaginary step is a float."""
    return [
        number.array.dtype if isinstance(number, TensorBase) else abs(number) if is_count(number) else number
        for number in ends_of(part)
    ]


def is_count(step: object) -> bool:
    """Return whether a step says how many elements there are: it is imaginary."""
    return isinstance(step, complex | np.complexfloating)


def plain_ranges(key: Any) -> Any:
    """Return an index with the plain values of tensors in its slices."""
    if type(key) is tuple:
        return tuple([plain_ranges(part) for part in parts_of(key)])
    part: Any = key
    return slice(*plain([part.start, part.stop, part.step])) if isinstance(key, slice) else key


def range_of(part: Any, like: TensorBase) -> Any:
    """Return the range of a slice, on the device of `like`."""
    start, stop, step = ends_of(part)
    if is_count(step):
        made = called("linspace", np.linspace, (start, stop, int(abs(step))), {})
    else:
        made = called("arange", np.arange, (start, stop, step), {})
    return made if isinstance(made, TensorBase) else wrap(asarray(made, device=device_of(like.array)))


r_, c_, mgrid, ogrid = Joining("r_"), Joining("c_"), Grids("mgrid"), Grids("ogrid")


def make_diagonal(D: Any, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Any:
    """Return matrices of zeros with `D` on their diagonals: HIPS/autograd's function, the other way of ``diagonal``.

    Parameters
    ----------
    D : array
        Its last dimension is the diagonal.
    offset : int
        How far above the main diagonal; below it if it is negative.
    axis1, axis2 : int
        Where the dimensions of rows and columns are in the result.

    Examples
    --------
    >>> import lucid.numpy as np
    >>> np.make_diagonal(np.array([1.0, 2.0]), axis1=-1, axis2=-2)
    array([[1., 0.],
           [0., 2.]])
    """
    return settled(diag_embed(operand(D, None, strong=True), offset, axis1, axis2), ())
