"""Ops that work on arrays themselves: they run on the one device of their tensors."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any, TypeVar, cast

from lucid.autograd.base import TensorBase, describe
from lucid.base.arrays import on
from lucid.base.device import beside
from lucid.errors import DeviceError

if TYPE_CHECKING:
    from collections.abc import Callable

F = TypeVar("F", bound="Callable[..., Any]")


def check_one_device(name: str, first: TensorBase, *others: TensorBase | None) -> None:
    """Raise `DeviceError` unless all tensors that there are lie on one device."""
    home = first.array
    for other in others:
        if other is not None and not beside(other.array, home):
            got = "; ".join(describe(tensor) for tensor in (first, *others) if tensor is not None)
            raise DeviceError(f"{name}: expected all tensors on the same device, got {got}; move one with .to(device)")


def on_one_device(function: F) -> F:
    """Let a function of tensors run on their device, and refuse tensors of several.

    A tensor that stands for a number, as its parameter's annotation says, may be anywhere.
    """
    numbers = {name for name, kind in function.__annotations__.items() if str(kind).split(" ")[0] in {"int", "float"}}
    positions = {k for k, name in enumerate(function.__code__.co_varnames) if name in numbers}

    @functools.wraps(function)
    def run(*args: Any, **kwargs: Any) -> Any:
        tensors = [arg for k, arg in enumerate(args) if isinstance(arg, TensorBase) and k not in positions]
        tensors += [arg for name, arg in kwargs.items() if isinstance(arg, TensorBase) and name not in numbers]
        if not tensors:
            return function(*args, **kwargs)
        check_one_device(function.__name__.strip("_"), *tensors)
        with on(tensors[0].array):
            return function(*args, **kwargs)

    return cast("F", run)
