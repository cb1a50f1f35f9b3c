"""Comparisons, elementwise: their truth, and the larger and the smaller.

Operands are compared in their promoted dtype. Complex numbers are equal or not, but have no order, and what asks for it
raises a DtypeError. What holds for all elementwise ops says `lucid.ops.base.declaration`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from lucid.autograd.recording.namespace import GRAPH, Namespace
from lucid.cuda.launch.elementwise import ALL
from lucid.errors import DtypeError
from lucid.ops.base.declaration import Formula, Fused, elementwise
from lucid.ops.base.operands import refuse, tensor_operand
from lucid.ops.base.promotion import promote_to_tensors

if TYPE_CHECKING:
    from types import ModuleType

    from lucid.base.arrays import Array, Ints, Number
    from lucid.tensor import Tensor

ORDERED = ("c", "complex numbers have no order; take real parts or magnitudes")


@elementwise(np.equal, dtypes=ALL, out="bool")
def eq(input: Tensor, other: Tensor | Number) -> Tensor:
    """Return ``input == other``, elementwise; NaN equals nothing.

    >>> import lucid
    >>> lucid.eq(lucid.tensor([1, 2, 3]), 2)
    tensor([False,  True, False])
    """
    return GRAPH.eq(input, other)


@elementwise(np.not_equal, dtypes=ALL, out="bool")
def ne(input: Tensor, other: Tensor | Number) -> Tensor:
    """Return ``input != other``, elementwise; NaN differs from everything.

    >>> import lucid
    >>> lucid.ne(lucid.tensor([1, 2, 3]), 2)
    tensor([ True, False,  True])
    """
    return GRAPH.ne(input, other)


@elementwise(np.less, dtypes=ALL, out="bool", refused=ORDERED)
def lt(input: Tensor, other: Tensor | Number) -> Tensor:
    """Return ``input < other``, elementwise.

    >>> import lucid
    >>> lucid.lt(lucid.tensor([1, 2, 3]), 2)
    tensor([ True, False, False])
    """
    return GRAPH.lt(input, other)


@elementwise(np.less_equal, dtypes=ALL, out="bool", refused=ORDERED)
def le(input: Tensor, other: Tensor | Number) -> Tensor:
    """Return ``input <= other``, elementwise.

    >>> import lucid
    >>> lucid.le(lucid.tensor([1, 2, 3]), 2)
    tensor([ True,  True, False])
    """
    return GRAPH.le(input, other)


@elementwise(np.greater, dtypes=ALL, out="bool", refused=ORDERED)
def gt(input: Tensor, other: Tensor | Number) -> Tensor:
    """Return ``input > other``, elementwise.

    >>> import lucid
    >>> lucid.gt(lucid.tensor([1, 2, 3]), 2)
    tensor([False, False,  True])
    """
    return GRAPH.gt(input, other)


@elementwise(np.greater_equal, dtypes=ALL, out="bool", refused=ORDERED)
def ge(input: Tensor, other: Tensor | Number) -> Tensor:
    """Return ``input >= other``, elementwise.

    >>> import lucid
    >>> lucid.ge(lucid.tensor([1, 2, 3]), 2)
    tensor([False,  True,  True])
    """
    return GRAPH.ge(input, other)


def _share_of(m: Namespace, grad: Array, smaller: Any, tie: Any) -> Any:
    return m.where(tie, m.mul(grad, 0.5), m.where(smaller, 0, grad))


def _maximum_a(m: Namespace, grad: Array, a: Array, b: Array, a_shape: Ints) -> Any:
    return m.sum_to(_share_of(m, grad, m.lt(a, b), m.eq(a, b)), shape=a_shape)


def _maximum_b(m: Namespace, grad: Array, a: Array, b: Array, b_shape: Ints) -> Any:
    return m.sum_to(_share_of(m, grad, m.gt(a, b), m.eq(a, b)), shape=b_shape)


@elementwise(np.maximum, Fused(_maximum_a), Fused(_maximum_b), dtypes=ALL, refused=ORDERED)
def maximum(input: Tensor, other: Tensor | Number) -> Tensor:
    """Return the larger of `input` and `other`, elementwise; NaN if either is NaN.

    Where they are equal, each takes half of the gradient.

    >>> import lucid
    >>> lucid.maximum(lucid.tensor([1.0, 5.0]), lucid.tensor([2.0, 3.0]))
    tensor([2., 5.])
    """
    return GRAPH.maximum(input, other)


def _minimum_a(m: Namespace, grad: Array, a: Array, b: Array, a_shape: Ints) -> Any:
    return m.sum_to(_share_of(m, grad, m.gt(a, b), m.eq(a, b)), shape=a_shape)


def _minimum_b(m: Namespace, grad: Array, a: Array, b: Array, b_shape: Ints) -> Any:
    return m.sum_to(_share_of(m, grad, m.lt(a, b), m.eq(a, b)), shape=b_shape)


@elementwise(np.minimum, Fused(_minimum_a), Fused(_minimum_b), dtypes=ALL, refused=ORDERED)
def minimum(input: Tensor, other: Tensor | Number) -> Tensor:
    """Return the smaller of `input` and `other`, elementwise; NaN if either is NaN.

    Where they are equal, each takes half of the gradient.

    >>> import lucid
    >>> lucid.minimum(lucid.tensor([1.0, 5.0]), lucid.tensor([2.0, 3.0]))
    tensor([1., 3.])
    """
    return GRAPH.minimum(input, other)


def _first_of_equal(xp: ModuleType, a: Any, b: Array, out: Array) -> Array:
    """Return NumPy's choice, but of zeros of two signs the first: NumPy's own depends on the processor."""
    return xp.where(a == b, a if hasattr(a, "dtype") else out.dtype.type(a), out)


def _fmax(xp: ModuleType, a: Array, b: Array) -> Array:
    return _first_of_equal(xp, a, b, xp.fmax(a, b))


def _fmin(xp: ModuleType, a: Array, b: Array) -> Array:
    return _first_of_equal(xp, a, b, xp.fmin(a, b))


def _is_first(m: Namespace, chosen: Any, a: Array) -> Any:
    """Return the mask of elements taken from the first operand, also of two NaN. The other may be a number."""
    return m.logical_or(m.eq(chosen, a), m.ne(chosen, chosen))


def _fmax_a(m: Namespace, grad: Array, a: Array, b: Array, a_shape: Ints) -> Any:
    return m.sum_to(m.where(_is_first(m, m.fmax(a, b), a), grad, 0), shape=a_shape)


def _fmax_b(m: Namespace, grad: Array, a: Array, b: Array, b_shape: Ints) -> Any:
    return m.sum_to(m.where(_is_first(m, m.fmax(a, b), a), 0, grad), shape=b_shape)


@elementwise(_fmax, Fused(_fmax_a), Fused(_fmax_b), dtypes=ALL, refused=ORDERED)
def fmax(input: Tensor, other: Tensor | Number) -> Tensor:
    """Return the larger of `input` and `other`, elementwise; the other one if one is NaN.

    Where they are equal, `input` takes the gradient.

    >>> import lucid
    >>> lucid.fmax(lucid.tensor([1.0, float("nan")]), lucid.tensor([2.0, 3.0]))
    tensor([2., 3.])
    """
    return GRAPH.fmax(input, other)


def _fmin_a(m: Namespace, grad: Array, a: Array, b: Array, a_shape: Ints) -> Any:
    return m.sum_to(m.where(_is_first(m, m.fmin(a, b), a), grad, 0), shape=a_shape)


def _fmin_b(m: Namespace, grad: Array, a: Array, b: Array, b_shape: Ints) -> Any:
    return m.sum_to(m.where(_is_first(m, m.fmin(a, b), a), 0, grad), shape=b_shape)


@elementwise(_fmin, Fused(_fmin_a), Fused(_fmin_b), dtypes=ALL, refused=ORDERED)
def fmin(input: Tensor, other: Tensor | Number) -> Tensor:
    """Return the smaller of `input` and `other`, elementwise; the other one if one is NaN.

    Where they are equal, `input` takes the gradient.

    >>> import lucid
    >>> lucid.fmin(lucid.tensor([1.0, float("nan")]), lucid.tensor([2.0, 3.0]))
    tensor([1., 3.])
    """
    return GRAPH.fmin(input, other)


def _steps(xp: ModuleType, a: Array, b: Array) -> Array:
    # NaN is neither
    return xp.where(a == 0, b, xp.where((a > 0) | (a < 0), (a > 0).astype(a.dtype), a))


@elementwise(
    Formula(lambda m, a, b: m.where(m.eq(a, 0), b, m.where(m.isnan(a), a, m.where(a > 0, 1, 0))), _steps),
    lambda m, grad, a_shape: m.sum_to(m.zeros_like(grad), shape=a_shape),
    lambda m, grad, a, b_shape: m.sum_to(m.where(m.eq(a, 0), grad, 0), shape=b_shape),
    dtypes=ALL,
    refused=ORDERED,
)
def steps(input: Tensor, values: Tensor | Number) -> Tensor:
    """Return ``numpy.heaviside``: as `heaviside`, but NaN of NaN, and with a gradient of the `values` taken.

    >>> import lucid
    >>> lucid.ops.elementwise.comparison.steps(lucid.tensor([-1.0, 0.0, float("nan")]), 0.5)
    tensor([0.0000, 0.5000,    nan])
    """
    # of a number among arrays there is no mask
    return GRAPH.steps(*promote_to_tensors(input, values))


def heaviside(input: Tensor, values: Tensor) -> Tensor:
    """Return 0 for `input` below zero, 1 above, and `values` at zero, elementwise.

    Both are of one dtype, of real numbers; of NaN it is 0. It has no derivative.

    >>> import lucid
    >>> lucid.heaviside(lucid.tensor([-1.0, 0.0, 2.0]), lucid.tensor([0.5]))
    tensor([0.0000, 0.5000, 1.0000])
    """
    a, b = tensor_operand(input).detach(), tensor_operand(values).detach()
    refuse("heaviside", "c", a, b, instead=ORDERED[1])
    if a.array.dtype != b.array.dtype:
        raise DtypeError(
            f"heaviside: expected input and values of one dtype, got {a.array.dtype.name} and {b.array.dtype.name}"
        )
    return GRAPH.where(eq(a, 0), b, gt(a, 0).to(a.dtype))
