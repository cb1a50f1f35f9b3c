"""Special functions with known slopes, and values by SciPy, on the host, or written in ops: the mechanism.

The slopes of the first stand in the files of `lucid.tensor.numpy_calls.slopes`, which enter them into the table here.
"""

from __future__ import annotations

import functools
import sys
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from lucid.autograd.base import TensorBase
from lucid.autograd.function import Function
from lucid.base.dtype import as_dtype, complex128, dtype_of, float64
from lucid.base.gpu import is_gpu_array
from lucid.ops.base.one_device import check_one_device
from lucid.ops.base.promotion import cast_to, promote_to_tensors
from lucid.ops.elementwise import arithmetic
from lucid.ops.elementwise import complex as parts
from lucid.ops.shape.broadcasting import broadcast_tensors
from lucid.tensor.numpy_calls.operands import NumpyCallError, beside

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from lucid.tensor import Tensor

OfFew: TypeAlias = "Callable[[Any], Any] | Callable[[Any, Any], Any]"
OfMore: TypeAlias = "Callable[[Any, Any, Any], Any] | Callable[[Any, Any, Any, Any], Any]"
Slope: TypeAlias = "OfFew | OfMore"
"""A function of all arguments of a ufunc."""

SLOPES: dict[str, dict[int, Callable[..., Any]]] = {}
"""By the name of a ufunc of `scipy.special`, and the place of an argument from the end, -1 the last, the slope in it.

A slope is a function of all arguments, and gives a tuple for a ufunc of several results.
"""

HOLOMORPHIC: set[str] = set()
"""The names of those whose slopes are those of complex numbers too."""

TO_COMPLEX: set[str] = set()
"""The names of those whose results are complex, also of real numbers."""


def enter(slopes: dict[str, Slope], *, place: int = -1, is_holomorphic: bool = False) -> None:
    """Enter ufuncs by their names, each with its slope in the argument of a place, the last one by default."""
    for name, slope in slopes.items():
        SLOPES.setdefault(name, {})[place] = slope
    if is_holomorphic:
        HOLOMORPHIC.update(slopes)


class SpecialFunction(Function):
    """The ufunc of a name, with its slopes."""

    @staticmethod
    def forward(ctx: Any, name: str, *operands: Any) -> Any:
        """Return SciPy's values."""
        ctx.name = name
        # the slope of a result that is not used may be infinite where the others' are not
        ctx.set_materialize_grads(False)
        ctx.save_for_backward(*operands)
        values: Any = _ufunc(name)(*[each.numpy(force=True) for each in operands])
        x = operands[argument_of(name)]
        return tuple([beside(each, x) for each in values]) if _ufunc(name).nout > 1 else beside(values, x)

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        """Return the gradients by those arguments that have a slope."""
        operands = ctx.saved_tensors
        places = range(-len(operands), 0)
        return None, *[_gradient(ctx.name, k, operands, grads) if ctx.needs_input_grad[k] else None for k in places]


def _gradient(name: str, place: int, operands: tuple[Any, ...], grads: tuple[Any, ...]) -> Any:
    """Return the gradient by the argument of a place: a sum over results.

    It is computed in double precision, as SciPy's values are: some slopes are differences of near numbers.
    """
    result: Any = SLOPES[name][place](*map(_in_double, operands))
    slopes: tuple[Any, ...] = result if len(grads) > 1 else (result,)
    used = [(grad, slope) for grad, slope in zip(grads, slopes, strict=True) if grad is not None]
    terms = [arithmetic.mul(grad, parts.conj(slope)) for grad, slope in used]
    return cast_to(functools.reduce(arithmetic.add, terms), dtype_of(operands[place].array)) if terms else None


def _in_double(x: Any) -> Any:
    """Return a tensor in double precision, and one of integers as it is."""
    kind = x.array.dtype.kind
    return x if kind in "biu" else cast_to(x, complex128 if kind == "c" else float64)


def _ufunc(name: str) -> np.ufunc:
    if "scipy.special._ufuncs" not in sys.modules:
        raise NumpyCallError(f"{_title(name)}: its values are SciPy's: import scipy.special first")
    return getattr(sys.modules["scipy.special._ufuncs"], name)


def argument_of(name: str) -> int:
    """Return the place, from the end, of the argument that is no parameter: the last with a slope."""
    return max(SLOPES[name])


