"""``r_[...]`` and ``c_[...]``, and functions that fill diagonals."""

from __future__ import annotations

from typing import Any, cast

import numpy as np

from lucid.numpy.border import any_recorded, computed, settled
from lucid.ops.shape.diagonal import diag_embed
from lucid.tensor.numpy_calls.definition import operand
from lucid.tensor.numpy_calls.rules.places import selected


class Joining:
    """Joins the parts of its index, as NumPy's object of the name does: slices are ranges, strings directions."""

    def __init__(self, name: str) -> None:
        self.name, self.joined = name, getattr(np, name)

    def __repr__(self) -> str:
        return f"lucid.numpy.{self.name}"

    def __getitem__(self, key: object) -> Any:
        parts = cast("Any", key if type(key) is tuple else (key,))
        if not any_recorded(parts):
            return computed(f"{self.name}.__getitem__", self.joined.__getitem__, cast("Any", (key,)), {})
        parts = [self.joined[part] if isinstance(part, slice) else part for part in parts]
        moved = {str(k): part for k, part in enumerate(parts) if not isinstance(part, str)}

        def join(**numbers: object) -> Any:
            return self.joined[tuple([numbers.get(str(k), part) for k, part in enumerate(parts)])]

        return settled(selected(join, moved, moved, weak=""), ())


r_, c_ = Joining("r_"), Joining("c_")


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
