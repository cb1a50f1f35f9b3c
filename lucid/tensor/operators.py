"""Python's operators on tensors, and conversions of tensors to numbers and sequences."""

from __future__ import annotations

import operator as pythons
from importlib import import_module
from typing import TYPE_CHECKING, Any, cast

from lucid.autograd.base import TensorBase
from lucid.autograd.modes.state import no_grad, thread
from lucid.autograd.recording.namespace import PRIMITIVES
from lucid.autograd.recording.short_path import binary
from lucid.autograd.recording.views import live_edge
from lucid.errors import DtypeError, ShapeError, warn
from lucid.ops.base.promotion import OperandTypeError, array_of, as_operand, no_matrix
from lucid.ops.elementwise import comparison, division, selection, special
from lucid.ops.shape import splitting
from lucid.tensor.conversion import item

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from lucid.tensor import Tensor


SPARSE = "lucid.scipy.sparse.matrices"
"""What knows of sparse matrices, imported when one stands beside a tensor."""

BESIDE_SPARSE = {
    "add": "add", "sub": "sub", "subtract": "sub", "mul": "mul", "multiply": "mul", "div": "truediv",
    "divide": "truediv", "matmul": "matmul",
}  # fmt: skip
"""Python's names of the operators that a sparse matrix has, by those of lucid's ops and of NumPy's ufuncs."""


WEAK = frozenset((bool, int, float, complex))
"""Python's numbers, which ops take as they are."""

UNLIKE_MATRICES = {"mul", "pow"}
"""The operators that mean others of a matrix of NumPy's."""


class ZeroDimError(ShapeError, TypeError):
    """A tensor of no dimension was used as a sequence."""


def operator(function: Callable[[Any, Any], Any], name: str = "") -> Callable[[Tensor, Any], Tensor]:
    """Return an op of two operands as an operator: the other operand's class may know operands that it refuses."""
    name = name or function.__name__

    def apply(a: object, b: object) -> Any:
        if name in UNLIKE_MATRICES:
            no_matrix(b)
        try:
            return function(a, b)
        except OperandTypeError:
            return beside_sparse(name, a, b)

    return apply


def beside_sparse(name: str, a: Any, b: Any) -> Any:
    """Return the result of an operator on a tensor and a sparse matrix of SciPy's or CuPy's; else NotImplemented."""
    for place, one in enumerate((a, b)):
        if name in BESIDE_SPARSE and type(one).__module__.startswith(("scipy.sparse", "cupyx.scipy.sparse")):
            sparse = import_module(SPARSE).wrapped(one)
            return getattr(pythons, BESIDE_SPARSE[name])(*((a, sparse) if place else (sparse, b)))
    return NotImplemented


def direct(name: str) -> Callable[[Tensor, Any], Tensor]:
    """Return the operator of a primitive that has the short path, with nothing between Python and that."""
    primitive = PRIMITIVES[name]
    return binary(primitive, operator(primitive.general, name))


def reflected(function: Callable[[Any, Any], Any], *, as_it_is: bool = False) -> Callable[[Tensor, Any], Tensor]:
    """Return the operator of ``other op self``; the function gets an array as a tensor, unless `as_it_is`."""
    name = function.__name__
    guarded = name in UNLIKE_MATRICES

    def apply(b: object, a: object) -> Any:
        try:
            if as_it_is or type(a) in WEAK:
                return function(a, b)
            if guarded:
                no_matrix(a)
            # the short path takes no other
            return function(as_operand(a, b), b)
        except OperandTypeError:
            return beside_sparse(name, a, b)

    return apply


def quotient_and_rest(a: Any, b: Any) -> tuple[Tensor, Tensor]:
    """Return ``divmod(a, b)``."""
    a, b = as_operand(a, b), as_operand(b, a)
    return division.floor_divide(a, b), division.remainder(a, b)


def itself(self: Tensor) -> Tensor:
    """Return this tensor."""
    return self


def where(self: Tensor, condition: Tensor, other: Any) -> Tensor:
    """Return this tensor's elements for true elements of `condition`, those of `other` elsewhere.

    Parameters
    ----------
    condition : Tensor
        Of bools.
    other : Tensor or number
        All three broadcast against each other.

    Examples
    --------
    >>> import lucid
    >>> x = lucid.tensor([1.0, -2.0])
    >>> x.where(x > 0, 0.0)
    tensor([1., 0.])
    """
    return selection.where(condition, self, other)


