"""Tensors among other libraries' arrays: NumPy, CuPy, DLPack."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from lucid.autograd.views import live_edge
from lucid.errors import DeviceError, GraphError

if TYPE_CHECKING:
    from lucid.tensor import Tensor


def numpy(self: Tensor, *, force: bool = False) -> np.ndarray[Any, Any]:
    """Return the elements as a NumPy array on the same memory.

    Parameters
    ----------
    force : bool
        Detach and copy from the device where that is needed.

    Raises
    ------
    GraphError
        If this tensor requires grad: NumPy does not record.
    DeviceError
        If it is on a CUDA device.

    Examples
    --------
    >>> import lucid
    >>> lucid.tensor([1.0, 2.0]).numpy()
    array([1., 2.], dtype=float32)
    """
    array = self.array
    if not force and live_edge(self) is not None:
        raise GraphError("can't call numpy() on Tensor that requires grad: use tensor.detach().numpy() instead")
    if type(array) is np.ndarray:
        return array
    if not force:
        raise DeviceError(
            f"can't convert {self.device} device type tensor to numpy: use Tensor.cpu() to copy the tensor to host "
            "memory first"
        )
    return array.get()
