"""The base of lucid's sparse matrices: pattern and values, and SciPy's methods of plain values."""

from __future__ import annotations

import sys
from functools import partial
from types import MethodType
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from lucid import numpy as lnp
from lucid.autograd.base import TensorBase
from lucid.autograd.hooks.structure import rebuilt
from lucid.base import gpu
from lucid.base.arrays import on, to_device
from lucid.base.device import device_of
from lucid.numpy.border import plain
from lucid.scipy.sparse.building import Elements, converted, in_dtype, is_scipys, of_argument, of_scipy
from lucid.scipy.sparse.operands import MatrixSizeError, SparseCallError, no_rule, on_one_device
from lucid.scipy.sparse.pattern import Pattern, library
from lucid.tensor.interop import NO_ARRAY, defers_to_tensor
from lucid.tensor.numpy_calls.operands import is_recorded

if TYPE_CHECKING:
    from collections.abc import Callable

    from lucid.scipy.sparse.operands import Dense


def issparse(x: object) -> bool:
    """Return whether `x` is a sparse matrix, of this module, of SciPy's or of CuPy's."""
    return isinstance(x, Stored) or is_scipys(x)


def is_sparray(x: object) -> bool:
    """Return whether a sparse matrix is an array in the sense of SciPy's ``csr_array``."""
    return x.is_array if isinstance(x, Stored) else any(kind.__name__ == "sparray" for kind in type(x).__mro__)


PARTS = "row", "col", "indices", "indptr"
"""The index arrays of COO, and those of other formats."""

CONSTANT = {*PARTS, "coords"}

CLASSES: dict[tuple[str, bool], Any] = {}
"""Lucid's classes, by their formats and whether they are arrays."""


