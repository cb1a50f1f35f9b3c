"""NumPy's functions called with tensors, by its protocols: those that have a rule stay on the graph, others raise."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from lucid.autograd.base import TensorBase
from lucid.ops.base.promotion import OperandTypeError
from lucid.tensor.numpy_calls.definition import applied, full_name
from lucid.tensor.numpy_calls.operands import NumpyCallError, pytorch_dtype, tensors_in
from lucid.tensor.numpy_calls.table import ABOUT, RULES
from lucid.tensor.numpy_calls.ufuncs import ufunc_result

if TYPE_CHECKING:
    from collections.abc import Callable

    import numpy as np


def ufunc_call(_self: object, ufunc: np.ufunc, method: str, *inputs: object, **options: object) -> Any:
    """Return the result of NumPy's `ufunc`, by lucid's op of the same meaning.

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
    try:
        return ufunc_result(ufunc, method, inputs, options)
    except OperandTypeError:
        return NotImplemented


def function_call(
    _self: object, func: Callable[..., Any], _types: object, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> Any:
    """Return the result of NumPy's function `func`, by the rule of its name.

    Raises
    ------
    NumpyCallError
        If there is none, or it is asked for with a parameter that the rule does not take.

    Examples
    --------
    >>> import lucid
    >>> import numpy as np
    >>> x = lucid.tensor([[1.0, 2.0], [3.0, 4.0]], requires_grad=True)
    >>> np.sum(x, axis=1)
    tensor([3., 7.], grad_fn=<SumBackward0>)
    """
    name = name_of(func)
    if name in RULES:
        return applied(name, func, args, kwargs, pytorch_dtype)
    if name in ABOUT:
        return func(*map(as_plain, args), **{key: as_plain(value) for key, value in kwargs.items()})
    raise no_rule(name)


def name_of(func: Callable[..., Any]) -> str:
    """Return the name of a function of NumPy's below `numpy`."""
    return f"{func.__module__}.{func.__name__}".removeprefix("numpy.")


def seen_name(func: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> str:
    """Return `name_of` a function that is called with a tensor.

    Raises
    ------
    NumpyCallError
        If NumPy has found one in a sequence of a kind in which none is looked for: it would come back for it for ever.
    """
    name = name_of(func)
    if next(tensors_in((*args, *kwargs.values())), None) is None:
        raise NumpyCallError(
            f"{full_name(name)}: expected tensors, or lists and tuples of them, got another sequence: use list()"
        )
    return name


REMEDIES = {
    "bmat": "use numpy.block, and @ for products",
    "histogram2d": "weights are summed by numpy.bincount",
    "histogramdd": "weights are summed by numpy.bincount",
    "lib.stride_tricks.as_strided": "use numpy.lib.stride_tricks.sliding_window_view",
    "polyfit": "use numpy.linalg.lstsq(numpy.vander(x, deg + 1), y)",
    "roots": "use numpy.linalg.eigvals of the companion matrix",
}
"""What to do in place of some functions without a rule, by their names."""


def no_rule(name: str) -> NumpyCallError:
    """Return the error of a function that would leave the graph."""
    remedy = REMEDIES.get(name, "use lucid's functions")
    return NumpyCallError(
        f"{full_name(name)} has no counterpart here that keeps a Tensor on the graph: {remedy}, or "
        "tensor.detach().numpy()"
    )


def as_plain(value: object) -> Any:
    """Return tensors as NumPy arrays, also inside lists and tuples."""
    if isinstance(value, TensorBase):
        return cast("Any", value).numpy(force=True)
    if isinstance(value, list | tuple):
        return [as_plain(entry) for entry in cast("Any", value)]
    return value
