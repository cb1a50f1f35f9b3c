"""Sums of several arrays in one launch, for the gradients of a tensor that is used more than once."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from lucid.base import gpu
from lucid.cuda.launch.elementwise import KINDS, Elementwise
from lucid.cuda.launch.kernels import C_TYPES, FLOATS

if TYPE_CHECKING:
    from collections.abc import Sequence


MAX_TERMS = max(KINDS)

SUMMABLE = frozenset(dtype for dtype, name in C_TYPES.items() if name in FLOATS)
"""The dtypes that there are kernels for."""

_HALVES = ("__half", "__nv_bfloat16")
_SAME_TYPE, _CONTINUED = "T" * MAX_TERMS, "W" + "T" * (MAX_TERMS - 1)
_SUM = Elementwise("accumulation", "Total", _SAME_TYPE)
_BEGIN = Elementwise("accumulation", "Total", _SAME_TYPE, out="float", dtypes=_HALVES)
_GO_ON = Elementwise("accumulation", "Total", _CONTINUED, out="float", dtypes=_HALVES)
_END = Elementwise("accumulation", "Total", _CONTINUED, dtypes=_HALVES)


def total(terms: Sequence[Any], *, more: bool) -> Any:
    """Return the sum of up to 8 arrays, from left to right.

    Parameters
    ----------
    terms : sequence of Array
        At least two, of one shape, of any strides, of one dtype of `SUMMABLE`. The first may be the unrounded sum that
        an earlier call returned.
    more : bool
        Whether further terms will be added: then the sum of a half type is float32.
    """
    dtype = terms[-1].dtype
    kernel = _SUM
    if dtype.itemsize == 2:
        continued = terms[0].dtype != dtype
        kernel = (_GO_ON if continued else _BEGIN) if more else (_END if continued else _SUM)
    absent = [-0.0] * (MAX_TERMS - len(terms))
    out = kernel(*terms, *absent)
    if out is NotImplemented:
        # too many dimensions that cannot be merged
        out = kernel(*map(gpu.cupy().ascontiguousarray, terms), *absent)
    return out