class Stored:
    """A sparse matrix of any format as its pattern and its values, without operators."""

    format: ClassVar[str]
    is_array: ClassVar[bool]
    # NumPy leaves an operator to what stands at its other side
    __array_ufunc__ = None
    __array_priority__ = 2000

    def __init__(self, arg1: Any, shape: tuple[int, int] | None = None, dtype: Any = None, copy: bool = False) -> None:
        pattern, values = of_argument(self.format, arg1, shape, dtype, is_array=self.is_array)
        if shape is not None and tuple(shape) != pattern.shape:
            raise MatrixSizeError(
                f"{type(self).__name__}: expected a matrix of shape {pattern.shape}, got shape={shape}"
            )
        if dtype is not None:
            values = in_dtype(values, dtype)
        self.pattern, self.data = pattern, lnp.copy(values) if copy else values

    @classmethod
    def made(cls, pattern: Pattern, data: Dense) -> Any:
        """Return the matrix of some values in this class's family, in the format of the pattern."""
        matrix: Any = object.__new__(CLASSES[pattern.format, cls.is_array])
        matrix.pattern, matrix.data = pattern, data
        return matrix

    def in_family(self, is_array: bool) -> Any:
        """Return the matrix as an array, in the sense of SciPy's ``csr_array``, or as none."""
        return CLASSES[self.format, is_array].made(self.pattern, self.data)

    @property
    def _sum_format(self) -> str:
        """The format of SciPy's sums and elementwise products: for COO it is CSR."""
        return "csr" if self.format == "coo" else self.format

    def _made_of(self, result: object, format: str | None = None) -> Any:
        """Return elements as a matrix of this family, in a format; a dense result as it is."""
        if not isinstance(result, Elements):
            return result
        return self.made(*(result if format is None else converted(result, format)))

    # ---- about it ----

    ndim = 2
    shape = property(lambda self: self.pattern.shape)
    nnz = property(lambda self: self.pattern.count)
    size = property(lambda self: self.pattern.count)
    dtype = property(lambda self: plain(self.data).dtype)
    device = property(lambda self: device_of(plain(self.data)))

    @property
    def requires_grad(self) -> bool:
        """Whether the values do."""
        return isinstance(self.data, TensorBase) and self.data.edge is not None

    def __setattr__(self, name: str, value: object) -> None:
        """Set the values; index arrays and other constants are refused, as they would be ignored."""
        if name not in {"pattern", "data"} and (name in CONSTANT or hasattr(library(None).coo_matrix, name)):
            raise SparseCallError(
                f"{type(self).__name__}.{name} cannot be set, expected data: elements stay where they are; make "
                f"another matrix, {type(self).__name__}((A.data, (rows, columns)), shape=A.shape)"
            )
        super().__setattr__(name, value)

    def __repr__(self) -> str:
        return (
            f"<{type(self).__name__} of shape {self.shape}, {self.nnz} elements of {self.dtype}, on {self.device}"
            f"{', requires_grad=True' if self.requires_grad else ''}>"
        )

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") or name in {"pattern", "data"}:
            raise AttributeError(name)
        if name in PARTS:
            names = PARTS[:2] if self.format == "coo" else PARTS[2:]
            if name in names:
                part: Any = self.pattern.parts[names.index(name)].view()
                if not gpu.is_gpu_array(part):
                    # SciPy sorts a matrix of these arrays in place
                    part.flags.writeable = False
                return part
        matrix = self.to_scipy()
        value = getattr(matrix, name)
        if is_recorded(self.data) and name not in ABOUT:
            raise no_rule(f"{type(self).__name__}.{name}")
        return partial(self._called, matrix, value) if isinstance(value, MethodType) else value

    def _called(self, matrix: object, method: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        """Return the result of one of SciPy's methods; one without a result has changed its matrix, and so this one."""
        name = f"{type(self).__name__}.{getattr(method, '__name__', '[...] = value')}"
        if recorded_in([*args, *kwargs.values()]):
            raise no_rule(name)
        args, kwargs = replaced(args, plain_matrix), {key: replaced(one, plain_matrix) for key, one in kwargs.items()}
        if (result := method(*args, **kwargs)) is None:
            if self.requires_grad:
                raise no_rule(name)
            self.pattern, self.data = converted(matrix, self.format)
        return result

    def __bool__(self) -> bool:
        return bool(self.to_scipy())

    def __array__(self, dtype: object = None, **_: object) -> Any:
        """Refuse the conversion, as it would give an array of one object, unless that is asked for."""
        if isinstance(dtype, np.dtype) and dtype.kind == "O":
            one: Any = np.empty((), object)
            one[()] = self
            return one
        if defers_to_tensor(sys._getframe(1)):  # noqa: SLF001 # pyright: ignore[reportPrivateUsage] - who asks
            return NO_ARRAY
        raise TypeError(
            "a sparse matrix is no array of NumPy's: use A.toarray(), and lucid's class at the left of a product with "
            "one of SciPy's, csr_array(S) * A"
        )

    def to_scipy(self) -> Any:
        """Return a copy as SciPy's matrix, or CuPy's, of the plain values."""
        values = plain(self.data)
        with on(values):
            matrix = self.pattern.matrix(values, array=self.is_array and not gpu.is_gpu_array(values))
            return matrix.copy()

    def to(self, device: object) -> Any:
        """Return the matrix on a device."""
        moved = [to_device(part, device) for part in self.pattern.parts]
        data: Any = self.data
        values = data.to(device) if type(data).__module__.startswith("lucid") else to_device(data, device)
        return self.made(Pattern(self.format, moved, self.shape), values)


ABOUT = {
    "getnnz", "count_nonzero", "nonzero", "has_canonical_format", "has_sorted_indices", "get_shape", "getformat",
    "argmax", "argmin", "coords",
}  # fmt: skip
"""Of a matrix, what no gradient goes through."""


def leaves(value: object) -> list[Any]:
    """Return all arguments, also those in lists and tuples."""
    parts: Any = value
    return [leaf for each in parts for leaf in leaves(each)] if isinstance(value, list | tuple) else [value]


def recorded_in(values: object) -> bool:
    """Return whether an argument is recorded, or the values of a sparse matrix are."""
    return any(is_recorded(leaf.data if isinstance(leaf, Stored) else leaf) for leaf in leaves(values))


def replaced(value: object, function: Callable[[Any], Any]) -> Any:
    """Return arguments with a function of each, also of those in lists and tuples."""
    parts: Any = value
    if not isinstance(value, list | tuple):
        return function(value)
    return rebuilt(parts, [replaced(each, function) for each in parts])


def plain_matrix(value: object) -> Any:
    """Return a sparse matrix as SciPy's or CuPy's, and a tensor as an array."""
    return value.to_scipy() if isinstance(value, Stored) else plain(value)


def wrapped(matrix: object) -> Any:
    """Return a matrix of SciPy's or CuPy's as one of this module, in its format or in rows; one of this as it is.

    It shares the arrays of what it was made of, so it is an operand, and no result.
    """
    if isinstance(matrix, Stored):
        return matrix
    return CLASSES["csr", is_sparray(matrix)].made(*of_scipy(matrix))


def of_two(what: str, function: Callable[[Any, Any], Any], one: Any, other: Any) -> Any:
    """Return SciPy's result for two sparse matrices without gradients; refuse others."""
    one, other = wrapped(one), wrapped(other)
    if is_recorded(one.data) or is_recorded(other.data):
        raise no_rule(what)
    on_one_device(one.data, other.data)
    result = function(one.to_scipy(), other.to_scipy())
    # CuPy's sparse matrices are no arrays
    return one.made(*of_scipy(result)) if is_scipys(result) else result
