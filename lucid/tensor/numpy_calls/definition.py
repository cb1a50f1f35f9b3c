"""Rules: NumPy's functions on tensors, by NumPy's names and with NumPy's parameters.

A rule is written once, in the file of its kind beside this one. NumPy's protocols call it (`protocols`), CuPy's, and
`lucid.numpy`; they differ in what dtype operands come to, and in the class of what is returned.
"""

from __future__ import annotations

import functools
import inspect
import operator
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias, cast

import numpy as np

from lucid.autograd.base import TensorBase, wrap
from lucid.autograd.borrowing import borrowed
from lucid.autograd.modes.state import thread
from lucid.autograd.recording.views import live_edge
from lucid.base.arrays import asarray
from lucid.base.device import device_of
from lucid.base.dtype import as_dtype, result_type
from lucid.base.gpu import is_gpu_array
from lucid.errors import LucidError, warn
from lucid.ops.base.dims import sizes_in
from lucid.ops.base.promotion import as_operand, cast_to, is_settled, no_matrix
from lucid.ops.shape.joining import stack
from lucid.tensor.numpy_calls.options import is_usual

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from typing import SupportsIndex, TypeGuard

    from lucid.base.arrays import Array
    from lucid.base.dtype import dtype
    from lucid.tensor import Tensor


class NumpyCallError(LucidError, TypeError):
    """A NumPy function was called with a tensor that lucid cannot follow."""


class Rule(NamedTuple):
    """Rule of one of NumPy's functions for tensors.

    Attributes
    ----------
    function : callable
        It gets its operands as tensors; Python's numbers, and None, stay what they are.
    names : dict of str to str
        NumPy's parameters that are taken, in order, and what `function` calls each.
    operands : dict of str to str
        Which of these may be recorded: ``"*"`` an array that comes to the common dtype of all such, ``"?"`` one that
        keeps its own, ``"**"`` a sequence of arrays that come to the common dtype, ``"+"`` what is passed as it is,
        as `function` makes tensors of it or asks only what has no slope. Any other that is recorded is refused.
    constants : dict
        What is passed besides, because the defaults differ; `common` is what gives the dtype of operands in the call,
        for a function that finds these itself.
    """

    function: Callable[..., Any]
    names: dict[str, str]
    operands: dict[str, str]
    constants: dict[str, Any]


Axis: TypeAlias = "int | tuple[int, ...] | None"
"""What is reduced over: a dimension, several, or all."""

Operand: TypeAlias = "Tensor | complex"
"""An array to NumPy, which is a tensor when a rule is called, or a number of Python's."""

Sizes: TypeAlias = "int | Sequence[int]"
"""One size, place or shift, or one for each of several dimensions."""

Indices: TypeAlias = "Tensor | Array | Sequence[int] | int"
"""Indices or counts, which have no gradient and come to the host or the device as they are needed."""

RULES: dict[str, Rule] = {}
"""By the name of NumPy's function below `numpy`."""

NO_VALUE: Any = getattr(np, "_NoValue")  # noqa: B009 - NumPy gives it no public name
"""What NumPy's functions have for a parameter that is not given."""

untyped: Any = np
"""NumPy, where its stubs know nothing of arrays of any dtype."""

WEAK = frozenset((bool, int, float, complex))
"""Python's numbers, which have no dtype of their own: those of NumPy's that inherit from them have one."""


NUMBERS_ARE_ARRAYS = frozenset(
    (
        "convolve", "correlate", "cross", "diff", "dot", "geomspace", "inner", "kron", "lib.scimath.logn",
        "lib.scimath.power", "linalg.outer", "linalg.tensordot", "outer", "polyadd", "polymul", "polysub", "polyval",
        "tensordot", "vdot",
    )
)  # fmt: skip
"""Functions in which Python's numbers have dtypes, as NumPy makes arrays of them: ``numpy.dot(x, 2)`` of float32 is
float64, where ``x * 2``, and most functions, keep the dtype of x.
"""


SETTINGS = frozenset((type(None), bool, int, float, str))
"""Types of settings, which nobody records."""


def is_whole(value: Any) -> bool:
    """Return whether a value is a tensor of integers or bools."""
    return isinstance(value, TensorBase) and value.array.dtype.kind in "biu"


