"""Sparse matrices with values that may require grad: SciPy's classes by their names."""

from __future__ import annotations

import operator
import sys
from functools import partial
from types import MethodType
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from lucid import numpy as lnp
from lucid.autograd.base import TensorBase
from lucid.base import gpu
from lucid.base.arrays import on, to_device
from lucid.base.device import device_of
from lucid.numpy.border import plain
from lucid.scipy.sparse import reductions
from lucid.scipy.sparse.building import (
    Elements,
    canonical,
    converted,
    in_dtype,
    is_scalar,
    is_scipys,
    of_argument,
    of_scipy,
)
from lucid.scipy.sparse.operands import (
    MatrixSizeError,
    array_like,
    beside,
    in_places,
    no_rule,
    on_one_device,
    product,
    sums_at,
)
from lucid.scipy.sparse.pattern import Pattern
from lucid.scipy.sparse.rearranging import added, in_both, multiplied, rearranged
from lucid.tensor.interop import NO_ARRAY, defers_to_tensor
from lucid.tensor.numpy_calls.definition import any_recorded, is_recorded

if TYPE_CHECKING:
    from collections.abc import Callable

    from lucid.scipy.sparse.operands import Dense


def issparse(x: object) -> bool:
    """Return whether `x` is a sparse matrix, of this module, of SciPy's or of CuPy's."""
    return isinstance(x, Sparse) or is_scipys(x)


