"""Attention of several heads and Transformers: outputs, weights and gradients are PyTorch's with its state dicts."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
import torch

import lucid
from tests.parity.nn.test_layers import pair, same_state
from tests.parity.pieces import close

CAUSAL = np.triu(np.full((3, 3), -np.inf), 1)


def compared(theirs, ours, inputs, settings, rng):
    """Check what both make of the same inputs and masks, gradients of inputs and parameters, and eval without any."""
    found = []
    upstream = rng.standard_normal(100)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for lib, module in ((lucid, ours), (torch, theirs)):
            tensors = [lib.tensor(x, requires_grad=True) for x in inputs]
            masks = {k: lib.tensor(v) if isinstance(v, np.ndarray) else v for k, v in settings.items()}
            outs = module.train()(*tensors, **masks)
            outs = [x for x in outs if x is not None] if isinstance(outs, tuple) else [outs]
            sum((x * lib.tensor(np.resize(upstream, tuple(x.shape)))).sum() for x in outs).backward()
            with lib.no_grad():
                quick = module.eval()(*tensors, **masks)
            quick = quick[0] if isinstance(quick, tuple) else quick
            grads = [p.grad for p in (*tensors, *module.parameters())]
            found.append([*outs, quick, *grads])
    close(*found, 1e-8, 1e-8)


@pytest.mark.parametrize(
    "row",
    [
        {},
        {"bias": False, "batch_first": True},
        {"add_bias_kv": True, "add_zero_attn": True},
        {"kdim": 3, "vdim": 5, "batch_first": True},
        {"kdim": 3, "add_bias_kv": True},
    ],
    ids=str,
)
def test_several_heads(row, rng):
    """Of batches and of one sequence, with all kinds of masks, and weights of each head, their mean or none."""
    theirs, ours = pair(lambda nn: nn.MultiheadAttention(8, 2, **row), rng)
    assert repr(ours) == repr(theirs).replace("NonDynamicallyQuantizable", "")
    same_state(theirs.state_dict(), ours.state_dict())
    sizes = ((3, 8), (4, theirs.kdim), (4, theirs.vdim))
    hidden = rng.random((3, 4)) < 0.4
    hidden[:, 0] = False
    for batch, settings in (
        (2, {}),
        (2, {"attn_mask": hidden, "key_padding_mask": np.array([[False] * 4, [False, False, True, True]])}),
        (2, {"attn_mask": rng.standard_normal((4, 3, 4)), "key_padding_mask": rng.standard_normal((2, 4))}),
        (None, {"attn_mask": np.stack([hidden, hidden[::-1]]), "key_padding_mask": rng.standard_normal(4)}),
    ):
        inputs = [
            rng.standard_normal((n, e) if batch is None else (batch, n, e) if theirs.batch_first else (n, batch, e))
            for n, e in sizes
        ]
        for need in ({}, {"average_attn_weights": False}, {"need_weights": False}):
            compared(theirs, ours, inputs, {**settings, **need}, rng)
            theirs.zero_grad()
            ours.zero_grad()


@pytest.mark.filterwarnings("ignore:enable_nested_tensor")
@pytest.mark.parametrize("norm_first", [False, True])
@pytest.mark.parametrize("batch_first", [False, True])
def test_transformers(norm_first, batch_first, rng):
    """Encoder and decoder with all masks, and with causal ones and hints."""
    theirs, ours = pair(
        lambda nn: nn.Transformer(8, 2, 2, 1, 5, 0.0, "gelu", norm_first=norm_first, batch_first=batch_first), rng
    )
    assert repr(ours) == repr(theirs).replace("NonDynamicallyQuantizable", "")
    same_state(theirs.state_dict(), ours.state_dict())
    padded = np.array([[False, False, False], [False, False, True]])
    for settings in (
        {},
        {"tgt_mask": CAUSAL, "src_key_padding_mask": padded, "memory_key_padding_mask": padded},
        {"src_mask": CAUSAL, "tgt_mask": CAUSAL, "src_is_causal": True, "tgt_is_causal": True},
        {"memory_mask": rng.standard_normal((3, 3)), "tgt_key_padding_mask": rng.standard_normal((2, 3))},
    ):
        inputs = [rng.standard_normal((2, 3, 8) if batch_first else (3, 2, 8)) for _ in range(2)]
        compared(theirs, ours, inputs, settings, rng)
        theirs.zero_grad()
        ours.zero_grad()
    theirs.load_state_dict({name: torch.tensor(value.numpy(force=True)) for name, value in ours.state_dict().items()})
