"""The border between NumPy's functions and the graph: the choice between the two, and the class of results.

A call of which no operand is recorded is NumPy's own, or CuPy's, on plain arrays. Else it is the rule of
`lucid.tensor.numpy_calls`, with operands of the dtype to which NumPy promotes them. What comes out is an `ndarray` if
it requires grad, and a plain array if not: on nothing else does its class depend.

Ops make tensors of one class. What an op has just made nobody else holds, so that its class can be exchanged in place,
which costs 0.1 us; a tensor that was given stays what it was.
"""

from __future__ import annotations

import functools
import importlib
from typing import TYPE_CHECKING, Any

import numpy as np

from lucid.autograd.base import TensorBase, wrap
from lucid.autograd.recording.mutation import allows_mutation
from lucid.autograd.recording.views import live_edge
from lucid.base import gpu
from lucid.base.arrays import on
from lucid.base.dtype import DTYPES, dtype
from lucid.errors import DeviceError, LucidError
from lucid.numpy.promotion import (
    is_array,
    op_and_dtypes,
    promoted,
)
from lucid.numpy.writes import apart, array_of, counted, is_plain, written
from lucid.ops.index.indexing import getitem
from lucid.ops.reduction import extremes, sums
from lucid.ops.shape.reshape import clone
from lucid.tensor.numpy_calls.definition import Rule, applied, bound
from lucid.tensor.numpy_calls.methods import by_name
from lucid.tensor.numpy_calls.operands import (
    WEAK,
    any_recorded,
    is_sequence,
    numpy_dtype,
    operand,
    remade,
    tensors_in,
)
from lucid.tensor.numpy_calls.protocols import no_rule
from lucid.tensor.numpy_calls.table import ABOUT, CONSTANT, CONSTANT_UFUNCS, RULES
from lucid.tensor.numpy_calls.ufuncs import ufunc_result

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable


UNLIKE_NUMPYS = {
    "broadcast_arrays", "cov", "fft.fft2", "fft.fftn", "fft.ifft2", "fft.ifftn", "fft.irfft2", "fft.irfftn",
    "fft.rfft2", "fft.rfftn", "linalg.eig", "linalg.eigvals", "nanstd", "nanvar", "pad",
}  # fmt: skip
"""CuPy's functions whose results differ: of numbers, by weights, of a size of -1, in a dtype, wrapped twice, or not on
each device.
"""

OF_LISTS = {"array_equal", "array_equiv", "digitize", "in1d", "isin", "lexsort", "searchsorted"}
"""CuPy's functions that take no lists, where NumPy makes arrays of them; its ufuncs are such, too."""

OTHERS: dict[str, Rule | None] = {}
"""Rules of other libraries' functions, by their full names, which take arrays and what is recorded; None: constants."""


FILLED = {"copy", "empty_like", "full_like", "ones_like", "zeros_like"}
"""Functions that make an array like a recorded one, into which what is recorded may be written."""

VIEWS = {
    "asanyarray", "asarray", "ascontiguousarray", "array", "expand_dims", "moveaxis", "ravel", "reshape", "rollaxis",
    "squeeze", "swapaxes", "transpose",
}  # fmt: skip
"""Functions that may make a view of an array to be filled, which is one, too."""


CAN_REQUIRE_GRAD = frozenset([each.numpy for each in DTYPES.values() if each.is_floating_point or each.is_complex])
"""NumPy's dtypes of which an array can hold what requires grad."""


class _Arrays:
    """The class of recorded arrays here; `lucid.numpy.arrays` sets its own."""

    kind: type[TensorBase] = TensorBase


arrays = _Arrays()


REDUCTIONS = {"max": extremes.amax, "mean": sums.mean, "min": extremes.amin, "sum": sums.sum}
"""By the names of NumPy's reductions the ops that these are of real floating-point numbers, over an axis or all."""

PLAIN = frozenset((np.ndarray, *WEAK, np.float64, np.float32, np.int64, np.complex128, np.bool_))
"""Types of which no value is a tensor, nor on a device: most calls have no others, which is seen at once."""


# ---- in ----


