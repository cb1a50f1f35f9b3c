"""What optimisers and training scripts written for PyTorch do: state of their own, old checkpoints, its settings."""

from __future__ import annotations

import copy
import inspect
import pickle

import numpy as np
import pytest

import lucid
from lucid import optim
from lucid.errors import StateDictError
from tests.optimizers import USUAL
from tests.pieces import raising

each_optimizer = pytest.mark.parametrize("name", USUAL)


def stepped(name, rng, steps=2):
    """Return (parameter, optimiser) after steps on random gradients."""
    x = lucid.tensor(rng.standard_normal(3), requires_grad=True)
    optimizer = getattr(optim, name)([x], lr=0.1, **USUAL[name])
    for _ in range(steps):
        x.grad = lucid.tensor(rng.standard_normal(3))
        optimizer.step()
    return x, optimizer


@each_optimizer
def test_state_of_no_parameter_survives(name, rng):
    """What an optimiser keeps under a key that is no parameter is saved as it is, and loaded as a copy."""
    x, optimizer = stepped(name, rng)
    mean = lucid.tensor(rng.standard_normal(2))
    own = {"average": {"mean": mean, "seen": [1, 2]}, ("rank", 0): 5}
    optimizer.state.update(own)
    saved = optimizer.state_dict()
    assert {key: saved["state"][key] for key in own} == own
    assert saved["state"]["average"]["mean"] is mean
    y, other = stepped(name, rng)
    with lucid.no_grad():
        y.copy_(x)
    other.load_state_dict(saved)
    assert other.state[("rank", 0)] == 5
    assert other.state["average"]["seen"] == [1, 2]
    assert other.state["average"]["mean"].tolist() == mean.tolist()
    assert other.state["average"]["mean"].dtype == mean.dtype
    other.state["average"]["seen"].append(3)
    other.state["average"]["mean"].zero_()
    assert own["average"]["seen"] == [1, 2]
    assert mean.all()
    for param, each in ((x, optimizer), (y, other)):
        param.grad = lucid.ones(3, dtype=lucid.float64)
        each.step()
    assert x.tolist() == y.tolist()


def test_state_of_a_stranger_is_refused(rng):
    """State of a tensor in no group, and under a number, which stands for a parameter, cannot be saved: it says so."""
    _, optimizer = stepped("SGD", rng)
    for key, text in ((lucid.ones(2), r"a tensor of shape \(2,\)"), (0, "the number 0"), (7, "the number 7")):
        optimizer.state[key] = {}
        with pytest.raises(StateDictError, match=text):
            optimizer.state_dict()
        del optimizer.state[key]
    assert list(optimizer.state_dict()["state"]) == [0]


def test_loading_goes_through_setstate(rng):
    """A subclass that extends `__setstate__`, as PyTorch's do, is asked by loading and by unpickling."""
    calls = []

    class Own(optim.SGD):
        def __setstate__(self, state):
            calls.append(sorted(state))
            super().__setstate__(state)
            for group in self.param_groups:
                group.setdefault("warm", True)

    x = lucid.tensor(rng.standard_normal(3), requires_grad=True)
    optimizer = Own([x], lr=0.5)
    optimizer.load_state_dict(optim.SGD([x], lr=0.25).state_dict())
    assert calls == [["param_groups", "state"]]
    assert (optimizer.param_groups[0]["warm"], optimizer.param_groups[0]["lr"]) == (True, 0.25)
    assert copy.deepcopy(optimizer).param_groups[0]["warm"]

    optimizer.register_load_state_dict_post_hook(raising(ValueError("planned")))
    with pytest.raises(ValueError, match="planned"):
        optimizer.load_state_dict(optim.SGD([x], lr=0.125).state_dict())
    assert optimizer.param_groups[0]["lr"] == 0.25


