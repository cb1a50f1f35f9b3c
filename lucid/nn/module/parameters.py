"""Parameters for layers, before their first values are drawn."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from lucid.autograd.base import wrap
from lucid.base.arrays import to_device
from lucid.base.device import as_device, get_default_device
from lucid.base.dtype import as_dtype, get_default_dtype
from lucid.nn.parameter import Parameter
from lucid.ops.creation.filling import shape_of

if TYPE_CHECKING:
    from lucid.base.device import Device
    from lucid.base.dtype import dtype as Dtype


def empty_tensor(shape: tuple[int, ...], device: Device = None, dtype: Dtype | None = None, fill: float = 0.0) -> Any:
    """Return a tensor of one value, of the default dtype and on the default device unless they are given."""
    wanted = get_default_dtype() if dtype is None else as_dtype(dtype)
    target = get_default_device() if device is None else as_device(device)
    return wrap(to_device(np.full(shape_of((shape,), "parameter or buffer", wanted.numpy), fill, wanted.numpy), target))


def empty_parameter(
    shape: tuple[int, ...], device: Device = None, dtype: Dtype | None = None, fill: float = 0.0
) -> Parameter:
    """Return a parameter of one value, of the default dtype and on the default device unless they are given."""
    return Parameter(empty_tensor(shape, device, dtype, fill))
