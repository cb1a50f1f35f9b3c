"""One step of each kind of recurrence, and whole sequences of them, made of ops.

A state is a tuple of tensors of shape (B, H): of an LSTM the output and the cell, of the others the output alone.
`gates` is what the input gives to a step, ``x @ w_ih.T + b_ih``, of all steps in one product.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

from lucid.ops.activation.lstm_gates import lstm_gates
from lucid.ops.activation.relu import relu
from lucid.ops.activation.sigmoid import sigmoid, tanh
from lucid.ops.layers.linear import linear
from lucid.ops.shape.joining import cat
from lucid.ops.shape.splitting import chunk, split

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from lucid.tensor import Tensor

State: TypeAlias = "tuple[Tensor, ...]"
Step: TypeAlias = "Callable[..., State]"


def lstm(gates: Tensor, state: State, w_hh: Tensor, b_hh: Tensor | None, w_hr: Tensor | None = None) -> State:
    """Return output and cell, ``c = f * c + i * g`` and ``h = o * tanh(c)``; projected, ``h @ w_hr.T``."""
    output, cell = state
    output, cell = lstm_gates(gates, linear(output, w_hh, b_hh), cell)
    return (output if w_hr is None else linear(output, w_hr)), cell


def gru(gates: Tensor, state: State, w_hh: Tensor, b_hh: Tensor | None) -> State:
    """Return the output, ``n + z * (h - n)`` with ``n = tanh(x_n + r * h_n)``."""
    (output,) = state
    (x_r, x_z, x_n), (h_r, h_z, h_n) = chunk(gates, 3, 1), chunk(linear(output, w_hh, b_hh), 3, 1)
    new = tanh(x_n + sigmoid(x_r + h_r) * h_n)
    return (new + sigmoid(x_z + h_z) * (output - new),)


def rnn_tanh(gates: Tensor, state: State, w_hh: Tensor, b_hh: Tensor | None) -> State:
    """Return the output, ``tanh(gates + h @ w_hh.T + b_hh)``."""
    return (tanh(gates + linear(state[0], w_hh, b_hh)),)


def rnn_relu(gates: Tensor, state: State, w_hh: Tensor, b_hh: Tensor | None) -> State:
    """Return the output, ``relu(gates + h @ w_hh.T + b_hh)``."""
    return (relu(gates + linear(state[0], w_hh, b_hh)),)


STEPS: dict[str, Step] = {"LSTM": lstm, "GRU": gru, "RNN_TANH": rnn_tanh, "RNN_RELU": rnn_relu}
# how many gates stand in the weights, one below the other
GATES = {"LSTM": 4, "GRU": 3, "RNN_TANH": 1, "RNN_RELU": 1}


def by_steps(
    mode: str,
    data: Tensor,
    batch_sizes: Sequence[int],
    first: State,
    weights: Sequence[Tensor],
    biases: Sequence[Tensor | None],
    projection: Tensor | None = None,
    *,
    backwards: bool,
) -> tuple[Tensor, State]:
    """Return the outputs of all steps, packed as `data` is, and the state at the end of each sequence.

    Backwards, sequences begin at their ends: as the batch grows, others join with their first state. Forwards those
    that end leave the batch, the last ones first.
    """
    step, last = STEPS[mode], () if projection is None else (projection,)
    w_ih, w_hh = weights
    gates = split(linear(data, w_ih, biases[0]), list(batch_sizes))
    outputs: list[Tensor] = []
    ended: list[State] = []
    size = batch_sizes[-1 if backwards else 0]
    state = first if size == first[0].shape[0] else tuple(part[:size] for part in first)
    for gate, now in zip(*((gates[::-1], batch_sizes[::-1]) if backwards else (gates, batch_sizes)), strict=True):
        if now > size:
            state = tuple(cat([part, start[size:now]]) for part, start in zip(state, first, strict=True))
        elif now < size:
            ended.append(tuple(part[now:] for part in state))
            state = tuple(part[:now] for part in state)
        size = now
        state = step(gate, state, w_hh, biases[1], *last)
        outputs.append(state[0])
    if ended:
        state = tuple(cat(list(parts)) for parts in zip(state, *ended[::-1], strict=True))
    return cat(outputs[::-1] if backwards else outputs), state
