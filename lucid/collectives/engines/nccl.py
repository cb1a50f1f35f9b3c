"""Collectives of CUDA arrays through nccl4py."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from lucid.base.arrays import astype, copied, namespace
from lucid.base.functions import cupy_functions
from lucid.collectives.engines.base import as_bytes
from lucid.collectives.engines.forms import Form, form_of
from lucid.collectives.engines.queued import QueuedEngine
from lucid.collectives.reduction import ReduceOp, tree_sum
from lucid.errors import SettingError
from lucid.ops.base.promotion import accumulation_dtype

if TYPE_CHECKING:
    from collections.abc import Sequence

    from lucid.base.arrays import Array
    from lucid.collectives.work import Steps


class NcclEngine(QueuedEngine):
    """Collectives of a group of processes, each on the CUDA arrays of one device.

    What cannot be is refused when steps are made, alike in all processes and before the collective counts. Values that
    are only moved go as bytes; what NCCL reduces of each dtype says `Form`.
    """

    name = "nccl"

    def all_reduce(self, array: Array, op: ReduceOp) -> Steps:
        form = form_of(array, op)
        self.ready(array)
        return self._reduced("allreduce", array, form)

    def reduce(self, array: Array, op: ReduceOp, root: int) -> Steps:
        form = form_of(array, op)
        self.ready(array)
        return self._reduced("reduce", array, form, root)

    def _reduced(self, name: str, array: Array, form: Form, *root: int) -> Steps:
        """Put values of all processes together, in the array of one of them, or of all."""
        if array.size:
            operand = form.operand(array)
            self.call(name, operand, operand, self.core.NcclRedOp[form.name], *root)
            if form.copies and root in {(), (self.peers.index,)}:
                form.store(array, operand)
        yield

    def reduce_scatter(self, into: Array, array: Array, op: ReduceOp) -> Steps:
        form = form_of(array, op)
        self.ready(array)
        return self._reduce_scatter(into, array, form)

    def _reduce_scatter(self, into: Array, array: Array, form: Form) -> Steps:
        if array.size:
            operand = form.operand(_apart(array, into))
            result = namespace(operand).empty(into.size, operand.dtype) if form.copies else form.operand(into)
            self.call("reduce_scatter", operand, result, self.core.NcclRedOp[form.name])
            if form.copies:
                form.store(into, result)
        yield

    def tree_all_reduce(self, array: Array) -> Steps:
        self.ready(array)
        return self._tree_all_reduce(array)

    def _tree_all_reduce(self, array: Array) -> Steps:
        if array.size:
            xp, count, size = namespace(array), self.size, array.size
            part = -(-size // count)
            wide = xp.zeros(part * count, accumulation_dtype(array.dtype))
            wide[:size] = astype(array.reshape(-1), wide.dtype)
            rows = xp.empty((count, part), wide.dtype)
            self.call("alltoall", as_bytes(wide), as_bytes(rows))
            total = xp.ascontiguousarray(tree_sum(list(rows)))
            self.call("allgather", as_bytes(total), as_bytes(wide))
            array[...] = astype(wide[:size].reshape(array.shape), array.dtype)
        yield

    def broadcast(self, array: Array, root: int) -> Steps:
        self.ready(array)
        return self._moved("broadcast", array, array, root)

    def all_gather(self, into: Array, array: Array) -> Steps:
        self.ready(array)
        return self._moved("allgather", array, into)

    def gather(self, into: Array | None, array: Array, root: int) -> Steps:
        self.ready(array)
        return self._moved("gather", array, into, root)

    def scatter(self, into: Array, array: Array | None, root: int) -> Steps:
        self.ready(into)
        return self._moved("scatter", array, into, root)

    def _moved(self, name: str, array: Array | None, into: Array | None, *root: int) -> Steps:
        """Move bytes; `array` or `into` is None in a process that does not send or receive."""
        whole = into if array is None else array
        if whole is not None and whole.size:
            if array is not None and into is not None and array is not into:
                array = _apart(array, into)
            self.call(name, *[None if each is None else as_bytes(each) for each in (array, into)], *root)
        yield

    def all_to_all(self, into: Array, array: Array, received: Sequence[int], sent: Sequence[int]) -> Steps:
        self.ready(array)
        return self._all_to_all(into, array, received, sent)

    def _all_to_all(self, into: Array, array: Array, received: Sequence[int], sent: Sequence[int]) -> Steps:
        source, target = as_bytes(_apart(array, into)), as_bytes(into)
        size, begin, at = array.itemsize, 0, 0
        with self.grouped():
            for peer in range(self.size):
                give, take = size * sent[peer], size * received[peer]
                for name, part in (("send", source[begin : begin + give]), ("recv", target[at : at + take])):
                    if part.size:
                        self.call(name, part, peer)
                begin, at = begin + give, at + take
        yield

    def send(self, array: Array, peer: int, tag: int) -> Steps:
        return self._pair("send", array, peer, tag)

    def recv(self, array: Array, peer: int, tag: int) -> Steps:
        return self._pair("recv", array, peer, tag)

    def _pair(self, name: str, array: Array, peer: int, tag: int) -> Steps:
        if tag:
            raise SettingError(f"{name}: tag: NCCL tells messages apart by their order alone: expected 0, got {tag}")
        self.ready(array)
        return self._paired(name, array, peer)

    def _paired(self, name: str, array: Array, peer: int) -> Steps:
        if array.size:
            self.call(name, as_bytes(array), peer)
        yield

    def barrier(self) -> Steps:
        self.ready()
        return self._barrier()

    def _barrier(self) -> Steps:
        here = cupy_functions().zeros(1, np.int32)
        self.call("allreduce", here, here, self.core.NcclRedOp.SUM)
        yield


def _apart(array: Any, into: Any) -> Any:
    """Return `array`, or a copy of it if it shares memory with `into`, as NCCL forbids aliasing."""
    shares = array.data.ptr < into.data.ptr + into.nbytes and into.data.ptr < array.data.ptr + array.nbytes
    return copied(array) if shares else array
