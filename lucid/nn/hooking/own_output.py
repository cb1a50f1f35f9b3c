"""Outputs of a module that the call has not made: hooks for their gradients hang on views of their own."""

from __future__ import annotations

from typing import Any

from lucid.autograd.base import INFERENCE, TensorBase, version_of
from lucid.autograd.engine.node import sequences
from lucid.autograd.hooks.structure import map_leaves
from lucid.autograd.modes.state import thread
from lucid.autograd.recording.views import live_edge
from lucid.ops.base.core import clone, expand


class Beginning:
    """Beginning of the latest call of a module, noted by a forward pre-hook: this object.

    A call inside of the call, or on another thread, moves it on: then more outputs than necessary get a view.
    """

    __slots__ = ("number",)

    def __init__(self) -> None:
        self.number = next(sequences)

    def __call__(self, *_: object) -> None:
        """Note that a call begins."""
        self.number = next(sequences)

    def own(self, output: Any, inputs: Any) -> Any:
        """Return an output of the call with a view in place of each tensor on the graph that it has not made.

        It got that as one of its `inputs`, or kept it. Hooks on the view get the gradient of what is done with
        this output, those on the tensor itself that of all of its uses. Where nothing is recorded all stays as it is.
        """
        if not thread.state.recording:
            return output
        arguments: set[int] = set()
        map_leaves(inputs, lambda leaf: arguments.add(id(leaf)) if isinstance(leaf, TensorBase) else None)

        def own(leaf: Any) -> Any:
            if not isinstance(leaf, TensorBase):
                return leaf
            before = leaf.edge
            if live_edge(leaf) is None:
                return leaf
            if before is not None and before[0].sequence > self.number and id(leaf) not in arguments:
                return leaf
            # views of inference tensors are not recorded
            return clone(leaf) if version_of(leaf) is INFERENCE else expand(leaf, shape=leaf.array.shape)

        return map_leaves(output, own)
