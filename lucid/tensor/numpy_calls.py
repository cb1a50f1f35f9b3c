"""NumPy's functions called with tensors: those that lucid has too stay on the graph, the others raise."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple, cast

import numpy as np

from lucid.autograd.base import TensorBase
from lucid.errors import LucidError
from lucid.ops.activation.sigmoid import tanh
from lucid.ops.base.promotion import OperandTypeError
from lucid.ops.elementwise import (
    arithmetic,
    division,
    exponential,
    logic,
    nonfinite,
    power,
    rounding,
    selection,
    trigonometry,
)
from lucid.ops.elementwise import complex as parts
from lucid.ops.elementwise.comparison import eq, fmax, fmin, ge, gt, heaviside, le, lt, maximum, minimum, ne
from lucid.ops.index import gather
from lucid.ops.linalg import einsum, products
from lucid.ops.reduction import cumulative, extremes, norms, sorting, statistics, sums
from lucid.ops.shape import axes, broadcasting, diagonal, joining, repeating, reshape, splitting

if TYPE_CHECKING:
    from collections.abc import Callable


class NumpyCallError(LucidError, TypeError):
    """A NumPy function was called with a tensor that lucid cannot follow."""


def ufunc_call(_self: object, ufunc: Any, method: str, *inputs: object, **options: object) -> Any:
    """Return what NumPy's `ufunc` gives, by lucid's op of the same meaning.

    Raises
    ------
    NumpyCallError
        If lucid has no such op, or it is asked for with a method or option that the op has not.

    Examples
    --------
    >>> import lucid
    >>> import numpy as np
    >>> x = lucid.tensor([0.0, 1.0], requires_grad=True)
    >>> np.exp(x) * np.float64(2)
    tensor([2.0000, 5.4366], grad_fn=<MulBackward0>)
    """
    # other packages have ufuncs too, such as scipy.special, and none says whose it is
    name = f"numpy.{ufunc.__name__}" if getattr(np, ufunc.__name__, None) is ufunc else f"the ufunc {ufunc.__name__}"
    if method != "__call__":
        raise NumpyCallError(f"{name}.{method} cannot be recorded: use lucid's function, or tensor.detach().numpy()")
    if options:
        raise NumpyCallError(
            f"{name}: {', '.join(options)} cannot be used with a Tensor: NumPy does not record; assign the result, or "
            "use tensor.detach().numpy()"
        )
    op = UFUNCS.get(ufunc.__name__)
    if op is None:
        raise NumpyCallError(f"{name} has no op in lucid: use tensor.detach().numpy(), or lucid.autograd.Function")
    try:
        return op(*inputs)
    except OperandTypeError:
        return NotImplemented


class Form(NamedTuple):
    """A function of lucid under the parameters that NumPy gives it.

    Attributes
    ----------
    function : callable
        The one of lucid.
    names : dict of str to str
        NumPy's parameters, in order, and what lucid calls each.
    constants : dict
        What is passed besides, because the defaults differ.
    """

    function: Callable[..., Any]
    names: dict[str, str]
    constants: dict[str, Any]

    def arguments(self, name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, Any]:
        """Return the arguments of a call of NumPy's function as lucid names them."""
        given = {**dict(zip(self.names, args, strict=False)), **kwargs}
        unknown = [key for key in given if key not in self.names]
        if unknown or len(args) > len(self.names):
            raise NumpyCallError(
                f"{name}: with a Tensor only {', '.join(self.names)} can be used, got {unknown or len(args)}"
            )
        return {**self.constants, **{self.names[key]: value for key, value in given.items()}}


