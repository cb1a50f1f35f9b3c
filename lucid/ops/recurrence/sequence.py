"""Whole sequences, in one layer and direction: one op on the CPU, by steps elsewhere."""

from __future__ import annotations

from itertools import repeat
from typing import TYPE_CHECKING, Any

import numpy as np

from lucid.autograd.modes.casting import lower_dtype
from lucid.autograd.modes.state import is_grad_enabled, unusual
from lucid.autograd.products import Level, pulled
from lucid.autograd.recording.namespace import CPU, GRAPH, Namespace
from lucid.autograd.recording.primitive import Primitive, primitive
from lucid.ops.linalg.matrices import product, readable
from lucid.ops.recurrence.kinds import KINDS
from lucid.ops.recurrence.runs import Factor, runs_of, states_before
from lucid.ops.recurrence.steps import by_steps

if TYPE_CHECKING:
    from collections.abc import Sequence
    from types import ModuleType

    from lucid.base.arrays import Array, Ints
    from lucid.ops.recurrence.steps import State
    from lucid.tensor import Tensor


def _forward(
    mode: str,
    first: Sequence[Array],
    x: Array,
    weights: tuple[Array | None, Array, Array],
    biases: tuple[Array | None, Array | None],
    batch_sizes: Ints,
    *,
    backwards: bool,
    keep: bool,
) -> tuple[Array, ...]:
    """Return the outputs of all steps, the last states, and if `keep` what the gradients need of each step."""
    kind, dtype, (w_hr, w_hh, w_ih) = KINDS[mode], x.dtype, weights
    width, batch = len(w_hh) // kind.gates, len(first[0])
    # the products of each gate lie by themselves
    given = np.matmul(readable(x), kind.arranged(w_ih).reshape(kind.gates, width, x.shape[1]).swapaxes(1, 2))
    bias = None
    if biases[0] is not None and biases[1] is not None:
        added, bias = kind.biases(biases[0], biases[1])
        given += added.reshape(kind.gates, 1, width)
    recurrent = Factor(kind.arranged(w_hh).reshape(kind.gates, width, w_hh.shape[1]).swapaxes(1, 2), batch)
    projection = None if w_hr is None else Factor(w_hr.T[None], batch)
    output = np.empty((len(x), w_hh.shape[1]), dtype)
    kept = np.empty((len(x) if keep else 0, kind.kept, width), dtype)
    states = [part.copy() for part in first]
    for run in runs_of(batch_sizes, width, backwards=backwards):
        h, *cells = [part[: run.size] for part in states]
        end = h
        room, views = kind.buffers(run.size, width, dtype, bias)
        for cell in cells:
            room[kind.gates] = cell
        products, blocks, step = recurrent.room(room[: kind.gates]), recurrent.blocks, kind.step
        outputs, noted, notes = run.of(output), room[: kind.noted], run.kept(kept) if keep else None
        hidden = np.empty(h.shape[:1] + (width,), dtype) if projection else None
        steps = zip(
            run.in_order(run.of(given.swapaxes(0, 1)).swapaxes(1, 2)),
            run.in_order(outputs),
            repeat(None) if notes is None or not kind.noted else run.in_order(notes[: kind.noted].swapaxes(0, 1)),
            strict=False,
        )
        for xs, out, note in steps:
            np.matmul(h, blocks, products)
            if projection is None:
                step(views, xs, h, out)
            else:
                step(views, xs, h, hidden)
                np.matmul(hidden, projection.blocks, projection.room(out[None]))
            if note is not None:
                note[...] = noted
            h = out
        if notes is not None and kind.kept > kind.noted:
            notes[-1] = outputs
        end[...] = h
        for cell in cells:
            cell[...] = room[kind.gates]
    return output, *states, kept