def plain(value: Any) -> Any:
    """Return the array of a tensor, also in sequences, and NumPy's dtype for lucid's; anything else as it is."""
    if isinstance(value, TensorBase):
        array = value.array
        # a recorded value is one of NumPy's scalars, and a view of no dimension is none
        return array[()] if not array.ndim and type(value) is arrays.kind and value.origin is None else array
    if isinstance(value, dtype):
        return value.numpy
    if is_sequence(value) and any(isinstance(each, TensorBase | dtype) or is_sequence(each) for each in value):
        return remade(value, map(plain, value))
    return value


def is_operand(value: object) -> bool:
    """Return whether NumPy's operators take a value; for any other, its own class may know the operator."""
    return is_array(value) or isinstance(value, int | float | complex) or is_sequence(value)


def array_on_device(values: Iterable[Any]) -> Any:
    """Return the first CuPy array among plain values; None if there is none."""
    for value in values:
        if gpu.is_gpu_array(value):
            return value
        if is_sequence(value) and (array := array_on_device(value)) is not None:
            return array
    return None


def computed(name: str, function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Return a function's result of plain arrays: by NumPy, or by CuPy's of its name if an array is on a device."""
    targets = written(name, function, args, kwargs)
    if not targets:
        return computed_only(name, function, args, kwargs)
    with counted(name, targets):
        return computed_only(name, function, args, kwargs)


def computed_only(name: str, function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Return the result of `computed`, with writes into tensors left to the caller."""
    args, kwargs = plain(args), {key: plain(value) for key, value in kwargs.items()}
    array = array_on_device((*args, *kwargs.values()))
    if array is None:
        return function(*args, **kwargs)
    # NumPy's operators make arrays without dimensions of its numbers, which CuPy takes as numbers alone
    args = tuple([x[()] if type(x) is np.ndarray and not x.ndim else x for x in args])
    if name in UNLIKE_NUMPYS:
        return by_rule(name, function, args, kwargs)
    try:
        with on(array):
            if isinstance(function, np.ufunc) or name in OF_LISTS:
                args = tuple([gpu.cupy().asarray(x) if is_sequence(x) else x for x in args])
            return on_device(name)(*args, **kwargs)
    except (AttributeError, TypeError, ValueError, NotImplementedError) as error:
        # CuPy has no such function, or has it without some parameters, for fewer dimensions, or not for numbers
        try:
            return by_rule(name, function, args, kwargs)
        except (LucidError, TypeError, ValueError, IndexError):
            raise error from None


def by_rule(name: str, function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Return the result of the rule of a function, or of a ufunc or method of one, on arrays, some of them CuPy's."""
    if name in OTHERS:
        return by_other_rule(name, function, args, kwargs)
    args, kwargs = as_tensors(args), {key: as_tensors(value) for key, value in kwargs.items()}
    if isinstance(function, np.ufunc):
        result = ufunc_result(function, "__call__", promoted(function, args), kwargs, numpy_dtype)
    elif isinstance(ufunc := getattr(function, "__self__", None), np.ufunc):
        result = ufunc_result(ufunc, function.__name__, args, kwargs, numpy_dtype)
    elif name in RULES:
        result = applied(name, function, args, kwargs, numpy_dtype)
    else:
        raise no_rule(name)
    return settled(result, ())


def by_other_rule(name: str, function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Return the result of the rule in `OTHERS` on arrays and recorded operands."""
    rule = OTHERS[name]
    if rule is None:
        return computed(name, function, args, kwargs)
    arguments = bound(name, rule, function, args, kwargs)
    try:
        result = rule.function(**arguments)
    except DeviceError as error:
        raise DeviceError(f"{name}: {error}") from None
    return settled(apart(result, (*args, *kwargs.values())), ())


def as_tensors(value: Any) -> Any:
    """Return CuPy's arrays as tensors, also in sequences; anything else as it is."""
    if gpu.is_gpu_array(value):
        return wrap(value)
    return remade(value, map(as_tensors, value)) if is_sequence(value) else value


def on_device(name: str) -> Any:
    """Return CuPy's function of the name of one of NumPy's or SciPy's."""
    try:
        if name.startswith("scipy."):
            module, _, function = name.rpartition(".")
            return getattr(gpu.part(f"cupyx.{module}"), function)
        return functools.reduce(getattr, name.split("."), gpu.cupy())
    except (AttributeError, ImportError):
        raise AttributeError(f"cupy has no {name}: use x.get() for the array on the CPU") from None


def cupys(name: str) -> str:
    """Return an error's hint for a name that NumPy lacks and CuPy has, if CuPy is in use."""
    try:
        is_known = gpu.is_loaded() and on_device(name) is not None
    except AttributeError:
        is_known = False
    return f": use CuPy's own, cupy.{name}" if is_known else ""


# ---- through ----


def called(name: str, function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Return the result of a function of NumPy's: recorded if one of its operands is."""
    if not kwargs and PLAIN.issuperset(map(type, args)):
        return function(*args)
    if not any_recorded(args) and not (kwargs and any_recorded(kwargs.values())):
        if name in VIEWS and args and is_to_fill(args[0]):
            # what is written into the view is written into the array
            return to_fill(applied(name, function, args, kwargs, numpy_dtype))
        return following(computed(name, function, args, kwargs), (*args, *kwargs.values()))
    if name in ABOUT or name in CONSTANT:
        return computed(name, function, args, kwargs)
    if name in RULES:
        result = applied(name, function, args, kwargs, numpy_dtype)
        return to_fill(result) if name in FILLED else settled(result, (*args, *kwargs.values()))
    if name in OTHERS:
        return by_other_rule(name, function, args, kwargs)
    raise no_rule(name)


def ufunc_called(
    ufunc: np.ufunc, method: str, inputs: tuple[Any, ...], options: dict[str, Any], above: str = ""
) -> Any:
    """Return the result of a ufunc, or of a method of it: recorded if one of its operands is."""
    if method != "__call__" or len(inputs) > ufunc.nin:
        inputs, options = by_name(ufunc, method, inputs, options)
    if not options and method == "__call__":
        if PLAIN.issuperset(map(type, inputs)):
            return ufunc(*inputs)
        if (result := by_op(ufunc, inputs)) is not None:
            return result
    constant = ufunc.__name__ in CONSTANT_UFUNCS and options.get("out") is None
    if constant or (not any_recorded(inputs) and not (options and any_recorded(options.values()))):
        name = above + (ufunc.__name__ if method == "__call__" else f"{ufunc.__name__}.{method}")
        result = computed(name, ufunc if method == "__call__" else getattr(ufunc, method), inputs, options)
        return following(result, inputs) if options.get("out") is None else result
    if method == "outer":
        like = next(tensors_in(inputs))
        inputs = tuple([operand(x, like, strong=True) for x in inputs])
    if method in {"__call__", "outer"}:
        inputs = promoted(ufunc, inputs)
    result = ufunc_result(ufunc, method, inputs, options, numpy_dtype)
    # NumPy's ufuncs give new arrays, which may be written into
    return settled(clone(result) if any(result is x for x in inputs) else result, ())


def by_op(ufunc: np.ufunc, inputs: tuple[Any, ...]) -> Any:
    """Return the result of a ufunc's op on tensors of one dtype, if the ufunc does nothing else; else None."""
    op, dtypes = op_and_dtypes(ufunc)
    first = inputs[0]
    if op is None or not isinstance(first, TensorBase) or (dtype := first.array.dtype) not in dtypes:
        return None
    for other in inputs[1:]:
        if not isinstance(other, TensorBase) or other.array.dtype is not dtype:
            return None
    return made(op(*inputs), *inputs) if len(inputs) == ufunc.nin else None


# ---- out ----


def settled(result: Any, arguments: Iterable[Any]) -> Any:
    """Return results as an `ndarray` if they require grad, else as plain arrays.

    If one of the `arguments` is returned, the result is a view of it.
    """
    if isinstance(result, TensorBase):
        if live_edge(result) is None:
            array: Any = result.array
            return array[()] if type(array) is np.ndarray and not array.ndim else array
        if type(result) is arrays.kind:
            return result
        if any(result is value for value in arguments):
            result = getitem(result, ...)  # pyright: ignore[reportArgumentType]
        result.__class__ = arrays.kind
        return result
    if is_sequence(result):
        made_of = [settled(each, arguments) for each in result]
        return result.__class__(*made_of) if hasattr(result, "_fields") else result.__class__(made_of)
    return result


def names_of(
    path: str, namespace: dict[str, Any], wrap: Callable[[str, Any], Any], library: str = "numpy"
) -> tuple[Callable[[str], Any], Any]:
    """Return `__getattr__` and `__dir__` of a module that has all names of one of a library's.

    Parameters
    ----------
    path : str
        That of NumPy's, below `numpy`; of another library's, with its name.
    namespace : dict
        The module's, which keeps what was asked for.
    wrap : callable
        What makes a function of the library's one of the module, by its path.
    library : str
    """
    module: Any = importlib.import_module((f"numpy.{path}" if library == "numpy" else path).rstrip("."))

    def get(name: str) -> Any:
        try:
            value = getattr(module, name)
        except AttributeError:
            full = f"{path}.{name}".lstrip(".")
            raise AttributeError(
                f"module 'lucid.{module.__name__}' has no attribute {name!r}, nor has {LIBRARIES[library]}{cupys(full)}"
            ) from None
        if callable(value) and not isinstance(value, type):
            value = wrap(f"{path}.{name}".lstrip("."), value)
        namespace[name] = value
        return value

    def names() -> list[str]:
        return sorted({*namespace, *dir(module)})

    return get, names


def is_to_fill(value: object) -> bool:
    """Return whether a value is an `ndarray` that can be filled: nothing that requires grad was written so far."""
    return type(value) is arrays.kind and live_edge(value) is None


def to_fill(array: object) -> Any:
    """Return a new array as an `ndarray` without a gradient so far, to be filled; integers as a plain array."""
    values: Any = array_of(array)
    if not (is_plain(values) and values.ndim and values.dtype in CAN_REQUIRE_GRAD):
        return settled(array, ())
    result: Any = array if isinstance(array, TensorBase) else wrap(array)
    result.__class__ = arrays.kind
    return result


def following(result: object, operands: tuple[object, ...]) -> Any:
    """Return results of plain values: new arrays that are made of one to be filled can be filled, too."""
    if not any(map(is_to_fill, tensors_in(operands))):
        return result
    if is_sequence(result):
        made_of = [following(each, operands) for each in result]
        return result.__class__(*made_of) if hasattr(result, "_fields") else result.__class__(made_of)
    return to_fill(result) if apart(result, tuple(tensors_in(operands))) is result else result


LIBRARIES = {"numpy": "NumPy's", "scipy": "SciPy's"}


def made(result: Any, *operands: object) -> Any:
    """Return the new result of an op, as `settled` of one tensor that is no view."""
    if result.edge is None:
        return to_fill(result) if any(map(is_to_fill, operands)) else settled(result, ())
    result.__class__ = arrays.kind
    return result


def wrapped(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function of NumPy's as it is here."""
    if isinstance(function, np.ufunc):
        return Ufunc(function, name.removesuffix(function.__name__))

    @functools.wraps(function)
    def call(*args: object, **kwargs: object) -> Any:
        return called(name, function, args, kwargs)

    @functools.wraps(function)
    def reduced(*args: Any, **kwargs: object) -> Any:
        if args and type(args[0]) is arrays.kind:
            return getattr(arrays.kind, name)(*args, **kwargs)
        return called(name, function, args, kwargs)

    @functools.wraps(function)
    def like(*args: object, **kwargs: object) -> Any:
        result = called(name, function, args, kwargs)
        return to_fill(result) if allows_mutation() else result

    return reduced if name in REDUCTIONS else like if name in FILLED else call


class Ufunc:
    """A ufunc of NumPy's or SciPy's, and its methods; `above` is the path of SciPy's module, empty for NumPy's."""

    def __init__(self, ufunc: np.ufunc, above: str = "") -> None:
        self.ufunc, self.above = ufunc, above if above.startswith("scipy.") else ""
        self.op, self.dtypes = op_and_dtypes(ufunc)
        self.__name__, self.__doc__ = ufunc.__name__, ufunc.__doc__

    def __call__(self, *inputs: object, **options: object) -> Any:
        """Return the ufunc of operands that broadcast."""
        if len(inputs) == 1 and not options:
            x: Any = inputs[0]
            if type(x) is arrays.kind and x.array.dtype in self.dtypes:
                return made(self.op(x), x)
        return ufunc_called(self.ufunc, "__call__", inputs, options, self.above)

    def __repr__(self) -> str:
        return f"<ufunc {self.__name__!r} of lucid.numpy>"

    def __getattr__(self, name: str) -> Any:
        if name in {"reduce", "accumulate", "outer", "reduceat", "at"}:
            return functools.partial(self._method, name)
        return getattr(self.ufunc, name)

    def _method(self, method: str, *inputs: object, **options: object) -> Any:
        return ufunc_called(self.ufunc, method, inputs, options, self.above)
