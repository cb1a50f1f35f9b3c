"""The arithmetic of products: matrices, convolutions, attention."""

from __future__ import annotations

import weakref
from collections import Counter
from math import prod
from typing import TYPE_CHECKING, Any, ClassVar

from lucid.autograd.engine.node import Node, sequences
from lucid.autograd.hooks.functions import Call, outputs_of
from lucid.autograd.recording.primitive_node import PrimitiveNode
from lucid.autograd.recording.views import recorded_since
from lucid.hooks.functions.sums import Sums

if TYPE_CHECKING:
    from collections.abc import Callable

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


def _products(q: Any, k: Any, v: Any) -> tuple[int, int]:
    """Return the operations of the scores of attention, and of their product with the values."""
    scores = 2 * prod(q.array.shape[:-1]) * k.array.shape[-2]
    return scores * q.array.shape[-1], scores * v.array.shape[-1]


# By the name of the op: the count of its forward.
COUNTS: dict[str, Count] = {
    # in place what ends in an underscore is one op
    **dict.fromkeys(("matmul", "matmul_"), _matmul),
    **dict.fromkeys(("linear", "addmm", "addmm_", "baddbmm_", "addmv_"), _second),
    "contract": _contract,
    "convolution": lambda inputs, _, out: 2 * out.array.size * prod(inputs[1].array.shape[1:]),
    "convolution_input_grad": lambda inputs, _, __: 2 * inputs[0].array.size * prod(inputs[1].array.shape[1:]),
    "attention": lambda inputs, _, __: sum(_products(*inputs[:3])),
    "addbmm_": lambda inputs, _, out: 2 * out.array.size * inputs[1].array.shape[0] * inputs[1].array.shape[-1],
    "addr_": lambda _, __, out: 2 * out.array.size,
}
# By the name of the primitive: the operands whose gradient is a product of the same size each.
OPERANDS: dict[str, tuple[int, ...]] = {
    **dict.fromkeys(("linear", "addmm"), (1, 2)),
    **dict.fromkeys(("matmul", "contract", "convolution", "convolution_input_grad", "convolution_weight_grad"), (0, 1)),
    "attention": (),
}


def _attention_backward(each: tuple[int, ...], grads: tuple[Any, ...]) -> int:
    q, k, v, bias = (grad is not None for grad in grads[:4])
    if not (q or k or v or bias):
        return 0
    scores, values = each
    # the scores are made again
    return scores * (1 + q + k) + values * (v + (q or k or bias))


def _of_gradients(grad: Any, grads: tuple[Any, ...]) -> int:
    """Return the operations of each product in the backward of a product of matrices."""
    a, b = grads
    if a is None and b is None:
        return 0
    return 2 * grad.array.size * (a.array.shape[-1] if a is not None else b.array.shape[-2])


def _primitive_of(node: Any) -> str:
    return node.primitive.name if isinstance(node, PrimitiveNode) else ""


class FlopHook(Sums):
    """A block that counts the arithmetic of products on this thread, two operations for a product and its sum.

    Products of matrices, `einsum`, linear layers, convolutions and attention count, as in PyTorch's `FlopCounterMode`:
    what they leave out is small beside them. The backward of an op counts if its forward was in a block of this object,
    for the gradients that the pass asks for; so does that of what a backward with ``create_graph`` has recorded there.

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
        # of each node the count of each of its products; of attention those of the scores and of the values
        self._nodes: weakref.WeakKeyDictionary[Node, tuple[int, ...]] = weakref.WeakKeyDictionary()

    def __getstate__(self) -> dict[str, Any]:
        """Return the state of a copy: the counts alone."""
        return {name: value for name, value in super().__getstate__().items() if name != "_nodes"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Become a copy."""
        super().__setstate__(state)
        self._nodes = weakref.WeakKeyDictionary()

    @property
    def total(self) -> int:
        """All operations."""
        return self.flops.total()

    def before(self, call: Call) -> None:
        """Note the sequence number before the op, to tell its nodes by."""
        if call.node in self._nodes if call.node is not None else call.name in COUNTS and not call.inner:
            call.data[self] = next(sequences)

    def after(self, call: Call, output: Any) -> None:
        """Count an op."""
        first = call.data.pop(self, None)
        if first is None:
            return
        outputs = outputs_of(output)
        if call.node is None:
            count = COUNTS[call.name](call.inputs, call.settings, outputs[0])
            each = _products(*call.inputs[:3]) if call.name == "attention" else (count,)
        else:
            name, each = _primitive_of(call.node), self._nodes[call.node]
            if name == "attention":
                count, each = _attention_backward(each, outputs), ()
            else:
                # what has no count was recorded by the backward of attention
                each = each or (_of_gradients(call.inputs[0], outputs),)
                count = each[0] * sum(outputs[k] is not None for k in OPERANDS[name])
        self._add(call.name, count)
        for node in recorded_since(outputs, first):
            if _primitive_of(node) in OPERANDS:
                self._nodes[node] = each

    def _add(self, name: str, count: int) -> None:
        self.calls[name] += 1
        self.flops[name] += count

    def values(self, name: str) -> tuple[float | None, ...]:
        """Return the operations."""
        return (self.flops[name],)
