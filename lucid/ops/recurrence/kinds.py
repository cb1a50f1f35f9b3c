"""The kinds of recurrence on NumPy: the gates of a step, forward and backward, on buffers that are made beforehand.

What belongs to a step has the shape (arrays, B, H), of which each array lies densely.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from lucid.ops.activation import lstm_gates
from lucid.ops.activation.sigmoid import SIGMOID_GRAD, TANH_GRAD

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any, TypeAlias

    from lucid.base.arrays import Array

    # the buffers of a step, one behind the other, and the views of them that it works on
    Buffers: TypeAlias = tuple[Array, tuple[Array, ...]]


class RNN:
    """``h = tanh(gates + h @ w_hh.T + b_hh)``, the base of all kinds.

    Attributes
    ----------
    gates : int
        The gates in the weights, one below the other, and the first buffers, to which the products with `h` go.
    noted : int
        The first buffers, which are kept of each step.
    kept : int
        The arrays that are kept of each step: those, and the output if it is one more.
    columns : int
        The gates whose gradients a step gives: the first are those of the products with `h`, the last those with `x`.
    carries : bool
        Whether a gradient of `h` goes past these products.
    """

    gates, noted, kept, columns = 1, 0, 1, 1
    carries = False

    def arranged(self, rows: Array) -> Array:
        """Return rows of weights or biases, of all gates, as the buffers want them."""
        return rows

    def biases(self, b_ih: Array, b_hh: Array) -> tuple[Array, Array | None]:
        """Return the biases of the products with `x`, of all steps at once, and of those with `h`, in each step."""
        return self.arranged(b_ih + b_hh), None

    def buffers(self, batch: int, width: int, dtype: Any, bias: Array | None) -> Buffers:
        """Return the buffers of a step."""
        room = np.empty((1, batch, width), dtype)
        return room, (room,)

    def step(self, views: tuple[Array, ...], x: Array, h: Array, output: Array) -> None:
        """Write the output of a step to `output`, from `x` and the products with `h` in the buffers."""
        (room,) = views
        np.add(room, x, room)
        np.tanh(room[0], output)

    def slopes(self, kept: Array, before: Array) -> Array:
        """Return the factors of gradients in `back`, of all steps of a run, from the kept arrays and states before."""
        out = np.empty_like(kept)
        TANH_GRAD.chain[0](np, out, np.ones((), kept.dtype), kept)
        return out

    def back(self, slopes: Array, to_states: Sequence[Array], to_gates: Array, spare: Array) -> None:
        """Write the gradients of a step's gates to `to_gates`, from those of the states after it.

        In those of the states remains what goes to the states before past the products.
        """
        np.multiply(to_states[0], slopes, to_gates)

    def rolled(self, rows: Array, gates: int) -> Array:
        """Return rows of weights, of all gates, in the order of the gradients of their products, or with -1 back."""
        return rows


class _ReLU(RNN):
    """``h = relu(gates + h @ w_hh.T + b_hh)``."""

    def step(self, views: tuple[Array, ...], x: Array, h: Array, output: Array) -> None:
        (room,) = views
        np.add(room, x, room)
        # in this order -0 stays
        np.maximum(0, room[0], out=output)

    def slopes(self, kept: Array, before: Array) -> Array:
        return kept <= 0

    def back(self, slopes: Array, to_states: Sequence[Array], to_gates: Array, spare: Array) -> None:
        to_gates[0] = to_states[0]
        # selected, as zero times infinity is NaN
        np.copyto(to_gates, 0, where=slopes)


class _LSTM(RNN):
    """``c = f * c + i * g`` and ``h = o * tanh(c)``; the formula is in `lucid.ops.activation.lstm_gates`.

    The first buffers are i, f, o, g, c; gradients stand in the order of the weights, i, f, g, o.
    """

    gates, noted, kept, columns = 4, 5, 5, 4

    def arranged(self, rows: Array) -> Array:
        gates = rows.reshape(4, len(rows) // 4, *rows.shape[1:])
        out: Array = np.empty(rows.shape, rows.dtype)
        lstm_gates.negated(np, gates, out.reshape(gates.shape))
        return out

    def buffers(self, batch: int, width: int, dtype: Any, bias: Array | None) -> Buffers:
        room, views = lstm_gates.buffers(np, batch, width, dtype)
        return room, (room[:4], *views)

    def step(self, views: tuple[Array, ...], x: Array, h: Array, output: Array) -> None:
        gates = views[0]
        np.add(gates, x, gates)
        lstm_gates.activate(np, views[1:], output)

    def slopes(self, kept: Array, before: Array) -> Array:
        i, f, o, g, cell = kept
        return lstm_gates.factors(np, i, f, g, o, before, cell)

    def back(self, slopes: Array, to_states: Sequence[Array], to_gates: Array, spare: Array) -> None:
        to_output, to_cell = to_states
        lstm_gates.back(np, slopes, to_output, to_cell, to_gates, spare)


class _GRU(RNN):
    """``h = n + z * (h - n)`` with ``n = tanh(x_n + r * h_n)``.

    The first buffers are r, z, h_n, n; gradients stand in the order h_n, r, z, n, of which the first three are those of
    the products with `h`, and the last three those with `x`.
    """

    gates, noted, kept, columns = 3, 4, 5, 4
    carries = True

    def arranged(self, rows: Array) -> Array:
        out, signs = rows.copy(), len(rows) // 3 * 2
        np.negative(out[:signs], out[:signs])
        return out

    def biases(self, b_ih: Array, b_hh: Array) -> tuple[Array, Array | None]:
        both, signs = b_ih.copy(), len(b_ih) // 3 * 2
        both[:signs] += b_hh[:signs]
        return self.arranged(both), b_hh[signs:]

    def buffers(self, batch: int, width: int, dtype: Any, bias: Array | None) -> Buffers:
        room = np.empty((5, batch, width), dtype)
        added = () if bias is None else (np.broadcast_to(bias, room.shape[1:]).copy(),)
        return room, (np.ones((), dtype), room[:2], *room, *added)

    def step(self, views: tuple[Array, ...], x: Array, h: Array, output: Array) -> None:
        one, sigmoids, r, z, hidden, new, spare, *bias = views
        np.add(sigmoids, x[:2], sigmoids)
        np.exp(sigmoids, sigmoids)
        np.add(sigmoids, one, sigmoids)
        np.reciprocal(sigmoids, sigmoids)
        if bias:
            np.add(hidden, bias[0], hidden)
        np.multiply(r, hidden, new)
        np.add(new, x[2], new)
        np.tanh(new, new)
        np.subtract(h, new, spare)
        np.multiply(spare, z, spare)
        np.add(new, spare, output)

    def slopes(self, kept: Array, before: Array) -> Array:
        r, z, hidden, new, _ = kept
        out = np.empty_like(kept)
        by_hidden, by_reset, by_update, by_new, past = out
        TANH_GRAD.chain[0](np, by_new, 1 - z, new)
        SIGMOID_GRAD.chain[0](np, by_reset, by_new * hidden, r)
        SIGMOID_GRAD.chain[0](np, by_update, before - new, z)
        np.multiply(by_new, r, by_hidden)
        past[...] = z
        return out

    def back(self, slopes: Array, to_states: Sequence[Array], to_gates: Array, spare: Array) -> None:
        (to_output,) = to_states
        np.multiply(to_output, slopes[:4], to_gates)
        np.multiply(to_output, slopes[4], to_output)

    def rolled(self, rows: Array, gates: int) -> Array:
        return np.roll(rows, len(rows) // 3 * gates, 0)


def outputs_of(kept: Array) -> Array:
    """Return the outputs of an LSTM, before a projection, from the kept arrays."""
    return kept[2] * np.tanh(kept[4])


KINDS: dict[str, RNN] = {"LSTM": _LSTM(), "GRU": _GRU(), "RNN_TANH": RNN(), "RNN_RELU": _ReLU()}
