"""Arguments as users give them: how one that does not fit is named, and checks of settings against their annotations.

What is checked costs nothing where it fits: conversions find the name of what they refuse on the stack, afterwards.
Only functions that are rarely called, such as constructors, look at their arguments before they begin: `checked`.
"""

from __future__ import annotations

import functools
import inspect
import re
import sys
from collections.abc import Callable, Container, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, ParamSpec, TypeAlias, TypeVar, cast

import numpy as np

from lucid.errors import ArgumentError

if TYPE_CHECKING:
    from types import CodeType, FrameType

P = ParamSpec("P")
R = TypeVar("R")
E = TypeVar("E", bound=Exception)

PACKAGE = __name__.partition(".")[0]
# Special methods whose parameters are what the user wrote.
PUBLIC = {"__init__", "__new__", "__getitem__", "__setitem__"}
MOST_SHOWN = 80


def named(value: object, name: str = "") -> str:
    """Return "function: parameter" for a value that the user gave to the public function that is being called.

    Called while an error is made: it walks outwards through frames of lucid, to the function that the user called.
    `name` is the parameter as the caller knows it: it decides where an object stands twice, or is no argument itself.
    """
    function = slot = ""
    frame: FrameType | None = sys._getframe(1)  # noqa: SLF001  # pyright: ignore[reportPrivateUsage]
    while frame is not None and frame.f_globals.get("__name__", "").partition(".")[0] == PACKAGE:
        code = frame.f_code
        if code.co_name in PUBLIC or not (code.co_name[0] == "_" or "<" in code.co_qualname or code.co_name == "call"):
            function = code.co_qualname
            if code.co_name in {"__init__", "__new__"}:  # the class that is made, not the base that has the constructor
                made = frame.f_locals[code.co_varnames[0]]
                function = (made if isinstance(made, type) else type(made)).__name__
            slots = list(_slots(value, code, frame.f_locals))
            slot = name if not slots or name in slots else slots[0]
        frame = frame.f_back
    return ": ".join(part for part in (function, slot) if part)


def _slots(value: object, code: CodeType, arguments: Mapping[str, Any]) -> Iterator[str]:
    """Yield the places of `value` among a call's arguments: "dim", or "tensors[1]" inside of a sequence or a dict."""
    count = code.co_argcount + code.co_kwonlyargcount
    count += bool(code.co_flags & inspect.CO_VARARGS) + bool(code.co_flags & inspect.CO_VARKEYWORDS)
    for parameter in code.co_varnames[:count]:
        argument = arguments.get(parameter)
        if argument is value:
            yield parameter
        elif isinstance(argument, tuple | list):
            entries = cast("list[Any]", argument)
            yield from (f"{parameter}[{index}]" for index, entry in enumerate(entries) if entry is value)
        elif isinstance(argument, dict):
            entries = cast("dict[Any, Any]", argument)
            yield from (f"{parameter}[{key!r}]" for key, entry in entries.items() if entry is value)


def shown(value: Any) -> str:
    """Return the type of a value and, of a number or a text, the value itself; for messages."""
    kind: type[Any] = type(value)  # pyright: ignore[reportUnknownVariableType]
    text = repr(value) if kind in {bool, int, float, complex, str} else ""
    return kind.__name__ if not text or len(text) > MOST_SHOWN else f"{kind.__name__} {text}"


def among(value: object, options: Container[Any]) -> bool:
    """Return whether a user's value is among some words or numbers; False for a value without a hash, as a list."""
    try:
        return value in options
    except TypeError:
        return False


def unfit(value: object, wanted: str, name: str = "", kind: type[E] = ArgumentError) -> E:
    """Return the error of an argument of a wrong type: function and parameter, expected and actual type."""
    return kind(f"{named(value, name)}: expected {wanted}, got {shown(value)}")


# ---- annotations ----


def _is_float(value: object) -> bool:
    # a tensor counts as its element; a bool is a flag that has come to the wrong argument; NumPy's complex numbers can
    # be converted, with a warning
    wrong = isinstance(value, bool | np.complexfloating)
    return hasattr(value, "__float__") and not wrong and getattr(value, "ndim", 0) == 0


