"""Optimisers against PyTorch: the same parameters after many random steps, and state dicts that go both ways."""

from __future__ import annotations

import importlib
import math

import numpy as np
import pytest
import torch

import lucid
from tests.device import DEVICE
from tests.optimizers import OTHERS, SETTINGS
from tests.parity.pieces import as_in_pytorch, close, parameters

# Sizes around the blocks in which a step runs: one element, below a block, and several blocks with a rest. Those of the
# CPU hold 65,536 doubles, those of a CUDA device 2,048 elements or more.
SHAPES = [(), (7,), (3, 5), (460, 301) if DEVICE == "cpu" else (90, 101)]

# Of these each parameter and gradient is a part: drawing as many for each step takes longer than all steps.
OFFSETS = 10_000
PARTS = 3 * np.random.default_rng(0).standard_normal((2, OFFSETS + max(map(math.prod, SHAPES))))

ALGORITHMS = {row: case for row, case in SETTINGS.items() if hasattr(torch.optim, case[0])}
each_algorithm = pytest.mark.parametrize(("name", "settings"), ALGORITHMS.values(), ids=ALGORITHMS)
NAMES = dict.fromkeys(name for name, _ in ALGORITHMS.values())
each_optimizer = pytest.mark.parametrize("name", NAMES)
each_class = pytest.mark.parametrize("name", [*NAMES, *OTHERS])


class Pair:
    """The same parameters, gradients and optimiser in both libraries; the last parameter has another learning rate."""

    def __init__(self, name, settings, dtype, seed=0, lr=0.03, shapes=SHAPES):
        self.random = np.random.default_rng(seed)
        self.dtype = dtype
        values = [self.noise(shape) for shape in shapes]
        self.ours = [lucid.tensor(v, requires_grad=True) for v in values]
        self.theirs = [torch.tensor(v, requires_grad=True) for v in values]
        self.optimizers = [
            getattr(library.optim, name)(
                [{"params": params[:-1]}, {"params": params[-1:], "lr": lr / 3}], lr=lr, **settings
            )
            for library, params in ((lucid, self.ours), (torch, self.theirs))
        ]

    def noise(self, shape):
        begin, count = self.random.integers(OFFSETS), math.prod(shape)
        real, imaginary = (part[begin : begin + count].reshape(shape) for part in PARTS)
        return np.asarray(real + 1j * imaginary if np.dtype(self.dtype).kind == "c" else real, self.dtype)

    def step(self, skip=()):
        for place, (ours, theirs) in enumerate(zip(self.ours, self.theirs, strict=True)):
            grad = None if place in skip else self.noise(tuple(ours.shape))
            ours.grad = None if grad is None else lucid.tensor(grad)
            theirs.grad = None if grad is None else torch.tensor(grad)
        for optimizer in self.optimizers:
            optimizer.step()

    def compare(self, tolerance):
        close(self.ours, self.theirs, tolerance, tolerance)


@each_algorithm
@pytest.mark.parametrize(
    ("dtype", "tolerance", "steps", "shapes"),
    [
        (np.float64, 1e-12, 20, SHAPES), (np.float32, 3e-6, 20, SHAPES), (np.complex128, 1e-12, 20, SHAPES),
        (np.float64, 1e-12, 100, SHAPES[:-1]), (np.float32, 3e-6, 100, SHAPES[:-1]),
    ],
    ids=["float64-20", "float32-20", "complex128-20", "float64-100", "float32-100"],
)  # fmt: skip
def test_many_steps(name, settings, dtype, tolerance, steps, shapes):
    """After steps on random gradients every parameter is PyTorch's, in groups with rates of their own."""
    pair = Pair(name, settings, dtype, shapes=shapes)
    for step in range(steps):
        pair.step(skip=(1,) if step % 3 == 0 else ())
    pair.compare(tolerance)


@each_optimizer
@pytest.mark.parametrize("spelling", ["float16", "bfloat16"])
def test_half_types(name, spelling):
    """Half parameters are updated in float32 and rounded once: a step is that of float32 within half a unit."""
    random = np.random.default_rng(3)
    start, grad = random.standard_normal((2, 40, 50)).astype(np.float32)
    ours = lucid.tensor(start).to(getattr(lucid, spelling)).requires_grad_()
    ours.grad = lucid.tensor(grad).to(getattr(lucid, spelling))
    half = getattr(torch, spelling)
    theirs = torch.tensor(start).to(half).float().requires_grad_()
    theirs.grad = torch.tensor(grad).to(half).float()
    getattr(lucid.optim, name)([ours], lr=0.125).step()
    getattr(torch.optim, name)([theirs], lr=0.125).step()
    half_a_unit = torch.finfo(half).eps / 2 * 1.001
    np.testing.assert_allclose(ours.float().numpy(force=True), theirs.numpy(force=True), rtol=half_a_unit, atol=3e-7)


