"""The border between NumPy's functions and the graph: the choice between the two, and the class of results.

A call of which no operand is recorded is NumPy's own, or CuPy's, on plain arrays. Else it is the rule of
`lucid.tensor.numpy_calls`, with operands of the dtype to which NumPy promotes them. `lucid.numpy.results` has the class
of what comes out.
"""

from __future__ import annotations

import functools
import importlib
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from lucid.autograd.base import TensorBase, wrap
from lucid.autograd.modes.state import unusual
from lucid.autograd.recording.mutation import allows_mutation
from lucid.base import gpu
from lucid.base.arrays import on
from lucid.base.dtype import dtype
from lucid.errors import DeviceError, LucidError
from lucid.numpy.promotion import is_array, op_and_dtypes, promoted
from lucid.numpy.results import arrays, hand_over, is_to_fill, made, new_to_fill, rebuilt, settled, to_fill, view_in
from lucid.numpy.writes import apart, array_of, counted, shares_memory, written
from lucid.ops.reduction import extremes, sums
from lucid.ops.shape.reshape import clone
from lucid.tensor.numpy_calls.definition import Rule, applied, bound
from lucid.tensor.numpy_calls.methods import by_name
from lucid.tensor.numpy_calls.operands import (
    WEAK,
    NumpyCallError,
    any_recorded,
    is_sequence,
    numpy_dtype,
    operand,
    remade,
    tensors_in,
)
from lucid.tensor.numpy_calls.protocols import full_name, no_rule
from lucid.tensor.numpy_calls.table import ABOUT, CONSTANT, CONSTANT_UFUNCS, RULES
from lucid.tensor.numpy_calls.ufuncs import ufunc_result

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from lucid.base.device import device


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

REDUCTIONS = {"max": extremes.amax, "mean": sums.mean, "min": extremes.amin, "sum": sums.sum}
"""By the names of NumPy's reductions the ops that these are of real floating-point numbers, over an axis or all."""

VALUES = (np.ndarray, np.generic, np.dtype, type, int, float, complex, str, bytes, list, tuple, type(None))
"""Types of results that keep no array, but for those among them; any other object may."""

PLAIN = frozenset((np.ndarray, *WEAK, np.float64, np.float32, np.int64, np.complex128, np.bool_))
"""Types of which no value is a tensor, nor on a device: most calls have no others, which is seen at once."""


# ---- in ----


def plain(value: object) -> Any:
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
        result = rule.function(**{key: value for key, value in arguments.items() if rule.names[key]})
    except DeviceError as error:
        raise DeviceError(f"{name}: {error}") from None
    return settled(apart(result, (*args, *kwargs.values())), ())


def as_tensors(value: object) -> Any:
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


def made_on(
    place: device, name: str, function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
) -> Any:
    """Return the result of NumPy's function on the CPU, or of CuPy's of its name on a CUDA device."""
    if place.type == "cpu":
        return function(*args, **kwargs)
    with gpu.use_device(place.index or 0):
        return on_device(name)(*args, **kwargs)


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
        result = function(*args)
        return new_to_fill(result, args) if unusual and allows_mutation() else result
    if not any_recorded(args) and not (kwargs and any_recorded(kwargs.values())):
        return following(name, function, args, kwargs)
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
            result = ufunc(*inputs)
            return new_to_fill(result, inputs) if unusual and allows_mutation() else result
        if (result := by_op(ufunc, inputs)) is not None:
            return result
    constant = ufunc.__name__ in CONSTANT_UFUNCS and options.get("out") is None
    if constant or (not any_recorded(inputs) and not (options and any_recorded(options.values()))):
        name = above + (ufunc.__name__ if method == "__call__" else f"{ufunc.__name__}.{method}")
        function = ufunc if method == "__call__" else getattr(ufunc, method)
        return following(name, function, inputs, options)
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


def names_of(path: str, namespace: dict[str, Any], wrap: Callable[[str, Any], Any]) -> tuple[Callable[[str], Any], Any]:
    """Return `__getattr__` and `__dir__` of a module that has all names of one of a library's.

    Parameters
    ----------
    path : str
        That of NumPy's, below `numpy`; of another library's, with its name.
    namespace : dict
        The module's, which keeps what was asked for.
    wrap : callable
        What makes a function of the library's one of the module, by its path.
    """
    is_scipys = path.startswith("scipy")
    module: Any = importlib.import_module(path if is_scipys else f"numpy.{path}".rstrip("."))

    def get(name: str) -> Any:
        try:
            value = getattr(module, name)
        except AttributeError:
            owner = "SciPy's" if is_scipys else "NumPy's"
            hint = cupys(f"{path}.{name}".lstrip("."))
            raise AttributeError(
                f"module 'lucid.{module.__name__}' has no attribute {name!r}, nor has {owner}{hint}"
            ) from None
        if callable(value) and not isinstance(value, type):
            value = wrap(f"{path}.{name}".lstrip("."), value)
        namespace[name] = value
        return value

    return get, lambda: sorted({*namespace, *dir(module)})


def following(name: str, function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Return a function's result of plain values; of an array to be filled new arrays and views can be filled, too.

    Raises
    ------
    NumpyCallError
        If it is a view of such an array, and no rule gives it: neither would have the gradient of the other.
    """
    operands = (*args, *kwargs.values())
    tensors = [*tensors_in(operands)]
    result = (computed if tensors else computed_only)(name, function, args, kwargs)
    filled = [x for x in tensors if is_to_fill(x)]
    if not filled:
        return new_to_fill(result, operands) if unusual and allows_mutation() else result
    for x in filled:
        if result is array_of(x):
            return x
    if not any(shares_memory(each, filled) for each in (result if is_sequence(result) else (result,))):
        if not isinstance(cast("object", result), VALUES) and not gpu.is_gpu_array(result):
            hand_over(filled)
        return new_to_fill(result, operands)
    if name in RULES and not is_sequence(result):
        return checked_view(name, applied(name, function, args, kwargs, numpy_dtype), filled)

    def part(each: object) -> Any:
        # of a rule's several views, as of `split`, none could be written into
        return checked_view(name, view_in(each, filled), filled) if shares_memory(each, filled) else to_fill(each)

    return rebuilt(result, [part(each) for each in result]) if is_sequence(result) else part(result)


def checked_view(name: str, view: object, filled: list[Any]) -> Any:
    """Return a view of arrays to be filled as another such array.

    Raises
    ------
    NumpyCallError
        If it is none: what is written into one of both would be missing in the other.
    """
    if not (isinstance(view, TensorBase) and shares_memory(view, filled)):
        raise NumpyCallError(
            f"{full_name(name)}: gives a view of an array that is to be filled, and what is written into one of both "
            "would be missing in the other: fill it before, or use numpy.copy(x)"
        )
    return to_fill(view)


def wrapped(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function of NumPy's as it is here."""
    if isinstance(function, np.ufunc):
        return Ufunc(function, name.removesuffix(function.__name__))

    def call(*args: object, **kwargs: object) -> Any:
        return called(name, function, args, kwargs)

    def reduced(*args: Any, **kwargs: object) -> Any:
        if args and type(args[0]) is arrays.kind:
            return getattr(arrays.kind, name)(*args, **kwargs)
        return called(name, function, args, kwargs)

    return functools.wraps(function)(reduced if name in REDUCTIONS else call)


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
