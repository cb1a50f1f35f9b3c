"""Autocast against PyTorch, on the CPU: the dtypes of results and gradients, and training steps."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import lucid
from tests.autocast import ROWS

pytestmark = pytest.mark.cpu("PyTorch is there for the CPU only")

HALVES = ("bfloat16", "float16")


def both(values, dtype):
    """Return the same leaf in both libraries."""
    return [library.tensor(values).to(getattr(library, dtype)).requires_grad_() for library in (lucid, torch)]


def spread(rng):
    """Return numbers of 0.1 to 0.9, in each row and column far from each other: what divides by that is no noise."""
    levels = np.linspace(0.15, 0.85, 4)[np.add.outer(rng.permutation(4), rng.permutation(4)) % 4]
    return levels + rng.uniform(-0.05, 0.05, (4, 4))


def name_of(dtype):
    return str(dtype).split(".")[1]


def close(ours, theirs, tolerance):
    """Compare two tensors in units of the largest element: what cancels keeps the rounding of what it was."""
    ours, theirs = (tensor.detach().float().numpy() for tensor in (ours, theirs))
    np.testing.assert_allclose(ours, theirs, rtol=tolerance, atol=tolerance * max(1, abs(theirs).max()))


@pytest.mark.parametrize("name", ROWS)
def test_results_and_gradients(rng, name):
    """A result has PyTorch's dtype and value, and each gradient that of its operand, whatever dtypes those have."""
    values = [spread(rng).astype(np.float32) for _ in range(2)]
    for half in HALVES:
        for dtypes in (("float32", "float32"), (half, half), ("float32", half), (half, "float32")):
            pairs = [both(v, dtype) for v, dtype in zip(values, dtypes, strict=True)]
            outs = []
            for library, operands in zip((lucid, torch), zip(*pairs, strict=True), strict=True):
                with library.autocast("cpu", dtype=getattr(library, half)):
                    outs.append(ROWS[name].call(library, *operands))
            ours, theirs = outs
            assert name_of(ours.dtype) == name_of(theirs.dtype), dtypes
            close(ours, theirs, 0.02)
            if not ours.requires_grad:
                continue
            weights = rng.standard_normal(tuple(ours.shape)).astype(np.float32)
            for library, out in ((lucid, ours), (torch, theirs)):
                out.backward(library.tensor(weights).to(out.dtype))
            for x, y in pairs:
                assert (x.grad is None) == (y.grad is None)
                if x.grad is not None:
                    assert name_of(x.grad.dtype) == name_of(y.grad.dtype)
                    close(x.grad, y.grad, 0.05)


class Block:
    """A transformer of one block, of given weights, as functions of either library."""

    HEADS, WIDTH, LENGTH, WORDS = 2, 16, 6, 11

    def __init__(self, library, weights):
        self.library = library
        self.weights = {name: library.tensor(value, requires_grad=True) for name, value in weights.items()}

    @classmethod
    def draw(cls, rng):
        width = cls.WIDTH
        shapes = {
            "words": (cls.WORDS, width), "places": (cls.LENGTH, width), "gain1": (width,), "gain2": (width,),
            "gain3": (width,), "bias1": (width,), "bias2": (width,), "bias3": (width,), "qkv": (3 * width, width),
            "qkv_bias": (3 * width,), "out": (width, width), "up": (4 * width, width), "up_bias": (4 * width,),
            "down": (width, 4 * width),
        }  # fmt: skip
        return {name: (0.3 * rng.standard_normal(shape)).astype(np.float32) for name, shape in shapes.items()}

    def norm(self, x, number):
        weights = self.weights
        return self.library.nn.functional.layer_norm(
            x, (self.WIDTH,), weights[f"gain{number}"] + 1, weights[f"bias{number}"]
        )

    def loss(self, words):
        functional, weights = self.library.nn.functional, self.weights
        x = functional.embedding(words[:, :-1], weights["words"]) + weights["places"]
        q, k, v = [
            part.reshape(len(x), -1, self.HEADS, self.WIDTH // self.HEADS).transpose(1, 2)
            for part in functional.linear(self.norm(x, 1), weights["qkv"], weights["qkv_bias"]).split(self.WIDTH, -1)
        ]
        y = functional.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).reshape(x.shape)
        x = x + functional.linear(y, weights["out"])
        hidden = functional.gelu(functional.linear(self.norm(x, 2), weights["up"], weights["up_bias"]))
        x = x + functional.linear(hidden, weights["down"])
        logits = functional.linear(self.norm(x, 3), weights["words"])
        return functional.cross_entropy(logits.reshape(-1, self.WORDS), words[:, 1:].reshape(-1)), logits


@pytest.mark.parametrize("half", HALVES)
def test_training_steps_of_a_transformer(rng, half):
    """Steps with autocast and a GradScaler: dtypes, losses, gradients and weights are PyTorch's to the half type."""
    weights = Block.draw(rng)
    batches = [rng.integers(0, Block.WORDS, (3, Block.LENGTH + 1)) for _ in range(4)]
    runs = []
    for library in (lucid, torch):
        model = Block(library, weights)
        # steps of a larger rate enlarge what each rounds
        optimizer = library.optim.SGD(model.weights.values(), lr=0.02, momentum=0.9)
        scaler = library.amp.GradScaler("cpu", init_scale=2.0**8, growth_interval=2)
        seen = []
        for batch in batches:
            optimizer.zero_grad()
            with library.autocast("cpu", dtype=getattr(library, half)):
                loss, logits = model.loss(library.tensor(batch))
            scaler.scale(loss).backward()
            scaler.unscale_(optimizer)
            seen.append((loss, logits, *(p.grad for p in model.weights.values())))
            scaler.step(optimizer)
            scaler.update()
        runs.append((seen, scaler.get_scale(), model.weights.values()))
    (ours, our_scale, our_weights), (theirs, their_scale, their_weights) = runs
    assert our_scale == their_scale
    for one, other in zip(ours, theirs, strict=True):
        for x, y in zip(one, other, strict=True):
            assert name_of(x.dtype) == name_of(y.dtype)
            close(x, y, 0.03 if half == "bfloat16" else 0.005)
    for x, y in zip(our_weights, their_weights, strict=True):
        close(x, y, 0.01)


@pytest.mark.parametrize("dtypes", [("float32", "bfloat16"), ("bfloat16", "float32"), ("bfloat16", "bfloat16")])
def test_what_is_copied_into_another_dtype(dtypes, rng):
    """`index_copy` widens both where they differ, in a block and nowhere else."""
    values, outs = [spread(rng).astype(np.float32) for _ in range(2)], []
    for library in (lucid, torch):
        x, source = (library.tensor(v).to(getattr(library, d)) for v, d in zip(values, dtypes, strict=True))
        with library.autocast("cpu", dtype=library.bfloat16):
            outs.append(x.index_copy(0, library.tensor([2, 0]), source[:2]))
        if dtypes[0] != dtypes[1]:
            with pytest.raises(RuntimeError, match=r"index_copy(_\(\))?: ?(self|expected source)"):
                x.index_copy(0, library.tensor([2, 0]), source[:2])
    assert name_of(outs[0].dtype) == name_of(outs[1].dtype)
    close(*outs, 1e-6)