@each_algorithm
@pytest.mark.parametrize("direction", ["to lucid", "to PyTorch"])
def test_state_dicts_go_both_ways(name, settings, direction):
    """A state dict written by one library is continued by the other as by itself."""
    pair = Pair(name, settings, np.float64)
    for _ in range(3):
        pair.step()
    ours, theirs = pair.optimizers
    if direction == "to lucid":
        fresh = type(ours)(pair.ours[:-1], lr=1)
        fresh.add_param_group({"params": pair.ours[-1]})
        fresh.load_state_dict(theirs.state_dict())
        pair.optimizers[0] = fresh
    else:
        fresh = type(theirs)([{"params": pair.theirs[:-1]}, {"params": pair.theirs[-1:]}], lr=1)
        given = ours.state_dict()
        given["state"] = {
            number: {key: torch.tensor(value.numpy(force=True)) for key, value in entries.items()}
            for number, entries in given["state"].items()
        }
        fresh.load_state_dict(given)
        for state in fresh.state.values():
            # PyTorch's load gives what is not named "step" the parameter's dtype, and NAdam's goes on in it
            state.update({key: state[key].float() for key in ours.scalars})
        pair.optimizers[1] = fresh
    for _ in range(3):
        pair.step()
    pair.compare(1e-12)


@each_algorithm
def test_same_keys_in_the_state_dict(name, settings):
    """Numbers of parameters, names and shapes of the state, and shared settings are PyTorch's."""
    pair = Pair(name, settings, np.float32)
    pair.step(skip=(1,))
    ours, theirs = (optimizer.state_dict() for optimizer in pair.optimizers)
    assert ours["state"].keys() == theirs["state"].keys()
    for number, entries in theirs["state"].items():
        assert {key: tuple(value.shape) for key, value in ours["state"][number].items()} == {
            key: tuple(value.shape) for key, value in entries.items()
        }
    for group, other in zip(ours["param_groups"], theirs["param_groups"], strict=True):
        assert group.items() <= other.items()


@each_class
def test_signature(name):
    """Constructors take PyTorch's parameters, with its defaults."""
    assert parameters(getattr(lucid.optim, name)) == parameters(getattr(torch.optim, name))


@each_class
def test_address(name):
    """A class is found in the module in which PyTorch has it."""
    address = getattr(torch.optim, name).__module__.removeprefix("torch.")
    assert getattr(importlib.import_module(f"lucid.{address}"), name) is getattr(lucid.optim, name)


WRONG = {
    "lr": -0.1,
    "momentum": -1.0,
    "weight_decay": -1e-3,
    "eps": -1e-8,
    "betas": (1.0, 0.9),
    "betas ": (0.9, -0.1),
    "nesterov": True,
    "rho": 1.5,
    "lr_decay": -0.1,
    "initial_accumulator_value": -1.0,
    "momentum_decay": -1e-3,
    "etas": (0.5, 0.9),
    "etas ": (0.0, 1.2),
}


@each_optimizer
@pytest.mark.parametrize("setting", WRONG)
def test_wrong_settings(name, setting):
    """What PyTorch's constructor refuses, lucid's refuses with the same kind of error and the same beginning."""
    given = {setting.strip(): WRONG[setting]}
    with pytest.raises((ValueError, TypeError)) as theirs:
        getattr(torch.optim, name)([torch.ones(2, requires_grad=True)], **given)
    with pytest.raises(type(theirs.value)) as ours:
        getattr(lucid.optim, name)([lucid.ones(2, requires_grad=True)], **given)
    if theirs.type is ValueError:
        assert str(ours.value).split(":")[0] == str(theirs.value).split(":")[0]