BESIDE: dict[str, Callable[[dict[str, Any]], Any]] = {
    **dict.fromkeys(("polyder", "polyint", "vander"), lambda arguments: np.int64(1) if arguments.get("m", 1) else 0),
    **dict.fromkeys(("bincount", "interp"), lambda _: np.float64(1)),
    "average": lambda arguments: np.float64(1) if is_whole(arguments.get("a")) else 0,
    "geomspace": lambda arguments: np.zeros((), dtype_named(arguments.get("dtype") or np.float64).numpy)[()],
}
"""What NumPy's functions compute with beside their operands, and promote these by; quantiles enter theirs."""


def enter(names: str, takes: str, function: Callable[..., Any], **constants: object) -> None:
    """Enter a rule under each of NumPy's `names`.

    Parameters
    ----------
    names : str
        Separated by spaces.
    takes : str
        NumPy's parameters, in order, each as ``name``, or ``name:parameter`` where `function` calls it otherwise; an
        array has ``*``, ``?``, ``**`` or ``+`` in front, as `Rule` says.
    function : callable
    **constants
    """
    parameters, operands = {}, {}
    for entry in takes.split():
        theirs, _, ours = entry.lstrip("*?+").partition(":")
        parameters[theirs] = ours or theirs
        if mark := entry[: len(entry) - len(entry.lstrip("*?+"))]:
            operands[theirs] = mark
    for name in names.split():
        RULES[name] = Rule(function, parameters, operands, constants)