@each_optimizer
def test_three_entries_make_an_optimizer(name, rng):
    """An optimiser made of `state`, `param_groups` and `defaults` alone, PyTorch's pickled form, steps on, hookless."""
    x, optimizer = stepped(name, rng)
    twin = type(optimizer).__new__(type(optimizer))
    twin.__setstate__({each: getattr(optimizer, each) for each in ("state", "param_groups", "defaults")})
    x.grad = lucid.ones(3, dtype=lucid.float64)
    y, other = pickle.loads(pickle.dumps((x, optimizer)))
    twin.step()
    y.grad = lucid.ones(3, dtype=lucid.float64)
    other.step()
    assert x.tolist() == y.tolist()
    assert twin.state_dict()["param_groups"] == optimizer.state_dict()["param_groups"]


@each_optimizer
@pytest.mark.parametrize("kind", ["float32", "float64", "bfloat16", "int64"])
def test_a_tensor_as_learning_rate(name, kind, rng):
    """A rate in a tensor of one element acts as its number does, and is read anew at each step."""
    start, grads = rng.standard_normal(3), rng.standard_normal((3, 3))
    plain, held = (lucid.tensor(start, requires_grad=True) for _ in range(2))
    rate = lucid.tensor(2.0).to(getattr(lucid, kind))
    optimizers = [getattr(optim, name)([x], lr=lr, **USUAL[name]) for x, lr in ((plain, 2.0), (held, rate))]
    for grad, new in zip(grads, (3.0, 1.0, 0.0), strict=True):
        for x, optimizer in zip((plain, held), optimizers, strict=True):
            x.grad = lucid.tensor(grad)
            optimizer.step()
        assert plain.tolist() == held.tolist()
        optimizers[0].param_groups[0]["lr"] = new
        rate.fill_(new)
    optimizers[1].load_state_dict(optimizers[1].state_dict())
    assert optimizers[1].param_groups[0]["lr"] is not rate
    assert float(optimizers[1].param_groups[0]["lr"]) == 0.0


@each_optimizer
def test_a_wrong_tensor_as_learning_rate(name):
    """A rate below 0 or of several elements is refused in a tensor too."""
    for rate in (lucid.tensor(-1.0), lucid.tensor([0.1, 0.2])):
        with pytest.raises(ValueError, match="learning rate"):
            getattr(optim, name)([lucid.ones(1, requires_grad=True)], lr=rate)


@each_optimizer
def test_settings_that_choose_an_implementation(name, rng):
    """PyTorch's `foreach`, `fused` and `capturable` change no number of a step; `differentiable` is refused.

    `fused` and `capturable` are no settings of each optimizer there.
    """
    start, grad = rng.standard_normal((2, 3))
    results = []
    taken = {"foreach", "differentiable", *inspect.signature(getattr(optim, name)).parameters}
    choices = [{}, {"foreach": True}, {"foreach": False, "fused": True}, {"differentiable": False}]
    for choice in [choice for choice in [*choices, {"capturable": True}] if choice.keys() <= taken]:
        x = lucid.tensor(start, requires_grad=True)
        x.grad = lucid.tensor(grad)
        getattr(optim, name)([x], lr=0.1, **choice).step()
        results.append(x.tolist())
    np.testing.assert_array_equal(results, [results[0]] * len(results))
    x = lucid.ones(1, requires_grad=True)
    if "fused" in taken:
        with pytest.raises(RuntimeError, match="together"):
            getattr(optim, name)([x], foreach=True, fused=True)
    with pytest.raises(NotImplementedError, match="differentiable"):
        getattr(optim, name)([x], differentiable=True)


