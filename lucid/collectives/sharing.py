"""Tensors that all processes get from one of them."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from lucid.backend.arrays import namespace, on
from lucid.backend.device import device_of
from lucid.collectives.memory import Target

if TYPE_CHECKING:
    from collections.abc import Iterable

    from lucid.autograd.base import TensorBase
    from lucid.collectives.group import ProcessGroup

__all__ = ["share"]


def share(tensors: Iterable[TensorBase], group: ProcessGroup, root: int, what: str) -> None:
    """Set tensors of all processes to the values that they have in one; those of one dtype and device go at once."""
    kinds: dict[Any, list[TensorBase]] = {}
    for tensor in tensors:
        if tensor.array.size:
            kinds.setdefault((tensor.array.dtype.name, device_of(tensor.array)), []).append(tensor)
    for (dtype, device), alike in kinds.items():
        with on(alike[0].array):
            flat: Any = namespace(alike[0].array).concatenate([tensor.array.reshape(-1) for tensor in alike])
        engine = group.engine(device.type, what)
        text = f"{what}: {len(alike)} tensors of {dtype}, {flat.size} elements, from {root}"
        group.begin(engine, "broadcast", text, partial(engine.broadcast, flat, root)).wait()
        if group.rank() != root:
            start = 0
            for tensor in alike:
                target = Target(tensor, what)
                size = target.array.size
                with on(target.array):
                    target.array[...] = flat[start : start + size].reshape(target.array.shape)
                target.begun()
                start += size
