"""Sums of the gradients from a tensor's several uses: at once on the CPU, by the eight on a CUDA device."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from lucid.autograd.base import is_numpy
from lucid.autograd.engine.node import SMALL_BYTES, Node, moved_error
from lucid.autograd.modes.state import thread
from lucid.autograd.recording.namespace import CUDA, GRAPH, HALVES
from lucid.base import gpu
from lucid.base.device import beside
from lucid.cuda.launch.accumulation import MAX_TERMS, SUMMABLE, total

if TYPE_CHECKING:
    from lucid.base.arrays import Array

# A launch costs some microseconds, in which a device adds a few MiB: larger arrays would hold memory for nothing. The
# second number bounds what all sums of a pass hold together.
WAITING_BYTES = 1 << 20
HELD_BYTES = 1 << 24


class Sums(dict[tuple[Node, int], list[Any]]):
    """Pending summands of the buffers of a pass, by node and output.

    A list without elements stands for a buffer that was made here: nobody else has seen it, so it is added to in place.
    The elements of others, on a CUDA device, wait to be added to their buffer together.

    Attributes
    ----------
    held : int
        Bytes of all that wait.
    """

    held = 0

    def add(self, key: tuple[Node, int], old: Array, grad: Array) -> Array:
        """Return the buffer of `key` on a CUDA device, `old` until now, after `grad` was added or left to wait."""
        waiting = self.get(key)
        nbytes, dtype = grad.nbytes, grad.dtype
        if (
            nbytes < WAITING_BYTES
            and self.held + nbytes <= HELD_BYTES
            and dtype in SUMMABLE
            and dtype == (waiting[0] if waiting else old).dtype
        ):
            if waiting is None:
                waiting = self[key] = []
            elif len(waiting) == MAX_TERMS - 1:
                old = self._sum(old, waiting, more=True)
            waiting.append(grad)
            self.held += nbytes
            return old
        if waiting:
            old = self._sum(old, waiting, more=False)
        if not beside(old, grad):
            raise moved_error(old, grad)
        with gpu.use_device(gpu.device_index(old)):
            if waiting is not None and old.dtype == dtype:
                return CUDA.add_into(old, grad)
            self[key] = []
            return CUDA.add(old, grad)

    def settled(self, node: Node, grad: Any) -> Any:
        """Return a node's gradient after adding all pending summands; `grad` is its buffer."""
        for output in range(node.outputs):
            waiting = self.pop((node, output), None)
            if not waiting:
                continue
            if node.outputs == 1:
                return self._sum(grad, waiting, more=False)
            grad[output] = self._sum(grad[output], waiting, more=False)
        return grad

    def _sum(self, old: Array, waiting: list[Array], *, more: bool) -> Array:
        """Return the sum of a buffer and all that waits for it; nothing waits any more."""
        terms = [old, *waiting]
        self.held -= sum([grad.nbytes for grad in waiting])
        waiting.clear()
        if len({term.data.device_id for term in terms}) > 1:
            raise moved_error(old, next(term for term in terms if not beside(term, old)))
        with gpu.use_device(gpu.device_index(old)):
            return total(terms, more=more)


def contribute(buffers: dict[Node, Any], sums: Sums, node: Node, output: int, grad: Any, *, graph: bool) -> None:
    """Add `grad` to the gradient of output `output` of `node`."""
    if node.outputs != 1:
        slots: Any = buffers.get(node)
        if slots is None:
            slots = buffers[node] = [None] * node.outputs
        slot: Any = output
        old = slots[output]
    else:
        slots, slot = buffers, node
        old = buffers.get(node)
    key = node, output
    if old is None:
        slots[slot] = grad
    elif graph:
        slots[slot] = GRAPH.add(old, grad)
    elif type(old) is not type(grad) and not beside(old, grad):
        raise moved_error(old, grad)
    elif not is_numpy(old):
        slots[slot] = sums.add(key, old, grad)
    elif key in sums and old.dtype == grad.dtype:
        thread.state.quiet(np.add, old, grad, old)
    else:
        add: Any = np.add if old.itemsize != 2 else HALVES.add
        slots[slot] = made = thread.state.quiet(add, old, grad)
        if made.nbytes >= SMALL_BYTES and type(old) is type(made):
            sums[key] = []
