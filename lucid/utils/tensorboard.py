"""`SummaryWriter` of the package tensorboardX for TensorBoard; it takes lucid's tensors."""

from __future__ import annotations

import functools
from importlib import import_module
from typing import TYPE_CHECKING, Any

from lucid.autograd.base import TensorBase
from lucid.base.arrays import to_device

if TYPE_CHECKING:
    from collections.abc import Callable

    SummaryWriter: Any

__all__ = ["SummaryWriter"]


def _plain(value: Any) -> Any:
    """Return the values of a tensor as a NumPy array, also of those in a dict, and anything else unchanged."""
    if isinstance(value, TensorBase):
        array = to_device(value.array, "cpu")
        return array.astype("float32") if array.dtype.kind == "V" else array
    if isinstance(value, dict):
        return {key: _plain(each) for key, each in value.items()}  # pyright: ignore[reportUnknownVariableType]
    return value


def _with_tensors(method: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(method)
    def call(*args: Any, **kwargs: Any) -> Any:
        return method(*map(_plain, args), **_plain(kwargs))

    return call


def __getattr__(name: str) -> Any:
    """Make the class when it is first asked for: the package may be missing."""
    if name != "SummaryWriter":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    try:
        writer: Any = import_module("tensorboardX").SummaryWriter
    except ImportError as error:
        raise ImportError(
            "lucid.utils.tensorboard writes by the package tensorboardX: pip install tensorboardX"
        ) from error
    # a class of its own, so that tensorboardX's stays as it is for others
    methods = {each: _with_tensors(getattr(writer, each)) for each in dir(writer) if each.startswith("add_")}
    made = type(name, (writer,), {"__module__": __name__, "__doc__": writer.__doc__, **methods})
    return globals().setdefault(name, made)
