"""`.grad` of leaves around a captured step: the gradients that each replay leaves, and those that it must find."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from lucid.autograd.base import describe, grad_of
from lucid.errors import CaptureError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable


class Gradients:
    """Gradients of leaves before and after a captured step.

    Parameters
    ----------
    before : iterable of (Tensor, Tensor or None)
        Tensors and the gradients that they had when the capture began; they have those of its end now.
    assigned : set of int
        By `id`, the tensors whose gradient the step itself set or cleared.
    changed : set of int
        By `id`, the tensors whose gradient hooks between parts of the step changed.
    is_of_graph : callable
        Whether the graph made or uses an array: what other threads did meanwhile is none of its business.
    """

    def __init__(
        self,
        before: Iterable[tuple[Any, Any]],
        assigned: set[int],
        changed: set[int],
        is_of_graph: Callable[[Any], bool],
    ) -> None:
        self._after: list[tuple[Any, Any]] = []
        self._before: list[tuple[Any, Any]] = []
        for tensor, old in before:
            new = grad_of(tensor)
            own = id(tensor) in changed or any(g is not None and is_of_graph(g.array) for g in (old, new))
            if new is not old and (own or id(tensor) in assigned):
                self._after.append((tensor, new))
            if own and id(tensor) not in assigned:
                self._before.append((tensor, old))

    def check(self) -> None:
        """Raise unless the gradients that the step adds to are those of the capture, and others are None as then."""
        for tensor, old in self._before:
            if tensor.stored_grad is not old:
                had = "none" if old is None else "another one"
                raise CaptureError(
                    f"the gradient of a tensor of {describe(tensor)} is not what it was when the step was captured: it "
                    f"had {had} then, to which the graph adds, and has {'none' if grad_of(tensor) is None else 'one'} "
                    "now. Let the step clear its gradients (optimizer.zero_grad()), or call reset() on the graphed step"
                )

    def leave(self) -> None:
        """Let leaves have the gradients that the step gives them."""
        for tensor, new in self._after:
            tensor.stored_grad = new
