"""CuPy's functions as ops use them: a bfloat16 array stays one, and no size wraps around, as it is in NumPy.

CuPy's ufuncs know bfloat16, but `where` and what CuPy makes of it do not, and a Python float beside a bfloat16 array is
not weak: each gives float32. Its logical functions of two arrays know no complex numbers. Of a shape whose product
wraps around CuPy makes an array on too little memory.
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any, cast

import ml_dtypes
import numpy as np

from lucid.base import gpu
from lucid.base.memory import check_size

if TYPE_CHECKING:
    from collections.abc import Callable


_BFLOAT16 = np.dtype(ml_dtypes.bfloat16)
_NUMBERS = frozenset((bool, int, float))


class _Functions:
    """A module's functions, those mended that forget bfloat16, look at no sizes, or know no complex numbers."""

    def __init__(self, module: object) -> None:
        self._module = module

    def __getattr__(self, name: str) -> Any:
        function = getattr(self._module, name)
        if (mended := _MENDED.get(name)) is not None:
            function = mended(function)
        setattr(self, name, function)
        return function


def _sized(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function that makes an array of a shape, behind a check that this is one."""
    dtype_at = 1 if function.__name__ == "full" else 0

    def makes(shape: Any, *rest: Any, **settings: Any) -> Any:
        dtype = settings.get("dtype", rest[dtype_at] if len(rest) > dtype_at else None)
        check_size(function.__name__, (shape,) if hasattr(shape, "__index__") else shape, np.dtype(dtype).itemsize)
        return function(shape, *rest, **settings)

    return makes


def _sized_view(function: Callable[..., Any]) -> Callable[..., Any]:
    def views(array: Any, shape: Any) -> Any:
        check_size("expand", shape, array.itemsize)
        return function(array, shape)

    return views


def _keeping(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function of arrays and numbers with bfloat16 results if all its floating-point arrays are bfloat16."""

    def keeps(*operands: Any, **settings: Any) -> Any:
        out = function(*operands, **settings)
        dtypes = [x.dtype for x in operands if hasattr(x, "dtype") and x.dtype.kind in "fcV"]
        return out.astype(_BFLOAT16) if dtypes and all(dtype == _BFLOAT16 for dtype in dtypes) else out

    return keeps


def _of_complex(function: Callable[..., Any]) -> Callable[..., Any]:
    """Logical function of complex numbers too: zero alone is false."""

    def decides(*operands: Any) -> Any:
        return function(*[x != 0 if np.iscomplexobj(x) else x for x in operands])

    return decides


_MENDED: dict[str, Callable[[Callable[..., Any]], Callable[..., Any]]] = {
    **dict.fromkeys(("clip", "tril", "triu", "where"), _keeping),
    **dict.fromkeys(("logical_and", "logical_or", "logical_xor"), _of_complex),
    **dict.fromkeys(("empty", "full", "ones", "zeros"), _sized),
    "broadcast_to": _sized_view,
}
_functions_of = functools.cache(_Functions)


def cupy_functions() -> Any:
    """``cupy``, with functions that keep bfloat16.

    Raises
    ------
    CudaUnavailableError
        If there is no CUDA device.
    """
    return _functions_of(gpu.cupy())


def with_weak_numbers(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function of CuPy's arrays and numbers that takes numbers beside bfloat16 arrays in bfloat16.

    Its results are looked at, since CuPy lets the product of the sizes wrap around.
    """

    def takes(*operands: object, **settings: object) -> Any:
        if any(type(x) in _NUMBERS for x in operands) and any(getattr(x, "dtype", 0) == _BFLOAT16 for x in operands):
            operands = tuple(_BFLOAT16.type(x) if type(x) in _NUMBERS else x for x in operands)
        result = function(*operands, **settings)
        results: tuple[Any, ...] = cast("Any", result) if isinstance(result, tuple) else (result,)
        for out in results:
            # what CuPy has broadcast
            if hasattr(out, "shape"):
                check_size("broadcast", out.shape, out.itemsize)
        return cast("Any", result)

    return takes