class Sparse:
    """The base of all formats: constant index arrays, and values, one for each, that may require grad.

    Parameters
    ----------
    arg1 : sparse matrix, matrix, tuple
        One of this module, of SciPy's or of CuPy's; a dense array or Tensor; ``(data, (rows, columns))``; in rows or in
        columns also ``(data, indices, indptr)``; the shape of a matrix without elements.
    shape : tuple of int, optional
        By default as large as the indices ask for.
    dtype : dtype, optional
        Of the values.
    copy : bool
        Whether the values are copied; else they stay the Tensor or the array that was given.

    Notes
    -----
    Products, sums, conversions, slices and stacks are recorded where a value requires grad, with SciPy's numbers; what
    comes out is a `lucid.numpy.ndarray` then, and plain otherwise. What has no rule is SciPy's own of plain values, and
    is refused by name of others.
    """

    format: ClassVar[str]
    is_array: ClassVar[bool]
    # NumPy leaves an operator to what stands at its other side
    __array_ufunc__ = None
    __array_priority__ = 2000

    def __init__(self, arg1: Any, shape: tuple[int, int] | None = None, dtype: Any = None, copy: bool = False) -> None:
        pattern, values = of_argument(self.format, arg1, shape, dtype)
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

    @property
    def _sum_format(self) -> str:
        """The format of SciPy's sums and elementwise products: for COO it is CSR."""
        return "csr" if self.format == "coo" else self.format

    def _made_of(self, result: Any, format: str | None = None) -> Any:
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

    def __repr__(self) -> str:
        return (
            f"<{type(self).__name__} of shape {self.shape}, {self.nnz} elements of {self.dtype}, on {self.device}"
            f"{', requires_grad=True' if self.requires_grad else ''}>"
        )

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") or name in {"pattern", "data"}:
            raise AttributeError(name)
        if name in {"row", "col", "indices", "indptr"}:
            names = ("row", "col") if self.format == "coo" else ("indices", "indptr")
            if name in names:
                return self.pattern.parts[names.index(name)]
        matrix = self.to_scipy()
        value = getattr(matrix, name)
        if is_recorded(self.data) and name not in ABOUT:
            raise no_rule(f"{type(self).__name__}.{name}")
        return partial(self._called, matrix, value) if isinstance(value, MethodType) else value

    def _called(self, matrix: Any, method: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        """Return the result of one of SciPy's methods; one without a result has changed its matrix, and so this one."""
        if (result := method(*args, **kwargs)) is None:
            self.pattern, self.data = converted(matrix, self.format)
        return result

    def __setitem__(self, key: Any, value: Any) -> None:
        if any_recorded((self.data, value.data if isinstance(value, Sparse) else value)):
            raise no_rule(f"{type(self).__name__}[...] = value")
        value = value.to_scipy() if isinstance(value, Sparse) else plain(value)
        self._called(matrix := self.to_scipy(), partial(operator.setitem, matrix), key, value)

    def __bool__(self) -> bool:
        return bool(self.to_scipy())

    def __array__(self, *_: object, **__: object) -> Any:
        """Refuse the conversion, as it would give an array of one object."""
        if defers_to_tensor(sys._getframe(1)):  # noqa: SLF001 # pyright: ignore[reportPrivateUsage] - who asks
            return NO_ARRAY
        raise TypeError("a sparse matrix is no array of NumPy's: use A.toarray()")

    def to_scipy(self) -> Any:
        """Return a copy as SciPy's matrix, or CuPy's, of the plain values."""
        values = plain(self.data)
        with on(values):
            matrix = self.pattern.matrix(values, array=self.is_array and not gpu.is_gpu_array(values))
            return matrix.copy()

    def to(self, device: Any) -> Any:
        """Return the matrix on a device."""
        moved = [to_device(part, device) for part in self.pattern.parts]
        data: Any = self.data
        values = data.to(device) if type(data).__module__.startswith("lucid") else to_device(data, device)
        return self.made(Pattern(self.format, moved, self.shape), values)

    # ---- formats ----

    def asformat(self, format: str | None, copy: bool = False) -> Any:
        """Return the matrix in a format, ``coo``, ``csr`` or ``csc``; others are SciPy's own, of plain values."""
        if format not in {None, "coo", "csr", "csc"}:
            return self.__getattr__(f"to{format}")()
        pattern, values = converted(self, format or self.format)
        return self.made(pattern, lnp.copy(values) if copy else values)

    def tocoo(self, copy: bool = False) -> Any:
        """Return the matrix as rows, columns and values."""
        return self.asformat("coo", copy)

    def tocsr(self, copy: bool = False) -> Any:
        """Return the matrix in rows; repeated elements of COO are added."""
        return self.asformat("csr", copy)

    def tocsc(self, copy: bool = False) -> Any:
        """Return the matrix in columns; repeated elements of COO are added."""
        return self.asformat("csc", copy)

    def sum_duplicates(self) -> None:
        """Add repeated elements, and sort."""
        self.pattern, self.data = converted(canonical(self), self.format)

    def toarray(self) -> Any:
        """Return the dense matrix."""
        if not is_recorded(self.data):
            return self.to_scipy().toarray()
        (rows, columns), (height, width) = self.pattern.places, self.shape
        with on(rows):
            index = rows.astype(np.int64) * width + columns
        return sums_at(self.data, index, height * width).reshape(height, width)

    todense = toarray

    def astype(self, dtype: Any, casting: str = "unsafe", copy: bool = True) -> Any:
        """Return the matrix with values of a dtype."""
        del casting
        values = in_dtype(self.data, dtype)
        return self.made(self.pattern, lnp.copy(values) if copy and values.dtype == self.data.dtype else values)

    def copy(self) -> Any:
        """Return a matrix with values of its own."""
        return self.made(self.pattern, lnp.copy(self.data))

    def detach(self) -> Any:
        """Return the matrix of the same values, without gradient."""
        return self.made(self.pattern, plain(self.data))

    def transpose(self, axes: None = None, copy: bool = False) -> Any:
        """Return the matrix with rows and columns exchanged."""
        del axes
        return self.made(self.pattern.transposed, lnp.copy(self.data) if copy else self.data)

    T = property(transpose)

    def conj(self, copy: bool = True) -> Any:
        """Return the complex conjugate."""
        del copy
        return self.made(self.pattern, lnp.conj(self.data))

    conjugate = conj

    def __getitem__(self, key: Any) -> Any:
        """Return a part of the matrix, or an element."""
        return self._made_of(rearranged(operator.itemgetter(key), [self], array=self.is_array))

    def getrow(self, i: int) -> Any:
        """Return a row, as a matrix of one."""
        return self[[operator.index(i)], :]

    def getcol(self, j: int) -> Any:
        """Return a column, as a matrix of one."""
        return self[:, [operator.index(j)]]

    def reshape(self, *shape: Any, order: str = "C") -> Any:
        """Return the matrix with its elements in another shape."""
        return self._made_of(rearranged(operator.methodcaller("reshape", *shape, order=order), [self]), self.format)

    # ---- reductions ----

    sum, mean = reductions.sum_along, reductions.mean_along
    diagonal, trace = reductions.diagonal, reductions.trace

    # ---- operators ----

    def __matmul__(self, other: Any) -> Any:
        if is_scalar(other):
            raise ValueError("Scalar operands are not allowed, use '*' instead")
        if not issparse(other):
            return product(self, other)
        if is_recorded(self.data) or is_recorded(wrapped(other).data):
            return self._made_of(multiplied(self, wrapped(other)), self._sum_format)
        return of_two("a product", lambda a, b: a @ b, self, other)

    dot = __matmul__

    def __rmatmul__(self, other: Any) -> Any:
        if is_scalar(other):
            raise ValueError("Scalar operands are not allowed, use '*' instead")
        if issparse(other):
            return wrapped(other) @ self
        other = array_like(other, plain(self.data))
        result = product(self.transpose(), other if plain(other).ndim == 1 else lnp.transpose(other))
        return lnp.transpose(result)

    def __mul__(self, other: Any) -> Any:
        return self.multiply(other) if self.is_array or is_scalar(other) else self @ other

    def __rmul__(self, other: Any) -> Any:
        return self.multiply(other) if self.is_array or is_scalar(other) else other @ self

    def multiply(self, other: Any) -> Any:
        """Return the matrix times a number, or elementwise times another that broadcasts to its shape."""
        if is_scalar(other):
            return self.made(self.pattern, lnp.multiply(self.data, other))
        if issparse(other):
            return self._made_of(in_both(self, wrapped(other)), self._sum_format)
        return self.made(self.pattern, lnp.multiply(self.data, in_places(self, other)))

    def __truediv__(self, other: Any) -> Any:
        if is_scalar(other):
            return self.made(self.pattern, lnp.true_divide(self.data, other))
        if issparse(other):
            return of_two("a quotient of two sparse matrices", lambda a, b: a / b, self, other)
        return self.multiply(lnp.true_divide(1, beside(self.data, other)))

    def __neg__(self) -> Any:
        return self.made(self.pattern, lnp.negative(self.data))

    def __abs__(self) -> Any:
        pattern, values = canonical(self)
        return self._made_of(Elements(pattern, lnp.abs(values)), self.format)

    def __pow__(self, power: Any) -> Any:
        if self.is_array:
            return self.power(power)
        if not is_recorded(self.data):
            return wrapped(self.to_scipy() ** power)
        if self.shape[0] != self.shape[1] or power != power // 1 or power < 0:
            raise MatrixSizeError(
                f"expected a square matrix and a whole power of 0 or more, got {self.shape} to {power!r}"
            )
        if power == 0:
            return wrapped(self.to_scipy() ** 0)
        half = self if power == 1 else (self @ self) ** (power // 2)
        return half @ self if power % 2 and power > 1 else half

    def power(self, n: Any, dtype: Any = None) -> Any:
        """Return the matrix with each element to the power of a number, but 0: that would fill it."""
        if not is_scalar(n):
            raise NotImplementedError(f"power: expected a number, got a {type(n).__name__}")
        if not n:
            raise NotImplementedError(
                "zero power is not supported, as it would densify the matrix: use numpy.ones(A.shape, dtype=A.dtype)"
            )
        pattern, values = canonical(self if dtype is None else self.astype(dtype))
        return self._made_of(Elements(pattern, lnp.power(values, n)), self.format)

    def __add__(self, other: Any) -> Any:
        if issparse(other):
            return self._made_of(added(self, wrapped(other)), self._sum_format)
        if is_scalar(other):
            if other == 0:
                return self.copy()
            raise NotImplementedError("adding a nonzero scalar to a sparse matrix is not supported: use A.toarray()")
        return lnp.add(self.toarray(), beside(self.data, other))

    __radd__ = __add__

    def __sub__(self, other: Any) -> Any:
        if is_scalar(other):
            return self + other
        if not issparse(other):
            return lnp.subtract(self.toarray(), beside(self.data, other))
        dtype = np.result_type(self.dtype, (other := wrapped(other)).dtype)
        if dtype.kind == "b":
            return of_two("a difference", operator.sub, self, other)
        # unsigned numbers and bools have no negative ones
        return self + -(other if other.dtype == dtype else other.astype(dtype))

    def __rsub__(self, other: Any) -> Any:
        if is_scalar(other):
            return -self + other
        return wrapped(other) - self if issparse(other) else lnp.subtract(beside(self.data, other), self.toarray())


def _compared(name: str) -> Callable[[Any, Any], Any]:
    function = getattr(operator, name)

    def compare(self: Any, other: Any) -> Any:
        return function(self.to_scipy(), other.to_scipy() if isinstance(other, Sparse) else plain(other))

    compare.__doc__ = "Return SciPy's sparse matrix of bools, which no gradient goes through."
    return compare


for _name in ("eq", "ne", "lt", "le", "gt", "ge"):
    setattr(Sparse, f"__{_name}__", _compared(_name))


class coo_matrix(Sparse):
    """A sparse matrix as rows, columns and values; repeated elements are added."""

    format, is_array = "coo", False


class csr_matrix(Sparse):
    """A sparse matrix in rows."""

    format, is_array = "csr", False


class csc_matrix(Sparse):
    """A sparse matrix in columns."""

    format, is_array = "csc", False


class coo_array(Sparse):
    """A `coo_matrix` with elementwise ``*`` and one-dimensional sums along an axis."""

    format, is_array = "coo", True


class csr_array(Sparse):
    """A `csr_matrix` with elementwise ``*`` and one-dimensional sums along an axis."""

    format, is_array = "csr", True


class csc_array(Sparse):
    """A `csc_matrix` with elementwise ``*`` and one-dimensional sums along an axis."""

    format, is_array = "csc", True


CLASSES: dict[tuple[str, bool], type[Sparse]] = {
    (kind.format, kind.is_array): kind for kind in (coo_matrix, csr_matrix, csc_matrix, coo_array, csr_array, csc_array)
}
ABOUT = {
    "getnnz", "count_nonzero", "nonzero", "has_canonical_format", "has_sorted_indices", "get_shape", "getformat",
    "argmax", "argmin", "coords",
}  # fmt: skip
"""Of a matrix, what no gradient goes through."""


def wrapped(matrix: Any) -> Any:
    """Return a matrix of SciPy's or CuPy's as one of this module, in its format or in rows; one of this as it is."""
    if isinstance(matrix, Sparse):
        return matrix
    is_array = not hasattr(matrix, "getrow") if "cupyx" not in type(matrix).__module__ else False
    return CLASSES["csr", is_array].made(*of_scipy(matrix))


def of_two(what: str, function: Callable[[Any, Any], Any], one: Any, other: Any) -> Any:
    """Return SciPy's result for two sparse matrices without gradients; refuse others."""
    one, other = wrapped(one), wrapped(other)
    if is_recorded(one.data) or is_recorded(other.data):
        raise no_rule(what)
    on_one_device(one.data, other.data)
    result = function(one.to_scipy(), other.to_scipy())
    return wrapped(result) if is_scipys(result) else result
