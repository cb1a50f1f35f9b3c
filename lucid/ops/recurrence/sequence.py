"""Whole sequences, in one layer and direction: one op on the CPU, by steps elsewhere."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from lucid.autograd.modes.casting import lower_dtype
from lucid.autograd.modes.state import is_grad_enabled, unusual
from lucid.autograd.products import Level, pulled
from lucid.autograd.recording.namespace import GRAPH, Namespace
from lucid.autograd.recording.plan import Rule
from lucid.autograd.recording.primitive import Primitive
from lucid.ops.recurrence.arrays import backward, forward
from lucid.ops.recurrence.kinds import KINDS
from lucid.ops.recurrence.steps import GATES, by_steps

if TYPE_CHECKING:
    from collections.abc import Sequence
    from types import ModuleType

    from lucid.base.arrays import Array, Ints
    from lucid.ops.recurrence.steps import State
    from lucid.tensor import Tensor


def _of_steps(
    mode: str,
    grads: Sequence[Any],
    operands: dict[str, Any],
    batch_sizes: Ints,
    wanted: dict[str, bool],
    backwards: bool,
) -> list[Any]:
    """Return the gradient of each operand that is wanted on the graph, as that of the steps."""
    level = Level(recording=True)
    entered = {name: level.enter(operands[name]) for name, want in wanted.items() if want}
    each = operands | entered
    first = tuple([each[name] for name in ("h_0", "c_0") if name in each])
    weights, biases = (each["w_ih"], each["w_hh"]), (each["b_ih"], each["b_hh"])
    output, states = by_steps(
        mode, each["x"], batch_sizes, first, weights, biases, each.get("w_hr"), backwards=backwards
    )
    pairs = [(o, g) for o, g in zip((output, *states), grads, strict=False) if g is not None]
    results = pulled([o for o, _ in pairs], [*entered.values()], [g for _, g in pairs], create_graph=True)
    return [*map(dict(zip(entered, results, strict=True)).get, wanted)]


def _primitive(mode: str) -> Primitive:
    """Return the primitive of a kind of recurrence: `lstm`, `gru`, `rnn_tanh` or `rnn_relu`."""
    kind, two = KINDS[mode], mode == "LSTM"
    # the parameters first, so that their hooks fire in PyTorch's order
    names = (*["w_hr"] * two, "b_hh", "w_hh", "b_ih", "w_ih", *["c_0"] * two, "h_0", "x")
    ends = ("h_n", "c_n")[: 1 + two]

    def reference(xp: ModuleType, *arrays: Array | None, **settings: Any) -> tuple[Array, ...]:
        """Return the outputs of all steps, the last states, and the arrays that derivatives need."""
        return forward(kind, dict(zip(names, arrays, strict=True)), **settings)

    def rule(m: Namespace, grads: Sequence[Any], *arguments: Any) -> list[Any]:
        *operands, kept, batch_sizes, backwards, needs = arguments
        each, wanted = dict(zip(names, operands, strict=True)), dict(zip(names, needs, strict=True))
        if m is GRAPH:
            return _of_steps(mode, grads, each, batch_sizes, wanted, backwards)
        return backward(kind, grads, each, kept, batch_sizes, wanted, backwards=backwards)

    made = Primitive(
        reference,
        name=mode.lower(),
        outputs=("output", *ends, "kept"),
        differentiable=tuple(range(1 + len(ends))),
        inputs=names,
        settings=("batch_sizes", "backwards", "keep"),
    )
    made.attach(Rule(rule, names, arguments=(*names, "kept", "batch_sizes", "backwards", "needs")))
    return made


def _is_whole(mode: str, operands: dict[str, Any], batch_sizes: Ints) -> bool:
    """Return whether one op takes the operands: NumPy's, of float32 or float64 alone, of the shapes of a layer.

    Biases of other shapes may broadcast in the steps, and the op of a step that refuses operands says what fits it.
    """
    dtype, inputs = operands["x"].array.dtype, operands["x"].array.shape[-1]
    batch, out = operands["h_0"].array.shape
    width = out if operands["w_hr"] is None else operands["w_hr"].array.shape[-1]
    gates = GATES[mode] * width
    shapes = {
        "x": (sum(batch_sizes), inputs), "h_0": (batch_sizes[0], out), "c_0": (batch, width), "w_hr": (out, width),
        "w_ih": (gates, inputs), "w_hh": (gates, out), "b_ih": (gates,), "b_hh": (gates,),
    }  # fmt: skip
    return (
        dtype.char in "fd"
        and (operands["b_ih"] is None) is (operands["b_hh"] is None)
        and all(
            type(part.array) is np.ndarray and part.array.dtype == dtype and part.array.shape == shapes[name]
            for name, part in operands.items()
            if part is not None
        )
    )


_WHOLE = {mode: _primitive(mode) for mode in KINDS}


def recurrence(
    mode: str,
    data: Tensor,
    batch_sizes: Ints,
    first: State,
    weights: tuple[Tensor, Tensor],
    biases: tuple[Tensor | None, Tensor | None],
    projection: Tensor | None = None,
    *,
    backwards: bool,
) -> tuple[Tensor, State]:
    """Return the outputs of all steps, packed as `data` is, and the state at the end of each sequence.

    Parameters
    ----------
    mode : {"LSTM", "GRU", "RNN_TANH", "RNN_RELU"}
    data : Tensor
        The inputs of all steps, of shape (sum of `batch_sizes`, input size).
    batch_sizes : tuple of int
        The number of sequences in each step, none greater than the one before.
    first : tuple of Tensor
        ``h_0``, and of an LSTM ``c_0``, of shape (B, size).
    weights, biases : tuple
        ``w_ih, w_hh`` and ``b_ih, b_hh``, which may be None.
    projection : Tensor, optional
        ``w_hr`` of an LSTM.
    backwards : bool
        Whether each sequence begins at its end.
    """
    operands = {
        "w_hr": projection, "w_ih": weights[0], "w_hh": weights[1], "b_ih": biases[0], "b_hh": biases[1], "x": data,
        **dict(zip(("h_0", "c_0"), first, strict=False)),
    }  # fmt: skip
    if not _is_whole(mode, operands, batch_sizes) or (
        unusual and data.array.itemsize < 8 and lower_dtype(data) is not None
    ):
        return by_steps(mode, data, batch_sizes, first, weights, biases, projection, backwards=backwards)
    keep = is_grad_enabled() and any(part is not None and part.requires_grad for part in operands.values())
    op = _WHOLE[mode]
    output, *last, _ = op(
        *[operands[name] for name in op.inputs], batch_sizes=batch_sizes, backwards=backwards, keep=keep
    )
    return output, tuple(last)
