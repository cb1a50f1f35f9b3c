"""Tensors that all processes get from one of them."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from lucid.base.arrays import namespace, on
from lucid.base.device import device_of
from lucid.collectives.memory import Target, check_memory

if TYPE_CHECKING:
    from collections.abc import Iterable

    from lucid.autograd.base import TensorBase
    from lucid.collectives.group import ProcessGroup


def share(
    tensors: Iterable[TensorBase], group: ProcessGroup, root: int, what: str, *, spare_equal: bool = False
) -> None:
    """Set tensors of all processes to the values that they have in one; those of one dtype and device go at once.

    With `spare_equal` a CPU tensor that has these bits already is not written to: backward may need it unchanged.
    """
    kinds: dict[Any, list[TensorBase]] = {}
    for tensor in tensors:
        check_memory(tensor)  # in the one that sends, too, which would go on where the others raise
        if tensor.array.size:
            kinds.setdefault((tensor.array.dtype.name, device_of(tensor.array)), []).append(tensor)
    for (dtype, device), batch in kinds.items():
        with on(batch[0].array):
            flat: Any = namespace(batch[0].array).concatenate([tensor.array.reshape(-1) for tensor in batch])
        engine = group.engine(device.type, what)
        text = f"{what}: {len(batch)} tensors of {dtype}, {flat.size} elements, from {root}"
        group.begin(engine, "broadcast", text, partial(engine.broadcast, flat, root)).wait()
        if group.rank() != root:
            start = 0
            for tensor in batch:
                size = tensor.array.size
                values = flat[start : start + size].reshape(tensor.array.shape)
                start += size
                if spare_equal and device.type == "cpu" and values.tobytes() == tensor.array.tobytes():
                    continue
                target = Target(tensor, what)
                with on(target.array):
                    target.array[...] = values
                target.mark_written()
