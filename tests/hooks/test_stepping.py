"""`lucid.hooks.step_in_backward`: the steps of an optimizer of all parameters, with fewer gradients in memory."""

from __future__ import annotations

import copy
import weakref

import numpy as np
import pytest

import lucid
from lucid import hooks, nn
from lucid.errors import SettingError
from tests.device import DEVICE


def net():
    return nn.Sequential(*[nn.Linear(6, 6, device=DEVICE) for _ in range(5)])


@pytest.mark.parametrize("every", [1, 3])
def test_the_same_steps(rng, every):
    model = net()
    twin = copy.deepcopy(model)
    hooks.step_in_backward(model, lambda p: lucid.optim.AdamW(p, lr=0.1), every=every)
    optimizer = lucid.optim.AdamW(twin.parameters(), lr=0.1)
    for number in range(6):
        x = lucid.tensor(rng.normal(size=(4, 6)), dtype=lucid.float32, device=DEVICE)
        model(x).square().mean().backward()
        twin(x).square().mean().backward()
        if (number + 1) % every == 0:
            optimizer.step()
            optimizer.zero_grad()
    for one, other in zip(model.parameters(), twin.parameters(), strict=True):
        np.testing.assert_array_equal(one.numpy(force=True), other.numpy(force=True))
        assert one.grad is None


def test_few_gradients_are_alive_at_once(rng):
    """When the first layer gets its gradient, that of no other layer is there any more."""
    model, grads, alive = net(), [], []
    for parameter in model.parameters():
        parameter.register_post_accumulate_grad_hook(lambda p: grads.append(weakref.ref(p.grad)))
    hooks.step_in_backward(model, lambda p: lucid.optim.SGD(p, lr=0.1))
    model[0].weight.register_hook(lambda grad: alive.append(sum(each() is not None for each in grads)))
    model(lucid.tensor(rng.normal(size=(4, 6)), dtype=lucid.float32, device=DEVICE)).sum().backward()
    assert alive[0] <= 1
    assert len(grads) == 10


def test_frozen_parameters_and_removal(rng):
    model = net()
    model[2].weight.requires_grad_(False)
    steps = hooks.step_in_backward(model, lambda p: lucid.optim.SGD(p, lr=0.1))
    assert len(steps.optimizers) == 9
    steps.remove()
    steps = hooks.step_in_backward(model.parameters(), lambda p: lucid.optim.SGD(p, lr=0.1))
    assert len(steps.optimizers) == 9
    steps.remove()
    before = model[0].weight.numpy(force=True).copy()
    model(lucid.tensor(rng.normal(size=(4, 6)), dtype=lucid.float32, device=DEVICE)).sum().backward()
    np.testing.assert_array_equal(model[0].weight.numpy(force=True), before)
    assert model[0].weight.grad is not None


def unchecked(tensor):
    """Return an optimizer of a tensor that none would take."""
    optimizer = lucid.optim.SGD([lucid.ones(1, requires_grad=True)])
    optimizer.param_groups[0]["params"] = [tensor]
    return optimizer


def test_mistakes_register_nothing():
    model = net()
    with pytest.raises(SettingError, match="at least one parameter"):
        hooks.step_in_backward([], lucid.optim.SGD)
    for every in (0, -1, True, 1.0, None):
        with pytest.raises(SettingError, match=f"every: expected an int of 1 or more, got {every}"):
            hooks.step_in_backward(model, lucid.optim.SGD, every=every)
    with pytest.raises(TypeError, match="make: expected a function that returns an Optimizer"):
        hooks.step_in_backward(model, lambda p: None)
    with pytest.raises(
        SettingError, match=r"make: expected an optimizer of the one parameter .*, got one of 10, which"
    ):
        hooks.step_in_backward(model, lambda p: lucid.optim.SGD(model.parameters()), every=2)
    with pytest.raises(SettingError, match="make: expected an optimizer of the one parameter"):
        hooks.step_in_backward(model, lambda p: lucid.optim.SGD([model[0].weight]))
    with pytest.raises(SettingError, match="at least one parameter that requires grad"):
        hooks.step_in_backward([lucid.ones(1)], lucid.optim.SGD)
    with pytest.raises(TypeError, match="str"):
        hooks.step_in_backward([model[0].weight, "weight"], lucid.optim.SGD)
    refused = model[0].weight * 2
    for make in (lucid.optim.SGD, lambda p: lucid.optim.SGD(p) if p[0] is not refused else unchecked(refused)):
        with pytest.raises((ValueError, RuntimeError), match="leaf"):
            hooks.step_in_backward([model[0].weight, refused], make)
    with pytest.raises(TypeError, match="parameters: expected a Module or an iterable"):
        hooks.step_in_backward(model[0].weight, lucid.optim.SGD)
    assert len(hooks.table(model)) == 0


def test_gradients_of_parameters_by_name(rng):
    model = net()
    x = lucid.tensor(rng.normal(size=(4, 6)), dtype=lucid.float32, device=DEVICE)
    model(x).square().sum().backward()
    grads = {name: p.grad.numpy(force=True) for name, p in model.named_parameters()}
    model.zero_grad()
    with hooks.edit(model, parameters={"*.bias": lambda grad: grad * 0, "1.*": lambda grad: grad * 2}):
        model(x).square().sum().backward()
    for name, parameter in model.named_parameters():
        factor = (0 if name.endswith("bias") else 1) * (2 if name.startswith("1.") else 1)
        np.testing.assert_allclose(parameter.grad.numpy(force=True), grads[name] * factor, rtol=1e-6)
    with pytest.raises(SettingError, match=r"no parameter of Sequential has a path like '9.weight': near are \['"):
        hooks.edit(model, parameters={"9.weight": print})
    assert len(hooks.table(model)) == 0
