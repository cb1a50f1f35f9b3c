"""Rules: NumPy's functions on tensors, by NumPy's names and with NumPy's parameters.

A rule is written once, in the file of its kind beside this one. NumPy's protocols call it (`protocols`), CuPy's, and
`lucid.numpy`; they differ in what dtype operands come to, and in the class of what is returned.
"""

from __future__ import annotations

import functools
import inspect
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from lucid.autograd.base import TensorBase
from lucid.errors import ShapeError
from lucid.tensor.numpy_calls.operands import (
    NO_VALUE,
    SETTINGS,
    UNSIGNED,
    WEAK,
    MatrixShapeError,
    NumpyCallError,
    any_recorded,
    dtype_named,
    is_usual,
    is_whole,
    numpy_dtype,
    operand,
    tensors_in,
    to_one_dtype,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from lucid.base.dtype import dtype


class Rule(NamedTuple):
    """Rule of one of NumPy's functions for tensors.

    Attributes
    ----------
    function : callable
        It gets its operands as tensors; Python's numbers, and None, stay what they are.
    names : dict of str to str
        NumPy's parameters that are taken, in order, and what `function` calls each; "" of one that changes no result.
    operands : dict of str to str
        Which of these may be recorded: ``"*"`` an array that comes to the common dtype of all such, ``"?"`` one that
        keeps its own, ``"**"`` a sequence of arrays that come to the common dtype, ``"+"`` what is passed as it is,
        as `function` makes tensors of it or asks only what has no slope. Any other that is recorded is refused.
    finds_common : bool
        Whether `function` brings its operands to one dtype itself, by `common`, which it is given too.
    """

    function: Callable[..., Any]
    names: dict[str, str]
    operands: dict[str, str]
    finds_common: bool = False


RULES: dict[str, Rule] = {}
"""By the name of NumPy's function below `numpy`."""


NUMBERS_ARE_ARRAYS = {
    "convolve", "correlate", "cross", "diff", "dot", "geomspace", "inner", "kron", "lib.scimath.logn",
    "lib.scimath.power", "linalg.outer", "linalg.tensordot", "outer", "polyadd", "polymul", "polysub", "polyval",
    "tensordot", "vdot",
}  # fmt: skip
"""Functions in which Python's numbers have dtypes, as NumPy makes arrays of them: ``numpy.dot(x, 2)`` of float32 is
float64, where ``x * 2``, and most functions, keep the dtype of x.
"""


BESIDE: dict[str, Callable[[dict[str, Any]], Any]] = {
    **dict.fromkeys(("polyder", "polyint", "vander"), lambda arguments: np.int64(1) if arguments.get("m", 1) else 0),
    **dict.fromkeys(("bincount", "interp"), lambda _: np.float64(1)),
    "average": lambda arguments: np.float64(1) if is_whole(arguments.get("a")) else 0,
    "geomspace": lambda arguments: np.zeros((), dtype_named(arguments.get("dtype") or np.float64).numpy)[()],
}
"""What NumPy's functions compute with beside their operands, and promote these by; quantiles enter theirs."""


OF_FIRST_DTYPE = {
    "amax", "amin", "ediff1d", "full_like", "insert", "max", "min", "nanmax", "nanmin", "nanprod", "nansum", "pad",
    "piecewise", "prod", "sum",
}  # fmt: skip
"""Functions whose result has the dtype of the first operand, whatever the others are."""


def enter(names: str, takes: str, function: Callable[..., Any], *, finds_common: bool = False) -> None:
    """Enter a rule under each of NumPy's `names`.

    Parameters
    ----------
    names : str
        Separated by spaces.
    takes : str
        NumPy's parameters, in order, each as ``name``, or ``name:parameter`` where `function` calls it otherwise; an
        array has ``*``, ``?``, ``**`` or ``+`` in front, as `Rule` says.
    function : callable
    finds_common : bool, default False
        See `Rule`.
    """
    parameters, operands = {}, {}
    for entry in takes.split():
        theirs, _, ours = entry.lstrip("*?+").partition(":")
        parameters[theirs] = ours or theirs
        if mark := entry[: len(entry) - len(entry.lstrip("*?+"))]:
            operands[theirs] = mark
    for name in names.split():
        RULES[name] = Rule(function, parameters, operands, finds_common)


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


@functools.lru_cache(2048)  # methods of objects are among them
def parameters_of(function: Callable[..., Any]) -> Parameters | None:
    """Return the parameters of a function of NumPy's; None before NumPy 2.4 of some that are written in C."""
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
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
    for key, value in arguments.items():
        if key not in names and value is not NO_VALUE and not is_usual(key, value, defaults.get(key)):
            raise NumpyCallError(
                f"{full_name(name)}: with a Tensor only {', '.join(names)} can be used, got {key}: leave it out, or "
                "use tensor.detach().numpy()"
            )
    return {key: value for key, value in arguments.items() if key in names and value is not NO_VALUE}


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
    first: Any = arguments.get(next(iter(rule.names))) if name in OF_FIRST_DTYPE else None
    if getattr(first, "dtype", None) in UNSIGNED:
        raise NumpyCallError(
            f"{full_name(name)}: the result would have the dtype of the first operand, of which lucid holds no "
            f"elements: expected another one than {first.dtype}: use astype on it"
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
    passed = {rule.names[key]: value for key, value in arguments.items()}
    try:
        return rule.function(**passed, common=common) if rule.finds_common else rule.function(**passed)
    except ShapeError as error:
        if name.startswith("linalg."):
            raise MatrixShapeError(*error.args) from None
        raise
