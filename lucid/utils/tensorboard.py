"""`SummaryWriter` of the package tensorboardX, which writes what TensorBoard shows; it takes lucid's tensors."""

from __future__ import annotations

import functools
from importlib import import_module
from typing import TYPE_CHECKING, Any

from lucid.autograd.base import TensorBase
from lucid.backend.arrays import to_device

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["SummaryWriter"]

try:
    _writer: Any = import_module("tensorboardX").SummaryWriter
except ImportError as error:
    raise ImportError("lucid.utils.tensorboard writes by the package tensorboardX: pip install tensorboardX") from error


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


# A class of its own, so that tensorboardX's stays as it is for others.
SummaryWriter: Any = type(
    "SummaryWriter",
    (_writer,),
    {
        "__module__": __name__,
        "__doc__": _writer.__doc__,
        **{name: _with_tensors(getattr(_writer, name)) for name in dir(_writer) if name.startswith("add_")},
    },
)
