"""Comparisons, elementwise: where they hold, and the larger and the smaller."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from lucid.autograd.primitive import primitive
from lucid.autograd.recording import binary
from lucid.cuda.elementwise import ALL, Elementwise
from lucid.ops.elementwise import of_two, refuse, summed
from lucid.ops.promotion import promote

if TYPE_CHECKING:
    from lucid.autograd.primitive import Primitive
    from lucid.backend.arrays import Array
    from lucid.tensor import Tensor


def of_ordered(op: Primitive) -> Primitive:
    """Give a primitive that compares real operands its caller."""

    def general(a: Any, b: Any) -> Any:
        refuse(op.name, "c", a, b, instead="complex numbers have no order; take real parts or magnitudes")
        return op(*promote(a, b))

    op.call = binary(op, general)
    return op


@primitive(cpu=np.equal)
def _eq(xp: Any, a: Array, b: Array) -> Array:
    return xp.equal(a, b)


_eq.cuda(Elementwise("comparison", "Equal", "TT", out="bool", dtypes=ALL))


of_two(_eq)


def eq(input: Tensor, other: Any) -> Tensor:
    """Return where ``input == other``, elementwise; NaN equals nothing.

    Parameters
    ----------
    input : Tensor
        First operand.
    other : Tensor or number
        Second operand, broadcast against the first; both are compared in their promoted dtype.

    Returns
    -------
    Tensor
        Of the broadcast shape, bool.

    Raises
    ------
    ShapeError
        If the shapes cannot be broadcast.

    Examples
    --------
    >>> import lucid
    >>> lucid.eq(lucid.tensor([1, 2, 3]), 2)
    tensor([False,  True, False])
    """
    return _eq.call(input, other)


@primitive(cpu=np.not_equal)
def _ne(xp: Any, a: Array, b: Array) -> Array:
    return xp.not_equal(a, b)


_ne.cuda(Elementwise("comparison", "NotEqual", "TT", out="bool", dtypes=ALL))


of_two(_ne)


def ne(input: Tensor, other: Any) -> Tensor:
    """Return where ``input != other``, elementwise; NaN differs from everything.

    Parameters
    ----------
    input : Tensor
        First operand.
    other : Tensor or number
        Second operand, broadcast against the first; both are compared in their promoted dtype.

    Returns
    -------
    Tensor
        Of the broadcast shape, bool.

    Raises
    ------
    ShapeError
        If the shapes cannot be broadcast.

    Examples
    --------
    >>> import lucid
    >>> lucid.ne(lucid.tensor([1, 2, 3]), 2)
    tensor([ True, False,  True])
    """
    return _ne.call(input, other)


@primitive(cpu=np.less)
def _lt(xp: Any, a: Array, b: Array) -> Array:
    return xp.less(a, b)


_lt.cuda(Elementwise("comparison", "Less", "TT", out="bool", dtypes=ALL))


of_ordered(_lt)


def lt(input: Tensor, other: Any) -> Tensor:
    """Return where ``input < other``, elementwise.

    Parameters
    ----------
    input : Tensor
        First operand, real.
    other : Tensor or number
        Second operand, broadcast against the first; both are compared in their promoted dtype.

    Returns
    -------
    Tensor
        Of the broadcast shape, bool.

    Raises
    ------
    ShapeError
        If the shapes cannot be broadcast.
    DtypeError
        If an operand is complex: complex numbers have no order.

    Examples
    --------
    >>> import lucid
    >>> lucid.lt(lucid.tensor([1, 2, 3]), 2)
    tensor([ True, False, False])
    """
    return _lt.call(input, other)


@primitive(cpu=np.less_equal)
def _le(xp: Any, a: Array, b: Array) -> Array:
    return xp.less_equal(a, b)


_le.cuda(Elementwise("comparison", "LessEqual", "TT", out="bool", dtypes=ALL))


of_ordered(_le)


def le(input: Tensor, other: Any) -> Tensor:
    """Return where ``input <= other``, elementwise.

    Parameters
    ----------
    input : Tensor
        First operand, real.
    other : Tensor or number
        Second operand, broadcast against the first; both are compared in their promoted dtype.

    Returns
    -------
    Tensor
        Of the broadcast shape, bool.

    Raises
    ------
    ShapeError
        If the shapes cannot be broadcast.
    DtypeError
        If an operand is complex: complex numbers have no order.

    Examples
    --------
    >>> import lucid
    >>> lucid.le(lucid.tensor([1, 2, 3]), 2)
    tensor([ True,  True, False])
    """
    return _le.call(input, other)


@primitive(cpu=np.greater)
def _gt(xp: Any, a: Array, b: Array) -> Array:
    return xp.greater(a, b)


_gt.cuda(Elementwise("comparison", "Greater", "TT", out="bool", dtypes=ALL))


of_ordered(_gt)


def gt(input: Tensor, other: Any) -> Tensor:
    """Return where ``input > other``, elementwise.

    Parameters
    ----------
    input : Tensor
        First operand, real.
    other : Tensor or number
        Second operand, broadcast against the first; both are compared in their promoted dtype.

    Returns
    -------
    Tensor
        Of the broadcast shape, bool.

    Raises
    ------
    ShapeError
        If the shapes cannot be broadcast.
    DtypeError
        If an operand is complex: complex numbers have no order.

    Examples
    --------
    >>> import lucid
    >>> lucid.gt(lucid.tensor([1, 2, 3]), 2)
    tensor([False, False,  True])
    """
    return _gt.call(input, other)


@primitive(cpu=np.greater_equal)
def _ge(xp: Any, a: Array, b: Array) -> Array:
    return xp.greater_equal(a, b)


_ge.cuda(Elementwise("comparison", "GreaterEqual", "TT", out="bool", dtypes=ALL))


of_ordered(_ge)


def ge(input: Tensor, other: Any) -> Tensor:
    """Return where ``input >= other``, elementwise.

    Parameters
    ----------
    input : Tensor
        First operand, real.
    other : Tensor or number
        Second operand, broadcast against the first; both are compared in their promoted dtype.

    Returns
    -------
    Tensor
        Of the broadcast shape, bool.

    Raises
    ------
    ShapeError
        If the shapes cannot be broadcast.
    DtypeError
        If an operand is complex: complex numbers have no order.

    Examples
    --------
    >>> import lucid
    >>> lucid.ge(lucid.tensor([1, 2, 3]), 2)
    tensor([False,  True,  True])
    """
    return _ge.call(input, other)


def _share_of(m: Any, grad: Any, smaller: Any, tie: Any) -> Any:
    return m.where(tie, m.mul(grad, 0.5), m.where(smaller, 0, grad))


@primitive(cpu=np.maximum)
def _maximum(xp: Any, a: Array, b: Array) -> Array:
    return xp.maximum(a, b)


_maximum.cuda(Elementwise("comparison", "Maximum", "TT", dtypes=ALL))


_MAXIMUM_GRAD = Elementwise("comparison", "MaximumGrad", "TTT")


@_maximum.vjp("a", cuda=summed(_MAXIMUM_GRAD))
def _maximum_a(m: Any, grad: Any, a: Any, b: Any, a_shape: tuple[int, ...]) -> Any:
    return m.sum_to(_share_of(m, grad, m.lt(a, b), m.eq(a, b)), shape=a_shape)


@_maximum.vjp("b", cuda=summed(_MAXIMUM_GRAD, exchanged=True))
def _maximum_b(m: Any, grad: Any, a: Any, b: Any, b_shape: tuple[int, ...]) -> Any:
    return m.sum_to(_share_of(m, grad, m.gt(a, b), m.eq(a, b)), shape=b_shape)


of_ordered(_maximum)


def maximum(input: Tensor, other: Any) -> Tensor:
    """Return the larger of `input` and `other`, elementwise; NaN if either is NaN.

    Where they are equal, each takes half of the gradient.

    Parameters
    ----------
    input : Tensor
        First operand, real.
    other : Tensor or number
        Second operand, broadcast against the first.

    Returns
    -------
    Tensor
        Of the broadcast shape and the promoted dtype.

    Raises
    ------
    DtypeError
        If an operand is complex.
    ShapeError
        If the shapes cannot be broadcast.

    Examples
    --------
    >>> import lucid
    >>> lucid.maximum(lucid.tensor([1.0, 5.0]), lucid.tensor([2.0, 3.0]))
    tensor([2., 5.])
    """
    return _maximum.call(input, other)


@primitive(cpu=np.minimum)
def _minimum(xp: Any, a: Array, b: Array) -> Array:
    return xp.minimum(a, b)


_minimum.cuda(Elementwise("comparison", "Minimum", "TT", dtypes=ALL))


_MINIMUM_GRAD = Elementwise("comparison", "MinimumGrad", "TTT")


@_minimum.vjp("a", cuda=summed(_MINIMUM_GRAD))
def _minimum_a(m: Any, grad: Any, a: Any, b: Any, a_shape: tuple[int, ...]) -> Any:
    return m.sum_to(_share_of(m, grad, m.gt(a, b), m.eq(a, b)), shape=a_shape)


@_minimum.vjp("b", cuda=summed(_MINIMUM_GRAD, exchanged=True))
def _minimum_b(m: Any, grad: Any, a: Any, b: Any, b_shape: tuple[int, ...]) -> Any:
    return m.sum_to(_share_of(m, grad, m.lt(a, b), m.eq(a, b)), shape=b_shape)


of_ordered(_minimum)


def minimum(input: Tensor, other: Any) -> Tensor:
    """Return the smaller of `input` and `other`, elementwise; NaN if either is NaN.

    Where they are equal, each takes half of the gradient.

    Parameters
    ----------
    input : Tensor
        First operand, real.
    other : Tensor or number
        Second operand, broadcast against the first.

    Returns
    -------
    Tensor
        Of the broadcast shape and the promoted dtype.

    Raises
    ------
    DtypeError
        If an operand is complex.
    ShapeError
        If the shapes cannot be broadcast.

    Examples
    --------
    >>> import lucid
    >>> lucid.minimum(lucid.tensor([1.0, 5.0]), lucid.tensor([2.0, 3.0]))
    tensor([1., 3.])
    """
    return _minimum.call(input, other)
