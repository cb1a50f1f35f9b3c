"""Streams of a pass: each node works on the stream of its forward, in one sequence with the others."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from lucid.autograd.base import TensorBase, is_list
from lucid.autograd.engine.node import AccumulateGrad, Node
from lucid.base import gpu

if TYPE_CHECKING:
    from lucid.autograd.engine.passes import Pass


class PassStreams:
    """The streams that a pass has gone to, from those that were current when it began.

    Whatever a pass queues for a device runs in the order in which it is queued: where it goes on on another stream,
    that one waits for the one before, and in the end all wait for the last. So an array that was made on one stream and
    read on another can be freed like any other, though CuPy gives its memory to what is queued on the first one next.
    """

    __slots__ = ("_entered", "_previous")

    def __init__(self) -> None:
        self._entered: dict[int, gpu.use_stream] = {}
        # by device and address, so that each is told once
        self._previous: dict[tuple[int, int], Any] = {}

    def go_on(self, stream: Any, index: int) -> None:
        """Continue a device's queue on `stream`."""
        before = gpu.current_stream(index)
        with gpu.use_device(index):
            stream.wait_event(gpu.mark(before))
        self._previous[index, before.ptr] = before
        if index in self._entered:
            self._entered.pop(index).__exit__()
        context = gpu.use_stream(stream, index)
        context.__enter__()
        self._entered[index] = context

    def end(self) -> None:
        """Make the streams from before the pass current again, and have all wait for its queued work."""
        for index, context in self._entered.items():
            with gpu.use_device(index):
                last = gpu.current_stream(index)
                mark = gpu.mark(last)
                context.__exit__()
                for (device, address), stream in self._previous.items():
                    if device == index and address != last.ptr:
                        stream.wait_event(mark)


def follow(this: Pass, node: Node, grad: Any) -> int | None:
    """Let the work of a node be queued on the stream of its forward.

    A leaf has no forward: what is done there is queued where its gradient was made.

    Parameters
    ----------
    this : Pass
        The pass that runs the node.
    node : Node
        The node.
    grad : array or Tensor or None, or a list of these
        What it has received.

    Returns
    -------
    int or None
        Index of the CUDA device of the gradient; None if it is on the CPU.
    """
    first = next((g for g in grad if g is not None), None) if is_list(grad) else grad
    array = first.array if isinstance(first, TensorBase) else first
    if not gpu.is_gpu_array(array):
        return None
    index = gpu.device_index(array)
    if type(node) is not AccumulateGrad:
        stream = node.extra.stream if node.extra is not None else None
        device = index if stream is None or stream.device_id < 0 else stream.device_id
        current = gpu.current_stream(device)
        if not gpu.is_default(current) if stream is None else stream.ptr != current.ptr:
            if this.streams is None:
                this.streams = PassStreams()
            this.streams.go_on(gpu.default_stream() if stream is None else stream, device)
    return index
