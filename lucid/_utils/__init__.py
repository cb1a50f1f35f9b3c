"""Many tensors as one of one dimension and back, under the private names by which libraries take it from PyTorch."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lucid.ops.shape.joining import cat

if TYPE_CHECKING:
    from collections.abc import Sequence

    from lucid.tensor import Tensor

__all__ = ["_flatten_dense_tensors", "_unflatten_dense_tensors"]


def _flatten_dense_tensors(tensors: Sequence[Tensor]) -> Tensor:
    """Return the elements of all tensors, one behind the other."""
    return cat([tensor.reshape(-1) for tensor in tensors])


def _unflatten_dense_tensors(flat: Tensor, tensors: Sequence[Tensor]) -> tuple[Tensor, ...]:
    """Return parts of `flat`, each of the shape of one of `tensors`."""
    parts = flat.split([tensor.numel() for tensor in tensors])
    return tuple([part.view_as(tensor) for part, tensor in zip(parts, tensors, strict=True)])
