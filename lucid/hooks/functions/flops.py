"""The arithmetic of products: matrices, convolutions, attention, recurrence."""

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


RECURRENT = ("lstm", "gru", "rnn_tanh", "rnn_relu")


def _factors(operands: tuple[Any, ...]) -> tuple[Any, ...]:
    """Return w_hr, w_hh, w_ih, h_0 and x of the operands of a recurrence, or of their gradients."""
    w_hr, operands = (operands[0], operands[1:]) if len(operands) == 8 else (None, operands)
    _, w_hh, _, w_ih, *_, h_0, x = operands
    return w_hr, w_hh, w_ih, h_0, x


def _recurrent_products(inputs: tuple[Any, ...], settings: dict[str, Any]) -> tuple[int, ...]:
    """Return the operations of the products with the inputs, of the first step, the others, and of the projection."""
    w_hr, w_hh, w_ih, _, x = _factors(inputs)
    rows, state = x.array.shape[0], 2 * w_hh.array.size
    firsts = settings["batch_sizes"][-1 if settings["backwards"] else 0]
    projected = 0 if w_hr is None else 2 * rows * w_hr.array.size
    return 2 * rows * w_ih.array.size, state * firsts, state * (rows - firsts), projected


# By the name of the op: the count of its forward.
COUNTS: dict[str, Count] = {
    # in place what ends in an underscore is one op
    **dict.fromkeys(("matmul", "matmul_"), _matmul),
    **dict.fromkeys(("linear", "addmm", "addmm_", "baddbmm_", "addmv_"), _second),
    "contract": _contract,
    "convolution": lambda inputs, _, out: 2 * out.array.size * prod(inputs[1].array.shape[1:]),
    "convolution_input_grad": lambda inputs, _, __: 2 * inputs[0].array.size * prod(inputs[1].array.shape[1:]),
    "attention": lambda inputs, _, __: sum(_products(*inputs[:3])),
    **dict.fromkeys(RECURRENT, lambda inputs, settings, _: sum(_recurrent_products(inputs, settings))),
    "addbmm_": lambda inputs, _, out: 2 * out.array.size * inputs[1].array.shape[0] * inputs[1].array.shape[-1],
    "addr_": lambda _, __, out: 2 * out.array.size,
}
# By the name of the primitive: the operands whose gradient is a product of the same size each.
OPERANDS: dict[str, tuple[int, ...]] = {
    **dict.fromkeys(("linear", "addmm"), (1, 2)),
    **dict.fromkeys(("matmul", "contract", "convolution", "convolution_input_grad", "convolution_weight_grad"), (0, 1)),
    **dict.fromkeys(("attention", *RECURRENT), ()),
}


def _attention_products(inputs: tuple[Any, ...], _: dict[str, Any]) -> tuple[int, ...]:
    return _products(*inputs[:3])


def _attention_backward(each: tuple[int, ...], grads: tuple[Any, ...]) -> int:
    q, k, v, bias = (grad is not None for grad in grads[:4])
    if not (q or k or v or bias):
        return 0
    scores, values = each
    # the scores are made again
    return scores * (1 + q + k) + values * (v + (q or k or bias))


def _recurrent_backward(each: tuple[int, ...], grads: tuple[Any, ...]) -> int:
    w_hr, w_hh, w_ih, h_0, x = (grad is not None for grad in _factors(grads))
    inputs, firsts, others, projected = each
    return inputs * (w_ih + x) + firsts * (w_hh + h_0) + others * (w_hh + 1) + projected * (w_hr + 1)


# By the name of the primitive: the operations of each of its products, and of its backward from these.
SEVERAL: dict[str, tuple[Callable[..., tuple[int, ...]], Callable[[tuple[int, ...], tuple[Any, ...]], int]]] = {
    "attention": (_attention_products, _attention_backward),
    **dict.fromkeys(RECURRENT, (_recurrent_products, _recurrent_backward)),
}


def _of_gradients(name: str, grad: Any, grads: tuple[Any, ...]) -> int:
    """Return the operations of each product in the backward of a product of matrices."""
    a, b = grads[-2:]
    if a is None and b is None:
        return 0
    inner = a.array.shape[-1] if a is not None else b.array.shape[-1 if name == "linear" else -2]
    return 2 * grad.array.size * inner


def _primitive_of(node: Any) -> str:
    return node.primitive.name if isinstance(node, PrimitiveNode) else ""


class FlopHook(Sums):
    """A block that counts the arithmetic of products on this thread, two operations for a product and its sum.

    Products of matrices, `einsum`, linear layers, convolutions, attention and recurrence count, as in PyTorch's
    `FlopCounterMode`: what they leave out is small beside them. The backward of an op counts if its forward was in a
    block of this object, for the gradients that the pass asks for; so does that of what a backward with
    ``create_graph`` has recorded there.

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
            each = SEVERAL[call.name][0](call.inputs, call.settings) if call.name in SEVERAL else (count,)
        else:
            name, each = _primitive_of(call.node), self._nodes[call.node]
            if name in SEVERAL:
                count, each = SEVERAL[name][1](each, outputs), ()
            else:
                # what has no count was recorded by the backward of several products
                each = each or (_of_gradients(name, call.inputs[0], outputs),)
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
