"""The formulas of recurrence in NumPy, a step and a sequence at a time."""

from __future__ import annotations

import numpy as np


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def step(mode, x, state, w):
    """Return the state after one step, of one sequence; `w` are the weights by the beginnings of their names."""
    with_x = w["weight_ih"] @ x + w.get("bias_ih", 0)
    with_h = w["weight_hh"] @ state[0] + w.get("bias_hh", 0)
    if mode == "LSTM":
        i, f, g, o = np.split(with_x + with_h, 4)
        c = sigmoid(f) * state[1] + sigmoid(i) * np.tanh(g)
        h = sigmoid(o) * np.tanh(c)
        return (w["weight_hr"] @ h if "weight_hr" in w else h), c
    if mode == "GRU":
        (x_r, x_z, x_n), (h_r, h_z, h_n) = np.split(with_x, 3), np.split(with_h, 3)
        z = sigmoid(x_z + h_z)
        return ((1 - z) * np.tanh(x_n + sigmoid(x_r + h_r) * h_n) + z * state[0],)
    return (np.tanh(with_x + with_h) if mode == "RNN_TANH" else np.maximum(with_x + with_h, 0),)


def run(layer, sequence, first):
    """Return the outputs of a layer for one sequence, and its last states: of each layer and direction."""
    ends = []
    for k in range(layer.num_layers):
        sides = []
        for suffix in ("", "_reverse")[: 1 + layer.bidirectional]:
            w = {
                name.removesuffix(f"_l{k}{suffix}"): value.numpy(force=True)
                for name, value in layer.named_parameters()
                if name.endswith(f"_l{k}{suffix}")
            }
            state, outputs = tuple(part[len(ends)] for part in first), []
            for x in sequence[::-1] if suffix else sequence:
                state = step(layer.mode, x, state, w)
                outputs.append(state[0])
            ends.append(state)
            sides.append(np.array(outputs[::-1] if suffix else outputs))
        sequence = np.concatenate(sides, 1)
    return sequence, [np.array(parts) for parts in zip(*ends, strict=True)]
