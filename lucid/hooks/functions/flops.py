"""The arithmetic of products: matrices, convolutions, attention."""

from __future__ import annotations

import weakref
from collections import Counter
from math import prod
from typing import TYPE_CHECKING, Any, ClassVar

from lucid.autograd.hooks.function_hook import outputs_of
from lucid.hooks.functions.sums import Sums

if TYPE_CHECKING:
    from collections.abc import Callable

    from lucid.autograd.engine.node import Node
    from lucid.autograd.hooks.functions import Call

    Count = Callable[[tuple[Any, ...], dict[str, Any], Any], int]


def _matmul(inputs: tuple[Any, ...], _: dict[str, Any], out: Any) -> int:
    return 2 * out.array.size * inputs[0].array.shape[-1]


def _second(inputs: tuple[Any, ...], _: dict[str, Any], out: Any) -> int:
    return 2 * out.array.size * inputs[1].array.shape[-1]


def _contract(inputs: tuple[Any, ...], settings: dict[str, Any], _: Any) -> int:
    sizes: dict[Any, int] = {}
    for x, labels in zip(inputs, (settings["a_labels"], settings["b_labels"]), strict=True):
        for label, size in zip(labels, x.array.shape, strict=True):
            sizes[label] = max(size, sizes.get(label, 1))
    return 2 * prod(sizes.values())


def _convolution(inputs: tuple[Any, ...], _: dict[str, Any], out: Any) -> int:
    weight = inputs[1].array.shape
    return 2 * out.array.size * prod(weight[1:])


def _transposed(inputs: tuple[Any, ...], _: dict[str, Any], __: Any) -> int:
    weight = inputs[1].array.shape
    return 2 * inputs[0].array.size * prod(weight[1:])


def _attention(inputs: tuple[Any, ...], _: dict[str, Any], __: Any) -> int:
    q, k, v = (x.array.shape for x in inputs[:3])
    return 2 * prod(q[:-1]) * k[-2] * (q[-1] + v[-1])


# By the name of the op: the count of its forward, and the operands whose gradient is a product of the same size each.
COUNTS: dict[str, tuple[Count, tuple[int, ...]]] = {
    "matmul": (_matmul, (0, 1)),
    "linear": (_second, (1, 2)),
    "addmm": (_second, (1, 2)),
    "contract": (_contract, (0, 1)),
    "convolution": (_convolution, (0, 1)),
    "convolution_input_grad": (_transposed, (0, 1)),
    "attention": (_attention, ()),
}
# The backward of attention makes the scores again, and has four products of their size beside that.
ATTENTION_BACKWARD = 5 / 2


class FlopHook(Sums):
    """A block that counts the arithmetic of products on this thread, two operations for a product and its sum.

    Products of matrices, `einsum`, linear layers, convolutions and attention count, as in PyTorch's `FlopCounterMode`:
    what they leave out is small beside them. The backward of an op counts if its forward was in a block of this object.

    Attributes
    ----------
    total : int
        All of them.
    flops : Counter of str
        By the name of the op.

    Examples
    --------
    >>> import lucid
    >>> from lucid import hooks, nn
    >>> layer = nn.Linear(10, 20)
    >>> with hooks.FlopHook() as counted:
    ...     layer(lucid.ones(5, 10)).sum().backward()
    >>> counted.total, dict(counted.flops)  # no gradient of the input is asked for
    (4000, {'linear': 2000, 'LinearBackward0': 2000})
    """

    columns: ClassVar[tuple[str, ...]] = ("flops",)

    def __init__(self) -> None:
        super().__init__()
        self.flops: Counter[str] = Counter()
        self._nodes: weakref.WeakKeyDictionary[Node, tuple[str, int]] = weakref.WeakKeyDictionary()

    @property
    def total(self) -> int:
        """All operations."""
        return self.flops.total()

    def after(self, call: Call, output: Any) -> None:
        """Count an op."""
        node = call.node
        if node is not None:
            if node in self._nodes:
                name, count = self._nodes[node]
                asked_for = sum(node.edges[k] is not None for k in COUNTS[name][1])
                self._add(call.name, int(count * (ATTENTION_BACKWARD if name == "attention" else asked_for)))
        elif call.name in COUNTS:
            out = outputs_of(output)[0]
            count = COUNTS[call.name][0](call.inputs, call.settings, out)
            self._add(call.name, count)
            if out.edge is not None:
                self._nodes[out.edge[0]] = call.name, count

    def _add(self, name: str, count: int) -> None:
        self.calls[name] += 1
        self.flops[name] += count

    def values(self, name: str) -> tuple[float | None, ...]:
        """Return the operations."""
        return (self.flops[name],)
