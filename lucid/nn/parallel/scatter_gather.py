"""Parts of a batch for several devices, and one batch of them."""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any, cast

from lucid.errors import ArgumentError, warn
from lucid.ops.shape.joining import cat, stack
from lucid.ops.shape.splitting import chunk
from lucid.tensor import Tensor

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["gather", "scatter"]


def scatter(inputs: Any, target_gpus: Sequence[Any], dim: int = 0) -> list[Any]:
    """Return a part of each tensor for each device, in tuples, lists and dicts as they were; other values go to all.

    There are as many parts as tensors have, at most one for each device. Gradients flow back to the whole.

    >>> import lucid
    >>> from lucid.nn.parallel.scatter_gather import scatter
    >>> scatter((lucid.arange(3), "x"), ["cpu", "cpu"])
    [(tensor([0, 1]), 'x'), (tensor([2]), 'x')]
    """
    devices = list(target_gpus)
    if not devices:
        raise ArgumentError("scatter: expected at least one device in target_gpus, got none")

    def parts(value: Any) -> list[Any]:
        whole: Any = value
        if isinstance(value, Tensor):
            pieces = chunk(value, len(devices), dim)
            return [piece.to(device) for piece, device in zip(pieces, devices, strict=False)]
        if not isinstance(value, dict | list | tuple) or not value:
            return [value] * len(devices)
        kind: Any = type(cast("object", value))
        if isinstance(value, dict):
            # of each a copy, as a `defaultdict` cannot be made of entries alone
            made = [(copy.copy(whole), row) for row in zip(*map(parts, whole.values()), strict=False)]
            for part, row in made:
                part.update(zip(whole, row, strict=True))
            return [part for part, _ in made]
        named = hasattr(kind, "_fields")
        return [kind(*row) if named else kind(row) for row in zip(*map(parts, whole), strict=False)]

    return parts(inputs)


def gather(outputs: Sequence[Tensor], target_device: Any, dim: int = 0) -> Tensor:
    """Return tensors of several devices in one on `target_device`, one behind the other along `dim`.

    Tensors without dimensions, such as losses, become a vector, with a warning; `dim` is 0 then.

    >>> import lucid
    >>> from lucid.nn.parallel.scatter_gather import gather
    >>> gather([lucid.zeros(2), lucid.ones(1)], "cpu")
    tensor([0., 0., 1.])
    """
    moved = [output.to(target_device) for output in outputs]
    if dim == 0 and moved and not any(output.ndim for output in moved):
        warn("gather: all tensors are without dimensions: they become a vector", UserWarning)
        return stack(moved)
    return cat(moved, dim)
