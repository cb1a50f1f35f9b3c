"""Embedding against PyTorch where rows cannot reach: padding, frequencies, shortened rows."""

from __future__ import annotations

import pytest

from tests.parity.pieces import agree


@pytest.mark.parametrize(
    "settings",
    [
        {"padding_idx": 2},
        {"padding_idx": -1},
        {"scale_grad_by_freq": True},
        {"padding_idx": 0, "scale_grad_by_freq": True},
        {"max_norm": 1.0},
        {"max_norm": 0.7, "norm_type": 1.0, "padding_idx": 1},
    ],
)
def test_settings(settings, rng):
    """Values, gradients and the table afterwards are PyTorch's."""
    index, table, upstream = rng.integers(0, 6, (4, 5)), rng.standard_normal((6, 3)), rng.standard_normal((4, 5, 3))

    def program(lib):
        weight = lib.tensor(table, requires_grad=True)
        out = lib.nn.functional.embedding(lib.tensor(index), weight, **settings)
        out.backward(lib.tensor(upstream))
        return out, weight.grad, weight

    agree(program, 1e-6, 1e-12)