def _of_class(name: str) -> Callable[[Any], bool]:
    return lambda value: any(base.__name__ == name for base in type(value).__mro__)


# How messages call what an annotation takes, and the test.
Kind: TypeAlias = tuple[str, Callable[[Any], bool]]

# What an annotation takes, by its name. Classes of lucid are told by theirs.
KINDS: dict[str, Kind] = {
    "None": ("None", lambda value: value is None),
    # of numbers those that bools are equal to: scripts write 1 for True
    "bool": ("a bool", lambda value: isinstance(value, int | np.bool_) and value in {0, 1}),
    "int": ("an int", lambda value: hasattr(value, "__index__") and getattr(value, "ndim", 0) == 0),
    "float": ("a number", _is_float),
    "str": ("a string", lambda value: isinstance(value, str)),
    "Iterable": ("an iterable", lambda value: isinstance(value, Iterable) and not isinstance(value, str)),
    "Mapping": ("a dict", lambda value: isinstance(value, Mapping)),
    "dict": ("a dict", lambda value: isinstance(value, dict)),
    "Tensor": ("a Tensor", _of_class("TensorBase")),
    "Module": ("a Module", _of_class("Module")),
    "Optimizer": ("an Optimizer", _of_class("Optimizer")),
    "Generator": ("a Generator", _of_class("Generator")),
}


# what stands in brackets is one part
_UNION = re.compile(r" \| (?![^\[]*\])")


def _kinds(annotation: str) -> list[Kind]:
    """Return the kinds in an annotation such as "int | None"; nothing if a part of it is not checked."""
    result: list[Kind] = []
    for part in _UNION.split(annotation):
        name, _, inner = part.partition("[")
        if name in {"tuple", "Sequence"}:
            kinds = _kinds(inner.partition(",")[0].rstrip("]")) or [("anything", lambda _: True)]
            text = " or ".join(f"{text.partition(' ')[2] or text}s" for text, _ in kinds)
            result.append((f"a sequence of {text}", _sequence_of(kinds)))
        elif name in KINDS:
            result.append(KINDS[name])
        else:
            return []
    return result


def _sequence_of(kinds: list[Kind]) -> Callable[[Any], bool]:
    return lambda value: (
        isinstance(value, tuple | list)
        and all(any(fits(each) for _, fits in kinds) for each in cast("Iterable[Any]", value))
    )


def checked(function: Callable[P, R]) -> Callable[P, R]:
    """Return `function` with its arguments checked against their annotations before it begins.

    For what is called rarely: it costs some microseconds, and a frame.

    Raises
    ------
    ArgumentError
        On a call, for the first argument that is not what its annotation says.
    """

    @functools.wraps(function)
    def call(*args: P.args, **kwargs: P.kwargs) -> R:
        signature, kinds = _parameters(function)
        try:
            arguments = signature.bind(*args, **kwargs).arguments
        except TypeError:
            arguments = {}  # the call itself says which argument is missing or too much
        for name, value in arguments.items():
            if name in kinds and not any(fits(value) for _, fits in kinds[name]):
                # the class that is made, not the base that has the constructor
                title = type(args[0]).__name__ if function.__name__ == "__init__" else function.__qualname__
                wanted = " or ".join(text for text, _ in kinds[name])
                raise ArgumentError(f"{title}: {name}: expected {wanted}, got {shown(value)}")
        return function(*args, **kwargs)

    return call


# On the first call: the signatures of all such functions would be a share of the time of `import lucid`.
@functools.cache
def _parameters(function: Callable[..., Any]) -> tuple[inspect.Signature, dict[str, list[Kind]]]:
    signature = inspect.signature(function)
    several = inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD
    return signature, {
        name: kinds
        for name, parameter in signature.parameters.items()
        if parameter.kind not in several and (kinds := _kinds(str(parameter.annotation)))
    }