def test_representation():
    """`repr` shows the groups as PyTorch's does, but for the settings that choose one of its implementations."""
    ours, theirs = (repr(optimizer) for optimizer in Pair("AdamW", {}, np.float32).optimizers)
    only_pytorch = {"foreach", "differentiable", "fused"}
    kept = [line for line in theirs.split("\n") if line.split(":")[0].strip() not in only_pytorch]
    assert ours.split("\n") == kept


@as_in_pytorch
def test_closure_and_hooks_run_in_pytorchs_order(lib, events):
    """Pre-hooks, closure, update, post-hooks; a pre-hook may replace the arguments."""
    x = lib.tensor([1.0, -2.0], requires_grad=True)
    optimizer = lib.optim.SGD([x], lr=0.5)

    def closure():
        events.append("closure")
        loss = (x * x).sum()
        loss.backward()
        return loss

    def pre(self, args, kwargs):
        events.append(("pre", args[0] is self, args[1:], kwargs))
        return args, {"closure": closure}

    def post(self, args, kwargs):
        events.append(("post", args[0] is self, args[1:], list(kwargs), x.detach().tolist()))

    optimizer.register_step_pre_hook(pre)
    optimizer.register_step_post_hook(post)
    events.append(optimizer.step().item())


@as_in_pytorch
def test_global_hooks_fire_in_pytorchs_order(lib, events):
    """Global pre-hooks, own pre-hooks, the step, own post-hooks, global post-hooks; the first may replace arguments."""
    hooks = importlib.import_module(f"{lib.__name__}.optim.optimizer")
    x = lib.tensor([1.0, -2.0], requires_grad=True)
    x.grad = lib.tensor([0.5, 1.0])
    optimizer = lib.optim.SGD([x], lr=0.5)
    optimizer.register_step_pre_hook(lambda o, a, k: events.append(("own pre", len(a), list(k))))
    optimizer.register_step_post_hook(lambda o, a, k: events.append(("own post", len(a), list(k))))
    with (
        hooks.register_optimizer_step_pre_hook(lambda o, a, k: (a, {"closure": lambda: 3.0})),
        hooks.register_optimizer_step_post_hook(lambda o, a, k: events.append(("post", list(k)))),
        hooks.register_optimizer_step_pre_hook(lambda o, a, k: events.append(("pre", list(k)))),
    ):
        events.append(optimizer.step())
    events += [optimizer.step(), x.tolist()]


@each_algorithm
def test_a_tensor_as_learning_rate(name, settings):
    """Twenty steps at a rate that a tensor holds, and that halves each time, are PyTorch's."""
    pair = Pair(name, settings, np.float64)
    rates = [library.tensor(0.05, dtype=library.float64) for library in (lucid, torch)]
    for optimizer, rate in zip(pair.optimizers, rates, strict=True):
        for group in optimizer.param_groups:
            group["lr"] = rate
    for _ in range(20):
        pair.step()
        for rate in rates:
            rate.mul_(0.5)
    pair.compare(1e-12)


def test_a_state_dict_with_settings_in_tensors():
    """PyTorch's state dict of a learning rate and betas in tensors is continued by lucid's Adam as by PyTorch's."""
    pair = Pair("Adam", {}, np.float64)
    one = torch.tensor(0.5, dtype=torch.float64)
    for group in pair.optimizers[1].param_groups:
        group |= {"lr": one * 0.1, "betas": (one, one * 1.5), "foreach": False}
    for group in pair.optimizers[0].param_groups:
        group |= {"lr": 0.05, "betas": (0.5, 0.75)}
    pair.step()
    pair.optimizers[0].load_state_dict(pair.optimizers[1].state_dict())
    for _ in range(3):
        pair.step()
    pair.compare(1e-12)


@as_in_pytorch
def test_state_of_no_parameter(lib, events):
    """State under keys that are no parameter is in both state dicts, and is there after loading."""
    x = lib.ones(2, requires_grad=True)
    optimizer = lib.optim.SGD([x], lr=0.5, momentum=0.9)
    x.grad = lib.ones(2)
    optimizer.step()
    optimizer.state["own"], optimizer.state[("a", 1)] = {"mean": 0.5}, [1, 2]
    saved = optimizer.state_dict()
    other = lib.optim.SGD([lib.ones(2, requires_grad=True)], lr=0.5, momentum=0.9)
    other.load_state_dict(saved)
    names = [key for key in other.state if not isinstance(key, lib.Tensor)]
    events += [list(saved["state"]), {key: other.state[key] for key in names}]