def function_call(_self: object, func: Any, _types: object, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Return what NumPy's function `func` gives, by lucid's function of the same meaning.

    Raises
    ------
    NumpyCallError
        If lucid has none, or it is asked for with a parameter that lucid's has not.

    Examples
    --------
    >>> import lucid
    >>> import numpy as np
    >>> x = lucid.tensor([[1.0, 2.0], [3.0, 4.0]], requires_grad=True)
    >>> np.sum(x, axis=1)
    tensor([3., 7.], grad_fn=<SumBackward0>)
    """
    name = f"{func.__module__}.{func.__name__}"
    known = name.removeprefix("numpy.")
    if known == "einsum" and not kwargs:
        return einsum.einsum(*args)
    if known in ABOUT:
        return func(*map(as_plain, args), **{key: as_plain(value) for key, value in kwargs.items()})
    form = FUNCTIONS.get(known)
    if form is None:
        raise NumpyCallError(
            f"{name} has no counterpart here that keeps a Tensor on the graph: use lucid's functions, or "
            "tensor.detach().numpy()"
        )
    return form.function(**form.arguments(name, args, kwargs))


def as_plain(value: object) -> Any:
    """Return tensors as NumPy arrays, also inside lists and tuples."""
    if isinstance(value, TensorBase):
        return cast("Any", value).numpy(force=True)
    if isinstance(value, list | tuple):
        return [as_plain(entry) for entry in cast("Any", value)]
    return value


def transposed(input: Any, order: Any = None) -> Any:
    """Return ``numpy.transpose``: without axes, all dimensions in reverse order."""
    return axes.permute(input, *(reversed(range(input.array.ndim)) if order is None else order))


def product(a: Any, b: Any) -> Any:
    """Return ``numpy.dot`` of operands of at most two dimensions."""
    dimensions = [x.array.ndim if isinstance(x, TensorBase) else np.ndim(x) for x in (a, b)]
    if max(dimensions) > 2:
        raise NumpyCallError("numpy.dot: expected at most two dimensions with a Tensor: use lucid.matmul or einsum")
    return products.matmul(a, b) if min(dimensions) else arithmetic.mul(a, b)


def flipped(input: Any, dims: Any = None) -> Any:
    """Return ``numpy.flip``: without dimensions, along all."""
    return axes.flip(input, tuple(range(input.array.ndim)) if dims is None else dims)


def reshaped(input: Any, wanted: Any) -> Any:
    """Return ``numpy.reshape``."""
    return reshape.reshape(input, wanted)


def tiled(input: Any, reps: Any) -> Any:
    """Return ``numpy.tile``."""
    return repeating.tile(input, reps)


def running_sum(input: Any, dim: int | None = None) -> Any:
    """Return ``numpy.cumsum``: without a dimension, over all elements in a row."""
    return cumulative.cumsum(reshape.ravel(input), 0) if dim is None else cumulative.cumsum(input, dim)


def joined(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function that joins tensors as NumPy's, for which one tensor is the sequence of its slices."""

    def join(tensors: object, **settings: object) -> Any:
        parts = splitting.unbind(cast("Any", tensors)) if isinstance(tensors, TensorBase) else tensors
        return function(parts, **settings)

    return join


def sorted_values(input: Any, dim: int = -1) -> Any:
    """Return ``numpy.sort``."""
    return sorting.sort(input, dim)[0]


def form(function: Callable[..., Any], names: str, **constants: object) -> Form:
    """Return a form from ``"numpy_name:lucid_name ..."``; a name alone is the same for both."""
    pairs = [entry.partition(":") for entry in names.split()]
    return Form(function, {theirs: ours or theirs for theirs, _, ours in pairs}, constants)


REDUCTION = "a:input axis:dim"
FUNCTIONS: dict[str, Form] = {
    "all": form(sums.all, REDUCTION + " keepdims:keepdim"),
    "any": form(sums.any, REDUCTION + " keepdims:keepdim"),
    "sum": form(sums.sum, REDUCTION + " dtype keepdims:keepdim"),
    "mean": form(sums.mean, REDUCTION + " dtype keepdims:keepdim"),
    "var": form(statistics.var, REDUCTION + " ddof:correction keepdims:keepdim correction", correction=0),
    "std": form(statistics.std, REDUCTION + " ddof:correction keepdims:keepdim correction", correction=0),
    "amax": form(extremes.amax, REDUCTION + " keepdims:keepdim"),
    "amin": form(extremes.amin, REDUCTION + " keepdims:keepdim"),
    "max": form(extremes.amax, REDUCTION + " keepdims:keepdim"),
    "min": form(extremes.amin, REDUCTION + " keepdims:keepdim"),
    "argmax": form(extremes.argmax, REDUCTION + " keepdims:keepdim"),
    "argmin": form(extremes.argmin, REDUCTION + " keepdims:keepdim"),
    "prod": form(cumulative.prod, REDUCTION + " dtype keepdims:keepdim"),
    "cumsum": form(running_sum, REDUCTION),
    "count_nonzero": form(sums.count_nonzero, REDUCTION),
    "linalg.norm": form(norms.norm, "x:input axis:dim keepdims:keepdim"),
    "reshape": form(reshaped, "a:input shape:wanted"),
    "ravel": form(reshape.ravel, "a:input"),
    "squeeze": form(reshape.squeeze, REDUCTION),
    "expand_dims": form(reshape.unsqueeze, REDUCTION),
    "copy": form(reshape.clone, "a:input"),
    "transpose": form(transposed, "a:input axes:order"),
    "swapaxes": form(axes.transpose, "a:input axis1:dim0 axis2:dim1"),
    "moveaxis": form(axes.movedim, "a:input source destination"),
    "flip": form(flipped, "m:input axis:dims"),
    "roll": form(axes.roll, "a:input shift:shifts axis:dims"),
    "broadcast_to": form(broadcasting.broadcast_to, "array:input shape:size"),
    "concatenate": form(joined(joining.cat), "arrays:tensors axis:dim"),
    "stack": form(joined(joining.stack), "arrays:tensors axis:dim"),
    "hstack": form(joined(joining.hstack), "tup:tensors"),
    "vstack": form(joined(joining.vstack), "tup:tensors"),
    "array_split": form(splitting.tensor_split, "ary:input indices_or_sections axis:dim"),
    "tile": form(tiled, "A:input reps"),
    "repeat": form(repeating.repeat_interleave, "a:input repeats axis:dim"),
    "tril": form(diagonal.tril, "m:input k:diagonal"),
    "triu": form(diagonal.triu, "m:input k:diagonal"),
    "diagonal": form(diagonal.diagonal, "a:input offset axis1:dim1 axis2:dim2"),
    "take_along_axis": form(gather.take_along_dim, "arr:input indices axis:dim"),
    "where": form(selection.where, "condition x:input y:other"),
    "clip": form(selection.clamp, "a:input a_min:min a_max:max"),
    "dot": form(product, "a b"),
    "tensordot": form(einsum.tensordot, "a b axes:dims"),
    "outer": form(products.outer, "a:input b:vec2"),
    "sort": form(sorted_values, REDUCTION),
    "argsort": form(sorting.argsort, REDUCTION),
    "real": form(parts.real, "val:input"),
    "imag": form(parts.imag, "val:input"),
    "nan_to_num": form(nonfinite.nan_to_num, "x:input nan posinf neginf"),
}
"""By the name of NumPy's function, lucid's: reading `numpy.linalg` itself would take a tenth of the import."""

ABOUT = frozenset(
    (
        "allclose",
        "array2string",
        "array_equal",
        "array_equiv",
        "array_repr",
        "array_str",
        "may_share_memory",
        "ndim",
        "save",
        "savetxt",
        "savez",
        "savez_compressed",
        "shape",
        "shares_memory",
        "size",
    )
)
"""NumPy's functions that say something about arrays or store them: they get the plain values."""

UFUNCS: dict[str, Callable[..., Any]] = {
    "absolute": parts.abs,
    "copysign": arithmetic.copysign,
    "deg2rad": trigonometry.deg2rad,
    "float_power": power.float_power,
    "fmax": fmax,
    "fmin": fmin,
    "frexp": power.frexp,
    "gcd": division.gcd,
    "heaviside": heaviside,
    "hypot": trigonometry.hypot,
    "lcm": division.lcm,
    "ldexp": power.ldexp,
    "logaddexp2": exponential.logaddexp2,
    "nextafter": arithmetic.nextafter,
    "rad2deg": trigonometry.rad2deg,
    "signbit": nonfinite.signbit,
    "add": arithmetic.add,
    "arccos": trigonometry.acos,
    "arccosh": trigonometry.acosh,
    "arcsin": trigonometry.asin,
    "arcsinh": trigonometry.asinh,
    "arctan": trigonometry.atan,
    "arctan2": trigonometry.atan2,
    "arctanh": trigonometry.atanh,
    "bitwise_and": logic.bitwise_and,
    "bitwise_or": logic.bitwise_or,
    "bitwise_xor": logic.bitwise_xor,
    "ceil": rounding.ceil,
    "conjugate": parts.conj,
    "cos": trigonometry.cos,
    "cosh": trigonometry.cosh,
    "divide": division.div,
    "equal": eq,
    "exp": exponential.exp,
    "exp2": exponential.exp2,
    "expm1": exponential.expm1,
    "floor": rounding.floor,
    "floor_divide": division.floor_divide,
    "fmod": division.fmod,
    "greater": gt,
    "greater_equal": ge,
    "invert": logic.bitwise_not,
    "isfinite": nonfinite.isfinite,
    "isinf": nonfinite.isinf,
    "isnan": nonfinite.isnan,
    "left_shift": logic.bitwise_left_shift,
    "less": lt,
    "less_equal": le,
    "log": exponential.log,
    "log10": exponential.log10,
    "log1p": exponential.log1p,
    "log2": exponential.log2,
    "logaddexp": exponential.logaddexp,
    "logical_and": logic.logical_and,
    "logical_not": logic.logical_not,
    "logical_or": logic.logical_or,
    "logical_xor": logic.logical_xor,
    "matmul": products.matmul,
    "maximum": maximum,
    "minimum": minimum,
    "multiply": arithmetic.mul,
    "negative": arithmetic.neg,
    "not_equal": ne,
    "positive": arithmetic.positive,
    "power": power.pow,
    "reciprocal": division.reciprocal,
    "remainder": division.remainder,
    "right_shift": logic.bitwise_right_shift,
    "rint": rounding.round,
    "sign": parts.sign,
    "sin": trigonometry.sin,
    "sinh": trigonometry.sinh,
    "sqrt": power.sqrt,
    "square": power.square,
    "subtract": arithmetic.sub,
    "tan": trigonometry.tan,
    "tanh": tanh,
    "trunc": rounding.trunc,
}
"""By the name of a ufunc, the op that it is in lucid."""
