"""The sparsity pattern of a matrix, SciPy's and CuPy's products by it, and these products as they are recorded."""

from __future__ import annotations

from copy import copy
from importlib import import_module
from typing import TYPE_CHECKING, Any

import numpy as np

from lucid.autograd.base import wrap
from lucid.autograd.function import Function
from lucid.base import gpu
from lucid.base.arrays import namespace, on
from lucid.ops.elementwise.arithmetic import neg
from lucid.ops.elementwise.complex import conj

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from lucid.base.arrays import Array
    from lucid.tensor import Tensor


def library(like: Array | None, part: str = "") -> Any:
    """Return ``scipy.sparse``, or CuPy's for an array on a device, or a part of it."""
    name = f"scipy.sparse.{part}".rstrip(".")
    if gpu.is_gpu_array(like):
        return gpu.part(f"cupyx.{name}")
    try:
        return import_module(name)
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError(
            "lucid.scipy.sparse needs SciPy, which is not installed: pip install 'lucid-cupy[scipy]'"
        ) from error


def in_memory_order(array: Array) -> Array:
    """Return an array as cuSPARSE reads it, one element after the other; one on the host as it is."""
    return gpu.cupy().ascontiguousarray(array) if gpu.is_gpu_array(array) else array


Arranged = tuple["Array | None", "Array | None", "Pattern"]
_FLIPPED = {"coo": "coo", "csr": "csc", "csc": "csr"}