def _backward(
    mode: str,
    grads: Sequence[Array | None],
    first: Sequence[Array],
    x: Array,
    weights: tuple[Array | None, Array, Array],
    kept: Array,
    batch_sizes: Ints,
    wanted: dict[str, bool],
    *,
    backwards: bool,
) -> list[Array | None]:
    """Return the gradients that are wanted, by the names of the operands, None for the others."""
    kind, dtype, (w_hr, w_hh, w_ih) = KINDS[mode], x.dtype, weights
    (_, _, width), (rows, batch) = kept.shape, (len(x), len(first[0]))
    runs = runs_of(batch_sizes, width, backwards=backwards)
    notes = [run.kept(kept) for run in runs]
    before = states_before(runs, [note[-1] for note in notes], first[-1])
    # of each sequence those of the states at its end until its steps are done, and then those of its first states
    to_states = [
        np.zeros_like(part) if grad is None else grad.astype(dtype)
        for part, grad in zip(first, grads[1:], strict=False)
    ]
    to_gates = np.empty((rows, kind.columns * width), dtype)
    to_outputs = None if w_hr is None else np.empty((rows, len(w_hr)), dtype)
    count = kind.gates * width
    recurrent = Factor(kind.out_of_order(w_hh)[None], batch)
    projection = None if w_hr is None else Factor(w_hr[None], batch)
    for run, note in zip(runs[::-1], notes[::-1], strict=True):
        h, *cells = [part[: run.size] for part in to_states]
        spare, inner = np.empty((2, run.size, width), dtype)
        through = np.empty_like(h) if kind.carries else h
        states = (h if projection is None else inner, *cells)
        target, blocks, back = recurrent.room(through[None]), recurrent.blocks, kind.back
        back_in_time = (
            kind.slopes(note, run.of(before)).swapaxes(0, 1),
            run.of(to_gates)[:, :, :count],
            run.of(to_gates.reshape(rows, kind.columns, width)).swapaxes(1, 2),
            None if grads[0] is None else run.of(grads[0]),
            None if to_outputs is None else run.of(to_outputs),
        )
        steps = zip(*[repeat(None) if each is None else run.in_reverse(each) for each in back_in_time], strict=False)
        for slopes, products, gates, grad, total in steps:
            if grad is not None:
                np.add(h, grad, h)
            if projection is not None:
                total[...] = h
                np.matmul(h, projection.blocks, projection.room(inner[None]))
            back(slopes, states, gates, spare)
            np.matmul(products, blocks, target)
            if kind.carries:
                np.add(h, through, h)
    to_products, to_inputs = to_gates[:, :count], to_gates[:, -count:]
    out: dict[str, Array] = dict(zip(("h_0", "c_0"), to_states, strict=False))
    if wanted["w_hh"] or wanted.get("w_hr"):
        outputs = np.empty((rows, width), dtype)
        for run, note in zip(runs, notes, strict=True):
            run.of(outputs)[...] = kind.outputs(note)
        if to_outputs is not None and w_hr is not None:
            out["w_hr"] = product(np, to_outputs.T, outputs)
            outputs = product(np, outputs, w_hr.T)
        before = states_before(runs, [run.of(outputs) for run in runs], first[0])
        out["w_hh"] = kind.in_order(product(np, to_products.T, before))
    if wanted["w_ih"]:
        out["w_ih"] = product(np, to_inputs.T, x)
    if wanted["x"]:
        out["x"] = product(np, to_inputs, w_ih)
    if wanted["b_ih"] or wanted["b_hh"]:
        sums = CPU.sum_to(to_gates, shape=to_gates.shape[1:])
        out["b_ih"], out["b_hh"] = sums[-count:], kind.in_order(sums[:count].copy())
    return [out[name] if want else None for name, want in wanted.items()]


def _of_steps(
    mode: str, grads: Sequence[Any], operands: dict[str, Any], batch_sizes: Ints, needs: Sequence[bool], *, backwards: bool
) -> tuple[Any, ...]:
    """Return the gradients of the operands as those of the steps, which have derivatives themselves."""
    level = Level(recording=True)
    wanted = [level.enter(x) for x, need in zip(operands.values(), needs, strict=True) if need]
    entered = iter(wanted)
    each = {name: next(entered) if need else x for (name, x), need in zip(operands.items(), needs, strict=True)}
    first = tuple([each[name] for name in ("h_0", "c_0") if name in each])
    weights, biases = (each["w_ih"], each["w_hh"]), (each["b_ih"], each["b_hh"])
    output, states = by_steps(
        mode, each["x"], batch_sizes, first, weights, biases, each.get("w_hr"), backwards=backwards
    )
    pairs = [(o, g) for o, g in zip((output, *states), grads, strict=False) if g is not None]
    results = iter(pulled([o for o, _ in pairs], wanted, [g for _, g in pairs], create_graph=True))
    return tuple([next(results) if need else None for need in needs])


