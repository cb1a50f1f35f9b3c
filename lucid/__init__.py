"""PyTorch-style automatic differentiation on NumPy and CuPy, with hooks that fire at guaranteed moments."""

from __future__ import annotations

import importlib as _importlib
import pkgutil as _pkgutil
from typing import Any as _Any

from lucid import autograd, cuda, ops
from lucid.autograd.mode import (
    enable_grad,
    inference_mode,
    is_grad_enabled,
    is_inference_mode_enabled,
    no_grad,
    set_grad_enabled,
)
from lucid.backend.arrays import asarray as _asarray
from lucid.backend.device import device, get_default_device, set_default_device
from lucid.backend.dtype import ALIASES as _ALIASES
from lucid.backend.dtype import DTYPES as _DTYPES
from lucid.backend.dtype import can_cast, dtype, get_default_dtype, promote_types, result_type, set_default_dtype
from lucid.backend.generator import Generator, manual_seed
from lucid.tensor import Tensor
from lucid.tensor.interop import from_dlpack
from lucid.tensor.printing import set_printoptions

for _name, _value in (*_DTYPES.items(), *_ALIASES.items()):
    globals()[_name] = _value

# For the time in which the families of ops land.
for _info in _pkgutil.iter_modules(ops.__path__):
    try:
        _module = _importlib.import_module(f"lucid.ops.{_info.name}")
    except Exception as _error:  # noqa: BLE001
        print(f"lucid.ops.{_info.name} does not load yet: {_error!r}", file=__import__("sys").stderr)
        continue
    for _name, _value in vars(_module).items():
        if (
            callable(_value)
            and not _name.startswith("_")
            and getattr(_value, "__module__", "") == _module.__name__
            and not isinstance(_value, type)
        ):
            globals()[_name] = _value

if not callable(globals().get("tensor")):

    def tensor(data: _Any, *, dtype: _Any = None, device: _Any = None, requires_grad: bool = False) -> _Any:
        """Return a tensor with the elements of `data`."""
        made = autograd.base.wrap(_asarray(data, dtype, device, copy=True))
        made.requires_grad = requires_grad
        return made

    def ones(*size: _Any, dtype: _Any = None, device: _Any = None, requires_grad: bool = False) -> _Any:
        """Return ones."""
        import numpy

        return tensor(numpy.ones(size, (dtype or get_default_dtype()).numpy), device=device, requires_grad=requires_grad)


for _name in ("nn", "optim"):
    if _importlib.util.find_spec(f"lucid.{_name}.__init__") is not None:
        _importlib.import_module(f"lucid.{_name}")

__version__ = "0.1.0"
__all__ = [_name for _name in list(globals()) if not _name.startswith("_")]
