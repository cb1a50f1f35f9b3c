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

    def own(self, output: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Return an output of the call with a view in place of each tensor on the graph that it has not made.

        It was given that tensor, or kept it; an argument that the call has changed in place counts as given. Hooks on
        the view get the gradient of what is done with this output, those on the tensor itself that of all of its uses.
        Where nothing is recorded all stays as it is.
        """
        if not thread.state.recording:
            return output
        if isinstance(output, TensorBase):
            return self._own(output, args, kwargs)
        return map_leaves(output, lambda leaf: self._own(leaf, args, kwargs) if isinstance(leaf, TensorBase) else leaf)

    def _own(self, tensor: TensorBase, args: tuple[Any, ...], kwargs: dict[str, Any]) -> TensorBase:
        before = tensor.edge
        if (before if tensor.origin is None else live_edge(tensor)) is None:
            return tensor
        if before is not None and before[0].sequence > self.number:
            for each in args:
                if each is tensor:
                    break
            else:
                if not kwargs or all(each is not tensor for each in kwargs.values()):
                    return tensor
        # views of inference tensors are not recorded
        return clone(tensor) if version_of(tensor) is INFERENCE else expand(tensor, shape=tensor.array.shape)