@primitive(outputs=("output", "h_n", "c_n", "kept"), differentiable=(0, 1, 2))
def _lstm(
    xp: ModuleType,
    w_hr: Array | None,
    b_hh: Array | None,
    w_hh: Array,
    b_ih: Array | None,
    w_ih: Array,
    c_0: Array,
    h_0: Array,
    x: Array,
    *,
    batch_sizes: Ints,
    backwards: bool,
    keep: bool,
) -> tuple[Array, ...]:
    # the weights first, so that the hooks of a layer's parameters fire in PyTorch's order
    weights = w_hr, w_hh, w_ih
    return _forward("LSTM", (h_0, c_0), x, weights, (b_ih, b_hh), batch_sizes, backwards=backwards, keep=keep)


@_lstm.vjp
def _lstm_vjp(
    m: Namespace, grad: list[Any], w_hr: Any, b_hh: Any, w_hh: Any, b_ih: Any, w_ih: Any, c_0: Any, h_0: Any, x: Any,
    kept: Any, batch_sizes: Ints, backwards: bool, needs: tuple[bool, ...],
) -> Any:  # fmt: skip
    names = ("w_hr", "b_hh", "w_hh", "b_ih", "w_ih", "c_0", "h_0", "x")
    if m is GRAPH:
        operands = dict(zip(names, (w_hr, b_hh, w_hh, b_ih, w_ih, c_0, h_0, x), strict=True))
        return _of_steps("LSTM", grad, operands, batch_sizes, needs, backwards=backwards)
    wanted = dict(zip(names, needs, strict=True))
    return _backward(
        "LSTM", grad, (h_0, c_0), x, (w_hr, w_hh, w_ih), kept, batch_sizes, wanted, backwards=backwards
    )


def _of_one_state(mode: str) -> Any:
    """Return the primitive of a kind of recurrence whose state is its output."""

    def reference(
        xp: ModuleType,
        b_hh: Array | None,
        w_hh: Array,
        b_ih: Array | None,
        w_ih: Array,
        h_0: Array,
        x: Array,
        *,
        batch_sizes: Ints,
        backwards: bool,
        keep: bool,
    ) -> tuple[Array, ...]:
        """Return the outputs of all steps, the last state, and what is kept of each step."""
        weights = None, w_hh, w_ih
        return _forward(mode, (h_0,), x, weights, (b_ih, b_hh), batch_sizes, backwards=backwards, keep=keep)

    def rule(
        m: Namespace, grad: list[Any], b_hh: Any, w_hh: Any, b_ih: Any, w_ih: Any, h_0: Any, x: Any, kept: Any,
        batch_sizes: Ints, backwards: bool, needs: tuple[bool, ...],
    ) -> Any:  # fmt: skip
        names = ("b_hh", "w_hh", "b_ih", "w_ih", "h_0", "x")
        if m is GRAPH:
            operands = dict(zip(names, (b_hh, w_hh, b_ih, w_ih, h_0, x), strict=True))
            return _of_steps(mode, grad, operands, batch_sizes, needs, backwards=backwards)
        wanted = dict(zip(names, needs, strict=True))
        return _backward(mode, grad, (h_0,), x, (None, w_hh, w_ih), kept, batch_sizes, wanted, backwards=backwards)

    made = Primitive(reference, name=mode.lower(), outputs=("output", "h_n", "kept"), differentiable=(0, 1))
    made.vjp(rule)
    return made


_GRU, _RNN_TANH, _RNN_RELU = map(_of_one_state, ("GRU", "RNN_TANH", "RNN_RELU"))
_WHOLE = {"LSTM": _lstm, "GRU": _GRU, "RNN_TANH": _RNN_TANH, "RNN_RELU": _RNN_RELU}


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
    states = [part for part in (projection, biases[1], weights[1], biases[0], weights[0], *first[::-1], data)]
    given = [part for part in states if part is not None]
    x = data.array
    alike = x.dtype.char in "fd" and all(type(part.array) is np.ndarray and part.array.dtype == x.dtype for part in given)
    if not alike or (unusual and lower_dtype(data) is not None and x.dtype.itemsize < 8):
        return by_steps(mode, data, batch_sizes, first, weights, biases, projection, backwards=backwards)
    keep = is_grad_enabled() and any(part.requires_grad for part in given)
    operands = states if mode == "LSTM" else states[1:]
    output, *last, _ = _WHOLE[mode](*operands, batch_sizes=batch_sizes, backwards=backwards, keep=keep)
    return output, tuple(last)
