"""Products of vectors with the Jacobian of a recorded function, the basis of the derivatives of functions."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any

from lucid.autograd.base import INFERENCE, TensorBase, version_of, wrap, wrap_on_graph
from lucid.autograd.engine.node import AccumulateGrad, Node
from lucid.autograd.entry import grad
from lucid.autograd.modes.leaving import Context, together
from lucid.autograd.modes.state import thread
from lucid.autograd.recording.attach import attach
from lucid.autograd.recording.namespace import GRAPH, Namespace
from lucid.autograd.recording.views import View, live_edge
from lucid.base.arrays import Array, zeros_beside

if TYPE_CHECKING:
    import weakref
    from collections.abc import Callable, Generator, Iterable, Sequence


def zeros_of(like: TensorBase) -> Any:
    """Return zeros of the shape, dtype and device of a tensor."""
    return wrap(zeros_beside(like.array))


def pulled(
    outputs: Sequence[Any], inputs: Sequence[Any], vectors: Sequence[Any], *, create_graph: bool, keep: bool = False
) -> tuple[Any, ...]:
    """Return the gradient of each input from `vectors`, None for all if no output requires grad."""
    pairs = [(o, v) for o, v in zip(outputs, vectors, strict=True) if o is not None and live_edge(o) is not None]
    if not pairs:
        return (None,) * len(inputs)
    return grad(
        [o for o, _ in pairs],
        inputs,
        [v for _, v in pairs],
        retain_graph=keep or create_graph,
        create_graph=create_graph,
        allow_unused=True,
    )


def by_elements(form: TensorBase, product: Callable[[Any], Sequence[Any]], results: Sequence[Any]) -> list[Any]:
    """Return the tensors that `product` gives, in the forms of `results`, stacked over all elements of `form`.

    It is called with ones at one element and zeros elsewhere; the result has the shape of `form` followed by its own.
    """
    shape, count = form.array.shape, form.array.size
    rows: list[Sequence[Any]] = []
    for index in range(count):
        unit = zeros_of(form)
        unit.array.reshape(-1)[index] = 1
        rows.append(product(unit))
    if not count:
        return [wrap(zeros_beside(like.array, shape + like.array.shape)) for like in results]
    return [
        GRAPH.reshape(GRAPH.stack(*column, dim=0), shape=shape + like.array.shape)
        for like, column in zip(results, zip(*rows, strict=True), strict=True)
    ]


class _Entry(Node):
    """Entry of a tensor to a level: its gradient by the function is taken here, and goes on to its origin."""

    __slots__ = ("level",)

    def __init__(self, level: Level, tensor: TensorBase) -> None:
        self.level = level
        attach(self, (live_edge(tensor) if level.recording else None,), tensor.array)

    def backward(self, m: Namespace, grad: Array, quiet: Callable[..., Any]) -> tuple[Any, ...]:
        """Return the gradient as it came."""
        return (grad,)


class Running(Context):
    """Inside, the function of a level runs."""

    def __init__(self, level: Level) -> None:
        super().__init__()
        self.level = level

    def __enter__(self) -> None:
        state, level = thread.state, self.level
        self.undo.append(together((setattr, state, "levels", state.levels), (setattr, level, "open", False)))
        state.levels = (*state.levels, level.changed)


class Level:
    """One call of a function that is differentiated by its entries, inside of other calls and of a recorded graph.

    Parameters
    ----------
    recording : bool
        Whether what enters stays on the graph outside.

    Attributes
    ----------
    open : bool
        Whether the function is still running: then what enters requires grad for what it calls.
    changed : list of weakref
        What it has changed in place, on the graph.
    """

    __slots__ = ("changed", "open", "recording")

    def __init__(self, *, recording: bool) -> None:
        self.recording = recording
        self.open = True
        self.changed: list[weakref.ref[TensorBase]] = []

    def enter(self, tensor: TensorBase) -> Any:
        """Return another tensor on the same memory that requires grad, and may not be changed in place."""
        if version_of(tensor) is INFERENCE:
            # the function may save it
            tensor = GRAPH.clone(tensor)
        entered = wrap_on_graph(tensor.array, (_Entry(self, tensor), 0), version_of(tensor))
        entered.origin = View.fixed(tensor, "it is the argument of a function that is differentiated by it")
        return entered

    @contextlib.contextmanager
    def opened(self) -> Generator[None]:
        """Let entries require grad for derivatives that are taken inside of a backward, as by a user's Function."""
        self.open = True
        try:
            yield
        finally:
            self.open = False

    def reaches_outside(self, tensors: Iterable[Any]) -> bool:
        """Return whether one of `tensors` depends on leaves outside, or on entries of open levels."""
        nodes = [edge[0] for tensor in tensors if tensor is not None and (edge := live_edge(tensor)) is not None]
        seen = set(nodes)
        while nodes:
            # the last edges first: parameters, which are leaves, come after inputs
            node = nodes.pop()
            if type(node) is AccumulateGrad:
                return True
            if type(node) is _Entry and node.level is not self and node.level.open:
                return True
            for edge in node.edges:
                if edge is not None and edge[0] not in seen:
                    seen.add(edge[0])
                    nodes.append(edge[0])
        return False

    def put_back(self, kept: Iterable[Any] = ()) -> list[Any]:
        """Let tensors changed in place by the function be outside as `leave` gives them, once the function has run.

        Returns
        -------
        list of Tensor
            Those of `kept`, what it has returned, as they are on the graph inside.
        """
        results = [*kept]
        for index, tensor in enumerate(results if self.changed else ()):
            if hasattr(tensor, "edge") and (edge := live_edge(tensor)) is not None:
                results[index] = wrap_on_graph(tensor.array, edge, version_of(tensor))
        for reference in self.changed:
            tensor = reference()
            if tensor is not None and (edge := tensor.edge) is not None and type(edge[0]) is not AccumulateGrad:
                tensor.edge = self.leave(tensor).edge
        return results

    def leave(self, tensor: Any) -> Any:
        """Return `tensor` as seen outside: on the graph if grad mode is on and a leaf outside requires its gradient."""
        if live_edge(tensor) is None or (thread.state.grad_mode.enabled and self.reaches_outside((tensor,))):
            return tensor
        return wrap_on_graph(tensor.array, None, version_of(tensor))