class Pattern:
    """The index arrays of a format, ``coo``, ``csr`` or ``csc``, on a device. Never changed.

    `parts` are rows and columns, or indices and where each row, or column, begins. What is computed from them is kept.
    `is_canonical` says that they are sorted and that none is repeated, if that is known.
    """

    def __init__(
        self, format: str, parts: Sequence[Array], shape: tuple[int, int], *, is_canonical: bool = False
    ) -> None:
        self.format, self.shape = format, (int(shape[0]), int(shape[1]))
        self.parts = tuple([in_memory_order(part) for part in parts])
        self.is_canonical = is_canonical
        self._places: tuple[Array, Array] | None = None
        self._arranged: dict[str, Arranged] = {format: (None, None, self)} if is_canonical else {}
        self._mirror: Pattern | None = None
        self._empty: dict[bool, Any] = {}

    @classmethod
    def of(cls, matrix: Any) -> Pattern:
        """Return that of a matrix of SciPy's or CuPy's."""
        names = ("row", "col") if matrix.format == "coo" else ("indices", "indptr")
        return cls(matrix.format, [getattr(matrix, name) for name in names], matrix.shape)

    @property
    def count(self) -> int:
        """How many elements there are, repeated ones counted as often as they stand there."""
        return int(self.parts[0].size)

    def matrix(self, values: Array, *, array: bool = False) -> Any:
        """Return the matrix of some values, SciPy's or CuPy's; an `array` in the sense of SciPy's ``csr_array``.

        Its index arrays are those of the pattern: what sorts in place, as many a method does, is to get a copy.
        """
        values = in_memory_order(values)
        if array not in self._empty:
            with on(values):
                parts = (values, self.parts) if self.format == "coo" else (values, *self.parts)
                kind = f"{self.format}_{'array' if array else 'matrix'}"
                made = getattr(library(values), kind)(parts, shape=self.shape)
            if self.is_canonical:
                made.has_canonical_format = True
            # SciPy checks the indices of each matrix that it makes, which takes ten times as long as a small product
            self._empty[array] = copy(made)
            self._empty[array].data = values[:0]
        made = copy(self._empty[array])
        made.data = values
        return made

    @property
    def places(self) -> tuple[Array, Array]:
        """Row and column of each element."""
        if self._places is None:
            if self.format == "coo":
                self._places = self.parts[0], self.parts[1]
            else:
                with on(self.parts[0]):
                    coo = self.matrix(namespace(self.parts[0]).zeros(self.count)).tocoo()
                self._places = coo.row, coo.col
        return self._places

    @property
    def transposed(self) -> Pattern:
        """The same elements with rows and columns exchanged."""
        if self._mirror is None:
            parts = self.parts[::-1] if self.format == "coo" else self.parts
            shape = self.shape[1], self.shape[0]
            mirror = Pattern(_FLIPPED[self.format], parts, shape, is_canonical=self.is_canonical)
            self._mirror, mirror._mirror = mirror, self
        return self._mirror

    def arranged(self, format: str) -> Arranged:
        """Return the indices that sort the elements and the groups of duplicates, and the sorted pattern.

        Either is None where nothing is to be done. The pattern is in rows, ``csr``, or in columns, ``csc``.
        """
        if format not in self._arranged:
            if self._mirror is not None and _FLIPPED[format] in self._mirror._arranged:  # noqa: SLF001 - this class's
                order, groups, pattern = self._mirror.arranged(_FLIPPED[format])
                self._arranged[format] = order, groups, pattern.transposed
            else:
                self._arranged[format] = self._sorted(format)
        return self._arranged[format]

    def _sorted(self, format: str) -> Arranged:
        xp, in_columns = namespace(self.parts[0]), format == "csc"
        with on(self.parts[0]):
            major, minor = self.places[::-1] if in_columns else self.places
            order = xp.lexsort(xp.stack([minor, major])) if xp is not np else self._order_of_scipys(format)
            major, minor = major[order], minor[order]
            first = xp.ones(self.count, bool)
            first[1:] = (major[1:] != major[:-1]) | (minor[1:] != minor[:-1])
            is_sorted, is_single = bool((order == xp.arange(self.count)).all()), bool(first.all())
            groups = None if is_single else xp.cumsum(first) - 1
            major, minor = major[first], minor[first]
            begins = xp.searchsorted(major, xp.arange(self.shape[in_columns] + 1, dtype=major.dtype))
            parts = minor, begins.astype(minor.dtype)
            pattern = Pattern(format, parts, self.shape, is_canonical=True)
        return None if is_sorted else order, groups, pattern

    def _order_of_scipys(self, format: str) -> Array:
        """Return the indices that sort the elements, with repeated ones in SciPy's order of addition."""
        matrix = library(None).coo_matrix((np.arange(self.count), self.places), shape=self.shape)
        # else repeated ones are added at once
        matrix.has_canonical_format = True
        matrix = matrix.asformat(format)
        matrix.sort_indices()
        return matrix.data

    def _arranged_at_all(self) -> Arranged:
        for format in ("csr", "csc"):
            mirrored = self._mirror is not None and _FLIPPED[format] in self._mirror._arranged  # noqa: SLF001
            if mirrored or format in self._arranged:
                return self.arranged(format)
        return self.arranged("csr" if self.format == "coo" else self.format)

    def product(self, values: Array, dense: Array) -> Array:
        """Return the matrix of some values times a vector or a matrix.

        CuPy sorts what it multiplies, in place and each time anew, unless it is told that it is sorted.
        """
        pattern = self
        with on(dense):
            if gpu.is_gpu_array(dense):
                order, groups, pattern = self._arranged_at_all()
                values = values if order is None else values[order]
                if groups is not None:
                    values = _sums(values, groups, pattern.count)
            return pattern.matrix(values) @ dense

    def sampled(self, left: Array, right: Array) -> Array:
        """Return ``left @ right.T`` at the elements of the pattern only."""
        rows, columns = self.places
        with on(left):
            if left.ndim == 1:
                return left[rows] * right[columns]
            sums = namespace(left).empty(self.count, left.dtype)
            step = max(1, _AT_ONCE[gpu.is_gpu_array(left)] // max(1, left.shape[1]))
            for begin in range(0, self.count, step):
                part = slice(begin, begin + step)
                one, other = left.take(rows[part], 0), right.take(columns[part], 0)
                if gpu.is_gpu_array(left):
                    sums[part] = (one * other).sum(-1)
                else:
                    np.einsum("ek,ek->e", one, other, out=sums[part])
        return sums


_AT_ONCE = 1 << 15, 1 << 24
"""How many terms of the sums are held at once: as many as stay in the cache of a processor, and more on a device."""


def _sums(values: Array, groups: Array, count: int) -> Array:
    """Return the sums of the values of each group; CuPy adds at indices no complex numbers."""
    xp = namespace(values)
    sums = xp.zeros(count, values.dtype)
    for part in ("real", "imag") if values.dtype.kind == "c" else ("real",):
        xp.add.at(getattr(sums, part), groups, getattr(values, part))
    return sums


# ---- the products as they are recorded: each is the derivative of the other, to any order ----


class Product(Function):
    """A sparse matrix, as its values, times a vector or a matrix."""

    @staticmethod
    def forward(ctx: Any, values: Tensor, dense: Tensor, pattern: Pattern) -> Tensor:
        """Return SciPy's product, or CuPy's."""
        ctx.save_for_backward(values, dense)
        ctx.pattern = pattern
        return wrap(pattern.product(values.array, dense.array))

    @staticmethod
    def backward(ctx: Any, *grad_outputs: Any) -> tuple[Any, ...]:
        """Return the gradients of the values and of the dense factor."""
        (grad,) = grad_outputs
        values, dense = ctx.saved_tensors
        of_values, of_dense, _ = ctx.needs_input_grad
        return (
            Sampled.apply(grad, conj(dense), ctx.pattern) if of_values else None,
            Product.apply(conj(values), grad, ctx.pattern.transposed) if of_dense else None,
            None,
        )


class Sampled(Function):
    """``left @ right.T`` at the places of a sparse matrix: as many values as that has."""

    @staticmethod
    def forward(ctx: Any, left: Tensor, right: Tensor, pattern: Pattern) -> Tensor:
        """Return the sums over columns of the products of a row of one and a row of the other."""
        ctx.save_for_backward(left, right)
        ctx.pattern = pattern
        return wrap(pattern.sampled(left.array, right.array))

    @staticmethod
    def backward(ctx: Any, *grad_outputs: Any) -> tuple[Any, ...]:
        """Return the gradients of both matrices."""
        (grad,) = grad_outputs
        left, right = ctx.saved_tensors
        needs_left, needs_right, _ = ctx.needs_input_grad
        return (
            Product.apply(grad, conj(right), ctx.pattern) if needs_left else None,
            Product.apply(grad, conj(left), ctx.pattern.transposed) if needs_right else None,
            None,
        )


class Solution(Function):
    """The solution of a sparse system: `solve` makes it of a pattern, plain values and a right side."""

    @staticmethod
    def forward(
        ctx: Any, values: Tensor, right: Tensor, pattern: Pattern, solve: Callable[[Pattern, Array, Array], Array]
    ) -> Tensor:
        """Return the solution."""
        ctx.pattern, ctx.solve = pattern, solve
        solution = wrap(solve(pattern, values.array, right.array))
        ctx.save_for_backward(values, solution)
        return solution

    @staticmethod
    def backward(ctx: Any, *grad_outputs: Any) -> tuple[Any, ...]:
        """Return the gradients of the values and of the right side, by the adjoint system."""
        (grad,) = grad_outputs
        values, solution = ctx.saved_tensors
        adjoint = Solution.apply(conj(values), grad, ctx.pattern.transposed, ctx.solve)
        of_values = neg(Sampled.apply(adjoint, conj(solution), ctx.pattern)) if ctx.needs_input_grad[0] else None
        return of_values, adjoint, None, None