def _title(name: str) -> str:
    """Return SciPy's name of a function, also if its ufunc is not public but behind a check."""
    return f"scipy.special.{name.lstrip('_')}"


def by_scipy(name: str) -> Callable[..., Any]:
    """Return the function of a name of `SLOPES`.

    It raises a NumpyCallError where an argument requires grad of which the slope is not known, and without SciPy.
    """

    def function(*operands: Tensor | float) -> Any:
        ufunc, main = _ufunc(name), argument_of(name)
        if len(operands) != ufunc.nin:
            raise TypeError(f"{_title(name)}: expected {ufunc.nin} arguments, got {len(operands)}")
        tensors: list[Any] = list(promote_to_tensors(*operands, at_least_float=True))
        for place in range(-len(tensors), 0):
            kind = _kind(operands[place])
            if place == main:
                if name in TO_COMPLEX and kind != "c":
                    dtype = np.result_type(tensors[place].array.dtype, np.complex64)
                    tensors[place] = cast_to(tensors[place], as_dtype(dtype))
                continue
            if kind != "c":
                tensors[place] = parts.real(tensors[place])
            if kind in "biu" and any(types[len(tensors) + place] == "l" for types in ufunc.types):
                # of an order that is a whole number SciPy computes by recurrences
                tensors[place] = cast_to(tensors[place], as_dtype(np.int64))
        check_one_device(_title(name), *tensors)
        tensors = list(broadcast_tensors(*tensors))
        _check(name, tensors)
        return SpecialFunction.apply(name, *tensors)

    return function


def _kind(value: Any) -> str:
    """Return the kind of the dtype of a tensor, an array, or a number."""
    array = value.array if isinstance(value, TensorBase) else value
    return (array if is_gpu_array(array) else np.asarray(array)).dtype.kind


def _check(name: str, tensors: Sequence[Tensor]) -> None:
    """Raise unless the slopes are known in all arguments that require grad."""
    main = argument_of(name)
    for place in range(-len(tensors), 0):
        if tensors[place].requires_grad and place not in SLOPES[name]:
            which = "last" if main == -1 else "first"
            raise NumpyCallError(
                f"{_title(name)}: only its {which} argument can be differentiated, and another one requires "
                "grad: use tensor.detach(), or lucid.autograd.Function with the derivative of your own"
            )
    if tensors[main].requires_grad and tensors[main].array.dtype.kind == "c" and name not in HOLOMORPHIC:
        raise NumpyCallError(
            f"{_title(name)}: with a Tensor that requires grad the numbers must be real, and they are complex: "
            "use tensor.real, tensor.detach(), or lucid.autograd.Function with the derivative of your own"
        )


# ---- values written in ops ----

# The slopes that follow from a formula's ops multiply what may be infinite with what is then zero, and take the
# difference of near numbers, where the slope itself is a number that can be written down.


class Known(Function):
    """A function of operands of one shape, and for each of them the slope: a recorded function of all."""

    @staticmethod
    def forward(ctx: Any, value: Callable[..., Any], slopes: Sequence[Callable[..., Any]], *operands: Tensor) -> Any:
        """Return the value."""
        ctx.slopes = slopes
        ctx.save_for_backward(*operands)
        return value(*operands)

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        """Return the gradients by those operands that need one."""
        operands = ctx.saved_tensors
        wanted = zip(ctx.slopes, ctx.needs_input_grad[2:], strict=True)
        return None, None, *[arithmetic.mul(grads[0], slope(*operands)) if one else None for slope, one in wanted]


def with_slopes(value: Slope, *slopes: Slope) -> Callable[..., Any]:
    """Return the function of a value and of its slopes, of numbers that promote to floats of one shape."""

    def function(*operands: Tensor | float) -> Any:
        tensors = promote_to_tensors(*operands, at_least_float=True)
        return Known.apply(value, slopes, *broadcast_tensors(*tensors))

    function.__doc__ = value.__doc__
    return function


def series(x: Tensor, terms: Sequence[float]) -> Any:
    """Return the sum of ``terms[k] * x ** k``."""
    total: Any = terms[-1]
    for term in terms[-2::-1]:
        total = arithmetic.add(arithmetic.mul(x, total), term)
    return total