def polygamma(self: Tensor, n: int) -> Tensor:
    """Return derivative number `n` of `digamma` at this tensor, elementwise, as `lucid.polygamma` does.

    Examples
    --------
    >>> import lucid
    >>> lucid.tensor([1.0, 0.5]).polygamma(1)
    tensor([1.6449, 4.9348])
    """
    return special.polygamma(n, self)


def truth(self: Tensor) -> bool:
    """Return whether the only element is not zero.

    Raises
    ------
    ShapeError
        If there is not exactly one element.
    """
    if self.array.size != 1:
        count = "no values" if not self.array.size else "more than one value"
        raise ShapeError(
            f"Boolean value of Tensor with {count} is ambiguous (shape {tuple(self.array.shape)}): reduce it with "
            ".any() or .all()"
        )
    return bool(item(self))


def is_nonzero(input: Tensor) -> bool:
    """Return whether the only element of `input` is not zero; another number of elements raises a ShapeError.

    >>> import lucid
    >>> lucid.is_nonzero(lucid.tensor([0.0]))
    False
    """
    array_of(input)
    return truth(input)


def real_number(self: Tensor) -> Any:
    """Return the only element, for `int` and `float`.

    Raises
    ------
    DtypeError
        If it is complex.
    """
    value = item(self)
    if isinstance(value, complex):
        raise DtypeError(f"a complex value cannot be converted to a real number without loss: {value}; use .real")
    return value


def warn_of_lost_gradient(self: Tensor, name: str) -> None:
    """Warn that a number has no gradient, unless it was asked for by `item`.

    Python and NumPy make such numbers where nobody sees it: ``math.sin(x)``, ``array[0] = x``, ``array.fill(x)``.
    """
    if thread.state.grad_mode.enabled and live_edge(self) is not None:
        warn(
            f"converting a tensor with requires_grad=True to a number loses its gradient: {name}(x) is called by "
            "functions of math, by scipy.integrate.quad, and by writing x into a plain array, array[0] = x. Where that "
            "is meant, use x.item() or x.detach(); otherwise functions of lucid or lucid.numpy, fixed_quad of "
            "lucid.scipy.integrate, and stack in place of writing"
        )


def as_float(self: Tensor) -> float:
    """Return the only element as a float, with a warning if it requires grad."""
    warn_of_lost_gradient(self, "float")
    return float(real_number(self))


def as_int(self: Tensor) -> int:
    """Return the only element as an integer, cut towards zero."""
    return int(real_number(self))


def as_complex(self: Tensor) -> complex:
    """Return the only element as a complex number, with a warning if it requires grad."""
    warn_of_lost_gradient(self, "complex")
    return complex(item(self))


def as_index(self: Tensor) -> int:
    """Return the only element, an integer, for use as an index.

    Raises
    ------
    DtypeError
        If it is no integer.
    ShapeError
        If there is not exactly one.
    """
    if self.array.dtype.kind not in "iub":
        raise DtypeError(
            f"only integer tensors of a single element can be converted to an index, got {self.dtype}: convert it "
            "with .long()"
        )
    return int(item(self))


def length(self: Tensor) -> int:
    """Return the size of the first dimension.

    Raises
    ------
    TypeError
        For a tensor of no dimension.
    """
    if not self.array.ndim:
        raise ZeroDimError("len() of a 0-d tensor")
    return self.array.shape[0]


def iterate(self: Tensor) -> Iterator[Tensor]:
    """Return an iterator over the slices along the first dimension.

    Raises
    ------
    TypeError
        For a tensor of no dimension.
    """
    if not self.array.ndim:
        raise ZeroDimError("iteration over a 0-d tensor")
    return iter(splitting.unbind(self, 0))


def contains(self: Tensor, element: object) -> bool:
    """Return whether some element equals `element`, a number or a tensor that broadcasts.

    Raises
    ------
    OperandTypeError
        If it is neither.
    """
    if not isinstance(element, TensorBase | int | float | complex):
        raise OperandTypeError(f"in: expected a number or a Tensor, got {type(element).__name__}: {element!r}")
    with no_grad():
        return bool(comparison.eq(self, cast("Any", element)).array.any())
