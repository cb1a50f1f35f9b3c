"""Parameters and buffers of several modules, stacked."""

from __future__ import annotations

import numpy as np
import pytest

import lucid
from lucid import nn
from lucid.errors import SettingError, ShapeError
from lucid.func import functional_call, stack_module_state, vmap
from tests.func.test_derivatives import draw
from tests.gradients import numbers


def frozen():
    """Return a layer whose weight does not require grad."""
    layer = nn.Linear(3, 2)
    layer.weight.requires_grad_(False)
    return layer


def test_an_ensemble(rng):
    """Calls with the stacked state are those of the modules; parameters are leaves, gradients those of the modules."""
    models = [nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4), nn.Linear(4, 2)).double().eval() for _ in range(3)]
    for model in models:
        model[1].running_mean.copy_(draw(rng, 4))
    parameters, buffers = stack_module_state(models)
    assert all(p.is_leaf and p.requires_grad for p in parameters.values())
    assert set(buffers) == {"1.running_mean", "1.running_var", "1.num_batches_tracked"}
    x, u = draw(rng, 5, 3), draw(rng, 3, 5, 2)

    def call(parameters, buffers, x):
        return functional_call(models[0], (parameters, buffers), (x,))

    found = vmap(call, in_dims=(0, 0, None))(parameters, buffers, x)
    found.backward(u)
    for index, model in enumerate(models):
        out = model(x)
        np.testing.assert_allclose(numbers(found[index]), numbers(out), rtol=1e-12)
        out.backward(u[index])
        for name, p in model.named_parameters():
            np.testing.assert_allclose(numbers(parameters[name].grad[index]), numbers(p.grad), rtol=1e-10, atol=1e-12)


def test_what_is_refused():
    """No module, modules of several classes or shapes, in several modes, or some of whose parameters are frozen."""
    one = nn.Linear(3, 2)
    with pytest.raises(SettingError, match="at least one model"):
        stack_module_state([])
    with pytest.raises(SettingError, match="same class, got Bilinear, Linear"):
        stack_module_state([one, nn.Bilinear(3, 3, 2)])
    with pytest.raises(SettingError, match="same training/eval mode"):
        stack_module_state([one, nn.Linear(3, 2).eval()])
    for biases in ((True, False), (False, True)):
        with pytest.raises(SettingError, match="bias from each model"):
            stack_module_state([nn.Linear(2, 3, bias=bias) for bias in biases])
    with pytest.raises(SettingError, match="weight from each model"):
        stack_module_state(nn.ModuleList([one, frozen()]))
    with pytest.raises(ShapeError, match="equal size"):
        stack_module_state([one, nn.Linear(4, 2)])
    assert not stack_module_state([frozen()])[0]["weight"].requires_grad
    assert lucid.is_grad_enabled()
