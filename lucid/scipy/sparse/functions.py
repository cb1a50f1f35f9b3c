"""Functions of SciPy's of sparse matrices: those that only move elements are recorded, others are SciPy's own."""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from lucid import numpy as lnp
from lucid.autograd.base import TensorBase
from lucid.base import gpu
from lucid.base.arrays import on
from lucid.numpy.border import VALUES, any_recorded, plain
from lucid.numpy.promotion import is_array
from lucid.numpy.results import hand_over
from lucid.scipy.sparse.base import (
    CLASSES,
    Stored,
    is_sparray,
    issparse,
    leaves,
    plain_matrix,
    recorded_in,
    replaced,
    wrapped,
)
from lucid.scipy.sparse.building import Elements, converted, is_scipys, of_dense
from lucid.scipy.sparse.operands import no_rule
from lucid.scipy.sparse.pattern import library
from lucid.scipy.sparse.rearranging import chosen, numbered, rearranged
from lucid.tensor.numpy_calls.operands import is_recorded

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

STACKS = {"hstack", "vstack", "block_diag", "bmat", "block_array", "tril", "triu"}
"""Functions that leave each element what it is."""

QUESTIONS = {"is_sptriangular", "spbandwidth"}
"""Functions that no gradient goes through."""

FAMILIES = {"spmatrix": False, "sparray": True}
"""SciPy's bases of its classes, and whether theirs are arrays."""


def module_of(values: Sequence[Any], part: str) -> Any:
    """Return ``scipy.sparse``, or CuPy's for an argument on a device, or a part of it."""
    arrays = [plain(value.data if isinstance(value, Stored) else value) for value in values]
    arrays += [value.data for value in values if is_scipys(value)]
    return library(next((array for array in arrays if gpu.is_gpu_array(array)), None), part)


def made(result: Any) -> Any:
    """Return a sparse matrix of SciPy's or CuPy's as one of lucid's."""
    # it may be the argument itself
    return wrapped(result.copy()) if is_scipys(result) and len(result.shape) == 2 else result


def makes_array(name: str, operands: Sequence[Any]) -> bool:
    """Return whether a function's result is an array in the sense of SciPy's ``csr_array``."""
    return name.endswith("_array") or any(issparse(each) and is_sparray(each) for each in operands)


def called(name: str, part: str = "", made: Callable[[Any], Any] = made) -> Callable[..., Any]:
    """Return one of SciPy's functions for lucid's sparse matrices; operands that require grad are refused."""

    def call(*args: Any, **kwargs: Any) -> Any:
        operands = leaves([*args, *kwargs.values()])
        if name not in QUESTIONS and recorded_in(operands):
            raise no_rule(f"{part}.{name}".lstrip("."))
        function = getattr(module_of(operands, part), name)
        values = [*args, *kwargs.values()]
        args, kwargs = replaced(args, plain_matrix), {key: replaced(one, plain_matrix) for key, one in kwargs.items()}
        result = made(function(*args, **kwargs))
        if not isinstance(cast("object", result), (Stored, *VALUES)):
            hand_over(values)
        if not isinstance(result, Stored) or not on_gpu(result):
            return result
        # CuPy gets matrices for arrays
        return result.in_family(makes_array(name, operands))

    call.__name__ = name
    return call


class Kind(type):
    """The class of SciPy's classes that lucid has none of, as `lil_matrix`: they take lucid's matrices too."""

    scipys: type

    def __call__(cls, *args: Any, **kwargs: Any) -> Any:
        """Return a matrix of SciPy's."""
        return called(cls.__name__, made=lambda matrix: matrix)(*args, **kwargs)

    def __instancecheck__(cls, instance: object) -> bool:
        if issparse(instance) and cls.__name__ in FAMILIES:
            return is_sparray(instance) == FAMILIES[cls.__name__]
        return isinstance(instance, cls.scipys)

    def __subclasscheck__(cls, subclass: type) -> bool:
        if issubclass(subclass, Stored) and cls.__name__ in FAMILIES:
            return getattr(subclass, "is_array", None) is FAMILIES[cls.__name__]
        return issubclass(subclass, cls.scipys)


def kind_of_scipys(scipys: type) -> type:
    """Return one of SciPy's classes with a constructor that takes lucid's matrices, and returns SciPy's own."""
    return scipys if issubclass(scipys, Exception) else Kind(scipys.__name__, (), {"scipys": scipys})


def stacking(name: str) -> Callable[..., Any]:
    """Return a function of SciPy's that moves elements of sparse matrices."""
    otherwise = called(name)

    def call(*args: Any, **kwargs: Any) -> Any:
        bound = inspect.signature(getattr(library(None), name)).bind(*args, **kwargs)
        blocks, *others = bound.arguments.values()
        options = dict(zip([*bound.arguments][1:], others, strict=True))
        if is_array(blocks) and plain(blocks).dtype.kind == "O":
            blocks = blocks.tolist()
        if recorded_in([blocks]):
            blocks = replaced(blocks, of_block)
        parts = leaves(blocks)
        matrices = [wrapped(value) for value in parts if issparse(value)]
        if not any_recorded([matrix.data for matrix in matrices]) or len(matrices) < sum(x is not None for x in parts):
            return otherwise(blocks, **options)
        in_arrays = makes_array(name, matrices)
        format, dtype = options.pop("format", None), options.pop("dtype", None)

        def function(*numbers: Any) -> Any:
            remaining = iter(numbers)
            moved = replaced(blocks, lambda value: next(remaining) if issparse(value) else value)
            return getattr(library(plain(matrices[0].data)), name)(moved, **options)

        result = rearranged(function, matrices, array=in_arrays and not on_gpu(matrices[0]), keeps_coo=True)
        wanted = format or result.pattern.format
        matrix = CLASSES[result.pattern.format, in_arrays].made(*converted(result, wanted))
        return matrix if dtype is None else matrix.astype(dtype, copy=False)

    call.__name__ = name
    return call


def of_block(value: object) -> Any:
    """Return a dense block as a sparse matrix; anything else as it is."""
    if not is_array(value) or plain(value).ndim != 2:
        return value
    return CLASSES["coo", False].made(*of_dense(value, is_array=False, is_full=is_recorded(value)))


def on_gpu(matrix: Any) -> bool:
    """Return whether the values of a matrix are on a device."""
    return gpu.is_gpu_array(plain(matrix.data))


def _diagonals(name: str, diagonals: Any, offsets: Any, options: dict[str, Any]) -> Any:
    lines: Any = diagonals
    # of one diagonal its elements may stand alone
    is_one = np.ndim(plain(offsets)) == 0 and all(np.ndim(plain(one)) == 0 for one in lines[:1])
    each: list[Any] = [lines] if is_one else [*lines]
    if not any_recorded(each):
        return called(name)(diagonals, offsets=offsets, **options)
    like = next(plain(one) for one in leaves(each) if isinstance(one, TensorBase))
    module = library(like)
    with on(like):
        each = [lnp.atleast_1d(lnp.asarray(one) if any_recorded([one]) else _beside(plain(one), like)) for one in each]
        wanted = np.dtype(options.pop("dtype", None) or np.result_type(*[one.dtype for one in each]))
        numbers, values = numbered(each)
        format = options.pop("format", None) or "csr"
        kind = name if hasattr(module, name) else "diags"
        places = np.atleast_1d(plain(offsets)).tolist()
        result = getattr(module, kind)(numbers, offsets=places, format="csr", **options)
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
