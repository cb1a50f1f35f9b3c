"""A seed gives the same run on the CPU and on a CUDA device: weights, masks, order, and the course of training."""

from __future__ import annotations

import numpy as np
import pytest

import lucid
from lucid import nn
from tests.cuda import counts

pytestmark = pytest.mark.gpu

DEVICES = ("cpu", "cuda")


def bits(tensor):
    array = np.atleast_1d(tensor.detach().cpu().numpy())
    return array.view(f"u{array.itemsize}")


def on_both(build):
    """Return what `build(device)` gives on each device, started from the same seed, as bits."""
    results = []
    for device in DEVICES:
        lucid.manual_seed(1234)
        results.append([bits(tensor) for tensor in build(device)])
    return results


def check_same_bits(build):
    for cpu, cuda in zip(*on_both(build), strict=True):
        np.testing.assert_array_equal(cuda, cpu)


INITIALISERS = (
    "uniform_", "normal_", "xavier_uniform_", "xavier_normal_", "kaiming_uniform_", "kaiming_normal_", "trunc_normal_",
)  # fmt: skip


@pytest.mark.parametrize("name", INITIALISERS)
@pytest.mark.parametrize("dtype", ["float32", "float64", "bfloat16"])
def test_initial_weights(name, dtype):
    """Every random initialiser gives the same bits, also on a tensor that lives on the device."""

    def build(device):
        tensors = [lucid.zeros(shape, dtype=getattr(lucid, dtype), device=device) for shape in ((7, 5), (4, 3, 3, 3))]
        return [getattr(nn.init, name)(tensor) for tensor in tensors]

    check_same_bits(build)


def test_a_model_made_or_moved_to_the_device():
    """A model that is built and then moved has the same weights everywhere."""

    def build(device):
        layers = nn.Conv2d(3, 4, 3), nn.Linear(6, 5), nn.Embedding(9, 4), nn.BatchNorm2d(3)
        return [parameter for layer in layers for parameter in layer.to(device).parameters()]

    check_same_bits(build)


def test_dropout_masks_of_several_layers():
    """Masks come in the same order from the same stream, whatever was drawn between them."""

    def build(device):
        x = lucid.ones(37, 11, device=device)
        first = nn.functional.dropout(x, 0.3)
        noise = lucid.randn(5, device=device)
        second = nn.Dropout(0.7)(x[:, ::2])
        return first, noise, second, lucid.bernoulli(lucid.full((9,), 0.5, device=device))

    check_same_bits(build)


def test_order_of_data():
    """Batches come in the same order, drawn on the device, or moved there from a generator of its own."""

    def build(device):
        order = lucid.Generator(seed=5)
        moved = [lucid.randperm(50, generator=order, device="cpu").to(device) for _ in range(2)]
        drawn = [lucid.randperm(33, device=device), lucid.randint(0, 1000, (40,), device=device)]
        return [batch for epoch in (*moved, *drawn) for batch in epoch.split(8)]

    check_same_bits(build)


def test_fifty_steps_of_the_digits_example():
    """Losses and weights of the example agree to the rounding of float32 that fifty steps of Adam pile up."""
    program = counts.example()
    program.BATCH = 2
    random = np.random.default_rng(7)
    labels = random.integers(0, 3, 20)
    # three digits with a blurred picture each, so that there is something to learn
    pictures = 0.2 * random.random((20, 1, 8, 8)) + random.random((3, 1, 8, 8))[labels]
    runs = []
    for device in DEVICES:
        run = program.Run(seed=3, device=device)
        data = lucid.tensor(pictures, dtype=lucid.float32, device=device), lucid.tensor(labels, device=device)
        for _ in range(5):
            for _ in run.train(*data):
                pass
        runs.append(run)
    cpu, cuda = runs
    assert next(cuda.model.parameters()).is_cuda
    losses = [[entry["loss"] for entry in run.history] for run in runs]
    assert losses[0][-1] < 0.9 * losses[0][0]
    np.testing.assert_allclose(losses[1], losses[0], rtol=1e-4)
    for (name, ours), theirs in zip(cuda.model.state_dict().items(), cpu.model.state_dict().values(), strict=True):
        np.testing.assert_allclose(ours.cpu().numpy(), theirs.numpy(), atol=1e-4, err_msg=name)
    for layer, norm in cpu.history[-1]["norms"].items():
        np.testing.assert_allclose(cuda.history[-1]["norms"][layer], norm, rtol=1e-3)
