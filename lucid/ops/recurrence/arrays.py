"""Whole sequences on NumPy arrays, in one layer and direction, forward and backward.

Operands go by the names of a layer's parameters, w_ih, w_hh, b_ih, b_hh, w_hr, beside x, h_0 and c_0. Kinds of one
state have no c_0 and no w_hr; w_hr and the biases may be None.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from lucid.autograd.recording.namespace import CPU
from lucid.ops.linalg.matrices import product, readable
from lucid.ops.recurrence.kinds import outputs_of
from lucid.ops.recurrence.runs import Factor, runs_of, states_before

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from lucid.base.arrays import Array, Ints
    from lucid.ops.recurrence.kinds import RNN


def forward(
    kind: RNN, operands: Mapping[str, Any], batch_sizes: Ints, *, backwards: bool, keep: bool
) -> tuple[Array, ...]:
    """Return the outputs of all steps, the last states, and if `keep` the arrays of each step that `backward` needs."""
    x, w_ih, w_hh, w_hr = operands["x"], operands["w_ih"], operands["w_hh"], operands.get("w_hr")
    first = [operands[name] for name in ("h_0", "c_0") if name in operands]
    gates, width, dtype = kind.gates, len(w_hh) // kind.gates, x.dtype
    # by gates, and of each gate by rows
    inputs = np.matmul(readable(x), kind.arranged(w_ih).reshape(gates, width, x.shape[1]).swapaxes(1, 2))
    bias = None
    if operands["b_ih"] is not None:
        added, bias = kind.biases(operands["b_ih"], operands["b_hh"])
        inputs += added.reshape(gates, 1, width)
    batch = len(first[0])
    recurrent = Factor(kind.arranged(w_hh).reshape(gates, width, w_hh.shape[1]).swapaxes(1, 2), batch)
    projection = None if w_hr is None else Factor(w_hr.T[None], batch)
    output = np.empty((len(x), w_hh.shape[1]), dtype)
    kept = np.empty((len(x) if keep else 0, kind.kept, width), dtype)
    # of each sequence the first states until its steps are done, and then the last ones
    states = [part.copy() for part in first]
    for run in runs_of(batch_sizes, width, backwards=backwards):
        h, *cells = [part[: run.size] for part in states]
        state = h
        room, views = kind.buffers(run.size, width, dtype, bias)
        for cell in cells:
            room[gates] = cell
        target, blocks, step = recurrent.room(room[:gates]), recurrent.blocks, kind.step
        outputs, noted, notes = run.of(output), room[: kind.noted], run.kept(kept) if keep else None
        inner = np.empty((run.size, width), dtype)
        steps = run.zipped(
            run.of(inputs.swapaxes(0, 1)).swapaxes(1, 2),
            outputs,
            notes[: kind.noted].swapaxes(0, 1) if notes is not None and kind.noted else None,
        )
        for xs, out, note in steps:
            np.matmul(h, blocks, target)
            if projection is None:
                step(views, xs, h, out)
            else:
                step(views, xs, h, inner)
                np.matmul(inner, projection.blocks, projection.room(out[None]))
            if note is not None:
                note[...] = noted
            h = out
        if notes is not None and kind.kept > kind.noted:
            notes[-1] = outputs
        state[...] = h
        for cell in cells:
            cell[...] = room[gates]
    return output, *states, kept


def backward(
    kind: RNN,
    grads: Sequence[Array | None],
    operands: Mapping[str, Any],
    kept: Array,
    batch_sizes: Ints,
    wanted: Mapping[str, bool],
    *,
    backwards: bool,
) -> list[Array | None]:
    """Return the gradient of each operand that is wanted, and None for the others, from those of the outputs."""
    x, w_ih, w_hh, w_hr = operands["x"], operands["w_ih"], operands["w_hh"], operands.get("w_hr")
    first = [operands[name] for name in ("h_0", "c_0") if name in operands]
    rows, batch, width, dtype = len(x), len(first[0]), kept.shape[2], x.dtype
    runs = runs_of(batch_sizes, width, backwards=backwards)
    notes = [run.kept(kept) for run in runs]
    before = states_before(runs, [note[-1] for note in notes], first[-1])
    # of each sequence those of the last states until its steps are done, and then those of the first ones
    to_states = [
        np.zeros(part.shape, dtype) if grad is None else np.array(grad, dtype, order="C")
        for part, grad in zip(first, grads[1:], strict=False)
    ]
    to_gates = np.empty((rows, kind.columns * width), dtype)
    to_outputs = None if w_hr is None else np.empty((rows, len(w_hr)), dtype)
    count = kind.gates * width
    recurrent = Factor(kind.rolled(w_hh, 1)[None], batch)
    projection = None if w_hr is None else Factor(w_hr[None], batch)
    for run, note in zip(runs[::-1], notes[::-1], strict=True):
        h, *cells = [part[: run.size] for part in to_states]
        spare, inner = np.empty((2, run.size, width), dtype)
        through = np.empty_like(h) if kind.carries else h
        states = (h if projection is None else inner, *cells)
        target, blocks, back = recurrent.room(through[None]), recurrent.blocks, kind.back
        steps = run.zipped(
            kind.slopes(note, run.of(before)).swapaxes(0, 1),
            run.of(to_gates)[:, :, :count],
            run.of(to_gates.reshape(rows, kind.columns, width)).swapaxes(1, 2),
            None if grads[0] is None else run.of(grads[0]),
            None if to_outputs is None else run.of(to_outputs),
            reverse=True,
        )
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
        if len(first) > 1:
            # what was kept are the cells
            outputs = np.empty((rows, width), dtype)
            for run, note in zip(runs, notes, strict=True):
                run.of(outputs)[...] = outputs_of(note)
            if to_outputs is not None:
                out["w_hr"] = product(np, to_outputs.T, outputs)
                outputs = product(np, outputs, operands["w_hr"].T)
            before = states_before(runs, [run.of(outputs) for run in runs], first[0])
        out["w_hh"] = kind.rolled(product(np, to_products.T, before), -1)
    if wanted["w_ih"]:
        out["w_ih"] = product(np, to_inputs.T, x)
    if wanted["x"]:
        out["x"] = product(np, to_inputs, w_ih)
    if wanted["b_ih"] or wanted["b_hh"]:
        sums = CPU.sum_to(to_gates, shape=to_gates.shape[1:])
        out["b_ih"], out["b_hh"] = sums[-count:], kind.rolled(sums[:count].copy(), -1)
    return [out[name] if want else None for name, want in wanted.items()]
