"""Sparse matrices with values that may require grad: SciPy's classes by their names."""

from __future__ import annotations

import operator
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from lucid import numpy as lnp
from lucid.autograd.modes.state import enable_grad
from lucid.base import gpu
from lucid.base.arrays import on
from lucid.errors import DtypeError
from lucid.numpy.border import plain
from lucid.scipy.sparse import reductions
from lucid.scipy.sparse.base import CLASSES, Stored, issparse, of_two, plain_matrix, recorded_in, replaced, wrapped
from lucid.scipy.sparse.building import Elements, canonical, converted, in_dtype, is_scalar
from lucid.scipy.sparse.operands import MatrixSizeError, beside, in_places, no_rule, product, sums_at
from lucid.scipy.sparse.rearranging import added, chosen, in_both, multiplied, numbered, rearranged, repeated
from lucid.tensor.numpy_calls.operands import is_recorded

if TYPE_CHECKING:
    from collections.abc import Callable


class Sparse(Stored):
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
        Whether the values are copied; else they stay the Tensor or the array that was given. Index arrays are copied
        always, and so is a matrix of SciPy's or CuPy's.

    Notes
    -----
    Products, sums, conversions, slices and stacks are recorded where a value requires grad, with SciPy's numbers; what
    comes out is a `lucid.numpy.ndarray` then, and plain otherwise. What has no rule is SciPy's own of plain values, and
    is refused by name of others.
    """

    def __setitem__(self, key: Any, value: Any) -> None:
        if self.requires_grad or recorded_in([value]):
            raise no_rule(f"{type(self).__name__}[...] = value")
        self._called(matrix := self.to_scipy(), partial(operator.setitem, matrix), key, value)

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
        # no value of the matrix is another: it stays in the graph where gradients are off, too
        with enable_grad():
            self.pattern, self.data = converted(canonical(self), self.format)

    def sort_indices(self) -> None:
        """Sort the elements within each row, or column; repeated ones stay."""
        with enable_grad(), on(plain(self.data)):
            numbers, values = numbered([self.data])
            matrix = self.pattern.matrix(numbers[0]).copy()
            matrix.sort_indices()
            self.pattern, self.data = chosen(matrix, values)

    def sorted_indices(self) -> Any:
        """Return a matrix with the elements within each row, or column, sorted."""
        matrix = self.copy()
        matrix.sort_indices()
        return matrix

    def toarray(self, order: str | None = None, out: Any = None) -> Any:
        """Return the dense matrix; `order` is that of the memory of one that is not recorded."""
        if is_recorded(self.data) or gpu.is_gpu_array(plain(self.data)):
            reductions.no_out("toarray", out)
        if not is_recorded(self.data):
            return self.to_scipy().toarray(order, out)
        (rows, columns), (height, width) = self.pattern.places, self.shape
        with on(rows):
            index = rows.astype(np.int64) * width + columns
        return sums_at(self.data, index, height * width).reshape(height, width)

    todense = toarray

    def astype(self, dtype: Any, casting: Any = "unsafe", copy: bool = True) -> Any:
        """Return the matrix with values of a dtype."""
        wanted = np.dtype(plain(dtype))
        if not np.can_cast(self.dtype, wanted, casting):
            raise DtypeError(f"astype: expected what {self.dtype} is cast to by casting={casting!r}, got {wanted}")
        values = in_dtype(self.data, dtype)
        return self.made(self.pattern, lnp.copy(values) if copy and values.dtype == self.data.dtype else values)

    def copy(self) -> Any:
        """Return a matrix with values of its own."""
        return self.made(self.pattern, lnp.copy(self.data))

    def detach(self) -> Any:
        """Return the matrix of the same values, without gradient."""
        return self.made(self.pattern, plain(self.data))

    def transpose(self, axes: tuple[int, int] | None = None, copy: bool = False) -> Any:
        """Return the matrix with rows and columns exchanged."""
        if axes not in {None, (1, 0)}:
            raise MatrixSizeError(f"transpose: expected axes=None or (1, 0), the other order of two, got {axes!r}")
        return self.made(self.pattern.transposed, lnp.copy(self.data) if copy else self.data)

    T = property(transpose)

    def conj(self, copy: bool = True) -> Any:
        """Return the complex conjugate."""
        if self.dtype.kind != "c":
            return self.copy() if copy else self
        return self.made(self.pattern, lnp.conj(self.data))

    conjugate = conj
    real = property(lambda self: self.made(self.pattern, lnp.real(self.data)))
    imag = property(lambda self: self.made(self.pattern, lnp.imag(self.data)))

    def __getitem__(self, key: Any) -> Any:
        """Return a part of the matrix, or an element."""
        key = replaced(key, plain_matrix)
        return self._made_of(rearranged(operator.itemgetter(key), [self], array=self.is_array))

    def getrow(self, i: int) -> Any:
        """Return a row, as a matrix of one."""
        return self[[operator.index(i)], :]

    def getcol(self, j: int) -> Any:
        """Return a column, as a matrix of one."""
        return self[:, [operator.index(j)]]

    def reshape(self, *shape: Any, order: str = "C", copy: bool = False) -> Any:
        """Return the matrix with its elements in another shape, and memory of its own, whatever `copy` says."""
        del copy
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

    def dot(self, other: object) -> Any:
        """Return the matrix product, or the matrix times a number."""
        return self * other if is_scalar(other) else self @ other

    def __rmatmul__(self, other: Any) -> Any:
        if is_scalar(other):
            raise ValueError("Scalar operands are not allowed, use '*' instead")
        if issparse(other):
            return wrapped(other) @ self
        other = beside(self.data, other)
        result = product(self.transpose(), other if plain(other).ndim == 1 else lnp.transpose(other))
        return lnp.transpose(result)

    def __mul__(self, other: Any) -> Any:
        return self.multiply(other) if self.is_array or is_scalar(other) else self @ other

    def __rmul__(self, other: Any) -> Any:
        if issparse(other):
            # SciPy's, which decides by its own class as the left operand
            return wrapped(other) * self
        return self.multiply(other) if self.is_array or is_scalar(other) else other @ self

    def __imul__(self, other: object) -> Any:
        return self._kept(self * other) if is_scalar(other) else NotImplemented

    def __itruediv__(self, other: object) -> Any:
        return self._kept(self / other) if is_scalar(other) else NotImplemented

    def _kept(self, other: Any) -> Any:
        """Return this matrix with the values of another of its pattern, in its own dtype."""
        if self.requires_grad and not other.requires_grad:
            raise no_rule(f"{type(self).__name__} *= or /= without gradients")
        if not np.can_cast(other.dtype, self.dtype, "same_kind"):
            raise DtypeError(
                f"expected what fits into {self.dtype} in place, got {other.dtype}: use A = A * x, A = A / x"
            )
        self.data = in_dtype(other.data, self.dtype)
        return self

    def _elementwise(
        self, what: str, scipys: Callable[[Any, Any], Any], rule: Callable[[Any, Any], Elements], other: object
    ) -> Any:
        """Return SciPy's result of plain values, without zeros; that of a rule on a device: CuPy's hold no integers."""
        second = wrapped(other)
        arrays = plain(self.data), plain(second.data)
        if recorded_in([self, second]) or any(map(gpu.is_gpu_array, arrays)):
            return self._made_of(rule(self, second), self._sum_format)
        return of_two(what, scipys, self, second)

    def multiply(self, other: Any) -> Any:
        """Return the matrix times a number, or elementwise times another that broadcasts to its shape."""
        if is_scalar(other):
            return self.made(self.pattern, lnp.multiply(self.data, other))
        if issparse(other):
            return self._elementwise("a product", lambda a, b: a.multiply(b), in_both, other)
        other = beside(self.data, other)
        other = other.reshape(1, -1) if plain(other).ndim == 1 else other
        sizes = tuple(plain(other).shape)
        if len(sizes) != 2 or any(n != m and 1 not in {n, m} for n, m in zip(sizes, self.shape, strict=True)):
            raise MatrixSizeError(f"multiply: expected what broadcasts with {self.shape}, got {sizes}")
        if (whole := np.broadcast_shapes(sizes, self.shape)) != self.shape:
            return self.made(*repeated(self, whole)).multiply(other)
        return self.made(self.pattern, lnp.multiply(self.data, in_places(self, other)))

    def __truediv__(self, other: Any) -> Any:
        if is_scalar(other):
            # SciPy's quotients by numbers are of double precision, also of float32
            values = in_dtype(self.data, np.float64) if np.can_cast(self.dtype, np.float64) else self.data
            return self.made(self.pattern, lnp.true_divide(values, other))
        if issparse(other):
            return of_two("a quotient of two sparse matrices", lambda a, b: a / b, self, other)
        return self.multiply(lnp.true_divide(1, beside(self.data, other)))

    def __neg__(self) -> Any:
        return self.made(self.pattern, lnp.negative(self.data))

    def __abs__(self) -> Any:
        pattern, values = canonical(self)
        return self._made_of(Elements(pattern, lnp.abs(values)), self.format)

    def __round__(self, ndigits: int = 0) -> Any:
        pattern, values = canonical(self)
        return self._made_of(Elements(pattern, lnp.round(values, ndigits)), self.format)

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
        if power == 1:
            return self.copy()
        half = (self @ self) ** (power // 2)
        return half @ self if power % 2 else half

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
            return self._elementwise("a sum", operator.add, added, other)
        if is_scalar(other):
            if other == 0 and not is_recorded(other):
                return self.copy()
            raise NotImplementedError(
                "adding a nonzero scalar, or one that requires grad, to a sparse matrix is not supported: use "
                "A.toarray()"
            )
        return lnp.add(self.toarray(), beside(self.data, other))

    __radd__ = __add__

    def __sub__(self, other: Any) -> Any:
        if is_scalar(other):
            return self + other
        if not issparse(other):
            return lnp.subtract(self.toarray(), beside(self.data, other))
        dtype = np.result_type(self.dtype, wrapped(other).dtype)
        if dtype.kind == "b":
            return of_two("a difference", operator.sub, self, other)

        def rule(one: Sparse, two: Sparse) -> Elements:
            # unsigned numbers and bools have no negative ones, and are added as such
            return added(one, -(two if two.dtype == dtype else two.made(*canonical(two)).astype(dtype)))

        return self._elementwise("a difference", operator.sub, rule, other)

    def __rsub__(self, other: Any) -> Any:
        if is_scalar(other):
            return -self + other
        return wrapped(other) - self if issparse(other) else lnp.subtract(beside(self.data, other), self.toarray())


def _compared(name: str) -> Callable[[Any, Any], Any]:
    function = getattr(operator, name)

    def compare(self: Any, other: Any) -> Any:
        return function(self.to_scipy(), plain_matrix(other))

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


CLASSES.update(
    {
        (kind.format, kind.is_array): kind
        for kind in (coo_matrix, csr_matrix, csc_matrix, coo_array, csr_array, csc_array)
    }
)
