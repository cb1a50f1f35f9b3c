"""The models of `examples/models` in full size beside PyTorch's: `python -m tests.parity.nn.full_models [NAME...]`.

Two cores take half an hour for all, which is why `test_models.py` has small ones. A line says for each model how many
parameters it has, how far outputs, gradients and the losses of a hundred steps of AdamW lie from PyTorch's at most,
outputs and gradients as shares of the largest of their kind, and how long both take, on one thread.

With `--dtype float64` rounding is out of the way: in float32 a few of the many ReLUs of the ResNet lie so near zero
that it decides whether they let a gradient through, and AdamW makes whole steps of gradients that are nearly zero, in
PyTorch too.
"""

from __future__ import annotations

import argparse
import time

import numpy as np
import torch

import lucid
from tests.parity.test_models import STEPS, differentiated, in_numpy, losses_of, module_of


def text(*lengths):
    """Return what makes a text of each length, and what follows each token of the last."""

    def draw(rng):
        *others, last = [rng.integers(1, 1000, (1, length)) for length in lengths]
        return (*others, last[:, :-1], last[:, 1:])

    return draw


def pictures(rng):
    """Return two pictures and their classes."""
    return rng.standard_normal((2, 3, 224, 224)), rng.integers(0, 1000, 2)


# The source's name, its class and that of its settings, those that differ from the full size, and what makes a batch.
TABLE = {
    "gpt": ("GPT", "GPTConfig", {"dropout": 0.0}, text(33)),
    "lstm": ("LSTMLanguageModel", "LSTMConfig", {"dropout": 0.0}, text(33)),
    "transformer": ("Translator", "TransformerConfig", {"dropout": 0.0}, text(32, 33)),
    "resnet": ("ResNet", "ResNetConfig", {}, pictures),
    "vit": ("ViT", "ViTConfig", {}, pictures),
}


def furthest(ours, theirs):
    """Return the largest difference as a share of the largest value."""
    return float(np.abs(ours - theirs).max() / np.abs(theirs).max())


def compared(stem, dtype, rng):
    """Return the number of parameters, the largest differences, and the seconds of both libraries' steps."""
    model_name, config_name, settings, draw = TABLE[stem]
    model, twin = (
        getattr(module, model_name)(getattr(module, config_name)(**settings)).to(getattr(library, dtype))
        for library, module in ((lucid, module_of("lucid", stem)), (torch, module_of("torch", stem)))
    )
    model.load_state_dict({key: lucid.tensor(in_numpy(value)) for key, value in twin.state_dict().items()})
    for ours, theirs in zip(model.buffers(), twin.buffers(), strict=True):  # those too that are in no state dict
        ours.copy_(lucid.tensor(in_numpy(theirs)))
    batches = [[each.astype(dtype) if each.dtype.kind == "f" else each for each in draw(rng)] for _ in range(STEPS)]
    ours, theirs, outputs, expected = differentiated(model, twin, batches)
    differences = [furthest(in_numpy(outputs), in_numpy(expected))]
    pairs = zip(model.parameters(), twin.parameters(), strict=True)
    differences.append(max(furthest(in_numpy(a.grad), in_numpy(b.grad)) for a, b in pairs))

    moments = [time.perf_counter()]
    curves = []
    for library, network, given in ((lucid, model, ours), (torch, twin, theirs)):
        curves.append(np.array(losses_of(library, network, given)))
        moments.append(time.perf_counter())
    differences.append(float(np.abs(curves[0] / curves[1] - 1).max()))
    return sum(p.numel() for p in twin.parameters()), differences, np.diff(moments), curves[0][[0, -1]]


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(TABLE)}; all if left out")
    parser.add_argument("--dtype", choices=("float32", "float64"), default="float32")
    asked = parser.parse_args()
    if unknown := sorted({*asked.names} - {*TABLE}):
        parser.error(f"expected names of {', '.join(TABLE)}, got {', '.join(unknown)}")
    torch.set_num_threads(1)
    print("model        parameters   outputs gradients    losses   first and last loss   lucid, s   PyTorch, s")
    for stem in asked.names or TABLE:
        count, (outputs, gradients, losses), (here, there), ends = compared(stem, asked.dtype, np.random.default_rng(0))
        print(
            f"{stem:11} {count:11,d} {outputs:9.1e} {gradients:9.1e} {losses:9.1e}   {ends[0]:9.4f} {ends[1]:9.4f}"
            f"   {here:8.0f}   {there:10.0f}",
            flush=True,
        )
