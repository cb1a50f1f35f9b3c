"""NumPy's promotion: the dtypes that operands of a ufunc are taken in."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from lucid.autograd.base import TensorBase
from lucid.autograd.borrowing import borrowed
from lucid.base import gpu
from lucid.base.dtype import as_dtype
from lucid.ops.base.promotion import cast_to
from lucid.tensor.numpy_calls.operands import WEAK, listed, operand, tensors_in
from lucid.tensor.numpy_calls.table import CONSTANT_UFUNCS
from lucid.tensor.numpy_calls.ufuncs import UFUNCS

AS_IT_IS = frozenset(("conjugate", "matvec", "positive", "vecdot", "vecmat"))
"""The ufuncs whose op may return its operand, or take fewer dimensions than they."""


def is_array(value: object) -> bool:
    """Return whether a value is a tensor, or an array or scalar of NumPy's or CuPy's."""
    return isinstance(value, TensorBase | np.ndarray | np.generic) or gpu.is_gpu_array(value)


def is_number_of_numpys(value: object) -> bool:
    """Return whether a value is a scalar of NumPy's, or an array of it without dimensions."""
    return isinstance(value, np.ndarray | np.generic) and not value.ndim


@functools.cache
def op_and_dtypes(ufunc: np.ufunc) -> tuple[Any, frozenset[Any]]:
    """Return the op of a ufunc for operands taken as they are, and the dtypes of these."""
    name = ufunc.__name__
    op = UFUNCS.get(name)
    if op is None or getattr(np, name, None) is not ufunc or name in {*CONSTANT_UFUNCS, *AS_IT_IS} or ufunc.nout != 1:
        return None, frozenset()
    return op, frozenset([each for each in map(np.dtype, "efdFD") if is_kept(ufunc, each)])


def is_kept(ufunc: np.ufunc, dtype: np.dtype[Any]) -> bool:
    """Return whether a ufunc takes operands of a dtype in that."""
    try:
        return set(resolved(ufunc, (dtype,) * ufunc.nin)) == {dtype}
    except TypeError:
        return False


def promoted(ufunc: np.ufunc, inputs: tuple[Any, ...]) -> tuple[Any, ...]:
    """Return operands in the dtypes that NumPy's ufunc computes in; Python's numbers stay as they are."""
    like = next(tensors_in(inputs), None)
    arrays: list[Any] = [x if type(x) in WEAK or is_array(x) else listed(x, like) for x in inputs]
    if like is not None and gpu.is_gpu_array(like.array):
        # NumPy's operators make arrays without dimensions of its numbers
        arrays = [operand(x, like) if is_number_of_numpys(x) else x for x in arrays]
    kinds: list[Any] = [
        type(x) if type(x) in WEAK else x.array.dtype if isinstance(x, TensorBase) else x.dtype for x in arrays
    ]
    wanted = resolved(ufunc, tuple(kinds))
    return tuple([_in_dtype(x, dtype) for x, dtype in zip(arrays, wanted, strict=True)])


def as_matching(self: TensorBase, other: object) -> Any:
    """Return an operand as ops take it if its dtype need not be looked up; else None.

    It is a real number, or a tensor or an array of this one's dtype.
    """
    array = self.array
    if array.dtype.kind not in "fc":
        return None
    kind = type(other)
    if kind is float or kind is int:
        return other
    if isinstance(other, TensorBase):
        return other if other.array.dtype == array.dtype else None
    if kind is type(array):
        plain: Any = other
        return borrowed(plain) if plain.dtype == array.dtype else None
    return None


def _in_dtype(x: Any, dtype: np.dtype[Any]) -> Any:
    if isinstance(x, TensorBase):
        return x if x.array.dtype == dtype else cast_to(x, as_dtype(dtype))
    if type(x) in WEAK:
        # a bool is a number among numbers, which not all ops know
        return int(x) if isinstance(x, bool) and dtype.kind != "b" else x
    return x.astype(dtype, copy=False)


@functools.cache
def resolved(ufunc: np.ufunc, kinds: tuple[Any, ...]) -> tuple[np.dtype[Any], ...]:
    """Return the dtypes of the loop that a ufunc takes for operands of some dtypes, or kinds of numbers."""
    dtypes = tuple([np.dtype(bool) if kind is bool else kind for kind in kinds])
    return ufunc.resolve_dtypes((*dtypes, *(None,) * ufunc.nout))[: len(kinds)]
