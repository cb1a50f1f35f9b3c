"""Functions of SciPy's of sparse matrices: those that only move elements are recorded, others are SciPy's own."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from lucid import numpy as lnp
from lucid.autograd.base import TensorBase
from lucid.base import gpu
from lucid.base.arrays import on
from lucid.numpy.border import any_recorded, plain
from lucid.scipy.sparse.building import Elements, converted, is_scipys
from lucid.scipy.sparse.matrices import CLASSES, Sparse, issparse, wrapped
from lucid.scipy.sparse.operands import no_rule
from lucid.scipy.sparse.pattern import library
from lucid.scipy.sparse.rearranging import chosen, numbered, rearranged

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

STACKS = {"hstack", "vstack", "block_diag", "bmat", "block_array", "tril", "triu"}
"""Functions that leave each element what it is."""


def leaves(value: Any) -> list[Any]:
    """Return all arguments, also those in lists and tuples."""
    parts: Any = value
    return [leaf for each in parts for leaf in leaves(each)] if isinstance(value, list | tuple) else [value]


def replaced(value: Any, function: Callable[[Any], Any]) -> Any:
    """Return arguments with a function of each, also of those in lists and tuples."""
    parts: Any = value
    return (
        type(parts)([replaced(each, function) for each in parts])
        if isinstance(value, list | tuple)
        else function(value)
    )


def plain_matrix(value: Any) -> Any:
    """Return a sparse matrix as SciPy's or CuPy's, and a tensor as an array."""
    return value.to_scipy() if isinstance(value, Sparse) else plain(value)


def module_of(values: Sequence[Any], part: str) -> Any:
    """Return ``scipy.sparse``, or CuPy's for an argument on a device, or a part of it."""
    arrays = [plain(value.data if isinstance(value, Sparse) else value) for value in values]
    arrays += [value.data for value in values if is_scipys(value)]
    return library(next((array for array in arrays if gpu.is_gpu_array(array)), None), part)


def made(result: Any) -> Any:
    """Return a sparse matrix of SciPy's or CuPy's as one of lucid's."""
    return wrapped(result) if is_scipys(result) and len(result.shape) == 2 else result


def called(name: str, part: str = "", made: Callable[[Any], Any] = made) -> Callable[..., Any]:
    """Return one of SciPy's functions for lucid's sparse matrices; operands that require grad are refused."""

    def call(*args: Any, **kwargs: Any) -> Any:
        operands = leaves([*args, *kwargs.values()])
        if any_recorded([value.data if isinstance(value, Sparse) else value for value in operands]):
            raise no_rule(f"{part}.{name}".lstrip("."))
        function = getattr(module_of(operands, part), name)
        args, kwargs = replaced(args, plain_matrix), {key: replaced(one, plain_matrix) for key, one in kwargs.items()}
        return made(function(*args, **kwargs))

    call.__name__ = name
    return call


class Kind(type):
    """The class of SciPy's classes that lucid has none of, as `lil_matrix`: they take lucid's matrices too."""

    scipys: type

    def __call__(cls, *args: Any, **kwargs: Any) -> Any:
        """Return a matrix of SciPy's."""
        return called(cls.__name__, made=lambda matrix: matrix)(*args, **kwargs)

    def __instancecheck__(cls, instance: object) -> bool:
        return isinstance(instance, cls.scipys)

    def __subclasscheck__(cls, subclass: type) -> bool:
        return issubclass(subclass, cls.scipys)


def kind_of_scipys(scipys: type) -> type:
    """Return one of SciPy's classes with a constructor that takes lucid's matrices, and returns SciPy's own."""
    return scipys if issubclass(scipys, Exception) else Kind(scipys.__name__, (), {"scipys": scipys})


def stacking(name: str) -> Callable[..., Any]:
    """Return a function of SciPy's that moves elements of sparse matrices."""
    otherwise = called(name)

    def call(blocks: Any, *args: Any, **kwargs: Any) -> Any:
        parts = leaves(blocks)
        matrices = [wrapped(value) for value in parts if issparse(value)]
        if not any_recorded([matrix.data for matrix in matrices]) or len(matrices) < sum(x is not None for x in parts):
            return otherwise(blocks, *args, **kwargs)

        def function(*numbers: Any) -> Any:
            remaining = iter(numbers)
            moved = replaced(blocks, lambda value: next(remaining) if issparse(value) else value)
            return getattr(library(plain(matrices[0].data)), name)(moved, *args, **kwargs)

        result = rearranged(function, matrices, array=matrices[0].is_array and not on_gpu(matrices[0]))
        wanted = kwargs.get("format") or result.pattern.format
        return matrices[0].made(*converted(result, wanted))

    call.__name__ = name
    return call


def on_gpu(matrix: Sparse) -> bool:
    """Return whether the values of a matrix are on a device."""
    return gpu.is_gpu_array(plain(matrix.data))


def _diagonals(name: str, diagonals: Any, offsets: Any, options: dict[str, Any]) -> Any:
    lines: Any = diagonals
    if isinstance(diagonals, TensorBase) and plain(diagonals).ndim == 2:
        lines = list(lines)
    each: list[Any] = [*lines] if isinstance(lines, list | tuple) else [lines]
    if np.isscalar(offsets) and all(np.isscalar(one) for one in each):
        each = [np.asarray(each)]
    if not any_recorded(each):
        return called(name)(diagonals, **({"offsets": offsets} if offsets is not None else {}), **options)
    offsets = [0 if offsets is None else offsets] if len(each) == 1 and np.ndim(offsets or 0) == 0 else offsets
    like = next(plain(one) for one in each if isinstance(one, TensorBase))
    module = library(like)
    with on(like):
        each = [lnp.asarray(one) if isinstance(one, TensorBase) else _beside(one, like) for one in each]
        wanted = np.dtype(options.pop("dtype", None) or np.result_type(*[one.dtype for one in each]))
        numbers, values = numbered([lnp.atleast_1d(one) for one in each])
        format = options.pop("format", None) or "csr"
        kind = name if hasattr(module, name) else "diags"
        result = getattr(module, kind)(numbers, offsets=offsets, format="csr", **options)
    elements: Elements = chosen(result, values)
    matrix = CLASSES["csr", name == "diags_array"].made(*converted(elements, format))
    return matrix if matrix.dtype == wanted else matrix.astype(wanted)


def _beside(value: Any, like: Any) -> Any:
    if gpu.is_gpu_array(like) and not gpu.is_gpu_array(value):
        return gpu.cupy().asarray(value)
    return value if gpu.is_gpu_array(value) else np.asarray(value)


def diags(
    diagonals: Any, offsets: Any = 0, shape: tuple[int, int] | None = None, format: str | None = None, dtype: Any = None
) -> Any:
    """Return a matrix of diagonals; each may require grad."""
    return _diagonals("diags", diagonals, offsets, {"shape": shape, "format": format, "dtype": dtype})


def diags_array(
    diagonals: Any,
    /,
    *,
    offsets: Any = 0,
    shape: tuple[int, int] | None = None,
    format: str | None = None,
    dtype: Any = None,
) -> Any:
    """Return an array of diagonals; each may require grad."""
    return _diagonals("diags_array", diagonals, offsets, {"shape": shape, "format": format, "dtype": dtype})