@pytest.mark.parametrize("name", ["Adam", "AdamW", "NAdam"])
def test_tensors_as_betas(name, rng):
    """Betas in tensors of one element act as their numbers do, are read anew at each step, and are both tensors."""
    start, grads = rng.standard_normal(3), rng.standard_normal((4, 3))
    plain, held = (lucid.tensor(start, requires_grad=True) for _ in range(2))
    betas = lucid.tensor(0.5), lucid.tensor(0.75)
    optimizers = [getattr(optim, name)([plain], betas=(0.5, 0.75)), getattr(optim, name)([held], betas=betas)]
    for grad in grads:
        for x, optimizer in zip((plain, held), optimizers, strict=True):
            x.grad = lucid.tensor(grad)
            optimizer.step()
        assert plain.tolist() == held.tolist()
        optimizers[0].param_groups[0]["betas"] = (0.25, 0.875)
        betas[0].fill_(0.25)
        betas[1].fill_(0.875)
    x = lucid.ones(1, requires_grad=True)
    for wrong, text in [
        ((lucid.tensor(0.5), 0.5), "both floats or both Tensors"),
        ((lucid.tensor(0.5), lucid.tensor(1.5)), "beta parameter at index 1"),
    ]:
        with pytest.raises(ValueError, match=text):
            getattr(optim, name)([x], betas=wrong)


def test_tensors_that_lists_of_tensors_cannot_take():
    """PyTorch's `foreach` takes no setting in a tensor unless steps are counted on the device; said before a step."""
    x, tensor = lucid.ones(1, requires_grad=True), lucid.tensor(0.5)
    for name in ("Adam", "AdamW"):
        for given, text in (({"lr": tensor}, "^lr as"), ({"betas": (tensor, tensor)}, r"^betas\[0\] as")):
            with pytest.raises(ValueError, match=text):
                getattr(optim, name)([x], foreach=True, **given)
            getattr(optim, name)([x], foreach=True, capturable=True, **given)
    with pytest.raises(ValueError, match=r"Tensor betas\[0\] must be 1-element"):
        optim.AdamW([{"params": [x], "betas": (lucid.ones(2), tensor)}])
    with pytest.raises(RuntimeError, match="`fused` does not support `differentiable`"):
        optim.SGD([x], fused=True, differentiable=True)


def test_settings_in_arrays_of_another_library_become_tensors(rng):
    """A state dict may hold learning rate and betas in what lends its buffer, as tensors of PyTorch do."""
    x, optimizer = stepped("Adam", rng)
    saved = optimizer.state_dict()
    rate, betas = np.array(0.25), (np.array(0.5), np.array([0.75]))
    saved["param_groups"][0] |= {"lr": rate, "betas": betas}
    optimizer.load_state_dict(saved)
    group = optimizer.param_groups[0]
    assert isinstance(group["lr"], lucid.Tensor)
    rate.fill(7.0)
    betas[0].fill(7.0)
    assert (group["lr"].item(), *[beta.item() for beta in group["betas"]]) == (0.25, 0.5, 0.75)
    x.grad = lucid.ones(3, dtype=lucid.float64)
    optimizer.step()


def test_loading_leaves_state_of_a_users_optimizer_as_it_is(rng):
    """What a user's own optimizer keeps has its types after a load: an int ``step`` stays one, and None stays None."""

    class Counting(optim.Optimizer):
        def __init__(self, params):
            super().__init__(params, {})

        def step(self, closure=None):
            for param in self.param_groups[0]["params"]:
                state = self.state[param]
                state["step"] = state.get("step", 0) + 1
                state["buffer"] = None
                state["mean"] = param.grad.clone()
                state["seen"] = lucid.tensor(3)

    x = lucid.tensor(rng.standard_normal(3), requires_grad=True)
    x.grad = lucid.tensor(rng.standard_normal(3))
    saved = Counting([x])
    saved.step()
    saved.state[x]["ratio"] = lucid.tensor(0.5, dtype=lucid.float16)
    again = Counting([x])
    again.load_state_dict(saved.state_dict())
    state = again.state[x]
    assert (type(state["step"]), state["step"], state["buffer"]) == (int, 1, None)
    assert (state["seen"].dtype, state["ratio"].dtype) == (lucid.int64, x.dtype)
    assert lucid.equal(state["mean"], x.grad)
    again.step()
    assert again.state[x]["step"] == 2
