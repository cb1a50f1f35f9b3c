"""The Tensor class: its methods are the functions of `lucid.ops` and of the modules beside this one."""

from __future__ import annotations

import importlib
import pkgutil
from typing import Any

import lucid.ops
from lucid.autograd.base import registered
from lucid.autograd.retain import retains_grad
from lucid.ops import elementwise
from lucid.tensor import conversion, interop, printing, recording
from lucid.tensor.attributes import Attributes


class Tensor(Attributes):
    """An array with a place in the graph."""

    __slots__ = ()

    __repr__ = printing.describe_tensor
    __format__ = printing.format_tensor

    item = conversion.item
    tolist = conversion.tolist
    numpy = interop.numpy

    backward = recording.backward
    register_hook = recording.register_hook
    register_post_accumulate_grad_hook = recording.register_post_accumulate_grad_hook
    retain_grad = recording.retain_grad
    requires_grad_ = recording.requires_grad_
    detach = recording.detach
    detach_ = recording.detach_

    @property
    def retains_grad(self) -> bool:
        """Whether this tensor is no leaf and `retain_grad` was called on it."""
        return retains_grad(self)

    def size(self, dim: Any = None) -> Any:
        """Return the shape, or the size of one dimension."""
        return self.array.shape if dim is None else self.array.shape[dim]

    def dim(self) -> Any:
        """Return the number of dimensions."""
        return self.array.ndim

    def numel(self) -> Any:
        """Return the number of elements."""
        return self.array.size

    def __len__(self) -> Any:
        return self.array.shape[0]


registered.tensor = Tensor

# For the time in which the families of ops land.
for _info in pkgutil.iter_modules(lucid.ops.__path__):
    try:
        _module = importlib.import_module(f"lucid.ops.{_info.name}")
    except Exception as _error:  # noqa: BLE001
        print(f"lucid.ops.{_info.name} does not load yet: {_error!r}", file=__import__("sys").stderr)
        continue
    for _name, _value in vars(_module).items():
        _public = callable(_value) and not _name.startswith("_") and getattr(_value, "__module__", "") == _module.__name__
        if _public and not hasattr(Tensor, _name) and not isinstance(_value, type):
            setattr(Tensor, _name, _value)
for _name in ("add", "mul", "sub", "div", "pow", "neg", "eq", "ne", "lt", "le", "gt", "ge", "matmul"):
    _op = getattr(elementwise, f"_{_name}", None)
    if _op is not None:
        setattr(Tensor, {"div": "__truediv__"}.get(_name, f"__{_name}__"), _op.call)
    if _op is not None and _name in {"add", "mul"}:
        setattr(Tensor, f"__r{_name}__", _op.call)
