"""Averages of weights beside PyTorch's: `SWALR` is in `test_lr_scheduler.py`."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import lucid
from lucid.optim import swa_utils
from tests.parity.pieces import parameters

FUNCTIONS = {
    "the mean": lambda m: {},
    "the mean, by a function": lambda m: {"avg_fn": m.get_swa_avg_fn()},
    "the mean, of lists": lambda m: {"multi_avg_fn": m.get_swa_multi_avg_fn()},
    "decaying": lambda m: {"avg_fn": m.get_ema_avg_fn(0.9)},
    "decaying, of lists": lambda m: {"multi_avg_fn": m.get_ema_multi_avg_fn(0.3)},
    "a user's": lambda m: {"avg_fn": lambda old, new, count: (old * count + new) / (count + 1.5)},
    "with buffers": lambda m: {"avg_fn": m.get_ema_avg_fn(), "use_buffers": True},
    "lists with buffers": lambda m: {"multi_avg_fn": m.get_ema_multi_avg_fn(0.75), "use_buffers": True},
}


def model_of(library):
    """Return a model with parameters, floating and integer buffers, all of float64 but for the last."""
    nn = library.nn
    return nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4), nn.ReLU(), nn.Linear(4, 2)).to(library.float64)


def state_of(model):
    """Return the state of a model in NumPy arrays."""
    return {name: np.array(value.detach().cpu().numpy()) for name, value in model.state_dict().items()}


def put(library, model, arrays):
    """Load a state of NumPy arrays."""
    model.load_state_dict({name: library.tensor(value) for name, value in arrays.items()})


def update(models, averages, state):
    """Load a state of NumPy arrays into the models, and take them into their averages."""
    for (library, model), average in zip(models, averages, strict=True):
        put(library, model, state)
        average.update_parameters(model)


def test_every_name_is_there():
    """What PyTorch's module exports, lucid's does, with its signatures."""
    assert sorted(swa_utils.__all__) == sorted(torch.optim.swa_utils.__all__)
    for name in swa_utils.__all__:
        assert parameters(getattr(swa_utils, name)) == parameters(getattr(torch.optim.swa_utils, name)), name


@pytest.mark.parametrize("row", FUNCTIONS)
def test_averages(rng, row):
    """Parameters, buffers and the count are PyTorch's after each of ten updates, in float64; keys are its keys."""
    models = [(library, model_of(library)) for library in (lucid, torch)]
    averages = [
        library.optim.swa_utils.AveragedModel(model, **FUNCTIONS[row](library.optim.swa_utils))
        for library, model in models
    ]
    # PyTorch's has its weight in float32
    tolerance = 1e-6 if row == "the mean, of lists" else 1e-12
    for _ in range(10):
        state = {
            name: rng.standard_normal(value.shape) if value.dtype.kind == "f" else rng.integers(0, 99, value.shape)
            for name, value in state_of(models[1][1]).items()
        }
        update(models, averages, state)
        ours, theirs = map(state_of, averages)
        assert list(ours) == list(theirs)
        for name, value in theirs.items():
            assert ours[name].dtype == value.dtype
            np.testing.assert_allclose(ours[name], value, rtol=tolerance, atol=tolerance, err_msg=name)


def test_a_state_dict_of_the_other_library(rng):
    """What PyTorch's average saved is loaded and continued."""
    models = [(library, model_of(library)) for library in (lucid, torch)]
    averages = [library.optim.swa_utils.AveragedModel(model) for library, model in models]
    for _ in range(3):
        averages[1].update_parameters(models[1][1])
    put(lucid, averages[0], state_of(averages[1]))
    state = {name: rng.standard_normal(value.shape) for name, value in state_of(models[1][1]).items()}
    state["1.num_batches_tracked"] = np.array(5)
    update(models, averages, state)
    ours, theirs = map(state_of, averages)
    for name, value in theirs.items():
        np.testing.assert_allclose(ours[name], value, rtol=1e-12, err_msg=name)


@pytest.mark.parametrize("kind", ["tensors", "lists"])
def test_statistics(rng, kind):
    """Running statistics are PyTorch's over batches of several sizes; momentum and mode are as before."""
    batches = [rng.standard_normal((size, 3)) * 3 + 1 for size in (8, 4, 16)]
    state = {
        name: rng.standard_normal(value.shape) if value.dtype.kind == "f" else value
        for name, value in state_of(model_of(torch)).items()
    }
    found = []
    for library in (lucid, torch):
        model = model_of(library)
        put(library, model, state)
        model.eval()
        inputs = [library.tensor(batch) for batch in batches]
        library.optim.swa_utils.update_bn([[each, 0] for each in inputs] if kind == "lists" else inputs, model)
        assert not model.training
        assert model[1].momentum == 0.1
        found.append(state_of(model))
    for name, value in found[1].items():
        np.testing.assert_allclose(found[0][name], value, rtol=1e-10, err_msg=name)