def rule(names: str, takes: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Enter the decorated function: see `enter`."""

    def entered(function: Callable[..., Any]) -> Callable[..., Any]:
        enter(names, takes, function)
        return function

    return entered


# ---- calls ----


def full_name(name: str) -> str:
    """Return the name of a function with that of its library; in `RULES` NumPy's have none."""
    return name if name.startswith("scipy.") else f"numpy.{name}"


class Parameters(NamedTuple):
    """Parameters of a function of NumPy's: their defaults, and the names that take any other arguments."""

    defaults: dict[str, Any]
    positional: tuple[str, ...]
    rest: str | None = None
    keywords: str | None = None


@functools.cache
def parameters_of(function: Callable[..., Any]) -> Parameters | None:
    """Return the parameters of a function of NumPy's; None before NumPy 2.4 of some that are written in C."""
    try:
        parameters = inspect.signature(function).parameters.values()
    except ValueError:
        return None
    named = [p for p in parameters if p.kind not in {p.VAR_POSITIONAL, p.VAR_KEYWORD}]
    return Parameters(
        {p.name: None if p.default is p.empty else p.default for p in named},
        tuple([p.name for p in named if p.kind is not p.KEYWORD_ONLY]),
        next((p.name for p in parameters if p.kind is p.VAR_POSITIONAL), None),
        next((p.name for p in parameters if p.kind is p.VAR_KEYWORD), None),
    )


def bound(
    name: str, rule: Rule, function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
) -> dict[str, Any]:
    """Return the arguments of a call by NumPy's names, without those that are NumPy's defaults.

    Raises
    ------
    NumpyCallError
        If one is given that the rule does not take.
    """
    defaults, positional, rest, keywords = parameters_of(function) or Parameters({}, tuple(rule.names))
    arguments = dict(zip(positional, args))  # noqa: B905 - the keyword costs as much as the call
    names = rule.names
    if not kwargs and rest is None and len(args) == len(arguments) and names.keys() >= arguments.keys():
        # most calls
        return {key: value for key, value in arguments.items() if value is not NO_VALUE}
    if rest is not None:
        arguments[rest] = args[len(positional) :]
    elif len(args) > len(positional):
        raise NumpyCallError(f"{full_name(name)}: expected at most {len(positional)} arguments, got {len(args)}")
    if kwargs:
        for key in kwargs:
            if key in arguments:
                raise NumpyCallError(f"{full_name(name)}: {key} is given twice")
        if keywords in names:
            if others := {key: value for key, value in kwargs.items() if key not in defaults}:
                arguments[keywords] = others
            kwargs = {key: value for key, value in kwargs.items() if key in defaults}
        arguments.update(kwargs)
    taken: dict[str, Any] = {}
    for key, value in arguments.items():
        if key in names:
            if value is not NO_VALUE:
                taken[key] = value
        elif value is not NO_VALUE and not is_usual(key, value, defaults.get(key)):
            raise NumpyCallError(
                f"{full_name(name)}: with a Tensor only {', '.join(names)} can be used, got {key}: leave it out, or "
                "use tensor.detach().numpy()"
            )
    return taken


def applied(
    name: str,
    function: Callable[..., Any],
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    common: Callable[[list[Any]], dtype],
) -> Any:
    """Return the result of the rule of one of NumPy's functions.

    Parameters
    ----------
    name : str
    function : callable
        NumPy's own, for its parameters.
    args, kwargs
    common : callable
        What gives the dtype of operands that must share one.
    """
    rule = RULES[name]
    arguments = bound(name, rule, function, args, kwargs)
    like: Any = None
    shared: list[tuple[Any, Any]] = []
    is_numpys = common is numpy_dtype
    for key, value in arguments.items():
        if type(value) not in SETTINGS and key not in rule.operands and any_recorded((value,)):
            raise NumpyCallError(
                f"{full_name(name)}: {key} requires grad, and the result would not be recorded by it: use "
                f"{key}.detach()"
            )
    for key, mark in rule.operands.items():
        value = arguments.get(key)
        if value is None or mark == "+":
            continue
        if is_numpys and type(value) in WEAK and name in NUMBERS_ARE_ARRAYS:
            value = arguments[key] = operand(value, next(tensors_in(arguments.values()), None), strong=True)
        if mark == "*" and (isinstance(value, TensorBase) or type(value) in WEAK):
            shared.append((arguments, key))
            continue
        if mark == "?" and isinstance(value, TensorBase):
            continue
        like = next(tensors_in(arguments.values()), None) if like is None else like
        if mark == "**":
            # one array is the sequence of its parts along the first axis
            arguments[key] = [operand(entry, like, strong=True) for entry in value]
            shared += [(arguments[key], k) for k in range(len(arguments[key]))]
        else:
            arguments[key] = operand(value, like)
            shared += [(arguments, key)] if mark == "*" else []
    if is_numpys and name in BESIDE:
        beside = BESIDE[name](arguments)
        to_one_dtype(shared, lambda values: numpy_dtype([*values, beside]))
    elif len(shared) > 1:
        to_one_dtype(shared, common)
    constants = {**rule.constants, "common": common} if "common" in rule.constants else rule.constants
    return rule.function(**constants, **{rule.names[key]: value for key, value in arguments.items()})


def to_one_dtype(places: list[tuple[Any, Any]], common: Callable[[list[Any]], dtype]) -> None:
    """Bring the tensors at these places, pairs of container and key, to one dtype."""
    values = [container[key] for container, key in places]
    if common in BY_OPERANDS and is_settled(values):
        return
    wanted = common(values)
    for (container, key), value in zip(places, values, strict=True):
        if isinstance(value, TensorBase):
            container[key] = cast_to(value, wanted)


def pytorch_dtype(values: list[Any]) -> dtype:
    """Return the common dtype of tensors and numbers by PyTorch's rules."""
    return result_type(*[value.array if isinstance(value, TensorBase) else value for value in values])


def numpy_dtype(values: list[Any]) -> dtype:
    """Return the common dtype of tensors and numbers by NumPy's rules: an array of no dimension counts as any other."""
    return as_dtype(
        np.result_type(*[value.array.dtype if isinstance(value, TensorBase) else value for value in values])
    )


BY_OPERANDS = frozenset((pytorch_dtype, numpy_dtype))
"""What leaves operands of one dtype as they are."""


def dtype_named(dtype: object) -> dtype:
    """Return the dtype that a name of lucid's or NumPy's, such as ``"f4"`` or ``"?"``, says."""
    return as_dtype(np.dtype(dtype) if isinstance(dtype, str) else dtype)


# ---- operands ----


def is_tensor(value: object) -> TypeGuard[Tensor]:
    """Return whether a value is a tensor."""
    return isinstance(value, TensorBase)


def is_recorded(value: object) -> bool:
    """Return whether ops on a value are recorded: of a tensor that requires grad, while gradients are on."""
    return isinstance(value, TensorBase) and live_edge(value) is not None and thread.state.grad_mode.enabled


def any_recorded(values: Iterable[Any]) -> bool:
    """Return whether one of the values is recorded, or one in lists and tuples of them."""
    for value in values:
        if isinstance(value, TensorBase):
            if is_recorded(value):
                return True
        elif type(value) in {list, tuple} and any_recorded(value):
            return True
    return False


def is_sequence(value: object) -> TypeGuard[list[Any] | tuple[Any, ...]]:
    """Return whether a value is a list or a tuple."""
    return isinstance(value, list | tuple)


def tensors_in(values: Any) -> Iterator[Any]:
    """Yield the tensors among values, also those in lists and tuples."""
    for value in values:
        if isinstance(value, TensorBase):
            yield value
        elif type(value) in {list, tuple}:
            yield from tensors_in(value)


def operand(value: object, like: TensorBase | None, *, strong: bool = False) -> Any:
    """Return an array, or nested lists of arrays and numbers, as a tensor; lists come to the device of `like`.

    Numbers of Python's stay what they are unless `strong`.
    """
    if isinstance(value, TensorBase) or value is None or (type(value) in WEAK and not strong):
        return value
    if is_gpu_array(value):
        return as_operand(value)
    if isinstance(value, np.ndarray | np.generic):
        no_matrix(value)
        array = in_native_order(value)
        if not array.ndim and like is not None and is_gpu_array(like.array):
            # a number of NumPy's, of which its operators make an array without dimensions, is one on the device too
            return wrap(asarray(untyped.asarray(array), device=device_of(like.array)))
        return borrowed(asarray(array))
    if type(value) in {list, tuple} and next(tensors_in(value), None) is not None:
        entries = [operand(entry, like, strong=True) for entry in cast("list[Any]", value)]
        to_one_dtype([(entries, k) for k in range(len(entries))], numpy_dtype)
        return stack(entries)
    return wrap(asarray(np.asarray(value), device=None if like is None else device_of(like.array)))


def in_native_order(array: Any) -> Any:
    """Return an array or scalar of NumPy's in the order of bytes of this machine, as tensors have."""
    return array if array.dtype.isnative else array.astype(array.dtype.newbyteorder("="))


def axis_in(axis: SupportsIndex, ndim: int) -> int:
    """Return an axis counted from the front; NumPy's AxisError, an IndexError and a ValueError, if there is none."""
    if isinstance(axis, bool):
        raise NumpyCallError(f"expected an integer as an axis, got the bool {axis}")
    number = operator.index(axis)
    if not -ndim <= number < ndim:
        raise np.exceptions.AxisError(number, ndim)
    return number % ndim


def the_axis(axis: Sizes) -> Any:
    """Return an axis as `numpy.moveaxis` takes it: a sequence of one is that one, too."""
    several: Any = np.asarray(axis)
    return several.tolist()[0] if several.shape == (1,) and several.dtype.kind in "iu" else axis


def sizes_of(shape: Sizes) -> tuple[int, ...]:
    """Return a shape, given as one size or a sequence of sizes, as a tuple."""
    sizes: Any = shape
    return sizes_in((sizes,) if np.ndim(sizes) == 0 else tuple(sizes.tolist() if hasattr(sizes, "tolist") else sizes))


def tensor_of(value: object, like: TensorBase) -> Any:
    """Return a number as a tensor beside `like`, in its dtype; a tensor as it is."""
    return (
        value
        if isinstance(value, TensorBase)
        else cast_to(operand(value, like, strong=True), as_dtype(like.array.dtype))
    )


def written_as(value: TensorBase, dtype: dtype) -> Any:
    """Return a tensor in another dtype; as NumPy, warn of an imaginary part that is lost."""
    if value.array.dtype.kind == "c" and dtype.numpy.kind not in "cb":
        warn("Casting complex values to real discards the imaginary part", np.exceptions.ComplexWarning)
    return cast_to(value, dtype)


def beside(array: Array, like: TensorBase) -> Any:
    """Return an array that a rule has computed on the host as a tensor beside `like`, in its dtype."""
    return cast_to(wrap(asarray(np.asarray(array), device=device_of(like.array))), as_dtype(like.array.dtype))


def same_kind(made: Any, like: TensorBase) -> Any:
    """Return a tensor that was just made in the class of `like`: user code that is given it expects its methods."""
    if type(made) is not type(like):
        made.__class__ = type(like)
    return made
